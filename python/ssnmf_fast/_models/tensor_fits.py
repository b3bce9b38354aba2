"""What decompositions of the same tensor share, and one such decomposition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from .._backend.dispatch import padded
from .._common.arrays import Array
from .._data.border import check_integer, check_real, require_memory
from .._data.fingerprint import data_fingerprint
from .._data.tensors import check_mode
from .._solver.known import penalties_of_factor
from .._solver.loop import FitLoop, Optimality, Run
from .._solver.losses import loss_named
from .._solver.penalties import Penalties, require_scale
from .._solver.problem import Problem
from .._solver.result import TensorFactorization, fingerprints, normalized
from .._solver.starts import start_of_labels, start_tensor, zeros_that_stay
from .._solver.terms import Term
from .._solver.units import scaled
from .receipts import receipt_of
from .tensor_receipts import parts_of_tensor
from .tensor_terms import terms_of_tensor


class TensorFits:
    """Decompositions of the same tensor with the same settings, which differ in their starts alone.

    The arguments are those of `factorize_tensor`, checked here; `threads` are those of each fit.
    Fits may run at the same time.
    """

    def __init__(
        self,
        X: Any,
        *,
        n_components: int,
        threads: int,
        loss: str | float,
        X_weights: Any,
        labels: Mapping[int, Any] | None,
        supervision_loss: str | float,
        supervision_weight: float,
        init: Any,
        penalties: Any,
        dtype: Any,
    ) -> None:
        self.rank = check_integer(n_components, "n_components", 1)
        self.loss = loss_named(loss, "loss")
        losses = self.loss, loss_named(supervision_loss, "supervision_loss")
        weight = check_real(supervision_weight, "supervision_weight")
        given = terms_of_tensor(X, X_weights, labels, losses, weight, threads, dtype)
        self.X, self.units, self.relations = given.X, given.units, given.relations
        self.labels, self.X_weights, self.init = given.labels, X_weights, init
        require_memory(self.rank, self.X.shape, self.X.dtype)
        modes = dict(zip(self.relations[0].names, range(len(self.X.shape)), strict=True))
        self.penalties = _penalties(penalties, self.X.shape, modes, self.labels, self.rank)
        if self.penalties:
            self.units.require_trivial("penalties")
        require_scale(self.penalties, [r.names for r in self.relations if r.coefficient > 0], modes)
        self.threads = threads
        self.settings = {
            "loss": loss,
            "supervision_loss": supervision_loss,
            "supervision_weight": supervision_weight,
            "n_components": n_components,
            "init": init,
        }
        self.fingerprint = data_fingerprint(scaled(self.X, self.units.x), threads)
        self.inputs = fingerprints(
            {"X_weights": X_weights, "labels": labels, "penalties": penalties}
        )

    def fit(self, rng: np.random.Generator, loop: FitLoop, seed: Any) -> TensorFactorization:
        """Fit from a start that is drawn, or is given; the receipt has the seed of `rng`."""
        rank, relations, units = self.rank, self.relations, self.units
        factors = self._start(rng)
        kept = {} if isinstance(self.init, str) else zeros_that_stay(factors, rank)
        problem = Problem(factors, relations, kept, penalties=self.penalties)
        unreached = problem.unreached()
        if kept and unreached > 0:
            raise ValueError(
                "init has zeros, which stay, where X or labels are positive: the Kullback-Leibler "
                "divergence is infinite there. Add a small constant to its factors."
            )
        found = {name: F[:, :rank] for name, F in factors.items()}
        steps = loop.steps(problem)
        seen = Optimality(problem, stay=kept)
        run = loop.run(steps, lambda: found, units=units, unreached=unreached, optimality=seen)
        names = relations[0].names
        columns, weights, sizes, order = normalized([found[name] for name in names], self.loss)
        components = {
            k: np.ascontiguousarray((found[f"B{k}"] * sizes[k])[:, order].T) for k in self.labels
        }
        weights = np.ldexp(weights, units.x)
        result = TensorFactorization(
            columns, weights, components, run.objective, run.n_iter, run.converged
        )
        return self._with_receipt(result, run, loop, seed, kept)

    def _start(self, rng: np.random.Generator) -> dict[str, Array]:
        """Return the factors to start from, as the kernels hold them."""
        term, dtype, names = self.relations[0].term, self.X.dtype, self.relations[0].names
        of_X = self.X, self.X_weights, term, self.rank
        start = start_tensor(self.init, *of_X, rng, self.units.x)
        factors = {name: padded(F, dtype) for name, F in zip(names, start, strict=True)}
        for k, Y in self.labels.items():
            B = start_of_labels(self.init, k, start[k], Y, rng)
            factors[f"B{k}"] = padded(B.T, dtype)
        return factors

    def _with_receipt(
        self,
        result: TensorFactorization,
        run: Run,
        loop: FitLoop,
        seed: Any,
        kept: Mapping[str, Array],
    ) -> TensorFactorization:
        settings = {
            **self.settings,
            "solver": loop.solver,
            "max_iter": loop.max_iter,
            "tol": loop.tol,
            "random_state": seed,
            "zeros_stay": ",".join(sorted(kept)),
        }
        receipt = receipt_of(
            run,
            parts_of_tensor(result),
            self.threads,
            data=self.fingerprint,
            inputs=self.inputs,
            settings=settings,
            dtype=self.X.dtype,
            residuals=run.residuals,
        )
        return replace(result, receipt=receipt)


def _penalties(
    given: Any,
    shape: tuple[int, ...],
    modes: Mapping[str, int],
    labels: Mapping[int, Term],
    rank: int,
) -> dict[str, Penalties]:
    """Return the penalties of the factors by name, each times the entries that its rows meet.

    Factors of the data are given by their modes, and those of labels by their names.
    """
    size = prod(shape)
    of_modes = {k: (name, shape[k], size // max(shape[k], 1)) for name, k in modes.items()}
    of_labels = {f"B{k}": (f"B{k}", Y.shape[1], shape[k]) for k, Y in labels.items()}
    known, found = of_modes | of_labels, {}
    given = {} if given is None else given
    by_key = given if isinstance(given, Mapping) else dict.fromkeys(known, given)
    for key, each in by_key.items():
        mode = key if key in of_labels else check_mode(key, "a mode of penalties", len(shape))
        name, n_rows, meets = known[mode]
        title = name if key in of_labels else f"mode {mode}"
        listed = penalties_of_factor(each, title, n_rows, meets)
        if listed:
            found[name] = Penalties(listed, rank)
    return found
