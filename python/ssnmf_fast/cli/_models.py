"""The models of ``ssnmf-fast fit``: what each needs and takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..report import Measure
from . import _measures as measures
from ._cluster import namespace, settle
from ._errors import UsageError
from ._fitted import Fitted
from ._sample_labels import SampleLabels

FROBENIUS, DIVERGENCE = "frobenius", "kullback-leibler"

# Options that only some models take, and the parameter of the estimator that each one sets.
_PARAMETERS = {
    "reconstruction": "reconstruction",
    "supervision": "supervision",
    "supervision_weight": "supervision_weight",
    "self_training": "self_training",
    "readout": "readout",
    "labelled_weight": "labelled_weight",
    "svm_c": "C",
    "a_s": "a_S",
    "a_lambda": "a_lambda",
    "freq": "freq",
    "method": "method",
    "documents_per_slice": "documents_per_slice",
}
_OPTIONS = (*_PARAMETERS, "free_topics", "label_separator", "test_size", "time")
_TEST_SIZE = 0.2
_CHOSEN = "auto"  # what the estimator chooses by validation
_BAYESIAN_LOOP = (200, 1e-5)  # a bound rises by smaller shares of its first value


@dataclass(frozen=True)
class Model:
    """One model.

    `options` holds those of `_OPTIONS` that it takes, with the value of each that is not given;
    None leaves it to the estimator.
    """

    name: str
    estimator: str  # class of ssnmf_fast
    about: str
    options: Mapping[str, Any]
    targets: Callable[[SampleLabels], Any] | None = None  # what fit takes as y
    names_topics: bool = False  # has every label a topic, which sets the rank?
    chooses: bool = False  # does it choose by validation what is not given?
    loop: tuple[int, float] = (100, 1e-4)  # max_iter and tol
    measures: tuple[Callable[[Fitted], list[Measure]], ...] = field(default=())
    parameters: Mapping[str, str] = field(default_factory=dict)  # where not those of _PARAMETERS
    on_cluster: bool = False  # can it be fitted on one?

    @property
    def several(self) -> bool:
        """Whether a sample may have several labels."""
        return "label_separator" in self.options

    @property
    def dated(self) -> bool:
        """Whether samples have times."""
        return "time" in self.options

    def settle(self, options: Any) -> None:
        """Check the options, and set those that are not given."""
        if self.targets is not None and not options.labels:
            raise UsageError(f"--model {self.name} needs --labels; without labels use --model nmf")
        if options.cluster is not None:
            settle(self, options, on_clusters())
        if self.dated and options.time is None:
            raise UsageError(f"--model {self.name} needs --time, the column of the dates")
        for name in _OPTIONS:
            if name not in self.options and getattr(options, name) is not None:
                raise UsageError(_no_use(name, self))
        if options.method == "nmf" and options.documents_per_slice is not None:
            raise UsageError("--documents-per-slice belongs to --method tensor; nmf takes them all")
        for name, default in self.options.items():
            if getattr(options, name) is None:
                setattr(options, name, default)
        if options.learning_curve and self.targets is None:
            raise UsageError(f"--learning-curve counts labels; --model {self.name} uses none")
        options.model = self.name
        for name, value in zip(("max_iter", "tol"), self.loop, strict=True):
            if getattr(options, name) is None:
                setattr(options, name, value)
        if options.test_size is None and "test_size" in self.options:
            # Validation within the fit tells the accuracy, and no label is lost for it.
            options.test_size = 0.0 if self.validates(options) else _TEST_SIZE
        self._check_rank(options)
        if options.supervision_weight == math.inf and not self.chooses:
            raise UsageError(f"--model {self.name} takes no --supervision-weight inf")

    def _check_rank(self, options: Any) -> None:
        if options.rank is None and not (self.names_topics or self.chooses):
            more = "; the default with --labels, ssnmf, chooses it"
            raise UsageError(f"--model {self.name} needs --rank, the number of topics{more}")
        if options.rank is not None and options.free_topics is not None:
            raise UsageError("--rank and --free-topics both set the number of topics; give one")

    def validates(self, options: Any) -> bool:
        """Whether the fit chooses by validation, and so says what accuracy to expect."""
        open_choice = options.rank is None or options.supervision_weight in (None, _CHOSEN)
        return self.chooses and open_choice and options.readout in (None, "logistic")

    def build(self, options: Any, labels: SampleLabels | None, callback: Any) -> Any:
        """Return the estimator, not fitted; `labels` are those that it will see."""
        given = {
            self.parameters.get(name, _PARAMETERS[name]): getattr(options, name)
            for name in self.options
            if name in _PARAMETERS and getattr(options, name) is not None
        }
        if self.targets is not None:
            given["unlabelled"] = None  # a label "-1" in a file is a label
        if self.names_topics and labels is not None:
            given["n_free_topics"] = _free_topics(options, len(labels.names))
        elif options.rank is not None:
            given["n_components"] = options.rank
        return getattr(namespace(options), self.estimator)(
            max_iter=options.max_iter,
            tol=options.tol,
            random_state=options.seed,
            n_threads=options.threads,
            callback=callback,
            **given,
        )


def _classifier(
    name: str, data: str | None, labels: str | None, about: str, **changes: Any
) -> Model:
    return Model(
        name,
        "SSNMFClassifier",
        about,
        options={
            "reconstruction": data,
            "supervision": labels,
            "supervision_weight": None if name == "ssnmf" else "balanced",
            "self_training": None,
            "readout": None,
            "label_separator": None,
            "test_size": None,
        },
        targets=SampleLabels.single_or_indicators,
        chooses=True,
        on_cluster=True,
        **changes,
    )


_ALL = (
    _classifier(
        "ssnmf",
        None,
        None,
        "classifier for few labels and many; settings that are not given are chosen by validation",
        loop=(200, 1e-4),
    ),
    _classifier("ff", FROBENIUS, FROBENIUS, "classifier; squared error of data and labels"),
    _classifier("fd", FROBENIUS, DIVERGENCE, "classifier; squared error, divergence of labels"),
    _classifier("df", DIVERGENCE, FROBENIUS, "classifier; divergence, squared error of labels"),
    _classifier("dd", DIVERGENCE, DIVERGENCE, "classifier; divergence of data and labels"),
    Model(
        "nmf",
        "NMF",
        "topics without the help of labels",
        options={"reconstruction": FROBENIUS},
        on_cluster=True,
    ),
    Model(
        "ts-nmf",
        "TopicSupervisedNMF",
        "one topic for each label, which labelled texts may have only if they name it",
        options={
            "reconstruction": FROBENIUS,
            "labelled_weight": "inverse-rate",
            "free_topics": None,
            "label_separator": None,
            "test_size": None,
        },
        targets=SampleLabels.single_or_lists,
        names_topics=True,
        on_cluster=True,
        measures=(measures.topic_measures,),
    ),
    Model(
        "nmf-alpha",
        "MarginNMF",
        "topics that keep what separates the classes for a support vector machine",
        options={
            "reconstruction": DIVERGENCE,
            "supervision_weight": None,
            "svm_c": 1.0,
            "label_separator": None,
            "test_size": None,
        },
        targets=SampleLabels.single_or_indicators,
    ),
    Model(
        "cnmf",
        "ConstrainedNMF",
        "labelled samples of a class share their topics exactly",
        options={"reconstruction": FROBENIUS, "test_size": None},
        targets=SampleLabels.single,
    ),
    Model(
        "dynamic",
        "DynamicTopics",
        "topics of dated texts and how prevalent each is over time",
        options={
            "time": None,
            "freq": "month",
            "method": "tensor",
            "documents_per_slice": None,
            "reconstruction": FROBENIUS,
        },
        loop=(200, 1e-4),
        parameters={"reconstruction": "loss"},
    ),
    Model(
        "vbnmf",
        "BayesianNMF",
        "Bayesian topics without the help of labels",
        options={"a_s": None},
        loop=_BAYESIAN_LOOP,
        on_cluster=True,
        measures=(measures.bound_measures, measures.sparsity_measures),
    ),
    Model(
        "supervised-vbnmf",
        "SupervisedBayesianNMF",
        "Bayesian topics, of which each class uses few",
        options={"a_lambda": None, "test_size": None},
        loop=_BAYESIAN_LOOP,
        targets=SampleLabels.single,
        measures=(measures.label_sparsity_measures, measures.bound_measures),
    ),
)
MODELS: Mapping[str, Model] = {model.name: model for model in _ALL}


def on_clusters() -> list[str]:
    """Return the models that can be fitted on a cluster."""
    return [name for name, model in MODELS.items() if model.on_cluster]


def chosen(options: Any) -> Model:
    """Return the model that the options name, or the default one."""
    return MODELS[options.model or ("ssnmf" if options.labels else "nmf")]


def check_labels(model: Model, labels: SampleLabels) -> None:
    """Raise UsageError for labels that the model cannot take."""
    if model.several or not labels.several:
        return
    if model.targets is None:  # they only colour the report
        return
    first = next(i for i, names in enumerate(labels.each) if len(names) > 1)
    names = ", ".join(labels.each[first])
    able = ", ".join(name for name, other in MODELS.items() if other.several)
    raise UsageError(
        f"sample {first} has several labels ({names}); --model {model.name} takes one a sample, "
        f"{able} take several"
    )


def _free_topics(options: Any, n_named: int) -> int:
    """Return the number of topics beside those that labels name."""
    if options.rank is None:
        return int(options.free_topics or 0)
    if options.rank < n_named:
        raise UsageError(
            f"--rank {options.rank} is too small: the labels name {n_named} topics, and each needs "
            "one; leave --rank out, or add --free-topics instead"
        )
    return int(options.rank - n_named)


def _no_use(name: str, model: Model) -> str:
    option = "--" + name.replace("_", "-")
    users = ", ".join(other.name for other in MODELS.values() if name in other.options)
    return f"--model {model.name} has no use for {option}; it is for {users}"
