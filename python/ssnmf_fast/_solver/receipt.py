"""The receipt of a fit: of what it was made, how, and how nearly it ended at an optimum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, TypedDict

from .._backend import dispatch
from .._common.arrays import Array
from .._common.saved import Saved
from .._data.fingerprint import data_fingerprint, digest, input_fingerprint
from .._version import __version__

History = Sequence[tuple[int, float]]


class _Always(TypedDict):
    loss: str | float
    solver: str
    init: str
    n_components: int
    max_iter: int
    tol: float
    random_state: str | int | bool | None
    zeros_stay: str
    supervision_weight: str | float | None


class _Settings(_Always, total=False):
    supervision_loss: str | float
    feature_weight: str | float | None


Settings = Annotated[dict[str, Any], _Settings]


@dataclass(frozen=True)
class Receipt:
    """What a result keeps of its fit, for :func:`verify`.

    Attributes
    ----------
    data : str
        Fingerprint of X: its shape, and a hash of its entries that is the same for equal numbers in
        any form: dense, sparse or on disk, float32 or float64.
    inputs : dict of str to str
        Fingerprints of what else the fit was given: labels, weights, supports, penalties.
    settings : dict
        Losses, weights of losses, solver, start, `n_components`, `max_iter`, `tol` and the seed,
        where that was a number.
    parts : dict of str to str
        Fingerprints of the factors and of the history of the objective.
    version, level, dtype : str
        Of the library, of its kernels (see :func:`show_config`), and of the arithmetic.
    objective : float
        The value that was minimized, after the last iteration.
    n_iter : int
        Number of iterations.
    converged : bool
        Whether the stopping rule was met.
    residuals : dict of str to float
        How far every factor is from the Karush-Kuhn-Tucker conditions: with the gradient split into
        what pulls entries down and up, N - P, it is ``sum |N - P| w / sum F N``, where w is F, or
        for entries that are pulled up no less than the mean of their component.  0 is an optimum of
        this factor with the others as they are.
    seal : str
        Hash of all this: it tells whether a receipt was changed by mistake, not by whom.
    """

    data: str
    inputs: dict[str, str]
    settings: Settings
    parts: dict[str, str]
    dtype: str
    objective: float
    n_iter: int
    converged: bool
    residuals: dict[str, float]
    version: str = __version__
    level: str = dispatch.level
    seal: str = ""

    @property
    def residual(self) -> float:
        """The largest residual of a factor."""
        return max(self.residuals.values(), default=0.0)

    def sealed(self) -> Receipt:
        """Return the receipt with the seal that belongs to it."""
        return replace(self, seal=self.expected_seal())

    def expected_seal(self) -> str:
        """Return the hash of all that is not the seal."""
        return digest(repr([one for name, one in vars(self).items() if name != "seal"]))

    def with_inputs(self, **given: Any) -> Receipt:
        """Return the receipt with the fingerprints of further inputs; None is left out."""
        return replace(self, inputs=self.inputs | fingerprints(given)).sealed()

    def plain(self) -> dict[str, Any]:
        """Return what a file holds."""
        return asdict(self)


RECEIPT = Saved(optional=True, kind=Receipt)


def fingerprints(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the fingerprints of those inputs that are not None."""
    return {name: input_fingerprint(one) for name, one in given.items() if one is not None}


def parts_of(factors: Mapping[str, Array | None], history: History, threads: int) -> dict[str, str]:
    """Return the fingerprints of the factors that there are, and of the history."""
    found = {name: data_fingerprint(F, threads) for name, F in factors.items() if F is not None}
    return found | {"objective": digest(repr([*history]))}
