"""Several starts: the best is kept, and each is the fit of its seed, whoever fits beside it."""

import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from helpers.refused import refused

import ssnmf_fast as sf

RNG = np.random.default_rng(0)
DENSE = RNG.gamma(0.5, size=(40, 4)) @ RNG.gamma(0.5, size=(4, 15)) + 0.1 * RNG.random((40, 15))
COUNTS = sp.csr_array(RNG.poisson(DENSE).astype(float))
Y = np.eye(3)[RNG.integers(3, size=40)]
GIVEN = {
    "dense": (DENSE, {}),
    "sparse": (COUNTS, {}),
    "counts": (COUNTS, {"loss": "kullback-leibler"}),
    "weights": (DENSE, {"X_weights": sf.weights.outer(rows=np.arange(40.0))}),
    "labels": (DENSE, {"y": Y, "supervision_weight": "balanced"}),
    "penalties": (DENSE, {"penalties": sf.penalties.L1(0.1)}),
    "single": (DENSE.astype(np.float32), {"solver": "mm"}),
}
SHORT = {"n_components": 3, "max_iter": 30, "init": "random"}


def draw_seeds(random_state, n_starts):
    """Return the seeds of several starts."""
    rng = np.random.default_rng(random_state)
    return [int(seed) for seed in rng.integers(2**31 - 1, size=n_starts)]


@pytest.fixture
def on_disk(tmp_path):
    for name in ("indptr", "indices", "data"):
        np.save(tmp_path / f"{name}.npy", getattr(COUNTS, name))
    np.save(tmp_path / "shape.npy", COUNTS.shape)
    return sf.io.open_csr(tmp_path, memory=16 * 200)  # several blocks


def same(one, other):
    for name in "SAB":
        F, G = getattr(one, name), getattr(other, name)
        assert (F is None and G is None) or np.array_equal(F, G)
    assert one.objective == other.objective


@pytest.mark.parametrize("case", GIVEN)
def test_the_best_of_fits_with_the_seeds(case):
    X, options = GIVEN[case]
    options = SHORT | options
    seeds = draw_seeds(7, 5)
    fits = [sf.factorize(X, random_state=seed, **options) for seed in seeds]
    last = [fit.objective[-1][1] for fit in fits]
    best = sf.factorize(X, n_starts=5, random_state=7, **options)
    same(best, fits[int(np.argmin(last))])
    assert best.start_objectives == tuple(last)
    for n_threads in (1, 2, 3):
        found = sf.factorize(X, n_starts=5, random_state=7, n_threads=n_threads, **options)
        same(found, best)
        assert found.start_objectives == best.start_objectives


@pytest.mark.slow
@each("loss", ["frobenius", "kullback-leibler"])
@each("n_threads", [1, 3, 7])
def test_starts_of_a_file(on_disk, loss, n_threads):
    options = SHORT | {"loss": loss, "tol": 1e-3}  # fits of different lengths
    found = sf.factorize(on_disk, n_starts=4, random_state=7, n_threads=n_threads, **options)
    fits = [sf.factorize(on_disk, random_state=seed, **options) for seed in draw_seeds(7, 4)]
    assert found.start_objectives == tuple(fit.objective[-1][1] for fit in fits)
    same(found, fits[int(np.argmin(found.start_objectives))])


def test_a_file_that_changes_ends_all_fits(on_disk, tmp_path):
    np.save(tmp_path / "indices.npy", np.full_like(COUNTS.indices, 99))
    with pytest.raises(ValueError, match="has changed since it was opened"):
        sf.factorize(on_disk, n_starts=3, random_state=0, n_threads=3, **SHORT)


def test_more_starts_are_no_worse():
    X = COUNTS
    options = SHORT | {"loss": "kullback-leibler", "random_state": 3}
    last = [sf.factorize(X, n_starts=n, **options).objective[-1][1] for n in (2, 4, 8)]
    assert last == sorted(last, reverse=True)


@pytest.mark.parametrize(
    ("model", "value"),
    [
        (sf.NMF(**SHORT), lambda m: m.objective_[-1][1]),
        (sf.SSNMFRegressor(**SHORT), lambda m: m.objective_[-1][1]),
        (sf.TopicSupervisedNMF(max_iter=30, predicts=False), lambda m: m.objective_[-1][1]),
        (sf.BayesianNMF(**SHORT), lambda m: -m.lower_bound_),
        (sf.papers.SupervisedBayesianNMF(**SHORT), lambda m: -m.lower_bound_),
    ],
    ids=lambda given: type(given).__name__,
)
@pytest.mark.filterwarnings("ignore:The stopping rule", "ignore:Of the")
def test_estimators(model, value):
    y = Y.argmax(axis=1)
    many = model.set_params(n_starts=4, random_state=0).fit(COUNTS, y)
    values = []
    for seed in draw_seeds(0, 4):
        one = model.__class__(**model.get_params() | {"n_starts": 1, "random_state": seed})
        values.append(value(one.fit(COUNTS, y)))
    assert value(many) == min(values)
    assert len(set(values)) > 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"init": (DENSE[:, :3], DENSE[:3])}, "needs different starts, but init holds"),
        ({"init": "nndsvda"}, "needs different starts, but init is 'nndsvda'"),
        ({"callback": print}, "callback is not supported with n_starts"),
        ({"n_starts": 0}, "n_starts must be at least 1"),
        ({"max_iter": -1}, "max_iter must be at least 0"),
        ({"n_components": 0}, "n_components must be at least 1"),
    ],
)
def test_bad_arguments(changes, message):
    refused(message, sf.factorize, DENSE, **{"n_components": 3, "n_starts": 2} | changes)


QUICK = {"n_splits": 1, "n_starts": 1, "random_state": 0}


def test_results_come_in_the_order_of_their_tasks():
    begun = threading.Event()

    def wait(state):
        if len(state.A) == 2:
            begun.set()
        return not begun.wait(10)  # the second runs at the same time

    def scores(n_jobs, callback):
        model = sf.NMF(max_iter=3, tol=0, callback=callback)
        jobs = {"n_jobs": n_jobs, "n_threads": n_jobs}
        return sf.choose_rank(DENSE, [1, 2], estimator=model, **jobs, **QUICK).scores

    assert np.array_equal(scores(2, wait), scores(1, None))
    assert begun.is_set()


def test_an_error_ends_the_others():
    begun, calls = threading.Event(), []

    def fail(state):
        if len(state.A) == 2:
            calls.append(state.iteration)
            begun.set()
            return False
        assert begun.wait(10)
        raise ZeroDivisionError

    model = sf.NMF(max_iter=2**31 - 1, tol=0, callback=fail)
    with pytest.raises(ZeroDivisionError):
        sf.choose_rank(DENSE, [1, 2], estimator=model, n_jobs=2, n_threads=2, **QUICK)
    ended = len(calls)
    time.sleep(0.01)
    assert len(calls) == ended


@each(
    ("given", "fits", "jobs", "threads"),
    [((None, 8), 20, 8, 1), ((-1, 8), 3, 3, 2), ((2, 8), 20, 2, 4), ((4, 1), 20, 4, 1)],
)
def test_threads_are_shared_out(given, fits, jobs, threads):
    together, lock, running, seen = threading.Barrier(jobs), threading.Lock(), [0], []

    class Watched(sf.NMF):
        def fit(self, X, X_weights=None):
            with lock:
                running[0] += 1
                seen.append((self.n_threads, running[0]))
                first = len(seen) <= jobs
            if first:
                together.wait(10)
            super().fit(X, X_weights=X_weights)
            with lock:
                running[0] -= 1
            return self

    settings = dict(zip(("n_jobs", "n_threads"), given, strict=True)) | QUICK
    model = Watched(max_iter=1, tol=0)
    sf.choose_rank(DENSE, [2], estimator=model, **settings | {"n_starts": fits})
    assert len(seen) == fits
    assert {of_fit for of_fit, _ in seen} == {threads}
    assert max(at_once for _, at_once in seen) == jobs


def test_there_is_a_job():
    refused("n_jobs must be at least 1", sf.choose_rank, DENSE, [2], n_jobs=0, n_threads=2)


OBSERVED = RNG.random((24, 10)) < 0.6
ROWS, COLUMNS = (np.arange(n) != 2 for n in (24, 10))
FEW = {"max_iter": 3, "tol": 0, "random_state": 0, "n_threads": 1}


def matrices_with_weights(last):
    """Yield data with a value where weights are 0, and the weights."""
    X = 0.1 + np.random.default_rng(1).random((24, 10))
    forms = {
        sf.weights.observed(OBSERVED): OBSERVED,
        sf.weights.missing(~OBSERVED): OBSERVED,
        sf.weights.outer(ROWS * 2.0, COLUMNS): np.outer(ROWS, COLUMNS),
    }
    for weights, seen in [*forms.items(), (OBSERVED * 1.0, OBSERVED)]:
        for make in (np.asarray, sp.csr_array):
            yield make(np.where(seen, X, last)), weights


def fits_of_matrices(last, init):
    y = np.arange(24) % 3
    for X, weights in matrices_with_weights(last):
        if init != "labels":
            yield sf.factorize(X, n_components=3, X_weights=weights, init=init, **FEW).A
            yield sf.NMF(3, init=init, **FEW).partial_fit(X, X_weights=weights).components_
        model = sf.SSNMFClassifier(3, init=init, readout="joint", **FEW)
        yield model.fit(X, y, X_weights=weights).components_


def fits_of_tensors(last, init):
    X, places = 0.1 + np.arange(240.0).reshape(24, 5, 2) % 7, OBSERVED.reshape(24, 5, 2)
    modes = [ROWS * 2.0, None, None]
    forms = [(places * 1.0, places), (modes, np.broadcast_to(ROWS[:, None, None], X.shape))]
    for weights, seen in forms:
        Z = np.where(seen, X, last)
        yield sf.factorize_tensor(Z, n_components=2, X_weights=weights, init=init, **FEW).factors[1]


@each("init", ["random", "least-squares", "nndsvda", "random-acol", "labels", "svd", "auto"])
def test_starts_do_not_read_entries_without_weight(init):
    fits = fits_of_tensors if init == "svd" else fits_of_matrices
    for one, other in zip(fits(0.3, init), fits(100.0, init), strict=True):
        np.testing.assert_array_equal(one, other)
    if init == "auto":
        for one, other in zip(fits_of_tensors(0, init), fits_of_tensors(1e3, init), strict=True):
            np.testing.assert_array_equal(one, other)
