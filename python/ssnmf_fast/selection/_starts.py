"""What is kept of each of many starts, and the settings of all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._backend import dispatch
from .._common.arrays import Array, Matrix, Seed
from .._common.replacement import Replacement
from .._common.saved import HEADER, NpzReader, header_array
from .._data.border import CleanMatrix, check_integer, check_option, check_random_state, check_real
from .._data.csr_file import CsrFile, block_ends
from .._data.fingerprint import data_fingerprint, digest, input_fingerprint
from .._solver.result import Factorization
from .._version import __version__

MOST_SAMPLES = 1000  # of the consensus matrix
STARTS = ("random", "least-squares", "random-acol")  # that differ by their seeds


class Start(NamedTuple):
    """What is kept of a start: its components (r, m), and the main one of some samples, (s,).

    `level` is that of the kernels that have fitted it.
    """

    components: Array
    assignments: Array
    objective: float
    level: str


Fits = Callable[[CleanMatrix, Sequence[int], "Recipe", Array], Iterator[Start]]


@dataclass(frozen=True)
class Recipe:
    """The settings of a consensus; `fitting` are arguments of :func:`factorize`."""

    n_starts: int
    distance_threshold: float
    neighborhood_fraction: float
    fitting: dict[str, Any]
    random_state: Any

    @classmethod
    def checked(
        cls,
        n_components: int,
        n_starts: int,
        distance_threshold: float,
        neighborhood_fraction: float,
        init: str,
        random_state: Seed,
        fitting: dict[str, Any],
    ) -> Recipe:
        """Return settings that a user gave, or raise an error."""
        rank = check_integer(n_components, "n_components", 1)
        init = check_option(init, "init", STARTS)
        threshold = check_real(distance_threshold, "distance_threshold")
        share = check_real(neighborhood_fraction, "neighborhood_fraction")
        if not 0 < share <= 1:
            raise ValueError(
                "neighborhood_fraction is a share of the starts, above 0 and at most 1; got "
                f"{neighborhood_fraction!r}."
            )
        n_starts = check_integer(n_starts, "n_starts", 1)
        fitting = {"n_components": rank, "init": init, **fitting}
        return cls(n_starts, threshold, share, fitting, random_state)

    def draw(self, n_samples: int) -> tuple[int, Array, list[int]]:
        """Return the seed of the clusters, samples to keep the main components of, and the seeds.

        More starts have the same first ones.
        """
        rng = check_random_state(self.random_state)
        of_clusters = int(rng.integers(2**31 - 1))
        count = min(n_samples, MOST_SAMPLES)
        samples = np.sort(rng.choice(n_samples, count, replace=False, shuffle=False))
        return of_clusters, samples, rng.integers(2**31 - 1, size=self.n_starts).tolist()


def start_of(fit: Factorization, samples: Array) -> Start:
    """Return what is kept of a fit."""
    parts = fit.S[samples] * fit.A.sum(axis=1)
    main = np.where(parts.any(axis=1), parts.argmax(axis=1), -1)
    return Start(fit.A, main.astype(np.int32), fit.objective[-1][1], dispatch.level_in_use())


_FORMAT = "ssnmf_fast start"
_VERSION = 2
_PARTS = ("components", "assignments")
_SHORT = 16  # digits of hashes of the places of entries and of the ends of blocks
_READABLE = (str, bool, int, float, type(None))


class KeptStarts:
    """Fits of starts that are read from a folder where they are there, and kept there else."""

    def __init__(self, folder: str | PathLike[str], fits: Fits) -> None:
        self._folder = Path(folder)
        self._fits = fits

    def __call__(
        self, X: CleanMatrix, seeds: Sequence[int], recipe: Recipe, samples: Array
    ) -> Iterator[Start]:
        """Give the starts in their order, those of the folder without a fit."""
        if recipe.random_state is None:
            raise ValueError(
                "folder is given without random_state, so that every call draws other starts. "
                "Give a number as well, for example random_state=0."
            )
        if self._folder.is_file():
            raise ValueError(
                f"folder={str(self._folder)!r} is a file; give a folder for many files."
            )
        self._folder.mkdir(parents=True, exist_ok=True)
        key = _key(X.matrix, recipe)
        kept = [self._read(number, key | {"seed": seed}) for number, seed in enumerate(seeds)]
        missing = [number for number, start in enumerate(kept) if start is None]
        made = self._fits(X, [seeds[number] for number in missing], recipe, samples)
        for number, start in enumerate(kept):
            if start is None:
                start = next(made)
                self._write(number, key | {"seed": seeds[number]}, start)
            yield start

    def _path(self, number: int, rank: int) -> Path:
        return self._folder / f"start.k_{rank}.iter_{number}.npz"  # as cNMF counts them

    def _read(self, number: int, key: dict[str, Any]) -> Start | None:
        path = self._path(number, key["n_components"])
        if not path.exists():
            return None
        try:
            with path.open("rb") as file:
                archive = NpzReader(file)
                header = archive.header()
                found = dict(header["key"])
                start = None if found != key else _start(header, archive.arrays(_PARTS))
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(
                f"{path} is not a saved start, or is damaged: {error}. Remove it to fit this start "
                "again."
            ) from error
        if start is None:
            names = [name for name in {**key, **found} if found.get(name) != key.get(name)]
            given = ", ".join(f"{name} {found.get(name)!r:.40}" for name in names)
            now = ", ".join(f"{key.get(name)!r:.40}" for name in names)
            raise ValueError(
                f"folder={str(self._folder)!r} has starts of other data or settings: {path.name} "
                f"was made with {given}; now {now}. "
                "Give another folder, or remove its files."
            )
        return start

    def _write(self, number: int, key: dict[str, Any], start: Start) -> None:
        if start.level != key["level"]:
            raise ValueError(
                f"folder={str(self._folder)!r} is to keep starts of the level {key['level']!r} of "
                f"the kernels, and a worker has {start.level!r}, which rounds otherwise. Set "
                "SSNMF_FAST_ISA to the same level for all, or give no folder."
            )
        header = {"key": key, "objective": start.objective}
        parts: dict[str, Any] = {name: getattr(start, name) for name in _PARTS}
        parts[HEADER] = header_array({**header, "seal": _seal(header, parts)})
        path = self._path(number, key["n_components"])
        with Replacement() as files, files.path(path).open("wb") as file:
            np.savez(file, **parts)


def _key(X: Matrix | CsrFile, recipe: Recipe) -> dict[str, Any]:
    """Return what a start depends on, but its seed."""
    settings = {
        name: value if isinstance(value, _READABLE) else input_fingerprint(value)
        for name, value in recipe.fitting.items()
    }
    about = {"format": _FORMAT, "version": _VERSION, "ssnmf_fast": __version__}
    about["level"] = dispatch.level_in_use()
    of_data = {"shape": list(X.shape), "dtype": str(X.dtype), "form": _form(X)}
    return {**about, **of_data, "data": data_fingerprint(X), **settings}


def _form(X: Any) -> str:
    """Return how data are stored, on which the order of sums and so the last bits depend."""
    if isinstance(X, CsrFile):
        return f"on disk, {digest(repr(block_ends(X)))[:_SHORT]}"
    if not sp.issparse(X):
        return "dense"
    places = (part.astype(np.int64, copy=False) for part in (X.indptr, X.indices))
    return f"sparse, {digest(repr([*map(_hash, places)]))[:_SHORT]}"


def _start(header: Mapping[str, Any], parts: dict[str, Array]) -> Start:
    """Return the start of a file; its seal shows whether anything has changed."""
    told = {"key": header["key"], "objective": header["objective"]}
    if parts.keys() != {*_PARTS} or header["seal"] != _seal(told, parts):
        raise ValueError("its contents are not those that were written")
    return Start(parts["components"], parts["assignments"], told["objective"], told["key"]["level"])


def _seal(header: dict[str, Any], parts: dict[str, Array]) -> str:
    arrays = [(parts[name].dtype.str, parts[name].shape, _hash(parts[name])) for name in _PARTS]
    return digest(repr([sorted(header["key"].items()), header["objective"], arrays]))


def _hash(array: Array) -> str:
    return sha256(np.ascontiguousarray(array).data).hexdigest()
