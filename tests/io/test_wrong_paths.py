"""Files and arguments that are none of a model, and a folder that holds one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.refused import refused

import ssnmf_fast as sf


@pytest.mark.parametrize("content", [b"", b"text,label\na b,x\n", b"<html>", b"\x93NUMPY"])
def test_files_of_another_kind(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.html"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="was not written by") as caught:
        sf.load(path)
    assert "pickle" not in str(caught.value)


def test_folder_of_the_command(tmp_path: Path) -> None:
    sf.save(sf.NMF(n_components=2, random_state=0).fit(np.eye(4)), tmp_path / "model.npz")
    assert sf.load(tmp_path).components_.shape == (2, 4)
    refused(r"model\.npz", sf.load, tmp_path.parent, error=FileNotFoundError)


def test_swapped_arguments(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"a path; write save\(model, path\)"):
        sf.save(str(tmp_path / "m.npz"), sf.NMF())


@pytest.mark.parametrize("name", ["counts", "b0", "b1", "K0", "K1"])
@pytest.mark.parametrize("axis", [0, 1])
def test_statistics_that_do_not_fit(name: str, axis: int, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    X = np.random.default_rng(0).random((6, 5, 4))
    sf.save(sf.NonnegativeCP(n_components=2, random_state=0).partial_fit(X), path)
    sf.load(path).partial_fit(X)
    with np.load(path) as archive:
        arrays = dict(archive)
    key = f"array/stream_statistics_/{name}"
    arrays[key] = np.delete(arrays[key], 0, axis=axis)
    np.savez(path, **arrays)
    refused("is damaged, or was not written", sf.load, path)
