"""Results of fits, and their receipts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import prod
from typing import Annotated, Any, TypedDict

import numpy as np
import numpy.typing as npt

from .._backend import dispatch
from .._common.arrays import Array
from .._common.saved import Saved
from .._data.arrays import as_array
from .._data.fingerprint import data_fingerprint, digest, input_fingerprint
from .._data.tensors import RowProducts
from .._version import __version__
from .terms import Loss

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
    plan: str
    stopping: str
    check_every: int
    supervision_loss: str | float
    feature_weight: str | float | None


Settings = Annotated[dict[str, Any], _Settings]


@dataclass(frozen=True)
class Receipt:
    """Record of a fit in its result, for :func:`verify`.

    Attributes
    ----------
    data : str
        Fingerprint of X: its shape, and a hash of its entries, the same for equal numbers in any
        form: dense, sparse or on disk, float32 or float64.
    inputs : dict of str to str
        Fingerprints of the other inputs: labels, weights, supports, penalties.
    settings : dict
        Losses and their weights, solver and its plan (what updated each factor), start,
        `n_components`, `max_iter`, `tol`, the seed if any.
    parts : dict of str to str
        Fingerprints of the factors and of the history of the objective.
    version, level, dtype : str
        Version of the library, level of its kernels (see :func:`show_config`), type of the factors.
    objective, n_iter, converged : float, int, bool
        The last objective, the number of iterations, and whether the stopping rule was met.
    residuals : dict of str to float
        Distance of each factor from the Karush-Kuhn-Tucker conditions: ``sum |N - P| w / sum F N``,
        where the gradient N - P is split into downward and upward pulls, and w is F, but at least
        the mean of the component for entries that are pulled up.  0 is an optimum of this factor,
        given the others.
    seal : str
        Hash of all this, which reveals accidental changes only.
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
    level: str = field(default_factory=dispatch.level_in_use)
    seal: str = ""

    @property
    def residual(self) -> float:
        """The largest residual of a factor."""
        return max(self.residuals.values(), default=0.0)

    def sealed(self) -> Receipt:
        return replace(self, seal=self.expected_seal())

    def expected_seal(self) -> str:
        return digest(repr([one for name, one in vars(self).items() if name != "seal"]))

    def with_objective(self, history: History) -> Receipt:
        """Return the receipt with values of another objective."""
        parts = self.parts | parts_of({}, history, 1)
        return replace(self, objective=history[-1][1], parts=parts).sealed()

    def plain(self) -> dict[str, Any]:
        """Return the contents for a file."""
        return asdict(self)


RECEIPT = Saved(optional=True, kind=Receipt, part="receipt")


def fingerprints(given: Mapping[str, Any]) -> dict[str, str]:
    """Return fingerprints of inputs, except None and empty penalties."""
    kept = {k: one for k, one in given.items() if one is not None and (k != "penalties" or one)}
    return {name: input_fingerprint(one, name) for name, one in kept.items()}


def parts_of(factors: Mapping[str, Array | None], history: History, threads: int) -> dict[str, str]:
    """Return the fingerprints of the given factors, and of the history."""
    found = {name: data_fingerprint(F, threads) for name, F in factors.items() if F is not None}
    return found | {"objective": digest(repr([*history]))}


_LARGEST = 1 << 27  # places of a dense model
_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class FitState:
    """State of a fit, for callbacks; the factors are also attributes.

    Attributes
    ----------
    iteration : int
        Number of updates of each factor so far.
    objective : float
        The value that is being minimized.
    factors : mapping of str to ndarray or None
        Read-only views of the factors, which change in later iterations: keep copies.  For a
        factorization S, A, B and C, of shapes (n, r), (r, m), (r, k) and (r, g).
    residual : float or None
        The largest residual of a factor, see :class:`ssnmf_fast.results.Receipt`; None for models
        without residuals.  It is computed on access, in about the time of an iteration, and only
        during the call of the callback: later, RuntimeError is raised.
    """

    iteration: int
    objective: float
    factors: Mapping[str, Array | None] = field(default_factory=dict)
    _residuals: Callable[[], Mapping[str, float]] | None = field(
        default=None, repr=False, compare=False
    )

    @property
    def residual(self) -> float | None:
        return None if self._residuals is None else max(self._residuals().values())

    def end(self) -> None:
        """Refuse to compute the residual from now on: the factors change."""

        def over() -> Any:
            hint = "read `residual` in the callback, and keep the number."
            raise RuntimeError(f"the fit has moved on from iteration {self.iteration}; {hint}")

        if self._residuals is not None:
            object.__setattr__(self, "_residuals", over)

    def __getattr__(self, name: str) -> Any:
        factors = self.__dict__.get("factors", {})
        if name in factors:
            return factors[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


@dataclass(frozen=True, eq=False)
class Factorization:
    """Result of :func:`factorize`.

    Attributes
    ----------
    S : ndarray, shape (n, r)
        Representation of the samples.
    A : ndarray, shape (r, m)
        Dictionary: the components over the features.
    B : ndarray, shape (r, k), or None
        Classifier: the components over the labels.
    objective : list of (int, float)
        Iterations at which the objective was evaluated, and its values.
    n_iter : int
        Number of iterations (updates of every factor).
    converged : bool
        Whether the stopping rule was met before `max_iter`.
    supervision_weight : float or None
        Weight (lambda) of the loss of the labels, also for "balanced"; None without labels.
    C : ndarray, shape (r, g), or None
        The components over the labels of features: ``feature_labels ~ A.T @ C``.
    feature_weight : float or None
        Weight of the loss of these labels; None without them.
    objective_parts : dict of str to list of float
        The parts of each value of `objective`, with their weights: "X", "y", "feature_labels" and
        "penalties", as far as they are there.  Empty for fits on a cluster and of estimators.
    start_objectives : tuple of float, or None
        Last objective of each start, if there were several.
    receipt : Receipt or None
        Record of the fit for :func:`ssnmf_fast.verify`; None for fits on a cluster.
    """

    S: Array
    A: Array
    B: Array | None = None
    objective: list[tuple[int, float]] = field(default_factory=list)
    n_iter: int = 0
    converged: bool = False
    supervision_weight: float | None = None
    C: Array | None = None
    feature_weight: float | None = None
    start_objectives: tuple[float, ...] | None = None
    objective_parts: dict[str, list[float]] = field(default_factory=dict)
    receipt: Receipt | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        factors = {"S": self.S, "A": self.A, "B": self.B, "C": self.C}
        shapes = [f"{name}: {M.shape}" for name, M in factors.items() if M is not None]
        return f"Factorization({', '.join(shapes)}, {_end_of(self)})"


@dataclass(frozen=True, eq=False)
class TensorFactorization:
    """Result of :func:`factorize_tensor`.

    The model is ``sum_q weights[q] * outer(factors[0][:, q], ..., factors[N-1][:, q])``.  It
    unpacks as ``weights, factors = result``, so that ``tensorly.cp_to_tensor(result)`` works.

    Attributes
    ----------
    factors : list of ndarray, shapes (n_k, r)
        A factor for each mode.  Columns have Euclidean norm 1 for the Frobenius loss, sum 1 for
        other losses, or are zero.
    weights : ndarray, shape (r,)
        Sizes of the components, the largest first.
    label_components : dict of int to ndarray, shapes (r, number of labels)
        The components over the labels of mode k: ``y[k] ~ factors[k] @ label_components[k]``.
    objective, n_iter, converged, start_objectives, objective_parts, receipt
        As in :class:`Factorization`; the part of labels of mode k is "y[k]".
    """

    factors: list[Array]
    weights: Array
    label_components: dict[int, Array] = field(default_factory=dict)
    objective: list[tuple[int, float]] = field(default_factory=list)
    n_iter: int = 0
    converged: bool = False
    start_objectives: tuple[float, ...] | None = None
    objective_parts: dict[str, list[float]] = field(default_factory=dict)
    receipt: Receipt | None = field(default=None, repr=False)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over weights and factors, for TensorLy."""
        return iter((self.weights, self.factors))

    def __repr__(self) -> str:
        shape = f"shape={tuple(map(len, self.factors))}, n_components={len(self.weights)}"
        return f"TensorFactorization({shape}, {_end_of(self)})"

    def predict(self, coords: npt.ArrayLike) -> Array:
        """Return the values of the model at some places.

        Parameters
        ----------
        coords : array_like of int, shape (N, number of places)
            A row of indices for each mode.

        Returns
        -------
        ndarray, shape (number of places,)
        """
        places = as_array(coords, "coords")
        lengths = [len(F) for F in self.factors]
        if places.ndim != 2 or len(places) != len(lengths) or places.dtype.kind not in "iu":
            hint = f"expected a row of integers for each of the {len(lengths)} modes."
            raise ValueError(f"coords has shape {places.shape} and dtype {places.dtype}; {hint}")
        for mode, (indices, length) in enumerate(zip(places, lengths, strict=True)):
            if indices.size and not 0 <= indices.min() <= indices.max() < length:
                raise ValueError(
                    f"coords has indices from {indices.min()} to {indices.max()} in mode {mode}, "
                    f"which has {length}."
                )
        values = np.empty(places.shape[1], dtype=self.weights.dtype)
        rows = RowProducts(tuple(self.factors))
        for begin in range(0, len(values), _AT_ONCE):
            part = slice(begin, begin + _AT_ONCE)
            values[part] = rows.at(places[:, part]) @ self.weights
        return values

    def to_dense(self) -> Array:
        """Return the model as a dense array, of at most 2^27 places (1 GB)."""
        return dense_model(self.weights, self.factors, "use predict(coords) for some of them")


def _end_of(result: Factorization | TensorFactorization) -> str:
    last = f"objective={result.objective[-1][1]:.6g}, " if result.objective else ""
    return f"{last}n_iter={result.n_iter}, converged={result.converged}"


def dense_model(weights: Array, factors: Sequence[Array], instead: str) -> Array:
    """Return a CP model as a dense array, unless it is too large."""
    lengths = tuple(len(F) for F in factors)
    if prod(lengths) > _LARGEST:
        raise ValueError(
            f"the model has {prod(lengths):,} places, more than {_LARGEST:,}; {instead}."
        )
    made = factors[0] * weights
    for F in factors[1:-1]:
        made = (made[:, None] * F).reshape(-1, len(weights))
    return np.asarray((made @ factors[-1].T).reshape(lengths))


def sizes_of(F: Array, loss: Loss) -> Array:
    """Return the sizes of columns: Euclidean norms for squares, otherwise sums."""
    if not loss.quadratic:
        return np.asarray(F.sum(axis=0))
    exponents = np.frexp(F.max(axis=0, initial=0))[1]  # the squares of small entries would vanish
    return np.asarray(np.ldexp(np.linalg.norm(np.ldexp(F, -exponents), axis=0), exponents))


def normalized(
    factors: Sequence[Array], loss: Loss
) -> tuple[list[Array], Array, list[Array], Array]:
    """Return factors with columns of size 1, sorted by weight; the weights, sizes and order."""
    sizes = [sizes_of(F, loss) for F in factors]
    weights = np.prod(np.array(sizes, dtype=np.float64), axis=0)
    order = np.argsort(-weights, kind="stable")
    scaled = [
        np.ascontiguousarray((F / np.where(size > 0, size, 1))[:, order]).astype(F.dtype)
        for F, size in zip(factors, sizes, strict=True)
    ]
    return scaled, weights[order].astype(factors[0].dtype), sizes, order
