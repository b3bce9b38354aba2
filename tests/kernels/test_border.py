"""Arrays that a kernel must refuse, and the module's description of itself."""

from __future__ import annotations

import numpy as np
import pytest


def arguments(**changes):
    given = {
        "indptr": np.array([0, 1, 2], dtype=np.int32),
        "indices": np.array([0, 1], dtype=np.int32),
        "values": np.ones(2),
        "G": np.ones((2, 8)),
        "out": np.ones((2, 8)),
        "scale": 1.0,
        "accumulate": False,
        "n_threads": 1,
    }
    return {**given, **changes}


def read_only():
    array = np.ones((2, 8))
    array.flags.writeable = False
    return array


def misaligned():
    return np.frombuffer(bytearray(8 * 16 + 4), dtype=np.uint8)[4:].view(np.float64).reshape(2, 8)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"out": read_only()}, ValueError, "out is read-only"),
        ({"out": misaligned()}, ValueError, "out is misaligned"),
        ({"out": np.ones((2, 16))[:, ::2]}, ValueError, "out is not C-contiguous"),
        ({"out": np.asfortranarray(np.ones((2, 8)))}, ValueError, "out is not C-contiguous"),
        ({"out": np.ones((3, 8))}, ValueError, "rows of out"),
        ({"out": np.ones((2, 16))}, ValueError, "columns of out"),
        ({"out": np.ones((2, 8), np.float32)}, TypeError, "out has dtype float32"),
        ({"values": np.ones(3)}, ValueError, "values has length 3"),
        ({"values": np.ones(2, np.float32)}, TypeError, "values has dtype float32"),
        ({"indices": np.array([0, 1])}, TypeError, "indices has dtype int64"),
        ({"indptr": np.array([0, 1, 3], np.int32)}, ValueError, "indptr must start at 0"),
        ({"indptr": np.array([0.0, 1, 2])}, TypeError, "int32 or int64"),
        ({"G": np.ones((2, 8), int)}, TypeError, "float32 or float64"),
        ({"G": np.ones((2, 9)), "out": np.ones((2, 9))}, ValueError, "not a padded rank"),
    ],
)
def test_refused(kernels, changes, error, message):
    with pytest.raises(error, match=message):
        kernels.sparse_product(**arguments(**changes))


def test_zero_stride_output_is_refused(kernels):
    out = np.lib.stride_tricks.as_strided(np.ones(8), shape=(2, 8), strides=(0, 8))
    with pytest.raises(ValueError, match="not C-contiguous"):
        kernels.sparse_product(**arguments(out=out))


def test_build_info(kernels):
    info = kernels.build_info()
    assert info["level"] == kernels.LEVEL
    assert info["eigen"].startswith("3.4")


def test_padded_rank_is_stable(kernels):
    for itemsize in (4, 8):
        for rank in range(1, 600):
            padded = kernels.padded_rank(rank, itemsize)
            assert padded >= rank
            assert kernels.padded_rank(padded, itemsize) == padded
