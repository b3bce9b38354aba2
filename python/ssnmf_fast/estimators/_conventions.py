"""Conventions of all estimators: docstrings, parameters, fits that fail or do not converge."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import cleandoc, signature
from itertools import chain
from types import FunctionType
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_consistent_length

from .._common.arrays import Array
from .._common.saved import Saved, arrays_of
from .._common.warn import warn_user
from .._data.border import require_finite
from .._data.checks import check_vector

_LEARNING = ("fit", "fit_transform", "partial_fit")


class Estimator(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of all estimators.

    Docstrings are completed.  If learning is refused, fails or is interrupted, the attributes are
    put back; this is enough, as they are only ever replaced, not changed in place.  Attributes with
    NaN or infinity are refused.
    """

    _allow_nan: ClassVar = True
    _saved: ClassVar[dict[str, Saved]]  # the attributes that `ssnmf_fast.save` keeps

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # First the others: scikit-learn wraps methods too, and may fail after the method itself.
        super().__init_subclass__(**kwargs)
        for name in _LEARNING:
            method = getattr(cls, name, None)
            if method is not None and not hasattr(method, "_all_or_nothing"):
                setattr(cls, name, _all_or_nothing(method))
        complete_docstrings(cls)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._allow_nan
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _arguments(self, function: Callable[..., Any]) -> dict[str, Any]:
        """Return the parameters that a function has too."""
        names = signature(function).parameters
        return {name: p for name, p in self.get_params(deep=False).items() if name in names}


def _all_or_nothing(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def learn(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            result = method(self, *args, **kwargs)
            numbers = [name for name, saved in self._saved.items() if saved.of_numbers]
            require_finite({name: arrays_of(vars(self).get(name)) for name in numbers})
            return result
        except BaseException:
            self.__dict__ = before  # in one step, which no second Ctrl-C can cut in two
            raise

    learn._all_or_nothing = True  # type: ignore[attr-defined]
    return learn


def set_parameters(estimator: Any, given: Mapping[str, Any]) -> None:
    """Set the arguments of ``__init__``; `given` is its ``locals()``."""
    for name, value in given.items():
        if name != "self":
            setattr(estimator, name, value)


def warn_unless_converged(estimator: Any, result: Any) -> None:
    """Warn if a fit has met `max_iter` before its stopping rule."""
    if not result.converged and estimator.tol > 0 and 0 < estimator.max_iter <= result.n_iter:
        warn_user(
            f"The stopping rule was not met within max_iter={estimator.max_iter} iterations. "
            "Increase max_iter or tol; tol=0 always runs max_iter iterations, without this "
            "warning.",
            ConvergenceWarning,
        )


def require(estimator: Any, X: Any, y: Any) -> None:
    """Raise ValueError unless there is a `y` with one row for each sample of X."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None. "
            "Use NMF to fit without targets."
        )
    check_consistent_length(X, y)


def score_labeled(
    predicted: Any, truth: Array, labeled: Array, sample_weight: Any, metric: Any
) -> float:
    """Compare the predictions for the labeled samples with the truth."""
    if not labeled.any():
        raise ValueError("y has no labeled sample to score; give at least one.")
    predicted = np.asarray(predicted)
    if len(predicted) != len(labeled):
        raise ValueError(f"X has {len(predicted)} samples and y has {len(labeled)}.")
    if sample_weight is not None:
        checked = check_vector(sample_weight, "sample_weight", len(labeled), np.float64)
        sample_weight = checked[labeled]
    return float(metric(truth, predicted[labeled], sample_weight=sample_weight))


_SHARED = """What every estimator means by a name.

Parameters
----------
n_components : int
    Rank r, at least 1.
loss : {"frobenius", "kullback-leibler"}
    Loss of X: squared error, or the I-divergence.
solver : {"auto", "mm", "mu", "hals"}
    As in :func:`ssnmf_fast.factorize`.
init : {"auto", "random", "least-squares", "nndsvda", "random-acol"} or tuple of arrays
    Start; a tuple holds S (n, r) and A (r, m).  "auto" is "least-squares" for the
    Kullback-Leibler loss, "random" for the Frobenius loss; see :func:`ssnmf_fast.factorize`.
max_iter : int
    Largest number of iterations, at least 0.
tol : float
    Stop when the objective falls by less than `tol` times its first value per iteration; 0
    never stops early.
random_state : None, int, Generator or RandomState
    Seed of the start; give an int for the same result every time.
n_threads : int, optional
    Number of threads; it does not change the result.  None uses the cores that are available.
callback : callable, optional
    Called with a state (``iteration``, ``objective``, read-only ``S`` and ``A``) after every
    check of the objective; returning True stops the fit.
verbose : int
    1 shows progress on standard error.
forget_factor : float
    In :meth:`partial_fit`, the share of their weight that earlier batches keep, between 0 and
    1.  A smaller value learns faster at first; a larger one ends closer to a fit to all data.
unlabeled : "auto", None or a label
    What marks an unlabeled sample in `y`, besides None and NaN, which always do.  "auto" takes
    -1, as scikit-learn's semi-supervised estimators do, unless the labels are exactly -1 and 1:
    then both are classes, as its other classifiers have them, with a warning.  Give -1 to have
    -1 always mean unlabeled, None for no marker.
readout : {"logistic", None}
    How predictions are made: by logistic regression on the topics of a sample (found without
    labels), its leading singular directions and its features.  None: no predictions, and a
    faster fit.
X : array_like or scipy.sparse, shape (n, m)
    Nonnegative samples; NaN in a dense X means missing, for models that allow it.
X_weights : None, array_like of shape (n, m), or from :mod:`ssnmf_fast.weights`
    Nonnegative weights of the loss of every entry of X.
y, input_features : ignored
    Present for the conventions of scikit-learn.
sample_weight : array_like, shape (n,), optional
    Weights of the samples.
given
    As in :meth:`fit`.
feature_names : array_like of str, shape (m,), optional
    Names of the features, for example ``vectorizer.get_feature_names_out()``.  None takes
    the names seen in fit, or else "x0", "x1", ...
n_terms : int
    Number of terms per topic, at least 1.
level : float
    Probability inside the interval, above 0 and below 1; both sides have equal parts of the
    rest.

Attributes
----------
components_ : ndarray, shape (r, m)
    Dictionary A.
n_components_ : int
    Number of components.
reconstruction_err_ : float
    Distance of X from ``representation_ @ components_``, defined as in scikit-learn.
label_components_ : ndarray, shape (r, k)
    B of the factorization: the components over the classes or targets.
refitted_label_components_ : ndarray, shape (r, k)
    B as fitted to representations that do not know the labels; with the readout "refit".
representation_ : ndarray, shape (n, r)
    Factor S of the fit, which the labels affect where there are any.
classes_ : ndarray, shape (k,)
    The classes, sorted.
class_prior_ : ndarray, shape (k,)
    Share of every class (or label) among the labeled samples.
class_shares_ : ndarray, shape (r, k)
    Mean share of each component in the labeled samples of a class, seen without their labels.
multilabel_ : bool
    Whether `y` had several labels per sample.
n_labeled_ : int
    Number of labeled samples, over all batches.
supervision_weight_ : float
    Weight (lambda) of the fit.
objective_ : list of (int, float)
    Iterations at which the objective was evaluated, and its values.
n_iter_ : int
    Number of iterations.
n_features_in_ : int
    Number of features m.
feature_names_in_ : ndarray of str, shape (m,)
    Names of the features, where X had names that are all strings.
"""

_OF_FIT = """What every `fit` does.

Returns
-------
self

Raises
------
ValueError, TypeError
    For bad data, labels or parameters; the message explains how to fix them.
"""

_INHERITED = ("Returns", "Raises", "Warns")
_ORDER = ("Parameters", "Attributes", *_INHERITED, "See Also", "Notes", "References", "Examples")
_SECTION = re.compile(rf"^({'|'.join(_ORDER)})\n-+\n", re.MULTILINE)


def complete_docstrings(cls: type) -> None:
    """Complete the docstrings of an estimator and of its public methods.

    What several estimators share is documented once.  A docstring has what is particular to it;
    other parameters of the signature, other fitted attributes, and sections that the same method
    of a base class has, are added.
    """
    bases = [base for base in cls.__mro__[1:] if base.__module__.startswith(__package__)]
    cls._particular = cls.__doc__  # type: ignore[attr-defined]
    if cls.__doc__:
        docs = [vars(base).get("_particular") for base in bases]
        known = [_entries(doc, "Attributes") for doc in (*docs, _SHARED) if doc]
        names = [name for name in chain(*known) if _has(cls, name)]
        cls.__doc__ = _complete(cls.__doc__, docs, signature(cls).parameters, names)
    for name, method in vars(cls).items():
        # scikit-learn's available_if keeps the function in `fn`.
        function = getattr(method, "fn", method)
        if name.startswith("_") or not isinstance(function, FunctionType) or not function.__doc__:
            continue
        above = [vars(base)[name] for base in bases if name in vars(base)]
        docs = [one.__doc__ for one in above if not one.__module__.startswith("sklearn")]
        docs += [_OF_FIT] if name == "fit" else []
        text = _complete(function.__doc__, docs, signature(function).parameters, ())
        function.__doc__ = method.__doc__ = text


def _has(cls: type, attribute: str) -> bool:
    return attribute in getattr(cls, "_saved", ()) or hasattr(cls, attribute)


def _complete(
    doc: str, inherited: list[str | None], parameters: Iterable[str], attributes: Iterable[str]
) -> str:
    """Return a docstring with what others have of its parameters, attributes and results."""
    sources = [doc, *(base for base in inherited if base), _SHARED]
    sections = _sections(doc)
    for section, names in (("Parameters", parameters), ("Attributes", attributes)):
        found = [_entries(source, section) for source in sources]
        of_names = [next((part[n] for part in found if n in part), "") for n in names]
        # Attributes of the class itself come first, in their order; parameters as in the signature.
        ahead = found[0].values() if section == "Attributes" else ()
        entries = dict.fromkeys(entry for entry in (*ahead, *of_names) if entry)
        if entries:
            sections[section] = "\n".join(entries)
    for section in _INHERITED:
        results = [_sections(source)[section] for source in sources if section in _sections(source)]
        if results:  # all errors and warnings, but only the last result
            kept = results[:1] if section == "Returns" else reversed(results)
            sections[section] = "\n".join(dict.fromkeys(kept))
    body = [f"{name}\n{'-' * len(name)}\n{sections[name]}" for name in _ORDER if name in sections]
    return "\n\n".join([sections[""], *body]) + "\n"


def _sections(doc: str) -> dict[str, str]:
    head, *rest = _SECTION.split(cleandoc(doc))
    return {"": head.strip()} | {s: t.strip() for s, t in zip(rest[::2], rest[1::2], strict=True)}


def _entries(doc: str, section: str) -> dict[str, str]:
    """Return the entries of a section by the names that they document."""
    found = {}
    for entry in re.split(r"\n(?=\S)", _sections(doc).get(section, "")):
        names = entry.partition("\n")[0].partition(" :")[0]
        found.update(dict.fromkeys(re.findall(r"\w+", names), entry))
    return found
