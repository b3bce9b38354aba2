"""Receipts of estimators, and what :func:`ssnmf_fast.verify` asks of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import Array
from .._common.saved import Saved, arrays_of
from .._data.border import CleanMatrix
from .._data.fingerprint import input_fingerprint
from .._labels import Targets
from .._models.receipts import Claim, Recomputed, claim_of, plain
from .._solver.result import Factorization, History, Receipt, fingerprints

_CHOSEN = ("auto", "labels", "balanced")  # what a fit replaces by what it chose


@dataclass(frozen=True)
class Restated:
    """What a fit gave to :func:`factorize`, told again, and what else it was given.

    Inputs that are `untold` cannot be told again.  `S` is another one than the `representation_`,
    and a `constant` is added to the objective.
    """

    X: Any
    arguments: Mapping[str, Any]
    others: Mapping[str, Any] = field(default_factory=dict)
    untold: tuple[str, ...] = ()
    S: Array | None = None
    constant: float = 0.0


def said_by(targets: Targets | None) -> dict[str, Any] | None:
    """Return what labels say, as an input of a receipt."""
    if targets is None:
        return None
    return {"classes": getattr(targets, "classes", None), "Y": targets.matrix(np.float64)}


class WithReceipt:
    """What has a receipt of its last fit, `receipt_`, if that can be verified."""

    _saved: ClassVar[dict[str, Saved]]
    _checked: Callable[..., Any]
    components_: Any
    representation_: Array
    objective_: list[tuple[int, float]]
    n_iter_: int
    _verifiable: ClassVar = True
    # What may be told of a fit beside X and y; parameters that files lose are among them.
    _of_fit: ClassVar[tuple[str, ...]] = ("X_weights",)
    # Parameters that are settings of the fit that the receipt is of.
    _settings: ClassVar[tuple[str, ...]] = (
        *("loss", "supervision_loss", "solver", "init", "n_components"),
        *("max_iter", "tol", "random_state"),
    )

    def _restated(self, X: Any, y: Any, given: Mapping[str, Any]) -> Restated:
        """Tell again what a fit to checked data was; `given` is what else it was given."""
        raise TypeError(
            f"a {type(self).__name__} cannot be verified: its fit cannot be told again from what "
            "it keeps."
        )

    def _parameter(self, name: str, given: Mapping[str, Any]) -> Any:
        """Return a parameter, or what is given in place of it."""
        return given.get(name, getattr(self, name, None))

    def _note(self, receipt: Receipt | None, history: History = ()) -> None:
        """Keep the receipt of a fit, or none; the model may have added to the objective."""
        self.__dict__.pop("receipt_", None)
        if receipt is not None:
            last = history[-1][1] if history else receipt.objective
            self.receipt_ = replace(receipt, objective=last)

    def _note_inputs(self, **given: Any) -> None:
        """Add the fingerprints of inputs to the receipt, if there is one."""
        if hasattr(self, "receipt_"):
            self._note(replace(self.receipt_, inputs=self.receipt_.inputs | fingerprints(given)))

    def _seal(self) -> None:
        """Have the receipt tell of all attributes that are saved."""
        self._note(replace(self.receipt_, parts=self._parts()).sealed())

    def _parts(self) -> dict[str, str]:
        """Return the fingerprints of the attributes that are saved."""
        names = [name for name in self._saved if name != "receipt_" and hasattr(self, name)]
        return {name: input_fingerprint(arrays_of(getattr(self, name))) for name in names}

    def _recorded(self) -> dict[str, Any]:
        """Return the parameters that must be the settings of the receipt."""
        own = {name: plain(getattr(self, name)) for name in self._settings if hasattr(self, name)}
        if getattr(self, "n_starts", 1) != 1:
            own.pop("random_state", None)  # the receipt has the seed of the best start
        return {name: one for name, one in own.items() if one not in _CHOSEN}

    def _claim(self, X: Any, y: Any, given: Mapping[str, Any], threads: int) -> Claim | None:
        """Return what the receipt claims of a fit to these data; None without one."""
        check_is_fitted(self)
        if not self._verifiable:
            raise TypeError(
                f"a {type(self).__name__} cannot be verified: it keeps no receipt of its fit."
            )
        unknown = sorted(set(given) - set(self._of_fit))
        if unknown:
            raise TypeError(
                f"the fit of a {type(self).__name__} is not told by {unknown[0]!r}; expected some "
                f"of {', '.join(self._of_fit)}."
            )
        receipt = getattr(self, "receipt_", None)
        return None if receipt is None else self._claim_of(receipt, X, y, given, threads)

    def _claim_of(
        self, receipt: Receipt, X: Any, y: Any, given: Mapping[str, Any], threads: int
    ) -> Claim:
        told = self._restated(self._checked(X, reset=False), y, given)
        result = self._as_factorization(receipt)
        result = result if told.S is None else replace(result, S=told.S)
        claim = claim_of(result, CleanMatrix(told.X), told.arguments, threads)

        def recompute() -> Recomputed:
            found = claim.recompute()
            return replace(found, objective=found.objective + told.constant)

        return replace(
            claim,
            parts=self._parts(),
            inputs=claim.inputs | fingerprints(told.others),
            settings=self._recorded(),
            untold=told.untold,
            recompute=recompute,
        )

    def _as_factorization(self, receipt: Receipt) -> Factorization:
        """Return what the model keeps of its fit."""
        names = ("supervision_weight", "feature_weight")
        return Factorization(
            self.representation_,
            self.components_,
            getattr(self, "label_components_", None),
            self.objective_,
            self.n_iter_,
            receipt.converged,
            **{name: receipt.settings.get(name) for name in names},
            receipt=receipt,
        )
