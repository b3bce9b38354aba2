"""The models of ``ssnmf-fast fit``: what each needs and takes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .. import estimators
from ..report import Measure
from . import _quality as measures
from ._fitted import Fitted
from ._labels import SampleLabels, read_seeds
from ._read import UsageError

# Options that some models take but their estimators do not, and parameters of other names.
_OF_COMMAND = ("free_topics", "label_separator", "seeds", "test_size", "time")
_RENAMED = {"svm_c": "C", "s_shape": "S_shape"}
_TEST_SIZE = 0.2


@dataclass(frozen=True)
class Model:
    """One model; `options` names those that only some models take, of which it is one."""

    name: str
    estimator: str  # name of a class
    about: str
    options: tuple[str, ...]
    targets: Callable[[SampleLabels], Any] | None = None  # what fit takes as y
    needs_labels: bool = True  # where it takes targets
    names_topics: bool = False  # has every label a topic, which sets the rank?
    validates: bool = False  # does the fit tell the accuracy, and has each class its topics?
    refused: tuple[Any, ...] = ()  # weights of labels that others take
    measures: tuple[Callable[[Fitted], list[Measure]], ...] = ()

    @property
    def several(self) -> bool:
        """Whether a sample may have several labels."""
        return "label_separator" in self.options

    @property
    def _parameters(self) -> dict[str, str]:
        """Return the options that set parameters of the estimator, and these."""
        particular = [name for name in self.options if name not in _OF_COMMAND]
        return {name: _RENAMED.get(name, name) for name in [*particular, "max_iter", "tol"]}

    def complete_options(self, options: Any) -> None:
        """Check the options, and set those that are not given to the estimator's defaults."""
        if self.targets is not None and self.needs_labels and not options.labels:
            raise UsageError(f"--model {self.name} needs --labels; without labels use --model nmf")
        if "time" in self.options and options.time is None:
            raise UsageError(f"--model {self.name} needs --time, the column of the dates")
        if "seeds" in self.options and options.seeds is None:
            raise UsageError(f"--model {self.name} needs --seeds, a file with words of topics")
        for name in dict.fromkeys(name for model in _ALL for name in model.options):
            if name not in self.options and getattr(options, name) is not None:
                users = ", ".join(other.name for other in _ALL if name in other.options)
                raise UsageError(
                    f"--model {self.name} has no use for --{name.replace('_', '-')}; it is for "
                    f"{users}"
                )
        if (
            options.method not in (None, "tied", "tensor")
            and options.documents_per_slice is not None
        ):
            raise UsageError(
                "--documents-per-slice belongs to --method tied and tensor; the others take all "
                "texts"
            )
        options.model = self.name
        defaults = getattr(estimators, self.estimator)().get_params()
        for name, parameter in self._parameters.items():
            if getattr(options, name) is None:
                setattr(options, name, defaults[parameter])
        if options.test_size is None and "test_size" in self.options:
            # Validation within the fit tells the accuracy, and no label is lost for it.
            options.test_size = 0.0 if self.validates else _TEST_SIZE
        if options.rank is None and not (self.names_topics or self.validates):
            more = "; the default with --labels, few-labels, has topics for each class"
            raise UsageError(f"--model {self.name} needs --rank, the number of topics{more}")
        if options.rank is not None and self.validates:
            raise UsageError(
                f"--model {self.name} takes no --rank: it has one topic or three for each class; "
                "--model ssnmf takes one"
            )
        if options.rank is not None and options.free_topics is not None:
            raise UsageError("--rank and --free-topics both set the number of topics; give one")
        if options.supervision_weight in self.refused:
            weight = options.supervision_weight
            raise UsageError(f"--model {self.name} takes no --supervision-weight {weight}")

    def build(
        self,
        options: Any,
        labels: SampleLabels | None,
        callback: Any,
        terms: list[str] | None = None,
    ) -> Any:
        """Return the estimator, not fitted; `labels` are those that it will see."""
        given = {new: getattr(options, name) for name, new in self._parameters.items()}
        if self.targets is not None:
            given["unlabeled"] = None  # a label "-1" in a file is a label
        if "seeds" in self.options:
            given["seeds"] = read_seeds(options.seeds, options.encoding)
            given["feature_names"] = terms
            given["n_free_topics"] = _free_topics(options, len(given["seeds"]), "seeds")
        elif self.names_topics and labels is not None:
            given["n_free_topics"] = _free_topics(options, len(labels.names), "labels")
        elif options.rank is not None:
            given["n_components"] = options.rank
        return getattr(estimators, self.estimator)(
            random_state=options.seed,
            n_threads=options.threads,
            dtype=options.dtype,
            callback=callback,
            **given,
        )


def _free_topics(options: Any, n_named: int, named_by: str) -> int:
    """Return the number of topics beside those that have a name."""
    if options.rank is None:
        return int(options.free_topics or 0)
    if options.rank < n_named:
        raise UsageError(
            f"--rank {options.rank} is too small: the {named_by} name {n_named} topics, and each "
            "needs one; leave --rank out, or add --free-topics instead"
        )
    return int(options.rank) - n_named


_ALL = (
    Model(
        "few-labels",
        "FewLabelsClassifier",
        "classifier for few labels and many: several methods, weighted by cross-validation",
        ("loss", "self_training", "label_separator", "test_size"),
        targets=SampleLabels.single_or_indicators,
        validates=True,
    ),
    Model(
        "ssnmf",
        "SSNMFClassifier",
        "the classifier of the papers, whose rank and weight of the labels are given",
        (
            *("loss", "supervision_loss", "supervision_weight", "readout"),
            *("label_separator", "test_size"),
        ),
        targets=SampleLabels.single_or_indicators,
        refused=("auto",),
    ),
    Model("nmf", "NMF", "topics without the help of labels", ("loss",)),
    Model(
        "ts-nmf",
        "TopicSupervisedNMF",
        "one topic for each label, which labeled texts may have only if they name it",
        ("loss", "labeled_weight", "free_topics", "label_separator", "test_size"),
        targets=SampleLabels.single_or_indicators,
        names_topics=True,
        measures=(measures.topic_measures,),
    ),
    Model(
        "seeded",
        "SeededTopics",
        "topics, and classes, from a few words each; labels are not needed",
        ("loss", "seeds", "free_topics", "test_size"),
        targets=SampleLabels.single,
        needs_labels=False,
        names_topics=True,
        measures=(measures.topic_measures,),
    ),
    Model(
        "nmf-alpha",
        "MarginNMF",
        "topics that keep what separates the classes for a support vector machine",
        ("loss", "supervision_weight", "svm_c", "label_separator", "test_size"),
        targets=SampleLabels.single_or_indicators,
        refused=(math.inf,),
    ),
    Model(
        "cnmf",
        "ConstrainedNMF",
        "labeled samples of a class share their topics exactly",
        ("loss", "test_size"),
        targets=SampleLabels.single,
    ),
    Model(
        "dynamic",
        "DynamicTopics",
        "topics of dated texts and how prevalent each is over time",
        ("time", "freq", "method", "documents_per_slice", "loss"),
    ),
    Model(
        "vbnmf",
        "BayesianNMF",
        "Bayesian topics without the help of labels",
        ("s_shape",),
        measures=(measures.bound_measures, measures.sparsity_measures),
    ),
    Model(
        "supervised-vbnmf",
        "SupervisedBayesianNMF",
        "Bayesian topics, of which each class uses few",
        ("rate_shape", "test_size"),
        targets=SampleLabels.single,
        measures=(measures.label_sparsity_measures, measures.bound_measures),
    ),
)
MODELS: Mapping[str, Model] = {model.name: model for model in _ALL}


def choose_model(options: Any) -> Model:
    """Return the model that the options name, or the default one."""
    if options.model is None and options.seeds is not None:
        return MODELS["seeded"]
    return MODELS[options.model or ("few-labels" if options.labels else "nmf")]


def check_labels(model: Model, labels: SampleLabels, rank: int | None) -> None:
    """Raise UsageError for labels that the model cannot take; warn of too few topics for them."""
    if model.targets is None:
        return  # labels that a model is not fitted to only color the report
    if labels.several and not model.several:
        first = next(i for i, names in enumerate(labels.each) if len(names) > 1)
        names = ", ".join(labels.each[first])
        able = ", ".join(name for name, other in MODELS.items() if other.several)
        raise UsageError(
            f"sample {first} has several labels ({names}); --model {model.name} takes one a "
            f"sample, {able} take several"
        )
    if rank is not None and rank < len(labels.names) and not model.names_topics:
        warnings.warn(
            f"--rank {rank} is below the number of classes, {len(labels.names)}: so few topics "
            "cannot stand for all of them",
            stacklevel=2,
        )
