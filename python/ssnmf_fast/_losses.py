"""Losses: what the updates of the factors need of a divergence d(x, z), in one place for each.

A term of the objective is ``sum V .* d(Z, F G^T)``.  Its gradient in F is a multiple of N - P with
two nonnegative matrices P and N (see the user guide): P is linear in the data, N knows the weights
alone.  A loss is entered in the registry by :func:`register`; public functions find it by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ._dispatch import kernels
from ._entries import Entries, Target, block_slices, row_slices
from ._weight_forms import WeightForm

if TYPE_CHECKING:
    from ._terms import Term

Array = npt.NDArray[Any]


class Loss:
    """A loss.  What stands here are the defaults; `name`, P, N and value must be given.

    Attributes
    ----------
    name : str
        What public functions know it by.
    exponents : (float, float)
        (a, b) of the separable majoriser: for F .* t instead of F its derivative in t is a multiple
        of ``N t^a - P t^b``, a from 0 to 1 and b from -2 to 0.  Its least value is at
        ``t = (P / N)^(1 / (a - b))``.
    slope : float
        The gradient is slope (N - P).
    degree : float
        d(c x, c z) = c^degree d(x, z).
    quadratic : bool
        Whether the majoriser may be replaced by the loss itself, with Gram matrices.
    model_free : bool
        Whether N does not depend on the model.
    start : str
        The start that ``init="auto"`` stands for.
    """

    name: str
    exponents: tuple[float, float] = (0.0, -1.0)
    slope = 1.0
    degree: float = 1.0
    quadratic = False
    model_free = False
    start = "random"

    def P(self, entries: Entries, F: Array, G: Array, to: Target) -> None:
        """Give P; `entries` are V .* Z."""
        raise NotImplementedError

    def N(self, form: WeightForm, F: Array, G: Array, to: Target) -> None:
        """Give N; `form` is V."""
        raise NotImplementedError

    def value(self, term: Term, F: Array, G: Array) -> float:
        """Return sum V .* d(Z, F G^T)."""
        raise NotImplementedError

    def constant(self, z: Array, w: Array | None) -> float:
        """Return what `value` needs of data entries and their weights alone; NaN is missing."""
        del z, w
        return 0.0

    def entrywise(self, sparse: bool, listed: bool, weighted: bool) -> bool:
        """Whether `value` reads the data with their weights, ``term.data``."""
        del sparse, listed, weighted
        return False

    def unreached(self, entries: Entries, F: Array, G: Array) -> float:
        """Return what entries that no component can reach have of the value: a constant."""
        del entries, F, G
        return 0.0

    def check(self, Z: Any, name: str) -> None:
        """Raise ValueError for data for which the loss is not defined."""

    def energy(self, values: Array) -> Array:
        """Return phi(x) if d is the Bregman divergence of phi: samples may share a mean then."""
        raise ValueError(
            f"the loss {self.name!r} has no weighted means, which samples with a common "
            "representation need; use 'frobenius' or 'kullback-leibler'."
        )

    def solve_rows(self, term: Term, F: Array, G: Array, tol: float, most: int) -> int:
        """Set every row of F to the minimiser, G fixed; return the number of rows left unsolved.

        By multiplicative steps, until no |min(F_k / max(F), 1 - P_k / N_k)| is above `tol`.
        """
        F[(F <= 0).all(axis=1) if F.any() else slice(None)] = 1.0
        F *= G.any(axis=0)
        P, N = np.empty_like(F), np.empty_like(F)
        sums = {self: (P, N)}
        unsolved = np.ones(len(F), dtype=bool)
        for _ in range(most):
            self.P(term.entries, F, G, Target(P))
            self.N(term.form, F, G, Target(N))
            ratio = np.divide(P, N, out=np.ones_like(P), where=N > 0)
            size = F / np.maximum(F.max(axis=1, keepdims=True), kernels.tiny(F.dtype))
            unsolved = (np.abs(np.minimum(size, 1 - ratio)) > tol).any(axis=1)
            if not unsolved.any():
                break
            multiply(F, sums, "mm", 0.0, term.threads)
        return int(np.count_nonzero(unsolved))


class Frobenius(Loss):
    """d(x, z) = (x - z)^2."""

    name = "frobenius"
    exponents = (1.0, 0.0)
    slope = 2.0
    degree = 2
    quadratic = True

    def P(self, entries: Entries, F: Array, G: Array, to: Target) -> None:
        entries.apply("product", None, G, to)

    def N(self, form: WeightForm, F: Array, G: Array, to: Target) -> None:
        form.power(1, F, G, to)

    def entrywise(self, sparse: bool, listed: bool, weighted: bool) -> bool:
        return listed and (sparse or not weighted)

    def constant(self, z: Array, w: Array | None) -> float:
        add = np.sum if z.ndim == 1 else np.nansum  # entries of a sparse matrix are never NaN
        total = 0.0
        for rows in block_slices((len(z), int(np.prod(z.shape[1:])))):
            squares = np.square(z[rows], dtype=np.float64)
            total += float(add(squares if w is None else w[rows].astype(np.float64) * squares))
        return total

    def value(self, term: Term, F: Array, G: Array) -> float:
        """Sum the squared residuals where they can be listed, else |Z|^2 - 2 <P, F> + <N, F>."""
        if term.data is not None:
            data, weights = term.data
            if sp.issparse(data):
                csr = (data.indptr, data.indices, data.data)
                return float(kernels.sparse_frobenius_loss(*csr, weights, F, G, term.threads))
            return float(kernels.dense_frobenius_loss(data, F, G, term.threads))
        below = term.form.squares(F, G)
        P = np.empty_like(F)
        self.P(term.entries, F, G, Target(P))
        above = float(kernels.inner(F, P, term.threads))
        return max(term.constant - 2 * above + below, 0.0)

    def energy(self, values: Array) -> Array:
        return values**2

    def solve_rows(self, term: Term, F: Array, G: Array, tol: float, most: int) -> int:
        P = np.empty_like(F)
        self.P(term.entries, F, G, Target(P))
        part = term.form.quadratic(G)
        unsolved = 0
        for rows in row_slices(len(F)):
            w: tuple[Array | None, Array | None, Array | None] = (None, None, None)
            if part.entries is not None:
                w = part.entries.csr_rows(rows)
            scale = None if part.rows is None else part.rows[rows]
            unsolved += kernels.nnls(
                part.gram, scale, *w, G, P[rows], F[rows], tol, most, term.threads
            )
        return unsolved


class KullbackLeibler(Loss):
    """d(x, z) = x log(x / z) - x + z with 0 log 0 = 0, the I-divergence."""

    name = "kullback-leibler"
    model_free = True
    start = "least-squares"

    def P(self, entries: Entries, F: Array, G: Array, to: Target) -> None:
        entries.apply("ratio", F, G, to)

    def N(self, form: WeightForm, F: Array, G: Array, to: Target) -> None:
        form.power(0, F, G, to)

    def constant(self, z: Array, w: Array | None) -> float:
        """Sum of -wz log w: w (z log z/y - z) = (wz log wz/y - wz) - wz log w."""
        if w is None:
            return 0.0
        total = 0.0
        for rows in block_slices((len(z), int(np.prod(z.shape[1:])))):
            wz, v = w[rows] * z[rows], w[rows]
            positive = wz > 0
            total -= float(np.sum(wz[positive] * np.log(v[positive].astype(np.float64))))
        return total

    def value(self, term: Term, F: Array, G: Array) -> float:
        """Return sum V (z log z/(FG) - z) + <N, F>."""
        N = np.empty_like(F)
        self.N(term.form, F, G, Target(N))
        below = float(kernels.inner(F, N, term.threads))
        value = term.constant + term.entries.sum("kl_loss", F, G) + below
        return max(value, 0.0)  # what is below is the rounding of large sums

    def unreached(self, entries: Entries, F: Array, G: Array) -> float:
        """About 700 times such an entry, since the model counts as the least number then."""
        if ((F > 0).all(axis=0) & (G > 0).all(axis=0)).any():
            return 0.0
        return entries.sum("kl_unreached", F, G)

    def energy(self, values: Array) -> Array:
        energy: Array = values * np.log(np.where(values > 0, values, 1.0))
        return energy

    def solve_rows(self, term: Term, F: Array, G: Array, tol: float, most: int) -> int:
        N = np.empty_like(F)
        self.N(term.form, F, G, Target(N))
        unsolved = 0
        for rows in row_slices(len(F)):
            csr = term.entries.csr_rows(rows)
            unsolved += kernels.kl_rows(*csr, G, N[rows], F[rows], tol, most, term.threads)
        return unsolved


_registry: dict[str, Loss] = {}


def register(loss: Loss) -> Loss:
    """Enter a loss: public functions take its name from now on."""
    _registry[loss.name] = loss
    return loss


FROBENIUS = register(Frobenius())
KULLBACK_LEIBLER = register(KullbackLeibler())


def loss_named(name: Any, argument: str) -> Loss:
    """Return a registered loss; raise ValueError that lists them for another name."""
    if isinstance(name, Loss):
        return name
    if not isinstance(name, str) or name not in _registry:
        listed = ", ".join(repr(known) for known in _registry)
        raise ValueError(f"{argument} must be one of {listed}; got {name!r}.")
    return _registry[name]


# ------------------------------------------------------------------------- multiplicative update

Sums = Mapping[Loss, tuple[Array, Array]]  # (P, N) of a factor by loss


# Exponents and slopes of the pairs that the kernel takes together.
_QUADRATIC, _LOGARITHMIC = (1.0, 0.0, 2.0), (0.0, -1.0, 1.0)


def multiply(F: Array, sums: Sums, rule: str, relaxation: float, threads: int) -> None:
    """Multiply F, in place, by the minimiser of the majoriser; overwrites the sums.

    The kernel has it in closed form for losses with the majorisers of the squares and of the
    divergence.  With others ``N t^a - P t^b`` is replaced by its bound with the largest a and the
    least b of all terms: ``(t^(a+1) - 1) / (a + 1)`` rises with a for every t > 0.
    """
    kinds = {loss: (*loss.exponents, loss.slope) for loss in sums}
    if not set(kinds.values()) <= {_QUADRATIC, _LOGARITHMIC}:
        sums = {KULLBACK_LEIBLER: _common(sums)}
        kinds = {KULLBACK_LEIBLER: _LOGARITHMIC}
    pairs: dict[Any, tuple[Array, Array]] = {}
    for loss, kind in kinds.items():
        pairs[kind] = _added(sums[loss], pairs[kind]) if kind in pairs else sums[loss]
    P2, N2 = pairs.get(_QUADRATIC, (None, None))
    P1, N1 = pairs.get(_LOGARITHMIC, (None, None))
    kernels.update(F, P2, N2, P1, N1, "mu" if rule == "mu" else "mm", relaxation, threads)


def _added(to: tuple[Array, Array], pair: tuple[Array, Array], scale: float = 1.0) -> Any:
    for total, part in zip(to, pair, strict=True):
        total += total.dtype.type(scale) * part
    return to


def _common(sums: Sums) -> tuple[Array, Array]:
    """Return ((P / N)^exponent, 1) for the sums over all losses; (0, 0) where N vanishes."""
    (first, (P, N)), *others = sums.items()
    if first.slope != 1:
        P *= P.dtype.type(first.slope)
        N *= N.dtype.type(first.slope)
    for loss, pair in others:
        _added((P, N), pair, loss.slope)
    exponent = 1 / (max(loss.exponents[0] for loss in sums) - min(x.exponents[1] for x in sums))
    moves = kernels.tiny(N.dtype) < N
    with np.errstate(over="ignore"):
        np.divide(P, N, out=P, where=moves)
        np.power(P, exponent, out=P)
    P[~moves] = 0
    N[...] = moves
    return P, N
