"""What is kept of each of many starts, and the settings of all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._backend import dispatch
from .._common.arrays import Array, Seed
from .._common.replacement import Replacement
from .._common.saved import HEADER, NpzReader, header_array
from .._data.border import CleanMatrix, check_integer, check_option, check_random_state, check_real
from .._data.csr_file import CsrFile
from .._data.fingerprint import data_fingerprint, digest, input_fingerprint
from .._models.many_starts import draw_seeds
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


class Recipe:
    """The checked settings of a consensus; `fitting` are arguments of :func:`factorize`."""

    def __init__(
        self,
        n_components: int,
        n_starts: int,
        distance_threshold: float,
        neighborhood_fraction: float,
        init: str,
        random_state: Seed,
        fitting: dict[str, Any],
    ) -> None:
        rank = check_integer(n_components, "n_components", 1)
        self.fitting = {"n_components": rank, "init": check_option(init, "init", STARTS), **fitting}
        self.distance_threshold = check_real(distance_threshold, "distance_threshold")
        share = check_real(neighborhood_fraction, "neighborhood_fraction")
        if not 0 < share <= 1:
            raise ValueError(
                "neighborhood_fraction is a share of the starts, above 0 and at most 1; got "
                f"{neighborhood_fraction!r}."
            )
        self.n_starts = check_integer(n_starts, "n_starts", 1)
        self.n_nearest = int(share * self.n_starts)
        self.random_state: Any = random_state

    def draw(self, n_samples: int) -> tuple[int, Array, list[int]]:
        """Return the seed of the clusters, samples to keep the main components of, and the seeds.

        More starts have the same first ones.
        """
        rng = check_random_state(self.random_state)
        of_clusters = int(rng.integers(2**31 - 1))
        count = min(n_samples, MOST_SAMPLES)
        samples = np.sort(rng.choice(n_samples, count, replace=False, shuffle=False))
        return of_clusters, samples, draw_seeds(rng, self.n_starts)


def start_of(fit: Factorization, samples: Array) -> Start:
    """Return what is kept of a fit."""
    parts = fit.S[samples] * fit.A.sum(axis=1)
    main = np.where(parts.any(axis=1), parts.argmax(axis=1), -1)
    return Start(fit.A, main.astype(np.int32), fit.objective[-1][1], dispatch.level_in_use())


_PARTS = ("components", "assignments")
_SHORT = 16  # digits of hashes of the places of entries and of the ends of blocks
_READABLE = (str, bool, int, float, type(None))


def kept_starts(
    folder: Path, fits: Fits, X: CleanMatrix, seeds: Sequence[int], recipe: Recipe, samples: Array
) -> Iterator[Start]:
    """Give the starts in their order, those of the folder without a fit, and keep the others."""
    if recipe.random_state is None:
        raise ValueError(
            "folder is given without random_state, so that every call draws other starts. Give a "
            "number as well, for example random_state=0."
        )
    if folder.is_file():
        raise ValueError(f"folder={str(folder)!r} is a file; give a folder for many files.")
    folder.mkdir(parents=True, exist_ok=True)
    rank, key = recipe.fitting["n_components"], _key(X.matrix, recipe)
    keys = [{**key, "seed": seed} for seed in seeds]
    # Files have the names of cNMF.
    paths = [folder / f"start.k_{rank}.iter_{number}.npz" for number in range(len(seeds))]
    kept = [_read(path, key) for path, key in zip(paths, keys, strict=True)]
    missing = [seed for seed, start in zip(seeds, kept, strict=True) if start is None]
    made = fits(X, missing, recipe, samples)
    for path, key, start in zip(paths, keys, kept, strict=True):
        if start is None:
            start = next(made)
            _write(path, key, start)
        yield start


def _read(path: Path, key: dict[str, Any]) -> Start | None:
    """Return the start of a file, if it is there; its seal shows whether anything has changed."""
    if not path.exists():
        return None
    try:
        with path.open("rb") as file:
            archive = NpzReader(file)
            header = archive.header()
            found, objective = dict(header["key"]), header["objective"]
            if found == key:
                parts = archive.arrays(_PARTS)
                if parts.keys() != {*_PARTS} or header["seal"] != _seal(found, objective, parts):
                    raise ValueError("its contents are not those that were written")
                return Start(parts["components"], parts["assignments"], objective, key["level"])
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is not a saved start, or is damaged: {error}. Remove it to fit this start "
            "again."
        ) from error
    names = [name for name in {**key, **found} if found.get(name) != key.get(name)]
    given = ", ".join(f"{name} {found.get(name)!r:.40}" for name in names)
    now = ", ".join(f"{key.get(name)!r:.40}" for name in names)
    raise ValueError(
        f"folder={str(path.parent)!r} has starts of other data or settings: {path.name} was made "
        f"with {given}; now {now}. Give another folder, or remove its files."
    )


def _write(path: Path, key: dict[str, Any], start: Start) -> None:
    if start.level != key["level"]:
        raise ValueError(
            f"folder={str(path.parent)!r} is to keep starts of the level {key['level']!r} of the "
            f"kernels, and a worker has {start.level!r}, which rounds otherwise. Set "
            "SSNMF_FAST_ISA to the same level for all, or give no folder."
        )
    parts: dict[str, Any] = {name: getattr(start, name) for name in _PARTS}
    header = {"key": key, "objective": start.objective}
    parts[HEADER] = header_array({**header, "seal": _seal(key, start.objective, parts)})
    with Replacement() as files, files.path(path).open("wb") as file:
        np.savez(file, **parts)


def _key(X: Any, recipe: Recipe) -> dict[str, Any]:
    """Return what a start depends on, but its seed.

    The order of sums, and so the last bits, depends on the form in which the data are stored.
    """
    form = "dense"
    if isinstance(X, CsrFile):
        form = f"on disk, {digest(repr([rows.stop for rows in X.slices]))[:_SHORT]}"
    elif sp.issparse(X):
        places = [_hash(part.astype(np.int64, copy=False)) for part in (X.indptr, X.indices)]
        form = f"sparse, {digest(repr(places))[:_SHORT]}"
    about = {"format": "ssnmf_fast start", "version": 2, "ssnmf_fast": __version__}
    about["level"] = dispatch.level_in_use()
    of_data = {"shape": list(X.shape), "dtype": str(X.dtype), "form": form}
    settings = {
        name: value if isinstance(value, _READABLE) else input_fingerprint(value)
        for name, value in recipe.fitting.items()
    }
    return {**about, **of_data, "data": data_fingerprint(X), **settings}


def _seal(key: dict[str, Any], objective: float, parts: dict[str, Array]) -> str:
    arrays = [(parts[name].dtype.str, parts[name].shape, _hash(parts[name])) for name in _PARTS]
    return digest(repr([sorted(key.items()), objective, arrays]))


def _hash(array: Array) -> str:
    return sha256(np.ascontiguousarray(array).data).hexdigest()
