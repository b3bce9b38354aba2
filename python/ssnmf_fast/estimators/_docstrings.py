"""Docstrings of the estimators: shared parameters, attributes and results are described here."""

from __future__ import annotations

from functools import wraps
from inspect import signature
from itertools import chain
from types import FunctionType
from typing import Any, TypeVar

from .._common.docstrings import complete, entries_of
from .._common.foreign import refuse_foreign

Class = TypeVar("Class", bound=type)

_SHARED = """Shared parameters and attributes.

Parameters
----------
n_components : int
    Number of components r, at least 1.
loss : {"frobenius", "kullback-leibler"}
    Loss of X: squared error, or the I-divergence.
solver : {"auto", "mm", "mu", "hals"}
    As in :func:`ssnmf_fast.factorize`.
init : {"auto", "random", "least-squares", "nndsvda", "random-acol"} or tuple of arrays
    Start, as in :func:`ssnmf_fast.factorize`; a tuple holds S (n, r) and A (r, m).  "auto" is
    "random" for the Frobenius loss and "least-squares" for others.
n_starts : int
    Number of starts of :meth:`fit`, at least 1; the fit with the smallest objective is kept.
max_iter : int
    Maximum number of iterations, at least 0.
tol : float
    Stop when the objective falls by less than `tol` times its first value per iteration; 0: never.
random_state : None, int, Generator or RandomState
    Seed of the start; an int makes the result reproducible.
n_threads : int, optional
    Number of threads, which does not affect the result.  None uses all available cores.
callback : callable, optional
    Called with a state (``iteration``, ``objective``, read-only ``S`` and ``A``) after every check
    of the objective; returning True stops the fit.
verbose : int
    1 shows progress on standard error.
dtype : {"float32", "float64"}, optional
    Dtype of the factors, to which all methods convert X.  None: that of X in each call, float64
    for integers.
forget_factor : float
    In :meth:`partial_fit`, the fraction of their weight that earlier batches keep, 0 to 1.  Small
    values learn faster at first; large ones end closer to a fit of all data.
A_support : array_like of 0 and 1 or bool, shape (r, m), optional
    Where components may be positive.
fixed_components : array_like, shape (number of fixed components, m), optional
    The first components, which stay fixed.
covariates : array_like, shape (n, number of fixed components), optional
    The fixed columns of S for these samples, if the fit had any.
penalties : optional
    See :mod:`ssnmf_fast.penalties`.  New samples have those of S, except those between samples.
unlabeled : "auto", None or a label
    Marks unlabeled samples in `y`, as None, NaN, NaT, pandas.NA and masked values always do; None
    for no other marker.  "auto" is -1, as in scikit-learn, unless the labels are exactly -1 and 1:
    then both are classes, with a warning.  The string "-1", to which NumPy converts -1 next to
    strings, is a class; a warning names it, and others such as "NA".
predicts : bool
    Whether the model predicts, by logistic regression on topics (computed without labels), leading
    singular directions and features.  False makes the fit faster.
X : array_like or scipy.sparse, shape (n, m)
    Nonnegative samples; NaN in a dense X means missing, if the model allows it.
X_weights : None, array_like of shape (n, m), or from :mod:`ssnmf_fast.weights`
    Nonnegative weights of the loss of every entry of X; Bayesian models take none.
side : dict of str to array_like or scipy.sparse of shape (n, q), optional
    Named tables of the same samples, such as embeddings, with finite entries of any sign.  Rows
    are scaled to length 1; scale columns of different units first.  Only
    :class:`FewLabelsClassifier` learns from tables; its predictions need those of the fit.
y : array_like, shape (n,) or (n, k), optional
    Labels or targets of some samples, see the class; ignored by models without labels.
input_features : ignored
    Present for API consistency.
sample_weight : array_like, shape (n,), optional
    Nonnegative weights of the samples in all losses; 0 leaves a sample out, 2 counts it twice.
label_weight : array_like, shape (n,), optional
    Nonnegative weights of the labels alone; a sample with weight 0 counts as unlabeled.
given
    As in :meth:`fit`.
feature_names : array_like of str, shape (m,), optional
    Such as ``vectorizer.get_feature_names_out()``.  None: those seen in fit, or "x0", "x1", ...
n_terms : int
    Number of terms per topic, at least 1.
n : int
    Number of samples, at least 1.
mode : int
    The mode of the rows; negative values count from the last.
times : array_like, shape (n,)
    Dates of the documents, as in :meth:`fit`.
level : float
    Probability of the interval, above 0 and below 1; both tails have equal probability.

Attributes
----------
components_ : ndarray, shape (r, m)
    Components A.
n_components_ : int
    Number of components.
reconstruction_err_ : float
    Norm of ``X - representation_ @ components_`` (without NaN); for another loss, the root of twice
    the loss.  Not available after a fit with weights or penalties, whose objective is another.
label_components_ : ndarray, shape (r, k)
    Factor B: weights of the components in the classes or targets.
refitted_label_components_ : ndarray, shape (r, k)
    B refitted to representations computed without labels; with the readout "refit".
representation_ : ndarray, shape (n, r)
    Factor S of the fit, which depends on the labels, if any.
classes_ : ndarray, shape (k,)
    The classes, sorted; for multiple labels the columns of a data frame, or 0 ... k - 1.
class_prior_ : ndarray, shape (k,)
    Share of each class (or label) among the labeled samples.
class_shares_ : ndarray, shape (r, k)
    Mean share of each component in the labeled samples of each class, computed without labels.
multilabel_ : bool
    Whether `y` had several labels per sample.
n_labeled_ : int
    Number of labeled samples in all batches.
supervision_weight_ : float
    Supervision weight (lambda) of the fit.
objective_ : list of (int, float)
    Iterations at which the objective was evaluated, and its values.
loss_ : str or float
    Loss of the fit.
n_iter_ : int
    Number of iterations.
sample_penalties_ : dict of str to float
    Coefficients of the penalties on representations of new samples; lists of penalties for classes
    of your own, with which a model cannot be saved.
n_fixed_ : int
    Number of fixed columns of S in the fit.
n_features_in_ : int
    Number of features m.
feature_names_in_ : ndarray of str, shape (m,)
    Names of the features, if X had names that are all strings.
"""

_LEARNS = """
Returns
-------
self

Raises
------
ValueError, TypeError
    If data, labels or parameters are invalid; the message explains how to fix them.
"""

_OF_METHODS = {
    "fit": _LEARNS,
    "partial_fit": _LEARNS,
    "fit_transform": "\nReturns\n-------\nndarray, shape (n, r)",
    "transform": "\nReturns\n-------\nndarray, shape (n, r)",
    "predict_log_proba": "\nReturns\n-------\nndarray, shape (n, k)",
    "to_rows": "\nReturns\n-------\nlist of dict",
    "topics": "\nReturns\n-------\nTopics\n    A sequence of topics; print it, or see its "
    "``names``, ``to_rows`` and ``to_frame``.",
    "explain": "\nReturns\n-------\nExplanation",
    "to_frame": "\nReturns\n-------\npandas.DataFrame",
    "suggest": """
Returns
-------
ndarray of int, shape (min(n, rows of X),)
    Rows of X, the best first and empty samples last.
""",
    "get_feature_names_out": "\nReturns\n-------\nndarray of str",
    "score": """
Parameters
----------
y : array_like, shape (n,) or (n, k)
    True labels or targets; samples that are not completely labeled are left out.

Returns
-------
float
""",
}


def complete_docstring(cls: Class) -> Class:
    """Complete the docstring of an estimator, and list its own parameters before inherited ones."""
    init: Any = vars(cls).get("__init__")
    if init is not None:
        given, own = signature(init), ["self", *cls.__annotations__]
        parameters = given.parameters.values()
        order = sorted(parameters, key=lambda p: (p.kind, [*own, p.name].index(p.name)))

        @wraps(init)
        def checked(self: Any, *args: Any, **kwargs: Any) -> None:
            refuse_foreign(cls.__name__, kwargs)
            init(self, *args, **kwargs)

        cls.__init__ = checked  # type: ignore[misc]
        checked.__signature__ = given.replace(parameters=order)  # type: ignore[attr-defined]
    if cls.__doc__:
        docs = [base.__doc__ for base in _bases(cls)]
        attributes = [entries_of(doc, "Attributes") for doc in (*docs, _SHARED) if doc]
        saved = getattr(cls, "_saved", {})
        names = [name for name in chain(*attributes) if name in saved or hasattr(cls, name)]
        cls.__doc__ = complete(cls.__doc__, [*docs, _SHARED], signature(cls).parameters, names)
    return cls


def complete_methods(cls: type) -> None:
    """Complete docstrings of public methods from those of the bases and the shared ones."""
    for name, method in vars(cls).items():
        # scikit-learn's available_if keeps the function in `fn`.
        function = getattr(method, "fn", method)
        if name.startswith("_") or not isinstance(function, FunctionType) or not function.__doc__:
            continue
        above = [vars(base)[name] for base in _bases(cls) if name in vars(base)]
        docs = [one.__doc__ for one in above if not one.__module__.startswith("sklearn")]
        docs += [getattr(cls, f"_of_{each}", None) for each in ("methods", name)]
        of_fit = getattr(cls, "fit", None) if name == "fit_transform" else None
        docs += [_OF_METHODS.get(name), getattr(of_fit, "__doc__", None)]
        text = complete(function.__doc__, [*docs, _SHARED], signature(function).parameters)
        function.__doc__ = method.__doc__ = text


def _bases(cls: type) -> list[type]:
    return [base for base in cls.__mro__[1:] if base.__module__.startswith(__package__)]
