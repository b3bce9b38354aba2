"""Losses and terms: the part of a data matrix with a loss and weights in the objective.

A term of the objective is ``sum V .* d(Z, F G^T)``.  Its gradient in F is a multiple of N - P with
nonnegative matrices P and N (see the user guide): P is linear in the data, N depends only on the
weights.  A loss computes them from the entries V .* Z and the form of the weights V of a term.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, cast

import numpy as np

from .._backend.dispatch import kernels
from .._common.arrays import Array
from .._common.text import short
from .._data.entries import (
    DenseEntries,
    Entries,
    Target,
)
from .._data.tensor_entries import DenseTensorEntries
from .._data.tensors import mean_sum, used_columns
from .._data.weight_forms import Quadratic, Separable, WeightForm
from .majorizer import Kind, Majorizer

_FINEST, _RELAXATION = 1e-4, 0.9  # of multiplicative steps by rows


class Loss:
    """Base class of losses.  Subclasses must define `name`, `value`, and `P` and `N` (or `powers`).

    Attributes
    ----------
    name : str
        Name of the loss in public functions.
    powers : (float, float), optional
        Powers of the model in the passes for P and N, instead of the methods P and N.
    exponents : (float, float)
        (a, b) of the separable majorizer: for F .* t its derivative in t is a multiple of
        ``N t^a - P t^b``, a from 0 to 1 and b from -2 to 0.
    slope : float
        The gradient is slope (N - P).
    degree : float, optional
        d(c x, c z) = c^degree d(x, z); None if there is no such number.
    quadratic : bool
        Whether updates may use the loss itself, with Gram matrices.
    descends : bool
        Whether there is ``descend(term, F, G, support, sweeps, with_value, linear)``: coordinate
        descent on F, in place, for terms with a sparse matrix in memory.  It returns the value if
        `with_value`.  Entries outside of `support` (as bits) stay; `linear` times the sum of F is
        added.
    compiled : bool
        Whether kernels have iterations for this loss.
    model_free : bool
        Whether N does not depend on the model; it has a single row if all rows of V are equal.
    constant_of_weights : bool
        Whether `constant` is 0 without weights, so that a file is not read for it.
    start : str
        The start for ``init="auto"``.
    """

    name: str
    powers: tuple[float, float]
    exponents: tuple[float, float] = (0.0, -1.0)
    slope = 1.0
    degree: float | None = None
    quadratic = False
    descends = False
    descend: Callable[..., float | None]
    compiled = False
    model_free = False
    constant_of_weights = False
    start = "random"

    def __reduce__(self) -> tuple[Any, ...]:
        """Unpickle by name, because losses are compared by identity."""
        return registered, (self.name, "loss")

    def P(self, entries: Entries, F: Array, G: Array, to: Target) -> None:
        """Compute P; `entries` are V .* Z."""
        entries.power(self.powers[0], F, G, to)

    def N(self, form: WeightForm, F: Array, G: Array, to: Target) -> None:
        """Compute N; `form` is V."""
        form.power(self.powers[1], F, G, to)

    def value(self, term: Term, F: Array, G: Array) -> float:
        """Return sum V .* d(Z, F G^T)."""
        raise NotImplementedError(f"the loss {self.name!r} has no method value")

    def constant(self, z: Array, w: Array | None) -> float:
        """Return the part of `value` that depends only on data and weights; NaN is missing."""
        return 0.0

    def entrywise(self, sparse: bool, listed: bool, weighted: bool) -> bool:
        """Whether `value` uses the entries of the data with their weights, ``term.data``."""
        return False

    def unreached(self, entries: Entries, F: Array, G: Array) -> float:
        """Return the constant part of the value from entries that no component can reach."""
        return 0.0

    def energy(self, values: Array) -> Array:
        """Return phi(x) if d is the Bregman divergence of phi, so that samples may be averaged."""
        raise ValueError(
            f"the loss {self.name!r} does not support samples with a common representation; use "
            "'frobenius' or 'kullback-leibler'."
        )

    def check(self, term: Term, name: str) -> None:
        """Raise ValueError if the loss is not defined for the data."""

    def solve_rows(self, term: Term, F: Array, G: Array, tol: float, most: int) -> int:
        """Set every row of F to the minimizer, given G; return the number of unsolved rows.

        Use multiplicative steps until no ``|F_k (N_k - P_k)|`` is above `tol` (at least 1e-4) times
        <F, N>.
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
            Majorizer({kind_of(self): (P, N)}).multiply(F, "mm", _RELAXATION, term.threads)
        return int(np.count_nonzero(unsolved))


def kind_of(loss: Loss) -> Kind:
    return (*loss.exponents, loss.slope)


registry: dict[str, Loss] = {}


def registered(name: object, argument: str) -> Loss:
    if isinstance(name, str) and name in registry:
        return registry[name]
    listed = ", ".join(repr(known) for known in registry)
    raise ValueError(
        f"{argument} must be one of {listed}, or a number from 0 to 2; got {short(name)}."
    )


def register(loss: Loss) -> Loss:
    registry[loss.name] = loss
    return loss


@dataclass(frozen=True)
class Term:
    """A data matrix Z (p x q) with its loss and weights; `entries` holds V .* Z.

    Z may also be a tensor unfolded by one mode, whose length comes first in `shape`.
    `row_lengths` are the mean numbers of nonzero entries per row, per column, and so on.  With
    `listed`, all other entries have weight 0; `data` is Z and a weight for each of its values (None
    for ones), for losses that need them.
    """

    loss: Loss
    entries: Entries
    form: WeightForm
    shape: tuple[int, ...]
    constant: float = 0.0
    listed: bool = False
    data: tuple[Entries, Any] | None = None
    row_lengths: tuple[int, ...] = ()
    _views: dict[int, Term] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def threads(self) -> int:
        return self.entries.threads

    @property
    def gram(self) -> bool:
        """Whether one Gram matrix, times weights of the rows, is the curvature of every row."""
        return self.loss.quadratic and self.form.separable

    @property
    def fills(self) -> bool:
        """Whether the model may fill in what the weights leave out, see `WeightForm.fill`."""
        return self.loss.quadratic and self.form.cover is not None

    def fill(self, F: Array, G: Array, to: Target) -> Quadratic:
        """Compute P, and return the curvature, of data in which the model fills in what V omits.

        With the weights C of the cover, ``V x + (C - V) z`` are the data for the model z at F,
        times C.  The loss of these is above that of the term, and equal at F: an expectation step
        of the EM algorithm, whose maximization step is an update with the one Gram matrix of C.
        """
        cover = cast(Separable, self.form.cover)
        gram = cover.gram(G)
        dense = isinstance(self.entries, DenseEntries | DenseTensorEntries)
        if dense and self.form.marks_missing:
            self.entries.residual(F, G, to)
            kernels.multiply(F, gram, cover.rows, *to._replace(accumulate=True), self.threads)
        else:
            self.P(F, G, to)
            self.form.fill(F, G, to)
        return Quadratic(gram, cover.rows)

    def view(self, position: int) -> Term:
        """Return the term by the rows of the factor at a position, made once."""
        if position and position not in self._views:

            def first(numbers: tuple[int, ...]) -> tuple[int, ...]:
                rest = numbers[:position] + numbers[position + 1 :]
                return numbers[position : position + 1] + rest

            self._views[position] = replace(
                self,
                entries=self.entries.view(position),
                form=self.form.view(position),
                shape=first(self.shape),
                data=None,
                row_lengths=first(self.row_lengths),
            )
        return self._views[position] if position else self

    def part(self, rows: slice, entries: Entries | None = None) -> Term:
        """Return the term of some rows, for updates; their entries may have been read already."""
        entries = entries or self.entries.part(rows)
        shape = rows.stop - rows.start, *self.shape[1:]
        return replace(self, entries=entries, form=self.form.part(rows), shape=shape, data=None)

    def P(self, F: Array, G: Array, to: Target) -> None:
        """Compute P, which pulls F up."""
        self.loss.P(self.entries, F, G, to)

    def N(self, F: Array, G: Array, to: Target) -> None:
        """Compute N, which pulls F down."""
        self.loss.N(self.form, F, G, to)

    def value(self, F: Array, G: Array) -> float:
        """Return sum V .* d(Z, F G^T)."""
        found = self.loss.value(self, F, G)
        if not isinstance(found, Real) or found != found:
            raise ValueError(
                f"the loss {self.loss.name!r} has the value {found!r:.50}; expected a number. Its "
                "method value must return sum V .* d(Z, F G^T); the data may be out of its range."
            )
        return float(found)

    def unreached(self, F: Array, G: Array) -> float:
        """Return the constant part of the value from entries that no component can reach."""
        return self.loss.unreached(self.entries, F, G)

    def mean(self) -> float:
        """Return the weighted mean of the data; 1 if all entries or weights are 0."""
        weight = self.form.total(self.shape)
        mean = self.entries.total() / weight if weight > 0 else 0.0
        return mean if mean > 0 else 1.0
