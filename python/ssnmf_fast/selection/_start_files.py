"""A folder that keeps the result of every start, so that many starts can be stopped and resumed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._common.replacement import Replacement
from .._data.border import CleanMatrix
from .._data.fingerprint import data_fingerprint, input_fingerprint
from .._version import __version__
from ._starts import Fits, Recipe, Start

_FORMAT = "ssnmf_fast start"
_VERSION = 1
_READABLE = (str, bool, int, float, type(None))


class KeptStarts:
    """Fits of starts that are read from a folder where they are there, and kept there else."""

    def __init__(self, folder: Any, fits: Fits) -> None:
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
            with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                header = json.loads(archive["header"].tobytes())
                parts = archive["components"], archive["assignments"]
            found, objective = header["key"], float(header["objective"])
        except Exception as error:  # readers of zip and npy raise nearly anything on damaged bytes
            raise ValueError(f"{path} is no start that was kept: {error}. Remove it.") from error
        if found != key:
            names = [name for name in key if found.get(name) != key[name]]
            given = ", ".join(f"{name} {found.get(name)!r:.40}" for name in names)
            raise ValueError(
                f"folder={str(self._folder)!r} has starts of other data or settings: {path.name} "
                f"was made with {given}; now {', '.join(f'{key[name]!r:.40}' for name in names)}. "
                "Give another folder, or remove its files."
            )
        return Start(*parts, objective)

    def _write(self, number: int, key: dict[str, Any], start: Start) -> None:
        header = json.dumps({"key": key, "objective": start.objective}).encode()
        parts: dict[str, Any] = {
            "header": np.frombuffer(header, dtype=np.uint8),
            "components": start.components,
            "assignments": start.assignments,
        }
        path = self._path(number, key["n_components"])
        with Replacement() as files, files.path(path).open("wb") as file:
            np.savez(file, **parts)


def _key(X: Any, recipe: Recipe) -> dict[str, Any]:
    """Return what a start depends on, but its seed."""
    settings = {
        name: value if isinstance(value, _READABLE) else input_fingerprint(value)
        for name, value in recipe.fitting.items()
    }
    about = {"format": _FORMAT, "version": _VERSION, "ssnmf_fast": __version__}
    of_data = {"shape": list(X.shape), "dtype": str(X.dtype), "data": data_fingerprint(X)}
    return {**about, **of_data, **settings}
