"""How well the components of two CP models of a tensor agree."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from .._common.arrays import Array
from ._cp_models import check_cp_model


def factor_match_score(A: Any, B: Any, *, consider_weights: bool = True) -> float:
    r"""Return how well two CP models agree: the mean similarity of matched components.

    Components are paired one to one (Kuhn-Munkres) for the largest sum of

    .. math:: \left(1 - \frac{|w_p - v_q|}{\max(w_p, v_q)}\right)
              \prod_k \cos(A_k[:, p], B_k[:, q])

    over the modes k ([1]_, section 5).  Here w and v are the sizes of the components, the products
    of their weights and of the Euclidean norms of their columns; scaling a column of one factor and
    its weight inversely changes nothing.

    Parameters
    ----------
    A, B : TensorFactorization, pair of weights and factors, or sequence of arrays
        Nonnegative CP models of tensors of one shape: results, ``(weights, factors)``, objects with
        these attributes, such as ``CPTensor`` of TensorLy and ``ktensor`` of pyttb, or a factor
        (n_k x r) for each mode.
    consider_weights : bool
        Whether components of other sizes agree less: False leaves out the first factor above, as
        the order of magnitude of a component does not matter then.

    Returns
    -------
    float
        From 0 to 1, which means that the components are the same; the same for (A, B) as for
        (B, A).  A component of zeros has similarity 0 with all others.

    Raises
    ------
    TypeError, ValueError
        For what is no CP model, has negative entries, or for models of tensors of other shapes.

    Notes
    -----
    With r and s components there are min(r, s) pairs, and the score is the mean over these, as in
    the Tensor Toolbox, in pyttb (``ktensor.score``, which may match greedily) and in tlviz (with
    ``allow_smaller_rank=True``): components that the other model lacks do not count.  Planted
    components are usually said to be recovered by scores above 0.95.

    References
    ----------
    .. [1] E. Acar, D. M. Dunlavy, T. G. Kolda, M. Mørup, "Scalable tensor factorizations for
       incomplete data", 2011.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> rng = np.random.default_rng(0)
    >>> truth = [rng.gamma(0.3, size=(n, 2)) for n in (12, 9, 7)]
    >>> X = np.einsum("ir,jr,kr->ijk", *truth)
    >>> fit = sf.factorize_tensor(X, n_components=2, max_iter=500, tol=1e-9, random_state=0)
    >>> round(sf.metrics.factor_match_score(fit, truth), 3)
    1.0
    """
    directions, sizes = _directions(A, "A")
    others, other_sizes = _directions(B, "B")
    lengths, other_lengths = ([len(F) for F in model] for model in (directions, others))
    if lengths != other_lengths:
        raise ValueError(
            f"A is a model of tensors of shape {tuple(lengths)}, and B of shape "
            f"{tuple(other_lengths)}; give two models of the same tensor."
        )
    similarity = np.ones((len(sizes), len(other_sizes)))
    for F, G in zip(directions, others, strict=True):
        similarity *= np.minimum(F.T @ G, 1)  # which rounding can exceed
    if consider_weights:
        similarity *= np.exp(-np.abs(sizes[:, None] - other_sizes))  # the smaller / the larger
    matched = linear_sum_assignment(similarity, maximize=True)
    return float(similarity[matched].mean())


def _directions(model: Any, name: str) -> tuple[list[Array], Array]:
    """Return factors with columns of norm 1 and the logarithms of the sizes of the components.

    Of components that vanish all of these are 0.
    """
    sizes, factors = check_cp_model(model, name)
    logarithms, directions = _logarithms(sizes), []
    for F in factors:
        largest = F.max(axis=0, initial=0.0)
        F = F / np.where(largest > 0, largest, 1.0)  # squares stay in the range
        norms = np.linalg.norm(F, axis=0)
        directions.append(F / np.where(norms > 0, norms, 1.0))
        logarithms = logarithms + _logarithms(largest) + _logarithms(norms)
    alive = np.isfinite(logarithms)
    return [np.where(alive, F, 0.0) for F in directions], np.where(alive, logarithms, 0.0)


def _logarithms(sizes: Array) -> Array:
    """Return logarithms, of 0 without a warning."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(sizes))
