"""Files of a JSON header and arrays in .npz form, of which only what is expected is unpacked."""

from __future__ import annotations

import errno
import json
import math
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from .arrays import Array

HEADER = "header"
_ZIP = b"PK"  # how .npz files begin
_OF_CONTENTS = (None, errno.EINVAL)  # such as an offset before the start of the file
_readers = np.lib.format
_READERS = {(1, 0): _readers.read_array_header_1_0, (2, 0): _readers.read_array_header_2_0}


def header_array(header: Any) -> Array:
    """Return a header as the array that a file has of it."""
    return np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)


class NpzReader:
    """An open file; whatever is wrong with it becomes a ValueError."""

    def __init__(self, file: IO[bytes]) -> None:
        if file.read(len(_ZIP)) != _ZIP:
            raise ValueError("it is no .npz file")
        file.seek(0)
        with _reading():
            self._archive = np.load(file, allow_pickle=False)
            self._names = [one.removesuffix(".npy") for one in self._archive.zip.namelist()]

    def header(self) -> Any:
        """Return the header."""
        return json.loads(self._read(HEADER).tobytes().decode())

    def arrays(self, names: Collection[str]) -> dict[str, Array]:
        """Return those of some arrays that are there; there must be no others."""
        unknown = sorted({*self._names} - {HEADER, *names})
        if unknown or len(set(self._names)) < len(self._names):
            what = f"the unknown array {unknown[0]!r:.100}" if unknown else "an array twice"
            raise ValueError(f"it holds {what}")
        return {name: self._read(name) for name in self._names if name != HEADER}

    def _read(self, name: str) -> Array:
        """Return an array, which must be as long as the directory of the file has it."""
        with _reading():
            place = self._archive.zip.getinfo(f"{name}.npy")
            with self._archive.zip.open(place) as stream:
                shape, _, dtype = _READERS[_readers.read_magic(stream)](stream)
                if stream.tell() + math.prod(shape) * dtype.itemsize != place.file_size:
                    raise ValueError(f"{name} has other than {shape} numbers")
            found: Array = self._archive[name]
            return found


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # readers of zip and npy raise nearly anything on damaged bytes
        if isinstance(error, OSError) and error.errno not in _OF_CONTENTS:
            raise  # of the disk
        raise ValueError(f"it cannot be read as .npz ({error})") from error
