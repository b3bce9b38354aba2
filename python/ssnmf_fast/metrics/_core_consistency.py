"""Whether a CP model has as many components as the data: the core consistency diagnostic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.tensors import SparseTensor, Tensor, check_tensor, distinct
from .._data.threads import one_blas_thread
from .._solver.result import dense_model
from ._cp_models import check_cp_model

_LARGEST = 1 << 27  # entries of a core, or of what is made on the way
_LEAST = 1 << 12  # entries of a sparse tensor at a time


@one_blas_thread()
def core_consistency(result: Any, X: Any) -> float:
    r"""Return how nearly a tensor has the structure of a CP model, in percent (CORCONDIA).

    With the factors fixed, the core that fits X best in the least squares sense,

    .. math:: G = X \times_1 A_1^+ \times_2 A_2^+ \cdots \times_N A_N^+,

    would be 1 where all indices agree and 0 elsewhere, if the data had just these components.
    The diagnostic is :math:`100 (1 - \sum (G - T)^2 / r)`, where T is that core [1]_.  Too many
    components, or wrong ones, interact: other entries of the core grow.

    Parameters
    ----------
    result : TensorFactorization, NonnegativeCP, pair of weights and factors, or sequence of arrays
        CP model of X with r components: a result, a fitted estimator, ``(weights, factors)``, an
        object with these attributes, or a factor (n_k x r) for each mode.
    X : array_like, or sparse
        The tensor, in the forms of :func:`ssnmf_fast.factorize_tensor`.  NaN in a dense one means
        missing: the model stands in for it.

    Returns
    -------
    float
        100 for a perfect model, and at most that; about 90 and more support the components, values
        near 0 or below say that they are too many.  It is 100 for one component fitted by least
        squares, and NaN if the model is zero.

    Raises
    ------
    TypeError, ValueError
        For what is no CP model or tensor, for lengths that differ, and if the core would have more
        than 2^27 entries (1 GB).

    Notes
    -----
    The core depends on how the size of a component is spread over its columns.  Here it is in the
    first mode, as is usual, and columns of all other factors get norm 1, however those of `result`
    are scaled: tlviz has the same value for such factors.

    Nothing of the size of a dense tensor is made for a sparse one: its modes are summed out one
    after the other, the longest first.

    The core is that of least squares, for models of any loss.  Models of counts that are mostly
    zeros may have a low consistency with the right number of components.

    References
    ----------
    .. [1] R. Bro, H. A. L. Kiers, "A new efficient method for determining the number of components
       in PARAFAC models", 2003.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> rng = np.random.default_rng(0)
    >>> X = np.einsum("ir,jr,kr->ijk", *(rng.gamma(0.5, size=(n, 2)) for n in (12, 9, 7)))
    >>> X += 0.01 * rng.random(X.shape)
    >>> for rank in (2, 3):
    ...     fit = sf.factorize_tensor(X, n_components=rank, tol=1e-8, random_state=0)
    ...     print(rank, sf.metrics.core_consistency(fit, X) > 90)
    2 True
    3 False
    """
    weights, factors = check_cp_model(result, "result")
    X = check_tensor(X, "X")
    lengths = tuple(len(F) for F in factors)
    if X.shape != lengths:
        raise ValueError(
            f"result is a model of tensors of shape {lengths}, and X has shape {X.shape}; give the "
            "tensor of the fit."
        )
    rank = len(weights)
    if rank ** len(factors) > _LARGEST:
        raise ValueError(
            f"a core of {rank} components and {len(factors)} modes has {rank ** len(factors):,} "
            f"entries, more than {_LARGEST:,}; give a model of fewer components."
        )
    if not isinstance(X, SparseTensor) and np.isnan(X).any():
        model = dense_model(weights, factors, "give a smaller X, or one without NaN")
        X = np.where(np.isnan(X), model, X)
    # Columns of norm 1: what is small is not taken for zero.
    norms = [np.linalg.norm(F, axis=0) for F in factors]
    sizes = weights * np.prod(norms, axis=0)
    used = sizes > 0
    if not used.any():
        return float("nan")
    directions = [F[:, used] / norm[used] for F, norm in zip(factors, norms, strict=True)]
    core = _core(X, [np.linalg.pinv(F) for F in directions])
    core /= sizes[used].reshape(-1, *[1] * (len(factors) - 1))
    count = int(used.sum())
    core[(np.arange(count),) * len(factors)] -= 1
    # A component of zeros lacks its 1 in the core.
    return float(100 * (1 - (np.square(core).sum() + rank - count) / rank))


def _core(X: Tensor, inverses: Sequence[Array]) -> Array:
    """Return X times a matrix (r x n_k) along each mode."""
    if isinstance(X, SparseTensor):
        rank, n_modes = len(inverses[0]), len(inverses)
        core = np.zeros((rank,) * n_modes)
        at_once = max(_LEAST, _LARGEST // rank ** (n_modes - 1))
        for begin in range(0, len(X.values), at_once):
            part = slice(begin, begin + at_once)
            core += _core_of_entries(X.at.places[:, part], X.values[part], X.shape, inverses)
        return core
    core = np.asarray(X, dtype=np.float64)
    for inverse in inverses:  # the first mode is summed out; what comes of it is the last one
        core = np.tensordot(core, inverse, axes=(0, 1))
    return core


def _core_of_entries(
    places: Array, values: Array, shape: tuple[int, ...], inverses: Sequence[Array]
) -> Array:
    """Sum out one mode after the other: what is left has a row for each tuple that occurs."""
    core = values.astype(np.float64)[:, None]
    modes = [*range(len(shape))]
    order = sorted(modes, key=lambda mode: -shape[mode])
    for mode in order:
        here = modes.index(mode)
        modes.pop(here)
        indices, places = places[here], np.delete(places, here, axis=0)
        first, numbers = distinct(places, tuple(shape[k] for k in modes))
        entries = np.arange(len(numbers))
        size = len(first), len(numbers)
        # The sums for one component after the other are products with matrices of one structure.
        sums = sp.csr_array((entries, (numbers, entries)), shape=size)
        summed = np.empty((len(first), core.shape[1], len(inverses[mode])))
        for q, row in enumerate(inverses[mode]):
            weights = row[indices[sums.data]], sums.indices, sums.indptr
            summed[:, :, q] = sp.csr_array(weights, shape=size) @ core
        places, core = places[:, first], summed.reshape(len(first), -1)
    made = core.reshape((len(inverses[0]),) * len(order))
    return np.ascontiguousarray(np.transpose(made, np.argsort(order)))
