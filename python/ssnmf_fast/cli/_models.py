"""The models of ``ssnmf-fast fit``: their options, and measures of their fits."""

from __future__ import annotations

import copy
import math
import re
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from itertools import compress
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import estimators, metrics, results
from .._common.arrays import Array
from .._common.locks import cached_property
from .._common.text import sort_naturally
from .._data.times import Times
from .._topics import amounts, topic_shares
from ..report.evaluation import NONE_SURE, Evaluation, Measure, Score, evaluate, name_classes
from ..report.shares import ClassShare, shares_of_classes
from ._commands import MODELS
from ._labels import Mask, SampleLabels, read_seeds, warn_of_labels
from ._options import UsageError, changed, refuse, warn
from ._read import find_source
from ._text import Vectorizer

_EMPTY, _UNKNOWN = "empty text", "no known word"
SEPARATOR = ";"  # between the labels of a sample, unless another is given
Ids = tuple[str, Sequence[Any]]  # name of the column, and the id of every sample


@dataclass(frozen=True, kw_only=True)
class Samples:
    """Samples with labels, texts, ids and times; `image_shape` if rows of X are images."""

    X: Any
    labels: SampleLabels | None = None
    terms: list[str] | None = None
    vectorizer: Vectorizer | None = None
    texts: list[str] | None = None  # from which the vectorizer made X
    ids: Ids | None = None
    times: Times | None = None
    freq: str | int | None = None  # length of the slices of time
    groups: dict[str, list[str]] = field(default_factory=dict)  # of the samples, by column
    image_shape: tuple[int, int] | None = None

    @cached_property
    def reasons(self) -> list[str]:
        """Why no label can be predicted for a sample; "" if one can."""
        filled = np.diff(self.X.indptr) if sp.issparse(self.X) else (self.X > 0).any(axis=1)
        if self.texts is None:
            return ["" if has_data else "no data" for has_data in filled]
        pairs = zip(self.texts, filled, strict=True)
        return ["" if has_data else _UNKNOWN if text else _EMPTY for text, has_data in pairs]

    @cached_property
    def odd_texts(self) -> dict[str, int]:
        """How many texts are empty or have no known word, and how many others are repeated."""
        if self.texts is None:
            return {}
        usable = [text for text, why in zip(self.texts, self.reasons, strict=True) if not why]
        counts = {why: self.reasons.count(why) for why in (_EMPTY, _UNKNOWN)}
        return {**counts, "repeated texts": len(usable) - len(set(usable))}

    def warn_of_reasons(self, consequence: str) -> None:
        """Warn of samples for which no label can be predicted."""
        odd, counts = np.flatnonzero(self.reasons), Counter(filter(None, self.reasons))
        if len(odd):
            what = ", ".join(f"{why} {count}" for why, count in counts.items())
            first = ", ".join([*map(str, odd[:5]), *["..."] * (len(odd) > 5)])
            wrong = f"{len(odd)} of {len(self.reasons)} samples cannot be used"
            warn(f"{wrong} ({what}; sample {first}): {consequence}")

    @property
    def size(self) -> str:
        nonzeros = f", {self.X.nnz} nonzeros" if sp.issparse(self.X) else ""
        return "{} samples x {} features".format(*self.X.shape) + nonzeros


@dataclass(frozen=True, kw_only=True)
class FittedModel(Samples):
    """A fitted model with data, of the fit or new."""

    model: Any
    held_out: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))
    guided: bool = True
    seconds: float = 0.0
    settings: Mapping[str, str] = field(default_factory=dict)
    target: float | None = None  # accuracy of the predictions that nobody checks
    least: float | None = None  # probability of these in new data, as found by the fit
    separator: str = SEPARATOR  # between the labels of a sample

    @cached_property
    def over_time(self) -> results.TopicsOverTime | None:
        """The topics in slices of time; None without times."""
        if self.times is None:
            return None
        by = None if self.labels is None else self.labels.single_or_indicators()
        options: Any = {
            "freq": self.freq or "month",
            "feature_names": self.terms,
            "by": by,
            "unlabeled": None,
        }
        topics = estimators.topics_over_time(self.model, self.X, self.times.values, **options)
        return replace(topics, prevalence=getattr(self.model, "prevalence_", topics.prevalence))

    @property
    def predicts(self) -> bool:
        return hasattr(self.model, "predict_proba")

    @property
    def residual(self) -> float | None:
        receipt = getattr(self.model, "receipt_", None)
        return None if receipt is None else float(receipt.residual)

    @property
    def training(self) -> Mask:
        if self.labels is None:
            return np.zeros(len(self.held_out), dtype=bool)
        return self.labels.known & ~self.held_out

    @cached_property
    def representation(self) -> Array:
        """The weights of the topics in all samples, represented without their labels."""
        if not self.guided:  # the fit itself had no labels
            return np.asarray(self.model.representation_)
        model = self.model
        if "features" in getattr(model, "get_params", dict)():
            model = copy.copy(model).set_params(features="representation")
        return np.asarray(model.transform(self.X))

    @cached_property
    def amounts(self) -> Array:
        """The same in comparable units: how much of a sample each topic explains."""
        return amounts(self.representation, self.model.components_)

    @cached_property
    def shares(self) -> Array:
        """The same as shares of each sample; rows sum to 1 or are 0."""
        return topic_shares(self.representation, self.model.components_)

    @cached_property
    def proba(self) -> Array:
        """The probabilities that a model gives the classes of all samples, (n, k)."""
        return np.asarray(self.model.predict_proba(self.X))

    @cached_property
    def predicted(self) -> Array:
        """The predicted classes of all samples, (n,), or with several labels 0 and 1, (n, k)."""
        if getattr(self.model, "multilabel_", False):
            return np.asarray(self.model.predict(self.X))
        return name_classes(self.model, self.proba)

    @cached_property
    def guesses(self) -> Array:
        """The predicted classes as indicators, (n, k)."""
        if self.predicted.ndim == 2:
            return self.predicted
        return np.asarray(self.proba.argmax(axis=1)[:, None] == np.arange(self.proba.shape[1]))

    @cached_property
    def classes(self) -> list[str]:
        return [str(name) for name in self.model.classes_]

    @cached_property
    def predictions(self) -> list[str]:
        """The predicted labels as one text per sample; "" for one with a reason."""
        names = (self.separator.join(compress(self.classes, row)) for row in self.guesses)
        return ["" if why else name for name, why in zip(names, self.reasons, strict=True)]

    def name_second(self) -> Array:
        """Return the most probable class of each sample among those not predicted, (n,)."""
        others = np.where(self.guesses > 0, -1.0, self.proba)
        names = np.array([*self.classes, ""], dtype=object)
        return names[np.where(others.max(axis=1) < 0, -1, others.argmax(axis=1))]

    @cached_property
    def certainty(self) -> Array:
        """The probability of each prediction, of several labels the smallest, (n,)."""
        chances = np.where(self.guesses > 0, self.proba, 1.0).min(axis=1)
        return np.asarray(np.where(self.guesses.any(axis=1), chances, 1 - self.proba.max(axis=1)))

    @cached_property
    def known(self) -> Mask:
        """The samples with a label, hidden from the fit or not."""
        return np.zeros(len(self.reasons), bool) if self.labels is None else self.labels.known

    @cached_property
    def coded(self) -> Mask:
        """The samples without a label for which one is predicted."""
        return ~self.known & [why == "" for why in self.reasons]

    @cached_property
    def sure(self) -> tuple[float, Score | None]:
        """The least probability of the surest predictions, and their accuracy."""
        if self.evaluation is None or self.target is None:
            return NONE_SURE
        return self.evaluation.sure(self.target)

    @cached_property
    def to_check(self) -> Array:
        """The samples whose prediction is to be checked by hand (by default all), surest last."""
        rows = np.flatnonzero(self.coded)
        rows = rows[np.argsort(self.certainty[rows], kind="stable")]
        least = self.sure[0] if self.least is None else self.least
        return rows[self.certainty[rows] < least]

    @cached_property
    def indicators(self) -> Array:
        """The labels as indicators of the classes, (n, k)."""
        labels = self.labels
        return np.zeros(self.proba.shape) if labels is None else labels.indicators(self.classes)

    def shares_of_codes(self, rows: Any = True) -> list[ClassShare]:
        """Return the share of every code in some samples, or in all, in natural order."""
        members = (self.coded | self.known) & rows
        arrays = self.indicators, self.known, self.proba, self.guesses, members
        shares = {share.code: share for share in shares_of_classes(self.model, *arrays)}
        return [shares[name] for name in sort_naturally(self.classes)]

    @cached_property
    def scaled(self) -> Any:
        """The data for LinearSVC: without NaN; the largest value of a matrix is 1."""
        X = self.X
        if self.texts is not None:
            return X
        if not sp.issparse(X):
            from sklearn.impute import SimpleImputer

            imputer = SimpleImputer(keep_empty_features=True)
            X = imputer.fit_transform(np.asarray(X, dtype=np.float64))
        return X / (float(X.max()) or 1.0)

    @cached_property
    def evaluation(self) -> Evaluation | None:
        """How good the predictions are; None if unknown."""
        labels, model = self.labels, self.model
        if labels is None or not self.guided or not self.predicts:
            return None
        truth = np.array([names[0] if names else "" for names in labels.each])
        if getattr(model, "multilabel_", False):
            truth = self.indicators.astype(np.int64)
        predicted = self.predicted, self.proba
        return evaluate(model, self.scaled, truth, labels.known, self.held_out, *predicted)


_COHERENT_TERMS, _DIVERSE_TERMS = 10, 25
# By key: name, format of the value, and meaning.
_MEASURES = """
largest_topic_right | largest topic among the labels of {n} held-out samples | {:.1%}
    Share of the held-out samples whose largest named topic, which explains most of the sample, is
    one of their labels.
similarity | similarity of topics and labels | {:.3f}
    Weighted Jaccard similarity between shares of named topics in the held-out samples and labels,
    averaged over topics matched one to one: 1 if they agree, 0 if they never occur together.
resolved_topics | resolved topics | {} of {k}
    Topics whose similarity with their label is above 0.1; the held-out samples have {shown} of the
    {k} labels.
lower_bound | lower bound | {:.6g}
    Lower bound of the log evidence, which the fit maximizes, including hyperparameters: of two fits
    to the same data, such as with other ranks or seeds, the one with the higher bound is better.
sparsity | sparsity | {:.3f}
    Hoyer sparsity of the weights of topics in the samples: near 1 if a few weights dominate, 0 if
    all are equal.
inter_label_sparsity | inter-label sparsity | {:.3f}
    Hoyer sparsity of the weights of topics, summed over each class of the labeled samples: near 1
    if each class uses a few topics, 0 if all classes use all topics equally; see --rate-shape.
coherence | topic coherence (NPMI) | {:.3f}
    How often the first {coherent} terms of a topic occur in the same texts (NPMI), averaged over
    the topics: 1 if always together, 0 if as often as by chance, -1 if never.
diversity | topic diversity | {:.3f}
    Share of distinct terms among the first {diverse} of all topics: 1 if topics share no term.
exclusivity | topic exclusivity (FREX) | {:.3f}
    How exclusive and frequent the first {coherent} terms of a topic are (FREX), averaged over the
    topics: near 1 if no other topic has them.
"""


def measure(fit: FittedModel) -> list[Measure]:
    """Return measures of named topics, of Bayesian models, and of topics of texts."""
    model, labels, A = fit.model, fit.labels, fit.model.components_
    values: dict[str, float] = {}
    counts = {"coherent": _COHERENT_TERMS, "diverse": _DIVERSE_TERMS}
    if hasattr(model, "topic_names_") and labels is not None and fit.held_out.any():
        names = [str(name) for name in model.topic_names_]
        S = fit.amounts[fit.held_out, : len(names)]
        truth = labels.indicators(names)[fit.held_out]
        right = truth[np.arange(len(S)), S.argmax(axis=1)] * S.any(axis=1)
        values["largest_topic_right"] = float(np.mean(right))
        counts |= {"n": len(S), "k": len(names), "shown": int(truth.any(axis=0).sum())}
        if len(names) > 1:
            matching = metrics.match_topics(S, truth)
            values |= {"similarity": matching.score, "resolved_topics": matching.n_resolved}
    if hasattr(model, "lower_bound_"):
        S = model.representation_
        if fit.guided and labels is not None:
            classes = labels.single()[fit.training].astype(str)
            score = metrics.inter_label_sparsity(S[fit.training], classes, unlabeled=None).score
            values["inter_label_sparsity"] = score
        values["lower_bound"] = float(np.ravel(model.lower_bound_)[-1])
        if not fit.guided and S.size > 1:
            values["sparsity"] = metrics.hoyer_sparsity(S)
    active = getattr(model, "active_components_", np.full(len(A), True))
    usable = A[active & ((A > 0).sum(axis=1) >= 2)]
    if fit.texts is not None and len(usable):
        coherence = metrics.topic_coherence(fit.X, usable, n_terms=_COHERENT_TERMS)
        values["coherence"] = coherence.score
        if len(usable) > 1:
            exclusivity = metrics.topic_exclusivity(usable, n_terms=_COHERENT_TERMS)
            values["diversity"] = metrics.topic_diversity(usable, n_terms=_DIVERSE_TERMS).score
            values["exclusivity"] = exclusivity.score
    measures = {}
    for key, name, form, why in re.findall(r"(?m)^(\S+) \| (.+) \| (.+)((?:\n    .+)+)", _MEASURES):
        if key in values:
            text, why = form.format(values[key], **counts), " ".join(why.split()).format(**counts)
            measures[key] = Measure(key, name.format(**counts), values[key], text, why)
    return [measures[key] for key in values]


# Options that are not parameters, by the parameter of models that take them; and other names.
_OF_PARAMETER = {"free_topics": "n_free_topics", "seeds": "seeds", "test_size": "unlabeled"}
_RENAMED = {"svm_c": "C", "s_shape": "S_shape"}
_OPTIONS = (
    *("loss", "supervision_loss", "supervision_weight", "self_training", "class_prior", "readout"),
    *("freq", "method", "documents_per_slice", "labeled_weight", "svm_c", "s_shape", "rate_shape"),
)
_NOT_OF_LABELS = ("cnmf", "seeded", "supervised-vbnmf")  # guided, by one label per sample
_NEEDED = {"time": ", the column of the dates", "seeds": ", a file with words of topics"}
_TEST_SIZE = 0.2


class ModelType:
    """A model of the command: its options, and how to build its estimator."""

    def __init__(self, name: str, estimator: str) -> None:
        self.name, self.estimator = name, getattr(estimators, estimator)
        parameters = signature(self.estimator).parameters
        names = {option: _RENAMED.get(option, option) for option in (*_OPTIONS, "max_iter", "tol")}
        self.parameters = {option: name for option, name in names.items() if name in parameters}
        self.options = {*self.parameters} - {"max_iter", "tol"}
        self.options |= {option for option, name in _OF_PARAMETER.items() if name in parameters}
        self.guided = "test_size" in self.options  # is it fitted to labels?
        if self.guided and name not in _NOT_OF_LABELS:
            self.options.add("label_separator")
        self.dated = "freq" in self.options  # or to times?
        self.names_topics = "free_topics" in self.options  # has every label a topic?
        # Does the fit estimate the accuracy, and has each class its topic?
        self.validates = "self_training" in self.options
        # Does the estimator choose the number of topics of texts?
        self.chooses_rank = "auto" in str(getattr(parameters.get("n_components"), "annotation", ""))
        weight = str(getattr(parameters.get("supervision_weight"), "annotation", ""))
        self.refused = "auto" if weight and "auto" not in weight else math.inf  # as that weight

    def targets(self, labels: SampleLabels) -> Array:
        """Return what fit takes as y."""
        several = "label_separator" in self.options
        return labels.single_or_indicators() if several else labels.single()

    def build(
        self,
        options: Namespace,
        labels: SampleLabels | None,
        callback: Callable[[Any], object],
        terms: list[str] | None = None,
    ) -> Any:
        """Return the estimator, not fitted; it will see only `labels`."""
        params = {parameter: getattr(options, name) for name, parameter in self.parameters.items()}
        rank, by = options.rank, "labels"
        names: Collection[str] | None = None if labels is None else labels.names
        if self.guided:
            params["unlabeled"] = None  # a label "-1" in a file is a label
        if "seeds" in self.options:
            names, by = read_seeds(options.seeds, options.encoding), "seeds"
            params |= {"seeds": names, "feature_names": terms}
        if self.names_topics and names is not None:
            free, n = options.free_topics or 0, len(names)
            if rank is not None and rank < n:
                wrong = f"--rank {rank} is too small: the {by} name {n} topics, and each needs one"
                raise UsageError(f"{wrong}; leave --rank out, or add --free-topics instead")
            params["n_free_topics"] = free if rank is None else rank - n
        elif rank is not None:
            params["n_components"] = rank
        params |= {"random_state": options.seed, "n_threads": options.threads}
        return self.estimator(dtype=options.dtype, callback=callback, **params)


MODEL_TYPES = {name: ModelType(name, estimator) for name, (estimator, _) in MODELS.items()}


def users_of(option: str) -> str:
    return ", ".join(name for name, model in MODEL_TYPES.items() if option in model.options)


def choose_model(options: Namespace) -> tuple[ModelType, Namespace]:
    """Return the model of the options, or the default, and checked options with its defaults."""
    seeded = options.model is None and options.seeds is not None
    default = "seeded" if seeded else "few-labels" if options.labels else "nmf"
    model = MODEL_TYPES[options.model or default]
    needs = {"labels": model.guided and "seeds" not in model.options}
    time_option = next((name for name in ("freq", "time_format") if getattr(options, name)), None)
    needs |= {"time": model.dated or time_option is not None, "seeds": "seeds" in model.options}
    for name, is_needed in needs.items():
        if is_needed and not getattr(options, name):
            hint = _NEEDED.get(name, "; without labels use --model nmf")
            subject = f"--model {model.name}"
            if name == "time" and time_option is not None and not model.dated:
                subject = f"--{time_option.replace('_', '-')}"
            raise UsageError(f"{subject} needs --{name}{hint}")
    for name in (*_OPTIONS, *_OF_PARAMETER, "label_separator"):
        if name not in model.options | {"freq"}:
            subject = f"--model {model.name} (only by {users_of(name)})"
            refuse(options, (name,), f"is not used by {subject}")
    if options.method not in (None, "auto", "tied", "tensor"):
        of_methods = "is only used with --method auto, tied and tensor"
        refuse(options, ("documents_per_slice",), of_methods)
    params = model.estimator().get_params()
    values = {name: params[parameter] for name, parameter in model.parameters.items()}
    values.pop("freq", None)  # follows from the data
    if model.guided:
        # Validation within the fit estimates the accuracy, and no label is lost for it.
        values["test_size"] = 0.0 if model.validates else _TEST_SIZE
    if options.rank is None and model.chooses_rank and find_source(options).is_table:
        values["rank"] = "auto"
    values = {name: value for name, value in values.items() if getattr(options, name) is None}
    options = changed(options, **values, model=model.name)
    rank, weight, reason = options.rank, options.supervision_weight, None
    if rank is None and not (model.names_topics or model.validates):
        reason = "needs --rank, the number of topics; few-labels has topics for each class"
    elif rank is not None and model.validates:
        reason = "takes no --rank: it has one topic per class; ssnmf takes --rank"
    elif rank == "auto" and not model.chooses_rank:
        reason = "takes no --rank auto: give the number of topics"
        reason += ", or leave --rank out" if model.names_topics else ""
    elif weight is not None and weight == model.refused:
        reason = f"takes no --supervision-weight {weight}"
    if reason is not None:
        raise UsageError(f"--model {model.name} {reason}")
    if rank is not None and options.free_topics is not None:
        raise UsageError("--rank and --free-topics both set the number of topics; give one")
    return model, options


def check_labels(model: ModelType, labels: SampleLabels | None, options: Namespace) -> None:
    """Raise UsageError for labels that the model cannot take; warn about unlikely labels."""
    if labels is None:
        return
    warn_of_labels(labels, options)
    if not model.guided:
        return  # labels that a model is not fitted to only color the report
    if labels.several:
        refuse(options, ("target_accuracy",), "is for one label per sample; some have several")
    if labels.several and "label_separator" not in model.options:
        first = next(i for i, names in enumerate(labels.each) if len(names) > 1)
        names = ", ".join(labels.each[first])
        wrong = f"sample {first} has several labels ({names}); --model {model.name} takes one"
        raise UsageError(f"{wrong}, {users_of('label_separator')} take several")
    rank, count = options.rank, len(labels.names)
    if rank is not None and rank < count and not model.names_topics:
        few = "too few topics to represent all of them"
        warn(f"--rank {rank} is below the number of classes, {count}: {few}")
