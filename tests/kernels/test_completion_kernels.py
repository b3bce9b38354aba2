"""The passes of matrix completion agree with the NumPy reference."""

import numpy as np
import pytest
from helpers.each import each
from helpers.refused import refused
from kernel_calls import calls

SHAPES = [(1, 7), (9, 1), (33, 21), (150, 300)]
DTYPES = [np.float32, np.float64]
NO_FLOOR = -np.inf


def _both(kernels, reference, run, close):
    for ours, theirs in zip(run(kernels), run(reference), strict=True):
        close(ours, theirs)


@pytest.mark.slow
@each("rank", [1, 8, 13, 70, 130])
@each("dtype", DTYPES)
@each("index", [np.int32, np.int64])
def test_residuals_and_step(kernels, reference, problem, rank, dtype, index):
    for p, q in SHAPES:
        a = problem(kernels, p, q, rank, dtype, index)
        for pattern in (False, True):
            csr = a.csr_arguments(pattern)

            def step(module, a=a, csr=csr):
                residuals, out = np.ones_like(a.values), np.ones_like(a.F)
                module.residual_step(*csr, a.F, a.G, residuals, out, 3)
                return residuals, out

            _both(kernels, reference, step, a.close)


@each("dtype", DTYPES)
@each("power", [0.0, 0.3, 1.0])
@each("proximal", [True, False])
@each("floor", [NO_FLOOR, 0.1])
@each("step", [0.0, 0.02])
def test_maps(kernels, reference, problem, dtype, power, proximal, floor, step):
    a = problem(kernels, 130, 270, 9, dtype, np.int32)
    a.F[:, 0] -= 3  # entries of both signs
    shrink = (step, 0.05, power, proximal, floor)

    def run(module):
        out, residuals = np.ones_like(a.F), np.ones_like(a.values)
        module.mapped_residuals(*a.csr_arguments(), a.F, a.G, 0.7, *shrink, residuals, 3)
        module.mapped_product(a.F, a.G, a.G, *shrink, out, 3)
        return residuals, out

    _both(kernels, reference, run, a.close)


@each("rank", [1, 5, 20])
@each("dtype", DTYPES)
@each("index", [np.int32, np.int64])
def test_exact_rows(kernels, reference, problem, rank, dtype, index):
    for p, q in [(9, 25), (40, 300)]:
        a = problem(kernels, p, q, rank, dtype, index, density=0.4)
        a.G[:, :rank] = np.linalg.qr(a.G[:, :rank])[0]
        ridge = np.linspace(0.1, 2, rank)
        dense = a.rng.standard_normal((p, q)).astype(dtype)

        def run(module, a=a, ridge=ridge, dense=dense):
            exact, structured, X = np.ones_like(a.F), np.ones_like(a.F), dense.copy()
            csr = a.csr_arguments()
            module.ridge_rows(*csr, a.G, ridge, exact, 3)
            module.structured_rows(*csr, a.G, ridge, 0.3, 0.1, 0.5, X, structured, 3)
            return exact, structured, X

        _both(kernels, reference, run, a.close)
        exact, structured, X = run(kernels)
        none = np.ones_like(exact)
        kernels.structured_rows(
            *a.csr_arguments(), a.G, ridge, 0.0, 0.1, 0.5, dense.copy(), none, 1
        )
        a.close(none, exact)  # alpha = 0 is plain IRLS
        assert not np.allclose(structured, exact)
        rows = np.repeat(np.arange(p), np.diff(a.indptr))
        assert np.array_equal(X[rows, a.indices], dense[rows, a.indices])


@each("rank", [1, 5, 20, 70])
@each("dtype", DTYPES)
@each("index", [np.int32, np.int64])
def test_conjugate_rows(kernels, reference, problem, rank, dtype, index):
    for p, q in [(9, 25), (40, 300), (3, 900)]:
        a = problem(kernels, p, q, rank, dtype, index, density=0.4)
        gram = 0.1 * a.G.T @ a.G
        ridge = np.linspace(0.5, 2, p).astype(dtype)

        def run(module, steps=2, a=a, gram=gram, ridge=ridge):
            F = a.F.copy()
            module.conjugate_rows(*a.csr_arguments(), a.G, gram, ridge, steps, F, 3)
            return (F,)

        _both(kernels, reference, run, a.close)
        (exact,) = run(kernels, 4 * rank + 10)
        values = np.ones(len(a.indices)) if a.csr_arguments()[2] is None else a.csr_arguments()[2]
        for i in range(p):
            entries = slice(a.indptr[i], a.indptr[i + 1])
            g = a.G[a.indices[entries]].astype(float)
            K = gram + ridge[i] * np.eye(len(gram)) + g.T @ g
            wanted = np.linalg.solve(K, g.T @ values[entries])
            tolerance = 1e-3 if dtype == np.float32 else 1e-8
            np.testing.assert_allclose(exact[i], wanted, atol=tolerance * max(1, abs(wanted).max()))


@each("dtype", DTYPES)
@each("shape", [(1, 1), (5, 5), (40, 7), (3000, 17), (9000, 33)])
def test_tall_qr(kernels, dtype, shape):
    rng = np.random.default_rng(0)
    n, columns = shape
    A = np.zeros((n, columns + 3), dtype=dtype)
    A[:, :columns] = rng.standard_normal(shape)
    A[:, columns // 2] = A[:, 0]  # of less than full rank
    given = A[:, :columns].copy()
    results = []
    for threads in (1, 2, 3):
        Q, R = A.copy(), np.ones((columns, columns), dtype=dtype)
        kernels.tall_qr(Q, columns, R, threads)
        results.append((Q.tobytes(), R.tobytes()))
    assert len(set(results)) == 1
    tolerance = 2e-6 if dtype == np.float32 else 1e-14
    basis = Q[:, :columns].astype(float)
    np.testing.assert_allclose(basis.T @ basis, np.eye(columns), atol=4 * tolerance)
    np.testing.assert_allclose(basis @ R, given, atol=tolerance * 10 * np.abs(R).max())
    assert not Q[:, columns:].any()
    assert np.array_equal(R, np.triu(R))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"step": -1.0}, ValueError, "out of range"),
        ({"eps": 0.0}, ValueError, "out of range"),
        ({"q": 1.5}, ValueError, "out of range"),
        ({"out": np.ones(3)}, ValueError, "length of out"),
        ({"out": np.ones(2, np.float32)}, TypeError, "out has dtype float32"),
        ({"F": np.ones((3, 8))}, ValueError, "rows of F"),
        ({"F": np.ones((4, 16))}, ValueError, "columns of F"),
    ],
)
def test_refused(kernels, changes, error, message):
    arguments = calls()["mapped_residuals"][1]
    refused(message, kernels.mapped_residuals, **{**arguments, **changes}, error=error)


def test_qr_refuses_wide_matrices(kernels):
    refused("columns must be", kernels.tall_qr, np.ones((2, 8)), 3, np.ones((3, 3)), 1)
