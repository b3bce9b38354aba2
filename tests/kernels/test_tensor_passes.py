"""The passes over unfolded tensors agree with the NumPy reference and with explicit products."""

import numpy as np
import pytest
from helpers.each import each
from helpers.refused import refused

SIZES = (7, 5, 40, 3, 2, 4)
TOLERANCE = {np.float32: 2e-5, np.float64: 1e-12}


def unfolded(kernels, n_modes, rank, dtype, n_entries=300, seed=0):
    """Return a random tensor unfolded by its first mode, with rows without entries, and factors."""
    rng = np.random.default_rng(seed)
    columns = kernels.padded_rank(rank, np.dtype(dtype).itemsize)
    rows = np.sort(rng.choice([0, 1, 2, 4, 6], size=n_entries))
    indptr = np.searchsorted(rows, np.arange(SIZES[0] + 1))
    others = [rng.integers(n, size=n_entries) for n in SIZES[1:n_modes]]
    factors = []
    for n in SIZES[:n_modes]:
        factor = np.zeros((n, columns), dtype=dtype)
        factor[:, :rank] = rng.random((n, rank))
        factors.append(factor)
    values = rng.random(n_entries).astype(dtype)
    return (indptr, np.array(others, dtype=np.int32), values), factors


@each("rank", [1, 5, 13, 33, 64, 100, 200])
@each("dtype", [np.float32, np.float64])
@each("n_modes", [2, 3, 4, 6])
def test_agrees_with_the_reference(kernels, reference, n_modes, rank, dtype):
    Z, (F, *others) = unfolded(kernels, n_modes, rank, dtype)
    close = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    for values in (Z[2], None):
        parts = *Z[:2], values
        for exponent in (0, 1, -1):
            for accumulate in (False, True):
                found = []
                for threads in (1, 2, 3):
                    out = np.ones_like(F)
                    where = out, 0.7, accumulate, threads
                    kernels.tensor_pass(exponent, *parts, F if exponent else None, others, *where)
                    found.append(out)
                expected = np.ones_like(F)
                where = expected, 0.7, accumulate, 1
                reference.tensor_pass(exponent, *parts, F, others, *where)
                np.testing.assert_allclose(found[0], expected, **close)
                assert all(np.array_equal(found[0], out) for out in found)
        for name in ("tensor_kl_loss", "tensor_kl_unreached"):
            ours = [getattr(kernels, name)(*parts, F, others, threads) for threads in (1, 3)]
            assert ours[0] == ours[1]
            np.testing.assert_allclose(
                ours[0], getattr(reference, name)(*parts, F, others, 1), **close
            )
        for weights in (Z[2][::-1].copy(), None):
            ours = kernels.tensor_frobenius_loss(*parts, weights, F, others, 2)
            theirs = reference.tensor_frobenius_loss(*parts, weights, F, others, 1)
            np.testing.assert_allclose(ours, theirs, **close)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_long_rows_keep_their_digits(kernels, dtype):
    length = 200_000
    columns = kernels.padded_rank(3, np.dtype(dtype).itemsize)
    F, G, H = (np.full((n, columns), 0.5, dtype=dtype) for n in (1, 50, 20))
    indices = np.array([np.arange(length) % 50, np.arange(length) % 20], dtype=np.int32)
    Z = np.array([0, length]), indices, np.full(length, 0.3, dtype=dtype)
    out = np.zeros_like(F)
    kernels.tensor_pass(0, *Z, None, [G, H], out, 1.0, False, 2)
    np.testing.assert_allclose(out, 0.075 * length, rtol=1e-6)


@each(
    ("changes", "message"),
    [
        ({"exponent": 0.5}, "exponent must be 0, 1 or -1"),
        ({"F": None}, "F must be given unless the exponent is 0"),
        ({"factors": []}, "factors is empty"),
        ({"factors": [np.ones((5, 8))]}, "factors and rows of indices disagree"),
        ({"factors": [np.ones((5, 8)), np.ones((40, 16))]}, "columns of the factors disagree"),
        ({"factors": [np.ones((5, 9)), np.ones((40, 9))]}, "not a padded rank"),
        ({"indptr": np.array([0, 3])}, "indptr must start at 0"),
        ({"out": np.ones((3, 8))}, "rows of out and of the tensor disagree"),
    ],
)
def test_refuses(kernels, changes, message):
    Z, (F, *others) = unfolded(kernels, 3, 8, np.float64)
    names = "indptr", "indices", "values"
    given = dict(
        zip(names, Z, strict=True), exponent=-1.0, F=F, factors=others, out=np.ones_like(F)
    )
    rest = {"scale": 1.0, "accumulate": False, "n_threads": 1}
    refused(message, kernels.tensor_pass, **{**given, **rest, **changes})


def test_the_result_must_lie_apart(kernels):
    Z, (F, *others) = unfolded(kernels, 3, 8, np.float64)
    for written in (F, others[1]):
        with pytest.raises(ValueError, match="shares memory"):
            kernels.tensor_pass(-1, *Z, F, [others[0], others[1]], written[: len(F)], 1.0, False, 1)
