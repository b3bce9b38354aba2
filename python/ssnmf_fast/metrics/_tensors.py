"""Measures of CP models of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from .._common.arrays import Array
from .._data.border import check_factor, check_vector
from .._data.tensors import SparseTensor, TensorLike, check_tensor, depth, distinct
from .._data.threads import one_blas_thread
from .._solver.result import dense_model
from .._solver.starts import given_factors


def check_cp_model(model: Any, name: str) -> tuple[Array, list[Array]]:
    """Return the weights of the components (default: ones) and the factors of the modes."""
    if hasattr(model, "factors_") and hasattr(model, "weights_"):  # a fitted estimator
        model = model.weights_, list(model.factors_)
    pair = given_factors(model)
    if pair is None or len(pair[1]) == 0:
        ways = "a pair of weights and factors, or a sequence with a factor for each mode"
        expected = f"expected a TensorFactorization, {ways}"
        raise TypeError(f"{name} is a {type(model).__name__}; {expected}.")
    vector, arrays = pair
    rank = np.shape(arrays[0])[1] if depth(arrays[0]) == 2 else 0
    if rank == 0:
        raise ValueError(f"{name}[0] must be a matrix with a column for each component.")
    vector = np.ones(rank) if vector is None else vector
    weights = check_vector(vector, f"weights of {name}", rank, np.float64, limited=False)
    factors = []
    for mode, factor in enumerate(arrays):
        rows = len(factor) if depth(factor) == 2 else 0
        of = (rows, rank), np.float64, "length of the mode x components"
        factors.append(check_factor(factor, f"{name}[{mode}]", *of, limited=False))
    return weights, factors


def factor_match_score(A: object, B: object, *, consider_weights: bool = True) -> float:
    r"""Return how well two CP models agree: the mean similarity of matched components.

    Components are paired one to one (Kuhn-Munkres) for the largest sum of

    .. math:: \left(1 - \frac{|w_p - v_q|}{\max(w_p, v_q)}\right)
              \prod_k \cos(A_k[:, p], B_k[:, q])

    over the modes k ([1]_, section 5).  The sizes w and v of the components are products of their
    weights and the Euclidean norms of their columns.

    Parameters
    ----------
    A, B : TensorFactorization, pair of weights and factors, or sequence of arrays
        Nonnegative CP models of tensors of one shape: results, ``(weights, factors)``, objects with
        these attributes, such as ``CPTensor`` of TensorLy and ``ktensor`` of pyttb, or a factor
        (n_k x r) for each mode.
    consider_weights : bool
        Whether the sizes of components count: False leaves out the first factor above.

    Returns
    -------
    float
        From 0 to 1 (the components are the same).  A component of zeros has similarity 0 with all
        others.

    Raises
    ------
    TypeError, ValueError
        If an argument is not a CP model, has negative entries, or the shapes of the tensors differ.

    Notes
    -----
    With r and s components there are min(r, s) pairs, and the score is the mean over these:
    components without a partner do not count, as in the Tensor Toolbox, pyttb (``ktensor.score``,
    which may match greedily) and tlviz (with ``allow_smaller_rank=True``).  Components are usually
    considered recovered if the score is above 0.95.

    References
    ----------
    .. [1] E. Acar et al., "Scalable tensor factorizations for incomplete data", 2011.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> rng = np.random.default_rng(0)
    >>> truth = [rng.gamma(0.3, size=(n, 2)) for n in (12, 9, 7)]
    >>> X = np.einsum("ir,jr,kr->ijk", *truth)
    >>> fit = sf.factorize_tensor(X, n_components=2, max_iter=500, tol=1e-9,
    ...                           random_state=0)
    >>> round(sf.metrics.factor_match_score(fit, truth), 3)
    1.0
    """
    directions, sizes = _directions(A, "A")
    others, other_sizes = _directions(B, "B")
    lengths, other_lengths = ([len(F) for F in model] for model in (directions, others))
    if lengths != other_lengths:
        shapes = f"{tuple(lengths)}, and B of shape {tuple(other_lengths)}"
        how = "give two models of the same tensor"
        raise ValueError(f"A is a model of tensors of shape {shapes}; {how}.")
    similarity = np.ones((len(sizes), len(other_sizes)))
    for F, G in zip(directions, others, strict=True):
        similarity *= np.minimum(F.T @ G, 1)  # which rounding can exceed
    if consider_weights:
        similarity *= np.exp(-np.abs(sizes[:, None] - other_sizes))  # the smaller / the larger
    matched = linear_sum_assignment(similarity, maximize=True)
    return float(similarity[matched].mean())


def _directions(model: object, name: str) -> tuple[list[Array], Array]:
    """Return factors with columns of norm 1 and the logarithms of the sizes of the components.

    All of these are 0 for components of zeros.
    """
    sizes, factors = check_cp_model(model, name)
    directions = []
    with np.errstate(divide="ignore"):
        logarithms = np.log(sizes)
        for F in factors:
            largest = F.max(axis=0, initial=0.0)
            F = F / np.where(largest > 0, largest, 1.0)  # squares stay in the range
            norms = np.linalg.norm(F, axis=0)
            directions.append(F / np.where(norms > 0, norms, 1.0))
            logarithms = logarithms + np.log(largest) + np.log(norms)
    alive = np.isfinite(logarithms)
    return [np.where(alive, F, 0.0) for F in directions], np.where(alive, logarithms, 0.0)


_LARGEST = 1 << 27  # entries of a core, or of an intermediate result
_LEAST = 1 << 12  # entries of a sparse tensor at a time


@one_blas_thread()
def core_consistency(result: object, X: TensorLike) -> float:
    r"""Return how well a CP model describes the structure of a tensor, in percent (CORCONDIA).

    With the factors fixed, the least-squares core

    .. math:: G = X \times_1 A_1^+ \times_2 A_2^+ \cdots \times_N A_N^+

    is 1 where all indices agree and 0 elsewhere (T), if the data consist of these components alone.
    The diagnostic is :math:`100 (1 - \sum (G - T)^2 / r)` [1]_.  If there are too many components,
    or wrong ones, they interact, and other entries of the core grow.

    Parameters
    ----------
    result : TensorFactorization, NonnegativeCP, pair of weights and factors, or sequence of arrays
        CP model of X with r components: a result, a fitted estimator, ``(weights, factors)``, an
        object with these attributes, or a factor (n_k x r) for each mode.
    X : array_like, or sparse
        The tensor, in the forms of :func:`ssnmf_fast.factorize_tensor`.  NaN in a dense tensor
        means missing, and is replaced by the value of the model.

    Returns
    -------
    float
        At most 100, the value of a perfect model and of one component fitted by least squares.
        Values of 90 or more support the components; values near 0 or below mean that there are too
        many.  NaN if the model is zero.

    Raises
    ------
    TypeError, ValueError
        If `result` is not a CP model of X, or the core would have more than 2^27 entries (1 GB).

    Notes
    -----
    The core depends on how the size of a component is spread over its columns.  Here it is in the
    first mode, as is usual, and columns of all other factors have norm 1; tlviz returns the same
    value for such factors.  The core is fitted by least squares for models of any loss: models of
    counts that are mostly zeros may have a low consistency with the right number of components.

    References
    ----------
    .. [1] R. Bro, H. A. L. Kiers, "A new efficient method for determining the number of components
       in PARAFAC models", 2003.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> rng = np.random.default_rng(0)
    >>> X = np.einsum("ir,jr,kr->ijk",
    ...               *(rng.gamma(0.5, size=(n, 2)) for n in (12, 9, 7)))
    >>> X += 0.01 * rng.random(X.shape)
    >>> for rank in (2, 3):
    ...     fit = sf.factorize_tensor(X, n_components=rank, tol=1e-8,
    ...                               random_state=0)
    ...     print(rank, sf.metrics.core_consistency(fit, X) > 90)
    2 True
    3 False
    """
    weights, factors = check_cp_model(result, "result")
    X = check_tensor(X, "X")
    lengths = tuple(len(F) for F in factors)
    if X.shape != lengths:
        shapes = f"{lengths}, and X has shape {X.shape}; give the tensor of the fit"
        raise ValueError(f"result is a model of tensors of shape {shapes}.")
    rank, n_modes = len(weights), len(factors)
    if (entries := rank**n_modes) > _LARGEST:
        much = f"{entries:,} entries, more than {_LARGEST:,}; give a model of fewer components"
        raise ValueError(f"a core of {rank} components and {n_modes} modes has {much}.")
    if not isinstance(X, SparseTensor) and np.isnan(X).any():
        model = dense_model(weights, factors, "give a smaller X, or one without NaN")
        X = np.where(np.isnan(X), model, X)
    # Columns of norm 1, so that small ones do not count as zero.
    norms = [np.linalg.norm(F, axis=0) for F in factors]
    sizes = weights * np.prod(norms, axis=0)
    used = sizes > 0
    if not used.any():
        return float("nan")
    directions = [F[:, used] / norm[used] for F, norm in zip(factors, norms, strict=True)]
    inverses = [np.linalg.pinv(F) for F in directions]
    count = len(inverses[0])
    if isinstance(X, SparseTensor):
        core = np.zeros((count,) * n_modes)
        at_once = max(_LEAST, _LARGEST // count ** (n_modes - 1))
        for begin in range(0, len(X.values), at_once):
            part = slice(begin, begin + at_once)
            core += _core_of_entries(X.at.places[:, part], X.values[part], X.shape, inverses)
    else:
        core = np.asarray(X, dtype=np.float64)
        for inverse in inverses:  # replaces the first mode by a new last one
            core = np.tensordot(core, inverse, axes=(0, 1))
    core /= sizes[used].reshape(-1, *[1] * (n_modes - 1))
    core[(np.arange(count),) * n_modes] -= 1
    # A component of zeros lacks its 1 in T.
    return float(100 * (1 - (np.square(core).sum() + rank - count) / rank))


def _core_of_entries(
    places: Array, values: Array, shape: tuple[int, ...], inverses: Sequence[Array]
) -> Array:
    """Sum out one mode after the other; `core` has a row for each tuple of indices left."""
    core = values.astype(np.float64)[:, None]
    modes = [*range(len(shape))]
    order = sorted(modes, key=lambda mode: -shape[mode])
    for mode in order:
        here = modes.index(mode)
        modes.remove(mode)
        indices, places = places[here], np.delete(places, here, axis=0)
        first, numbers = distinct(places, tuple(shape[k] for k in modes))
        entries = np.arange(len(numbers))
        size = len(first), len(numbers)
        # Matrices for the sums of all components share this structure.
        sums = sp.csr_array((entries, (numbers, entries)), shape=size)
        summed = np.empty((len(first), core.shape[1], len(inverses[mode])))
        for q, row in enumerate(inverses[mode]):
            weights = row[indices[sums.data]], sums.indices, sums.indptr
            summed[:, :, q] = sp.csr_array(weights, shape=size) @ core
        places, core = places[:, first], summed.reshape(len(first), -1)
    core = core.reshape((len(inverses[0]),) * len(order))
    return np.ascontiguousarray(np.transpose(core, np.argsort(order)))
