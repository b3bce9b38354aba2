"""Docstrings: what several estimators share is described once."""

from __future__ import annotations

from inspect import signature
from itertools import chain
from types import FunctionType
from typing import Any, TypeVar

from .._common.docstrings import complete, entries_of

Class = TypeVar("Class", bound=type)

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
    Start, as in :func:`ssnmf_fast.factorize`; a tuple holds S (n, r) and A (r, m).  "auto" is
    "random" for the Frobenius loss, else "least-squares".
n_starts : int
    Number of starts of :meth:`fit`, at least 1; the one of the smallest objective is kept.
max_iter : int
    Largest number of iterations, at least 0.
tol : float
    Stop when the objective falls by less than `tol` times its first value per iteration; 0: never.
random_state : None, int, Generator or RandomState
    Seed of the start; give an int for the same result every time.
n_threads : int, optional
    Number of threads; it does not change the result.  None uses the cores that are available.
callback : callable, optional
    Called with a state (``iteration``, ``objective``, read-only ``S`` and ``A``) after every check
    of the objective; returning True stops the fit.
verbose : int
    1 shows progress on standard error.
dtype : {"float32", "float64"}, optional
    Of the factors, and of all that is computed from X, whose values are converted, in all methods.
    None: that of X in each call, float64 for integers.
forget_factor : float
    In :meth:`partial_fit`, the share of their weight that earlier batches keep, 0 to 1.  A smaller
    one learns faster at first; a larger one ends closer to a fit to all data.
A_support : array_like of 0 and 1 or bool, shape (r, m), optional
    Where components may be positive.
fixed_components : array_like, shape (number of fixed components, m), optional
    The first components, which stay as they are.
covariates : array_like, shape (n, number of fixed components), optional
    The given columns of S for these samples, where the fit had some.
penalties : optional
    See :mod:`ssnmf_fast.penalties`.  New samples have those of S, but for ones between samples.
unlabeled : "auto", None or a label
    What marks an unlabeled sample in `y`, besides None, NaN, NaT, pandas.NA and masked values,
    which always do; None for no marker.  "auto" is -1, as in scikit-learn, unless the labels are
    exactly -1 and 1: then both are classes, with a warning.  The text "-1", which NumPy makes of -1
    next to text, is a class; a warning names it, and others such as "NA".
predicts : bool
    Whether the model predicts, by logistic regression on topics (computed without labels), leading
    singular directions and features.  False makes the fit faster.
X : array_like or scipy.sparse, shape (n, m)
    Nonnegative samples; NaN in a dense X means missing, for models that allow it.
X_weights : None, array_like of shape (n, m), or from :mod:`ssnmf_fast.weights`
    Nonnegative weights of the loss of every entry of X; Bayesian models take none.
side : dict of str to array_like or scipy.sparse of shape (n, q), optional
    Tables of the same samples by their names, with finite entries of any sign, such as embeddings.
    Rows are brought to length 1: give columns of different units one scale before.  Predictions
    need the tables of the fit, which :class:`FewLabelsClassifier` alone takes.
y : array_like, shape (n,) or (n, k), optional
    Labels or targets of some samples, as the class describes; models without labels ignore them.
input_features : ignored
    Present for the conventions of scikit-learn.
sample_weight : array_like, shape (n,), optional
    Nonnegative weights of the samples in all losses: 0 leaves one out, and 2 counts it twice.
label_weight : array_like, shape (n,), optional
    Nonnegative weights of the labels alone; one with weight 0 counts as no label.
given
    As in :meth:`fit`.
feature_names : array_like of str, shape (m,), optional
    Such as ``vectorizer.get_feature_names_out()``.  None: those seen in fit, else "x0", "x1", ...
n_terms : int
    Number of terms per topic, at least 1.
mode : int
    The mode of the rows; negative from the last.
times : array_like, shape (n,)
    When each document is from, as in :meth:`fit`.
level : float
    Probability inside the interval, above 0 and below 1; both sides have equal parts of the rest.

Attributes
----------
components_ : ndarray, shape (r, m)
    Dictionary A.
n_components_ : int
    Number of components.
reconstruction_err_ : float
    Norm of ``X - representation_ @ components_``; for another loss, the root of twice the loss.
label_components_ : ndarray, shape (r, k)
    B of the factorization: the components over the classes or targets.
refitted_label_components_ : ndarray, shape (r, k)
    B as fitted to representations that do not know the labels; with the readout "refit".
representation_ : ndarray, shape (n, r)
    Factor S of the fit, which the labels affect where there are any.
classes_ : ndarray, shape (k,)
    The classes, sorted; for multiple labels the columns of a data frame, or 0 ... k - 1.
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
loss_ : str or float
    Loss of the fit.
n_iter_ : int
    Number of iterations.
sample_penalties_ : dict of str to float
    Coefficients of the penalties that representations of new samples have.
n_fixed_ : int
    Number of columns of S that were given in the fit.
n_features_in_ : int
    Number of features m.
feature_names_in_ : ndarray of str, shape (m,)
    Names of the features, where X had names that are all strings.
"""

_LEARNS = """
Returns
-------
self

Raises
------
ValueError, TypeError
    For bad data, labels or parameters; the message explains how to fix them.
"""

_OF_METHODS = {
    "fit": _LEARNS,
    "partial_fit": _LEARNS,
    "score": """
Parameters
----------
y : array_like, shape (n,) or (n, k)
    True labels or targets; samples that are not wholly labeled are left out.

Returns
-------
float
""",
}


def complete_docstring(cls: Class) -> Class:
    """Complete the docstring of an estimator, and list its parameters before inherited ones.

    A docstring has what is particular to it; other parameters and fitted attributes are added.
    """
    init: Any = vars(cls).get("__init__")
    if init is not None:
        given, own = signature(init), ["self", *cls.__annotations__]
        rank = {name: k for k, name in enumerate(own)}
        parameters = given.parameters.values()
        order = sorted(parameters, key=lambda p: (p.kind, rank.get(p.name, len(own))))
        init.__signature__ = given.replace(parameters=order)
    if cls.__doc__:
        docs = [base.__doc__ for base in _bases(cls)]
        known = [entries_of(doc, "Attributes") for doc in (*docs, _SHARED) if doc]
        saved = getattr(cls, "_saved", {})
        names = [name for name in chain(*known) if name in saved or hasattr(cls, name)]
        cls.__doc__ = complete(cls.__doc__, [*docs, _SHARED], signature(cls).parameters, names)
    return cls


def complete_methods(cls: type) -> None:
    """Complete docstrings of public methods also by those of bases, and by what all share here."""
    for name, method in vars(cls).items():
        # scikit-learn's available_if keeps the function in `fn`.
        function = getattr(method, "fn", method)
        if name.startswith("_") or not isinstance(function, FunctionType) or not function.__doc__:
            continue
        above = [vars(base)[name] for base in _bases(cls) if name in vars(base)]
        docs = [one.__doc__ for one in above if not one.__module__.startswith("sklearn")]
        docs += [_OF_METHODS.get(name), getattr(cls, "_of_methods", None)]
        text = complete(function.__doc__, [*docs, _SHARED], signature(function).parameters)
        function.__doc__ = method.__doc__ = text


def _bases(cls: type) -> list[type]:
    return [base for base in cls.__mro__[1:] if base.__module__.startswith(__package__)]
