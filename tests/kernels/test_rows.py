"""The convex problems by rows: against SciPy and against the optimality conditions."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from helpers.each import each
from helpers.levels import bits_of
from helpers.refused import refused


@pytest.mark.parametrize("rank", [1, 5, 20])
def test_nnls_equals_scipy(kernels, rank):
    rng = np.random.default_rng(rank)
    G = rng.random((40, rank)) * (rng.random((40, rank)) < 0.5)
    Z = rng.random((60, 40))
    columns = kernels.padded_rank(rank, 8)
    g = np.zeros((40, columns))
    g[:, :rank] = G
    F = np.zeros((60, columns))
    unsolved = kernels.nnls(g.T @ g, None, None, None, None, g, Z @ g, F, 1e-12, 1000, 2)
    assert unsolved == 0
    assert (F[:, rank:] == 0).all()
    for z, f in zip(Z, F, strict=True):
        _, norm = scipy.optimize.nnls(G, z)
        assert np.linalg.norm(G @ f[:rank] - z) == pytest.approx(norm, rel=1e-10)


def test_nnls_ill_conditioned(kernels):
    rng = np.random.default_rng(0)
    base = rng.random((50, 1))
    G = base + 1e-5 * rng.random((50, 8))  # condition of the Gram matrix about 1e11
    Z = rng.random((30, 50))
    F = np.zeros((30, 8))
    unsolved = kernels.nnls(G.T @ G, None, None, None, None, G, Z @ G, F, 1e-9, 1000, 2)
    assert unsolved == 0


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_nnls_with_weights_by_row(kernels, sign):
    rng = np.random.default_rng(1)
    G = rng.random((30, 8))
    Z = rng.random((25, 30))
    pattern = sp.random_array((25, 30), density=0.4, format="csr", rng=2)
    pattern.data[:] = 1
    W = pattern.toarray() if sign > 0 else 1 - pattern.toarray()
    K = None if sign > 0 else G.T @ G
    F = np.zeros((25, 8))
    csr = (pattern.indptr, pattern.indices, sign * pattern.data)
    assert kernels.nnls(K, None, *csr, G, (W * Z) @ G, F, 1e-11, 1000, 2) == 0
    for z, w, f in zip(Z, W, F, strict=True):
        root = np.sqrt(w)
        _, norm = scipy.optimize.nnls(root[:, None] * G, root * z)
        assert np.linalg.norm(root * (G @ f - z)) == pytest.approx(norm, rel=1e-9, abs=1e-9)


@each("rank", [1, 5, 20, 70])
@each("dtype", [np.float32, np.float64])
def test_kl_rows_meet_the_optimality_conditions(kernels, rank, dtype):
    rng = np.random.default_rng(rank)
    tol = 1e-10 if dtype == np.float64 else 1e-4
    X = sp.random_array((80, 60), density=0.3, format="csr", rng=3, dtype=dtype)
    columns = kernels.padded_rank(rank, np.dtype(dtype).itemsize)
    G = np.zeros((60, columns), dtype=dtype)
    G[:, :rank] = rng.random((60, rank)) * (rng.random((60, rank)) < 0.6)
    N = G.sum(axis=0, keepdims=True)
    F = np.zeros((80, columns), dtype=dtype)
    assert kernels.kl_rows(X.indptr, X.indices, X.data, G, N, F, tol, 1000, 2) == 0
    f, g, n = F.astype(float), G.astype(float), N.astype(float)[0]
    used = n > 0
    assert (f[:, ~used] == 0).all()
    for x, s in zip(X.toarray().astype(float), f, strict=True):
        reachable = (x > 0) & (g.sum(axis=1) > 0)
        pull = (x[reachable] / (g[reachable] @ s)) @ g[reachable] if reachable.any() else 0 * n
        gap = pull[used] / n[used] - 1
        slack = 1e-8 if dtype == np.float64 else 1e-3
        assert gap.max(initial=0) <= slack
        assert np.abs(gap[s[used] > 0]).max(initial=0) <= slack


def test_rows_without_data_are_zero(kernels):
    G = np.ones((4, 8))
    F = np.ones((3, 8))
    empty = np.zeros(4, dtype=np.int32), np.zeros(0, dtype=np.int32), np.zeros(0)
    kernels.kl_rows(*empty, G, np.ones((1, 8)), F, 1e-8, 100, 1)
    assert (F == 0).all()
    F[:] = 1
    kernels.nnls(G.T @ G, None, None, None, None, G, np.zeros((3, 8)), F, 1e-8, 100, 1)
    assert (F == 0).all()


class Descent:
    """Arguments of coordinate_descent for a random problem: the minimum of |W .* (Z - F G^T)|^2."""

    def __init__(self, kernels, rank, dtype, case, seed=0):
        rng = np.random.default_rng(seed)
        p, q = 37, 11
        columns = kernels.padded_rank(rank, np.dtype(dtype).itemsize)
        G = np.zeros((q, columns), dtype)
        G[:, :rank] = rng.random((q, rank)) * (rng.random((q, rank)) < 0.7)
        self.F = np.zeros((p, columns), dtype)
        self.F[:, :rank] = rng.random((p, rank)) * (rng.random((p, rank)) < 0.7)
        Z = rng.random((p, q))
        gram = (G.T @ G)[None]
        rows = rng.random((1, p)).astype(dtype)
        pattern = sp.random_array((p, q), density=0.4, format="csr", rng=rng).astype(dtype)
        W = np.ones((p, q))
        scales = weights = None
        if case == "two":
            gram, scales = np.concatenate([gram, 2 * gram]), np.concatenate([rows, 1 - rows])
            W = (rows + 2 * (1 - rows)).T * W
        if case == "rows":
            scales, W = rows, rows.T * W
        if case == "listed":
            gram, weights, W = gram[:0], pattern, pattern.toarray()
        if case == "missing":
            weights, W = -pattern, 1 - pattern.toarray()
        self.Z, self.G, self.W = Z, G, W
        csr = (None, None, None)
        if weights is not None:
            csr = (weights.indptr, weights.indices, weights.data)
        P = ((W * Z) @ G).astype(dtype)
        self.allowed = None
        if case in ("allowed", "few"):
            allowed = rng.random(self.F.shape) < 0.5
            if case == "few":  # but in every fifth row; in every seventh what is given stays
                allowed[np.arange(p) % 5 > 0] &= rng.random(columns) < 0.1
                self.F[np.arange(p) % 7 > 0] *= allowed[np.arange(p) % 7 > 0]
            self.allowed = bits_of(allowed)
        self.arguments = (np.ascontiguousarray(gram), scales, *csr, G, P)

    def run(self, kernels, F, sweeps, n_threads=2, face_steps=0):
        rest = F, self.allowed, sweeps, face_steps, n_threads, True
        return kernels.coordinate_descent(*self.arguments, *rest)

    def value(self, F):
        return float(np.sum(self.W * (self.Z - F.astype(float) @ self.G.T.astype(float)) ** 2))


@each("case", ["plain", "rows", "two", "listed", "missing", "allowed", "few"])
@each("rank", [1, 5, 20, 70])
@each("dtype", [np.float32, np.float64])
def test_coordinate_descent_equals_the_reference(kernels, reference, rank, dtype, case):
    problem = Descent(kernels, rank, dtype, case)
    F, expected = problem.F.copy(), problem.F.copy()
    violation = problem.run(kernels, F, 3)
    wanted = problem.run(reference, expected, 3)
    tolerance = 1e-3 if dtype == np.float32 else 1e-10
    if problem.allowed is None:
        assert violation == pytest.approx(wanted, rel=tolerance)
    np.testing.assert_allclose(F, expected, rtol=tolerance, atol=tolerance)
    one_thread = problem.F.copy()
    assert problem.run(kernels, one_thread, 3, n_threads=1) == violation
    np.testing.assert_array_equal(F, one_thread)


@pytest.mark.parametrize("case", ["plain", "rows", "two", "listed", "missing"])
def test_coordinate_descent_falls_to_the_minimum(kernels, case):
    problem = Descent(kernels, 6, np.float64, case, seed=1)
    F = problem.F
    values = [problem.value(F)]
    for _ in range(20):
        problem.run(kernels, F, 1)
        values.append(problem.value(F))
    assert np.max(np.diff(values)) <= 1e-12 * values[0]
    problem.run(kernels, F, 20_000)
    best = 0.0
    for z, w in zip(problem.Z, problem.W, strict=True):
        root = np.sqrt(w)
        best += scipy.optimize.nnls(root[:, None] * problem.G, root * z)[1] ** 2
    assert problem.value(F) == pytest.approx(best, rel=1e-9)


@each("case", ["plain", "rows", "two", "allowed", "few"])
@each("rank", [1, 5, 20, 70])
@each("dtype", [np.float32, np.float64])
def test_face_steps_equal_the_reference(kernels, reference, rank, dtype, case):
    problem = Descent(kernels, rank, dtype, case)
    F, expected, one_thread = (problem.F.copy() for _ in range(3))
    problem.run(kernels, F, 2, face_steps=3)
    problem.run(reference, expected, 2, face_steps=3)
    tolerance = 5e-3 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(F, expected, rtol=tolerance, atol=tolerance)
    problem.run(kernels, one_thread, 2, n_threads=1, face_steps=3)
    np.testing.assert_array_equal(F, one_thread)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_face_steps_find_the_minimum_where_sweeps_are_slow(kernels, dtype):
    """Components that are much alike; and no call may raise the value."""
    rng = np.random.default_rng(0)
    problem = Descent(kernels, 12, dtype, "plain")
    G = np.zeros((40, problem.G.shape[1]), dtype)
    G[:, :12] = rng.random((40, 1)) + 0.05 * rng.random((40, 12))
    Z = rng.random((37, 12)) @ G[:, :12].T + 0.01 * rng.random((37, 40))
    problem.G, problem.Z, problem.W = G, Z, np.ones(Z.shape)
    problem.arguments = ((G.T @ G)[None], *(4 * [None]), G, (Z @ G).astype(dtype))
    best = sum(scipy.optimize.nnls(G.astype(float), z)[1] ** 2 for z in Z)
    F, slow = problem.F.copy(), problem.F.copy()
    values = [problem.value(F)]
    for _ in range(12):
        problem.run(kernels, F, 2, face_steps=16)
        problem.run(kernels, slow, 18)
        values.append(problem.value(F))
    assert np.max(np.diff(values)) <= (1e-5 if dtype == np.float32 else 1e-12) * values[0]
    assert values[-1] <= (1.05 if dtype == np.float32 else 1 + 1e-6) * best
    assert problem.value(slow) > 1.1 * best


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_face_steps_of_components_that_repeat_each_other(kernels, dtype):
    problem = Descent(kernels, 6, dtype, "plain")
    problem.G[:, 1] = problem.G[:, 2] = problem.G[:, 0]
    problem.G[:, 4] = 0
    P = (problem.Z @ problem.G).astype(dtype)
    problem.arguments = ((problem.G.T @ problem.G)[None], *(4 * [None]), problem.G, P)
    F = problem.F.copy()
    values = [problem.value(F)]
    for _ in range(30):
        problem.run(kernels, F, 2, face_steps=16)
        values.append(problem.value(F))
    assert np.max(np.diff(values)) <= (1e-6 if dtype == np.float32 else 1e-13) * values[0]
    assert F.max() <= 10 * problem.F.max()
    np.testing.assert_array_equal(F[:, 4], problem.F[:, 4])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_face_steps_of_a_row_do_not_depend_on_the_others(kernels, dtype):
    problem = Descent(kernels, 20, dtype, "plain")
    together = problem.F.copy()
    problem.run(kernels, together, 2, face_steps=16)
    grams, *rest, G, P = problem.arguments
    for i in range(len(P)):
        alone = problem.F[i : i + 1].copy()
        kernels.coordinate_descent(grams, *rest, G, P[i : i + 1], alone, None, 2, 16, 1)
        np.testing.assert_array_equal(alone[0], together[i])


def test_face_steps_need_one_curvature_for_all_rows(kernels):
    problem = Descent(kernels, 5, np.float64, "listed")
    refused("face_steps must be 0", problem.run, kernels, problem.F, 2, face_steps=1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nnls_with_components_of_any_scale_in_each_row(kernels, dtype):
    """Components that are small on the features of a row alone, where no common scale would do."""
    rng = np.random.default_rng(0)
    size = 1e4 if dtype == np.float32 else 1e9
    scales = np.ones((2, 8))
    scales[0, [1, 6]], scales[1, [3, 4]] = 1 / size, 1 / size
    parts = rng.random((2, 15, 8)) * scales[:, None, :]
    G = np.concatenate(parts)
    F = np.zeros((2, 8), dtype)
    W = sp.csr_array(np.repeat(np.eye(2), 15, axis=1)).astype(dtype)
    Z = np.zeros((2, 30))
    for row, (part, scale) in enumerate(zip(parts, scales, strict=True)):
        Z[row, 15 * row : 15 * row + 15] = part @ ((rng.random(8) + 0.1) / scale)
    P = (Z @ G).astype(dtype)
    csr = (W.indptr, W.indices, W.data)
    tol = 1e-6 if dtype == np.float32 else 1e-12
    assert kernels.nnls(None, None, *csr, G.astype(dtype), P, F, tol, 1000, 1) == 0
    for z, w, f in zip(Z, W.toarray(), F.astype(float), strict=True):
        distance = np.linalg.norm(w * (G @ f - z))
        assert distance <= (1e-3 if dtype == np.float32 else 1e-8) * np.linalg.norm(z)


def test_nnls_is_equivariant(kernels):
    rng = np.random.default_rng(0)
    G, Z = rng.random((40, 8)), rng.random((20, 40))
    powers = rng.integers(-200, 200, size=8)
    solutions = []
    for scaled in (G, np.ldexp(G, powers)):
        F = np.zeros((20, 8))
        gram = scaled.T @ scaled
        assert kernels.nnls(gram, None, None, None, None, scaled, Z @ scaled, F, 1e-9, 99, 1) == 0
        solutions.append(F)
    np.testing.assert_array_equal(solutions[0], np.ldexp(solutions[1], powers))
