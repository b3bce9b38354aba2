"""Losses: what the updates of the factors need of a divergence d(x, z), in one place for each.

A term of the objective is ``sum V .* d(Z, F G^T)``.  Its gradient in F is a multiple of N - P with
two nonnegative matrices P and N (see the user guide): P is linear in the data, N knows the weights
alone.  A loss is entered in the registry by :func:`register`; public functions find it by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from .._backend.dispatch import kernels
from .._common.arrays import Array, LossName
from .._common.text import short
from .._data.entries import Entries, Target, block_slices, row_slices
from .._data.tensor_entries import full_columns, mean_sum, used_columns
from .._data.weight_forms import WeightForm
from . import beta_rows
from .penalties import Bound

if TYPE_CHECKING:
    from .terms import Term


_FINEST, _RELAXATION = 1e-4, 0.9  # of multiplicative steps by rows


class Loss:
    """A loss.  What stands here are the defaults; `name`, P, N and value must be given.

    Attributes
    ----------
    name : str
        What public functions know it by.
    exponents : (float, float)
        (a, b) of the separable majorizer: for F .* t instead of F its derivative in t is a multiple
        of ``N t^a - P t^b``, a from 0 to 1 and b from -2 to 0.  Its least value is at
        ``t = (P / N)^(1 / (a - b))``.
    slope : float
        The gradient is slope (N - P).
    degree : float, optional
        d(c x, c z) = c^degree d(x, z); None if there is no such number.  Very large or very small
        data, which are fitted in other units, are refused then.
    quadratic : bool
        Whether the majorizer may be replaced by the loss itself, with Gram matrices.
    descends : bool
        Whether `descend` is there.
    model_free : bool
        Whether N does not depend on the model.  One row is asked for if all rows of V are equal.
    constant_of_weights : bool
        Whether `constant` is 0 without weights: a file is not read for it then.
    start : str
        The start that ``init="auto"`` stands for.
    """

    name: str
    exponents: tuple[float, float] = (0.0, -1.0)
    slope = 1.0
    degree: float | None = None
    quadratic = False
    descends = False
    model_free = False
    constant_of_weights = False
    start = "random"

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process takes its own loss of this name: losses are told apart by identity."""
        return loss_named, (self.name, "loss")

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
        """Whether `value` reads the entries of the data with their weights, ``term.data``."""
        del sparse, listed, weighted
        return False

    def unreached(self, entries: Entries, F: Array, G: Array) -> float:
        """Return what entries that no component can reach have of the value: a constant."""
        del entries, F, G
        return 0.0

    def energy(self, values: Array) -> Array:
        """Return phi(x) if d is the Bregman divergence of phi: samples may share a mean then."""
        raise ValueError(
            f"the loss {self.name!r} has no weighted means, which samples with a common "
            "representation need; use 'frobenius' or 'kullback-leibler'."
        )

    def check(self, term: Term, name: str) -> None:
        """Raise ValueError for data for which the loss is not defined."""

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
        """Lower the value by coordinate descent on F, in place, and return it where asked for.

        For terms whose entries are those of a sparse matrix in memory.  Entries of F stay that
        are not in `support`, as bits.  What is lowered has a multiple of the sum of F beside it.
        """
        raise NotImplementedError

    def solve_rows(self, term: Term, F: Array, G: Array, tol: float, most: int) -> int:
        """Set every row of F to the minimizer, G fixed; return the number of rows left unsolved.

        By multiplicative steps, until no ``|F_k (N_k - P_k)|`` is above `tol` times <F, N>; they
        are too slow for less than 1e-4.
        """
        size = mean_sum(G)
        F[F <= 0] = term.mean() / size if size > 0 else 1.0
        F *= used_columns(G)
        P, N = np.empty_like(F), np.empty_like(F)
        unsolved = np.ones(len(F), dtype=bool)
        for _ in range(most):
            self.P(term.entries, F, G, Target(P))
            self.N(term.form, F, G, Target(N))
            whole = np.sum(F * N, axis=1, keepdims=True)
            unsolved = (np.abs(F * (N - P)) > max(tol, _FINEST) * whole).any(axis=1)
            if not unsolved.any():
                break
            multiply(F, {self: (P, N)}, "mm", _RELAXATION, term.threads)
        return int(np.count_nonzero(unsolved))


registry: dict[str, Loss] = {}


def register(loss: Loss) -> Loss:
    """Enter a loss: public functions take its name from now on."""
    registry[loss.name] = loss
    return loss


def register_loss(loss: Loss) -> Loss:
    """Enter a loss of a user: public functions take its name from now on.

    Parameters
    ----------
    loss : Loss
        An instance of a class derived from :class:`Loss`, with a name of its own; a loss that was
        registered by this name before is replaced, unless it is one of this package.

    Returns
    -------
    Loss
        The same.

    Raises
    ------
    TypeError
        If it is no instance of such a class, or its name is no text.
    ValueError
        If it has the name of a loss of this package.
    """
    if not isinstance(loss, Loss):
        raise TypeError(
            f"loss must be an instance of a class derived from extend.Loss; got {loss!r:.100}."
        )
    name = getattr(loss, "name", None)
    if not isinstance(name, str) or not name:
        raise TypeError(f"the name of a loss must be text, such as 'elastic'; got {name!r:.100}.")
    known = registry.get(name)
    if known is not None and type(known).__module__.startswith(f"{__package__}."):
        raise ValueError(f"{name!r} is a loss of ssnmf_fast; give the new loss another name.")
    return register(loss)


# ------------------------------------------------------------------------- multiplicative update

Sums = Mapping[Loss, tuple[Array, Array]]  # (P, N) of a factor by loss; N may be one row for all

# Exponents and slopes of the pairs that the kernel takes together.
_QUADRATIC, _LOGARITHMIC = (1.0, 0.0, 2.0), (0.0, -1.0, 1.0)


def multiply(
    F: Array,
    sums: Sums,
    rule: str,
    relaxation: float,
    threads: int,
    bounds: Sequence[Bound] = (),
) -> None:
    """Multiply F, in place, by the minimizer of the majorizer; overwrites the sums.

    To the losses come the bounds of penalties.

    The kernel has it in closed form for losses with the majorizers of the squares and of the
    divergence.  With others ``N t^a - P t^b`` is replaced by its bound with the largest a and the
    least b of all terms: ``(t^(a+1) - 1) / (a + 1)`` rises with a for every t > 0.
    """
    pairs: dict[tuple[float, float, float], tuple[Array, Array]] = {}
    for loss, pair in sums.items():
        kind = (*loss.exponents, loss.slope)
        pairs[kind] = added(pairs[kind], pair) if kind in pairs else pair
    for bound in bounds:
        _penalize(pairs, bound, F)
    if not set(pairs) <= {_QUADRATIC, _LOGARITHMIC}:
        pairs = {_LOGARITHMIC: _common(pairs)}
    P2, N2 = pairs.get(_QUADRATIC, (None, None))
    P1, N1 = pairs.get(_LOGARITHMIC, (None, None))
    kernels.update(F, P2, N2, P1, N1, "mu" if rule == "mu" else "mm", relaxation, threads)


def _penalize(
    pairs: dict[tuple[float, float, float], tuple[Array, Array]], bound: Bound, F: Array
) -> None:
    """Add the bound of a penalty to the pairs (P, N)."""
    if bound.linear:
        # Exact for an exponent of 0; a larger one bounds it, as in :func:`multiply`.
        kind = min(pairs)
        pairs[kind][1][...] += F.dtype.type(bound.linear / kind[-1])
    if bound.gram is not None:
        N = F @ bound.gram
        if bound.rows is not None:
            N *= bound.rows[:, None]
        P = np.zeros_like(F) if bound.up is None else bound.up
        if _QUADRATIC in pairs:  # P of the data may be needed afterwards
            P, N = P + pairs[_QUADRATIC][0], N + pairs[_QUADRATIC][1]
        pairs[_QUADRATIC] = P, N


def added(to: tuple[Array, Array], pair: tuple[Array, Array], scale: float = 1.0) -> Any:
    """Add a pair (P, N) to another one, in place but for an N of one row; return the sum."""
    if len(to[1]) < len(pair[1]):
        to = to[0], np.broadcast_to(to[1], pair[1].shape).copy()
    for total, part in zip(to, pair, strict=True):
        total += total.dtype.type(scale) * part
    return to


def _common(pairs: dict[tuple[float, float, float], tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return ((P / N)^exponent, 1) for the sums over all losses; (0, 0) where N vanishes."""
    P, N = (np.zeros_like(next(iter(pairs.values()))[0]) for _ in range(2))
    for (_, _, slope), pair in pairs.items():
        added((P, N), pair, slope)
    exponent = 1 / (max(a for a, _, _ in pairs) - min(b for _, b, _ in pairs))
    moves = kernels.tiny(N.dtype) < N
    with np.errstate(over="ignore"):
        np.divide(P, N, out=P, where=moves)
        np.power(P, exponent, out=P)
    P[~moves] = 0
    N[...] = moves
    return P, N


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
LossOption = LossName | float | Loss


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
