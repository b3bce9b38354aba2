"""The beta-divergences: squares (beta 2), the I-divergence (1), Itakura-Saito (0) and between.

    d(x, z) = (x^beta + (beta - 1) z^beta - beta x z^(beta - 1)) / (beta (beta - 1))

and its limits; of the squares it is half.  Their multiplicative updates never raise the objective
(Fevotte and Idier, "Algorithms for nonnegative matrix factorization with the beta-divergence",
2011, Table 2: exponent 1 for beta from 1 to 2, 1 / (2 - beta) below).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from .._backend.dispatch import kernels
from .._common.arrays import Array
from .._common.text import short
from .._data.entries import Entries, Target, block_slices, row_slices
from .._data.tensor_entries import full_columns
from .._data.weight_forms import WeightForm
from . import beta_rows
from .losses import Loss, register, registry

if TYPE_CHECKING:
    from .terms import Term


class Power(Loss):
    """A loss whose P and N are passes with powers of the model."""

    powers: tuple[float, float]

    def P(self, entries: Entries, F: Array, G: Array, to: Target) -> None:
        entries.power(self.powers[0], F, G, to)

    def N(self, form: WeightForm, F: Array, G: Array, to: Target) -> None:
        form.power(self.powers[1], F, G, to)


class Frobenius(Power):
    """d(x, z) = (x - z)^2."""

    name = "frobenius"
    powers = (0, 1)
    exponents = (1.0, 0.0)
    slope = 2.0
    degree = 2
    quadratic = True

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
            return data.squared_residuals(F, G, weights)
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
        for rows, w, here in _listed(part.entries, F, G):
            scale = None if part.rows is None else part.rows[rows]
            unsolved += kernels.nnls(
                part.gram, scale, *w, here, P[rows], F[rows], tol, most, term.threads
            )
        return unsolved


_LARGEST_FAR_SIDE = 1 << 25
_Listed = tuple[Array | None, Array | None, Array | None]


def _listed(entries: Entries | None, F: Array, G: Any) -> Iterator[tuple[slice, _Listed, Array]]:
    """Give rows by blocks with what is listed of them, which may be nothing, and their G."""
    if entries is not None:
        yield from entries.listed(len(F), G)
        return
    for rows in row_slices(len(F)):
        yield rows, (None, None, None), np.empty((0, F.shape[1]), dtype=F.dtype)


class KullbackLeibler(Power):
    """d(x, z) = x log(x / z) - x + z with 0 log 0 = 0, the I-divergence."""

    name = "kullback-leibler"
    powers = (-1, 0)
    degree = 1
    descends = True
    model_free = True
    constant_of_weights = True
    start = "least-squares"

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

    def descend(
        self,
        term: Term,
        F: Array,
        G: Array,
        support: Array | None,
        sweeps: int,
        with_value: bool,
        linear: float = 0.0,
    ) -> float | None:
        N = np.empty_like(F[:1] if term.form.equal_rows else F)
        self.N(term.form, F, G, Target(N))
        down = N + N.dtype.type(linear) if linear else N
        csr = term.entries.csr_rows(slice(0, len(F)))
        above = kernels.kl_descent(*csr, G, down, F, support, sweeps, with_value, term.threads)
        if not with_value:
            return None
        if len(N) == len(F):
            below = float(kernels.inner(F, N, term.threads))
        else:
            below = float(N[0].astype(np.float64) @ F.sum(axis=0, dtype=np.float64))
        return float(max(term.constant + above + below, 0.0))

    def unreached(self, entries: Entries, F: Array, G: Array) -> float:
        """About 700 times such an entry, since the model counts as the least number then."""
        if (full_columns(F) & full_columns(G)).any():
            return 0.0
        return entries.sum("kl_unreached", F, G)

    def energy(self, values: Array) -> Array:
        energy: Array = values * np.log(np.where(values > 0, values, 1.0))
        return energy

    def solve_rows(self, term: Term, F: Array, G: Array, tol: float, most: int) -> int:
        N = np.empty_like(F)
        self.N(term.form, F, G, Target(N))
        unsolved = 0
        for rows, csr, here in term.entries.listed(len(F), G):
            unsolved += kernels.kl_rows(*csr, here, N[rows], F[rows], tol, most, term.threads)
        return unsolved


class BetaDivergence(Power):
    """The divergence for any beta from 0 to 2, but for the two above.

    With zeros in the data it needs a beta above 0.  N is a pass over all entries, of sparse data
    as well.
    """

    constant_of_weights = True

    def __init__(self, beta: float, name: str | None = None) -> None:
        self.beta = self.degree = beta
        self.name = name or f"beta-divergence of {beta:g}"
        self.exponents = (max(beta - 1, 0.0), beta - 2)
        self.powers = (beta - 2, beta - 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BetaDivergence) and other.beta == self.beta

    def __hash__(self) -> int:
        return hash(self.beta)

    def __reduce__(self) -> tuple[Any, ...]:
        return loss_named, (self.beta, "loss")

    def entrywise(self, sparse: bool, listed: bool, weighted: bool) -> bool:
        del sparse, listed
        return weighted or self.beta == 0

    def value(self, term: Term, F: Array, G: Array) -> float:
        """Sum over the listed entries, and z^beta / beta over all others, by way of N."""
        data, w = term.data or (term.entries, None)
        # Zeros of a dense array with weights are left to N, too.
        whole = term.listed and (w is None or data.sparse or self.beta == 0)
        parameters = self.beta, not whole
        if w is None:
            value = term.entries.sum("beta_loss", F, G, *parameters)
        else:
            value = sum(
                kernels.sparse_beta_loss(*csr, *parameters, F[rows], here, term.threads, weights)
                for rows, csr, weights, here in data.weighted(w, G)
            )
        if not whole:
            N = np.empty_like(F)
            self.N(term.form, F, G, Target(N))
            value += float(kernels.inner(F, N, term.threads)) / self.beta
        return max(value, 0.0)

    def solve_rows(self, term: Term, F: Array, G: Array, tol: float, most: int) -> int:
        """By Newton's method; by multiplicative steps where a tensor has too large a far side."""
        if term.entries.by_factors and prod(G.shape) > _LARGEST_FAR_SIDE:
            return super().solve_rows(term, F, G, tol, most)
        return beta_rows.solve_rows(term, self.beta, F, G, tol, most)

    def check(self, term: Term, name: str) -> None:
        """Refuse zeros that count, for which Itakura-Saito is infinite."""
        if self.beta > 0:
            return
        data, w = term.data or (None, None)
        values = np.ones(1) if data is None else data.values
        least = np.finfo(values.dtype).tiny  # what is below, the kernels take for 0
        zero = values < least
        if isinstance(w, np.ndarray):
            zero &= w > 0
        if zero.any() or not term.listed:
            below = zero.any() and values[zero].min() > 0
            what = f"numbers below {least:.1e}, which count as zeros" if below else "zeros"
            raise ValueError(
                f"{name} has {what}, for which the loss {self.name!r} is not defined. Use a number "
                "above 0 for a beta-divergence near to it, add a small constant, or leave zeros "
                "out by NaN in a dense array or weights.observed(...)."
            )

    def energy(self, values: Array) -> Array:
        if self.beta == 0:
            return -np.log(np.where(values > 0, values, 1.0))
        energy: Array = values**self.beta / (self.beta * (self.beta - 1))
        return energy


FROBENIUS = register(Frobenius())
KULLBACK_LEIBLER = register(KullbackLeibler())
ITAKURA_SAITO = register(BetaDivergence(0.0, "itakura-saito"))
_BY_BETA: dict[float, Loss] = {2: FROBENIUS, 1: KULLBACK_LEIBLER, 0: ITAKURA_SAITO}


def loss_named(name: Any, argument: str) -> Loss:
    """Return the loss that a user means by an object, a registered name or a beta."""
    if isinstance(name, Loss):
        return name
    if isinstance(name, str) and name in registry:
        return registry[name]
    number = isinstance(name, Real) and not isinstance(name, (bool, np.bool_))
    if number and 0 <= name <= 2:
        return _BY_BETA.get(float(name)) or BetaDivergence(float(name))
    listed = ", ".join(repr(known) for known in registry)
    raise ValueError(
        f"{argument} must be one of {listed}, or a number from 0 to 2; got {short(name)}."
    )
