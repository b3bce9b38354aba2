"""Completion of matrices: accuracy, callbacks, results, what is degenerate."""

import threading
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from completion_problems import METHODS, error, structured
from helpers.each import each
from helpers.levels import IS_REFERENCE
from helpers.refused import refused

import ssnmf_fast as sf
from ssnmf_fast.completion import (
    MatrixIRLS,
    StructuredSIRLS,
)

FAST = not IS_REFERENCE
# What fits come to: the iterates, compared with dense ones, show that the reference does the same.
slow_in_numpy = pytest.mark.compiled("takes too long in NumPy; its iterates are tested there")


def of_rank(rank, method):
    """The rank, for the methods that take one."""
    return {} if method in ("nnm", "structured-nnm") else {"n_components": rank}


@each("method", METHODS)
@each("dtype", [np.float32, np.float64])
def test_recovery(easy, method, dtype):
    M, holes = easy
    fit = sf.complete(holes.astype(dtype), method=method, random_state=0, **of_rank(3, method))
    assert error(M, fit) < (5e-2 if method == "nnm" else 5e-3)
    assert fit.left.dtype == fit.right.dtype == fit.to_dense().dtype == dtype
    assert fit.left.shape == (40, fit.n_components)
    assert fit.right.shape == (fit.n_components, 30)
    assert fit.shape == (40, 30)
    np.testing.assert_allclose(fit.right @ fit.right.T, np.eye(fit.n_components), atol=1e-5)
    assert fit.converged
    assert fit.history[-1].iteration == fit.n_iter


@pytest.mark.slow
@slow_in_numpy
@pytest.mark.filterwarnings("ignore:M has no (observed|missing) entry")
@pytest.mark.parametrize("shape", [(60, 44), (44, 60)])
def test_auto_uses_structure(shape):
    """Few zeros are observed: without structure, and by the thesis' methods, the matrix is lost."""
    errors = {name: [] for name in ("auto", "plain", "sirls", "structured-sirls")}
    for seed in range(3):
        M, holes = structured(*shape, 3, 0.05, 0.45, seed)
        common = {"n_components": 3, "random_state": 0}
        errors["auto"].append(error(M, sf.complete(holes, **common)))
        plain = sf.complete(holes, method=MatrixIRLS(sparsity=0.0), nonnegative=False, **common)
        errors["plain"].append(error(M, plain))
        for method in ("sirls", "structured-sirls"):
            errors[method].append(
                error(M, sf.complete(holes, method=method, max_iter=1000, **common))
            )
    median = {name: np.median(values) for name, values in errors.items()}
    assert median["auto"] < 1e-4
    assert median["auto"] < 0.1 * min(median[name] for name in errors if name != "auto")


def test_thesis_without_its_sparsity_step(easy):
    """The gain of structured sIRLS over sIRLS is that of its schedule: c = 0 has it too."""
    M, holes = easy
    slow = error(M, sf.complete(holes, method="sirls", n_components=3, random_state=0))
    for sparsity in (1e-6, 0.0):
        method = StructuredSIRLS(sparsity=sparsity)
        fit = sf.complete(holes, method=method, n_components=3, random_state=0)
        assert error(M, fit) < 0.5 * slow


@slow_in_numpy
def test_rank_is_estimated():
    M, holes = structured(60, 50, 3, 0.6, 0.9)
    for method in ("auto", "structured-sirls", "irls"):
        fit = sf.complete(holes, method=method, random_state=0)
        assert fit.n_components >= 3
        assert error(M, fit) < 1e-2


@slow_in_numpy
def test_the_estimated_rank_is_not_the_largest_possible():
    """A schedule that falls fast keeps every rank that the entries allow, and fits nothing."""
    rng = np.random.default_rng(2)
    gaussian = rng.standard_normal((100, 3)) @ rng.standard_normal((3, 100))
    problems = [
        (gaussian, np.where(rng.random((100, 100)) < 0.3, gaussian, np.nan), 3),
        (*structured(100, 100, 5, 0.4, 0.4, 1), 5),
    ]
    for M, holes, rank in problems:
        fit = sf.complete(holes, method="structured-sirls", random_state=0)
        assert fit.n_components == rank
        assert error(M, fit) < 1e-3


@pytest.mark.parametrize("method", METHODS)
def test_threads_give_the_same_bits(method):
    _, holes = structured(*((300, 200) if FAST else (40, 30)), 3, 0.5, 0.8)
    options = {"method": method, "random_state": 0, "max_iter": 3}
    fits = [
        sf.complete(holes, n_threads=threads, **options, **of_rank(3, method))
        for threads in ((1, 2, 3, 5) if FAST else (1, 2))
    ]
    assert len({fit.left.tobytes() for fit in fits}) == 1
    assert len({fit.right.tobytes() for fit in fits}) == 1


def test_predict_and_dense(easy):
    M, holes = easy
    fit = sf.complete(holes, n_components=3, random_state=0)
    dense = fit.to_dense()
    rows, columns = np.array([[0, 3], [39, 5]]), np.array([[1, 29], [0, 0]])
    np.testing.assert_allclose(fit.predict(rows, columns), dense[rows, columns], atol=1e-12)
    kept = fit.to_dense(keep_observed=True)
    observed = ~np.isnan(holes)
    np.testing.assert_array_equal(kept[observed], M[observed])
    np.testing.assert_array_equal(kept[~observed], dense[~observed])
    assert fit.predict([], []).shape == (0,)
    for row, column, name in ((40, 0, "rows"), (-1, 0, "rows"), (0, 30, "columns"), (0, -1, "col")):
        refused(f"{name}.* must be from 0 to", fit.predict, [row], [column], error=IndexError)
    refused("rows must be integers", fit.predict, [0.0], [0], error=TypeError)


def test_printed_in_a_line():
    M = np.outer(np.arange(1.0, 9.0), np.arange(1.0, 7.0))
    M[::3, ::2] = np.nan
    completion = sf.complete(M, n_components=1, random_state=0)
    wanted = (
        f"8 x 6, 39 entries observed, n_components=1, n_iter={completion.n_iter}, converged=True"
    )
    assert repr(completion) == f"Completion({wanted})"


def test_fill_value_shifts_the_problem(easy):
    M, holes = easy
    plain = sf.complete(holes, method="structured-sirls", n_components=3, random_state=0)
    shifted = sf.complete(
        holes + 5, method="structured-sirls", n_components=3, random_state=0, fill_value=5.0
    )
    np.testing.assert_allclose(shifted.to_dense(), plain.to_dense() + 5, atol=1e-4)
    assert shifted.offset == 5.0
    bounded = sf.complete(
        holes - 0.1, n_components=3, random_state=0, fill_value=-0.1, nonnegative=True
    )
    assert bounded.to_dense().min() >= 0
    assert (
        error(M - 0.1, sf.complete(holes - 0.1, n_components=3, fill_value=-0.1, random_state=0))
        < 1e-4
    )


@slow_in_numpy
def test_nonnegative():
    rng = np.random.default_rng(0)
    M = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 30))
    holes = np.where(rng.random(M.shape) < 0.6, M, np.nan)
    for method in METHODS:
        options = {"method": method, "max_iter": 30, **of_rank(3, method)}
        assert sf.complete(holes, **options).to_dense().min() < 0
        bounded = sf.complete(holes, nonnegative=True, **options)
        assert bounded.to_dense().min() >= 0
        assert bounded.lower == 0
    assert sf.complete(np.abs(holes), n_components=3, max_iter=2).lower == 0
    assert sf.complete(holes, n_components=3, max_iter=2).lower == -np.inf


def test_noise_is_not_amplified():
    M, holes = structured(50, 40, 3, 0.5, 0.9)
    noise = 1e-3 * M.std() * np.random.default_rng(0).standard_normal(M.shape)
    for method in ("auto", "sirls", "structured-sirls"):
        fit = sf.complete(holes + noise, method=method, n_components=3, random_state=0)
        assert error(M, fit) < 5e-3


@pytest.mark.slow
@slow_in_numpy
def test_shrinkage_is_validated():
    rng = np.random.default_rng(0)
    signal = rng.standard_normal((80, 2)) @ rng.standard_normal((2, 60))
    signal += rng.standard_normal(80)[:, None] + 3
    M = signal + 0.7 * rng.standard_normal(signal.shape)
    holes = np.where(rng.random(M.shape) < 0.4, M, np.nan)
    missing = np.isnan(holes)

    def rmse(fit):
        return np.sqrt(np.mean((fit.to_dense() - signal)[missing] ** 2))

    fit = sf.complete(holes, gamma_min="validate", biases=True, random_state=0)
    assert rmse(fit) < 0.6
    assert rmse(fit) < 0.5 * rmse(sf.complete(holes, method="structured-sirls", n_components=10))
    assert fit.left.shape[1] == fit.n_components + 2
    rows = np.arange(80)
    np.testing.assert_allclose(fit.predict(rows, 0 * rows), fit.to_dense()[:, 0])
    seen = []
    sf.complete(
        holes, gamma_min="validate", biases=True, max_iter=3, callback=lambda s: seen.append(s)
    )
    assert max(state.iteration for state in seen) == 3  # the search is seen too
    assert not sf.complete(holes, gamma_min=1e-3, max_iter=3).converged
    given = sf.complete(
        holes, gamma_min=fit.gamma, n_components=fit.n_components, biases=True, random_state=0
    )
    assert rmse(given) == pytest.approx(rmse(fit), rel=0.05)


@pytest.mark.slow
@slow_in_numpy
@pytest.mark.parametrize("far", ["rows", "columns", "both", "one row", "two columns"])
@pytest.mark.parametrize("size", [30.0, 1e6])
@pytest.mark.parametrize("rank", [None, 2])
def test_biases_may_lie_far_apart(far, size, rank):
    rng = np.random.default_rng(0)
    M = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 40))
    M += 0.3 * rng.standard_normal(M.shape)
    rows, columns = size * rng.standard_normal((60, 1)), size * rng.standard_normal(40)
    one, two = size * np.eye(60)[:, [3]], size * np.isin(np.arange(40), [3, 7])
    means = {
        "rows": rows,
        "columns": columns,
        "both": rows + columns,
        "one row": one,
        "two columns": two,
    }[far]
    seen = rng.random(M.shape) < 0.5

    def error(means):
        holes = np.where(seen, M + means, np.nan)
        options = {"n_components": rank, "gamma_min": "validate", "biases": True, "random_state": 0}
        filled = sf.complete(holes, **options).to_dense()
        return np.sqrt(np.mean((filled - M - means)[~seen] ** 2))

    assert error(means) < 1.2 * error(0.0)


@pytest.mark.parametrize("method", ["auto", "sirls", "structured-sirls", "irls"])
def test_warm_start(easy, method):
    M, holes = easy
    first = sf.complete(holes, method=method, n_components=3, random_state=0)
    for init in (first, (first.left, first.right)):
        again = sf.complete(holes, method=method, n_components=3, random_state=0, init=init)
        assert again.n_iter <= first.n_iter
        assert error(M, again) < 1.5 * error(M, first) + 1e-8


def test_callback_stops(easy):
    _, holes = easy
    seen = []

    def callback(state):
        seen.append(state)
        return len(seen) == 2

    fit = sf.complete(holes, n_components=3, callback=callback)
    assert [state.iteration for state in seen] == [1, 2]
    assert not seen[1].left.flags.writeable
    product = seen[1].left @ seen[1].right
    np.testing.assert_allclose(np.maximum(product, 0), fit.to_dense(), atol=0.2)
    assert fit.history == seen
    assert fit.n_iter == 2
    assert not fit.converged


@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("wanted", [1, 4, 30])
def test_callback_stops_the_search_too(easy, biases, wanted):
    _, holes = easy
    seen = []

    def callback(state):
        seen.append(state)
        return len(seen) == wanted

    fit = sf.complete(holes, gamma_min="validate", biases=biases, callback=callback, random_state=0)
    assert len(seen) == wanted
    assert not fit.converged
    assert fit.history[-1] == seen[-1]
    assert (fit.n_iter, fit.gamma) == (seen[-1].iteration, seen[-1].gamma)
    low_rank = fit.left[:, : fit.n_components] @ fit.right[: fit.n_components]
    np.testing.assert_allclose(low_rank, seen[-1].left @ seen[-1].right, atol=1e-12)
    assert np.isfinite(fit.to_dense()).all()


def test_what_is_reported_of_a_fit_that_max_iter_ends(easy):
    _, holes = easy
    fit = sf.complete(holes, n_components=3, gamma_min=1e-3, max_iter=8, random_state=0)
    assert (fit.n_iter, fit.gamma) == (8, fit.history[-1].gamma)
    assert fit.gamma > 1e-3
    assert not fit.converged
    seen = []
    fit = sf.complete(holes, method="nnm", max_iter=7, callback=seen.append)
    assert [state.iteration for state in seen] == [fit.n_iter] == [7]
    assert fit.history == seen


def test_iterate_of_structured_irls(easy):
    """The completion is the low-rank part; the iterate of Algorithm 1 is there beside it."""
    M, holes = easy
    for shift in (0.0, 5.0):
        options = {"method": "structured-irls", "n_components": 3, "random_state": 0}
        fit = sf.complete(holes + shift, fill_value=shift, **options)
        observed = ~np.isnan(holes)
        np.testing.assert_array_equal(fit.iterate[observed], (holes + shift)[observed])
        assert np.linalg.matrix_rank(fit.iterate - shift, tol=1e-8) > fit.n_components
        gap = fit.iterate - fit.to_dense(keep_observed=True)
        assert 0 < np.linalg.norm(gap) < 0.3 * np.linalg.norm(M)
        singular = np.linalg.svd(fit.iterate - shift, compute_uv=False)
        np.testing.assert_allclose(singular[:3], fit.singular_values, rtol=1e-2)
    assert sf.complete(holes, n_components=3, random_state=0).iterate is None


@pytest.mark.slow
@pytest.mark.compiled("the reference is not made for such sizes")
def test_no_dense_array():
    rng = np.random.default_rng(0)
    n, entries = 20_000, 100_000
    rows, columns = rng.integers(n, size=(2, entries))
    places = np.unique(rows * n + columns)
    rows, columns = np.divmod(places, n)
    left, right = rng.random((2, n, 2))
    values = np.einsum("ek,ek->e", left[rows], right[columns])
    for method in ("auto", "sirls", "structured-sirls", "irls"):
        tracemalloc.start()
        with pytest.warns(UserWarning, match="no observed entry") as caught:
            sf.complete(
                (rows, columns, values), shape=(n, n), method=method, n_components=2, max_iter=2
            )
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert caught[0].filename == __file__
        assert peak < 100e6  # the whole matrix has 3.2 GB


def test_interrupt():
    """Ctrl-C between two passes leaves nothing behind."""
    import _thread
    import signal

    _, holes = structured(100, 100, 5, 0.3, 0.5)
    # Programs started in the background ignore Ctrl-C, and so would this one.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.2, _thread.interrupt_main)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            sf.complete(holes, method="sirls", n_components=5, max_iter=10**7, tol=0.0)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)


@pytest.mark.filterwarnings("ignore:M has no missing entry")
def test_degenerate_matrices():
    full = np.outer(np.arange(4.0), np.arange(5.0))
    for method in METHODS:
        for data in (np.zeros((4, 5)), full, np.array([[2.0]]), np.ones((1, 6)), np.ones((6, 1))):
            fit = sf.complete(data, method=method, **of_rank(1, method))
            np.testing.assert_allclose(fit.to_dense(keep_observed=True), data, atol=1e-12)
            np.testing.assert_allclose(fit.to_dense(), data, atol=0.1 * max(1, data.max()))
        whole = sf.complete(full, method=method, max_iter=50, **of_rank(4, method))
        assert np.isfinite(whole.to_dense()).all()
        empty = full.copy()
        empty[1] = empty[:, 2] = np.nan
        with pytest.warns(UserWarning, match=r"in 1 row and 1 column; .* fill_value = 0"):
            fit = sf.complete(empty, method=method, **of_rank(1, method))
        assert np.isfinite(fit.to_dense()).all()
        np.testing.assert_allclose(fit.to_dense()[1], 0, atol=1e-6)


def test_hardly_anything_is_observed():
    M = np.full((2, 3), np.nan)
    M[1, 0] = 1.0
    with pytest.warns(UserWarning, match="in 1 row and 2 columns; "):
        fit = sf.complete(M, n_components=1, random_state=0)
    np.testing.assert_allclose(fit.predict([1], [0]), 1.0, atol=1e-6)
    assert np.isfinite(fit.to_dense()).all()


@pytest.mark.slow
def test_many_iterations_stay_finite(easy):
    _, holes = easy
    options = {"n_components": 3, "tol": 0.0, "max_iter": 1300 if FAST else 100}
    for p, q in ((0.0, 0.0), (0.0, 1.0), (0.5, 0.5), (1.0, 0.0), (1.0, 1.0)):
        fit = sf.complete(holes, method=StructuredSIRLS(p=p, q=q), **options)
        assert np.isfinite(fit.to_dense()).all()


def test_saved_completion(easy, tmp_path):
    _, holes = easy
    fit = sf.complete(holes, n_components=3, random_state=0)
    sf.save(fit, tmp_path / "fit.npz")
    loaded = sf.load(tmp_path / "fit.npz")
    np.testing.assert_array_equal(loaded.to_dense(), fit.to_dense())
    assert loaded.history == fit.history
    assert loaded.lower == 0.0
    np.testing.assert_array_equal(
        loaded.to_dense(keep_observed=True), fit.to_dense(keep_observed=True)
    )
    refused("no observed entries", replace(loaded, observed=None).to_dense, keep_observed=True)


def test_svd_falls_back_on_plain_iteration(monkeypatch):
    calls = []

    def fails(*args, **options):
        calls.append(args)
        raise np.linalg.LinAlgError("SVD did not converge")

    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 30))
    expected = np.linalg.svd(A, compute_uv=False)[:3]
    monkeypatch.setattr(np.linalg, "svd", fails)
    left, singular, right = sf.linalg.randomized_svd(A, 3, random_state=0)
    assert calls
    np.testing.assert_allclose(singular, expected)
    np.testing.assert_allclose(left * singular @ right, A)


@pytest.mark.slow
def test_same_bits_wherever_arrays_lie():
    rng = np.random.default_rng(0)
    M = rng.random((700, 4)) @ rng.random((4, 620))
    M[rng.random(M.shape) < 0.5] = np.nan
    options = {"method": StructuredSIRLS(sparsity=1e-2), "nonnegative": True, "n_components": 4}
    results, kept = set(), []
    for run in range(4):
        kept.append([np.zeros(int(size)) for size in rng.integers(1, 5000, size=20 * run)])
        result = sf.complete(M, random_state=0, max_iter=6, **options)
        results.add(result.left.tobytes() + result.right.tobytes())
    assert len(results) == 1
