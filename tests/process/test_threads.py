"""Threads of the kernels: same bits, several callers, forked children, too few threads."""

import ctypes
import os
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.levels import WITH_OPENMP

import ssnmf_fast as sf

compiled = pytest.mark.compiled("plain NumPy has no threads")
LOSSES = ("frobenius", "kullback-leibler")

# Large enough for eight threads in the passes.
DATA = """
import os, threading, warnings
import numpy as np, scipy.sparse as sp
import ssnmf_fast as sf
warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
X = sp.random(4000, 1500, density=0.02, format="csr", random_state=0)

def fit(n_threads):
    return sf.factorize(X, n_components=10, random_state=0, max_iter=3, n_threads=n_threads).S

def threads():
    return len(os.listdir("/proc/self/task"))
"""


@pytest.fixture(scope="module")
def text():
    return sp.random_array((4000, 1500), density=0.02, format="csr", rng=0)


def results(X, loss, n_threads):
    fit = sf.factorize(
        X, n_components=10, loss=loss, random_state=0, max_iter=3, tol=0, n_threads=n_threads
    )
    S = sf.represent(X[:300], fit.A, loss=loss, n_threads=n_threads)
    return np.concatenate([fit.S.ravel(), fit.A.ravel(), S.ravel()])


def other_results(X, n_threads):
    """Of kernels that the fits above do not use."""
    options = {"random_state": 0, "n_threads": n_threads}
    holes = X[:500, :40].toarray()
    holes = np.where(holes > 0, np.nan, np.arange(40) % 7.0)
    fill = sf.complete(holes, method="sirls", n_components=3, max_iter=5, **options)
    bayesian = sf.BayesianNMF(n_components=5, max_iter=5, tol=0, **options).fit_transform(X[:500])
    descent = sf.factorize(X[:500], n_components=5, solver="hals", max_iter=3, tol=0, **options)
    parts = (*sf.linalg.randomized_svd(X, 5, **options), fill.left, fill.right, bayesian, descent.S)
    return np.concatenate([np.ravel(part) for part in parts])


def succeeds(code, **options):
    given = {"capture_output": True, "text": True, "timeout": 120, "check": False}
    done = subprocess.run([sys.executable, "-c", DATA + code], **given, **options)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("storage", ["sparse", "dense"])
def test_same_bits_for_any_number_of_threads(text, loss, storage):
    X = text if storage == "sparse" else text[:1000].toarray()
    alone = results(X, loss, 1)
    for n_threads in (2, 3, 8):
        np.testing.assert_array_equal(results(X, loss, n_threads), alone)


@pytest.mark.slow
def test_many_python_threads_at_once(text):
    work = [*(partial(results, text, loss) for loss in LOSSES), partial(other_results, text)]
    alone = [run(1) for run in work]
    jobs = [(i % 3, 1 + i % 4) for i in range(24)]
    with ThreadPoolExecutor(6) as executor:
        found = list(executor.map(lambda job: work[job[0]](job[1]), jobs))
    for (kind, _), result in zip(jobs, found, strict=True):
        np.testing.assert_array_equal(result, alone[kind])


@pytest.mark.slow
def test_eight_python_threads_fit_one_class(text):
    """They begin at the same time, and then share a fitted estimator."""
    X, y, begin = text[:300], np.arange(300) % 3, Barrier(8)

    def fitted(n_threads):
        begin.wait(60)
        model = sf.SSNMFClassifier(5, random_state=0, max_iter=5, tol=0, n_threads=n_threads)
        return model.fit(X, y)

    def answers(model):
        return np.hstack([model.transform(X), model.predict_proba(X)])

    with ThreadPoolExecutor(8) as executor:
        models = list(executor.map(fitted, [1, 2] * 4))
        shared = list(executor.map(answers, models[:1] * 8))
    for model, answer in zip(models, shared, strict=True):
        np.testing.assert_array_equal(model.components_, models[0].components_)
        np.testing.assert_array_equal(answer, answers(model))
    # No module of this package turns on the lock that a free-threaded interpreter lacks.
    free = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    assert getattr(sys, "_is_gil_enabled", lambda: True)() is not free


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_objects_from_before_a_fork_work_in_the_child():
    succeeds("""
thin = np.ones((X.shape[0], 2)), np.ones((2, X.shape[1]))
operator = sf.linalg.LowRankPlusSparse(X, *thin, n_threads=4)
here = sf.linalg.randomized_svd(operator, 5, random_state=0, n_threads=4)
child = os.fork()
if child == 0:
    there = sf.linalg.randomized_svd(operator, 5, random_state=0, n_threads=4)
    os._exit(0 if all((a == b).all() for a, b in zip(here, there)) and threads() == 1 else 1)
assert os.waitpid(child, 0)[1] == 0
assert (fit(4) == fit(1)).all()  # The parent goes on with threads.
""")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_needs_no_lock_of_another_thread():
    succeeds("""
import gc, signal
from ssnmf_fast import sklearn as on_engine

def hold():
    for lock in locks:
        lock.__enter__()
    held.set(), go.wait()

fit(1)  # which imports all modules
locks = [found for found in gc.get_objects() if type(found).__name__ == "ForkLock"]
assert len(locks) == 4
held, go = threading.Event(), threading.Event()
thread = threading.Thread(target=hold)
thread.start(), held.wait()
child = os.fork()
if child == 0:
    signal.alarm(30)
    with on_engine.patched(), sf.reference_kernels():
        fit(1), on_engine.call_counts()
    os._exit(0)
ended = os.waitpid(child, 0)[1]
go.set(), thread.join()
assert ended == 0, ended
""")


@pytest.mark.slow
@compiled
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_threads_are_kept_for_the_next_call():
    succeeds("""
from threadpoolctl import threadpool_limits
fit(1)  # which imports SciPy, with threads of its own
before = threads()
with threadpool_limits(1):
    fit(None)
    assert threads() == before
    fit(4)  # what a caller asks for by name
after = threads()
assert after <= before + 3
for _ in range(5):
    fit(4)
assert threads() == after > before
""")


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of Linux")
@pytest.mark.skipif(WITH_OPENMP, reason="it ends the process: a known difference")
def test_without_further_threads_there_is_one():
    if not hasattr(ctypes.CDLL(None), "mallopt"):
        pytest.skip("no memory allocator of glibc")
    succeeds(
        """
import ctypes, resource
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
for parameter in (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD):  # what a fit frees stays for the next one
    assert ctypes.CDLL(None).mallopt(parameter, 1 << 25)
here = fit(1)
fit(1)  # leaves as much as the next one needs, next to the result
spare = [bytearray(1 << 18) for _ in range(40)]  # and more, of which no stack is made
del spare
before = threads()
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
less_than_a_stack = 1 << 19
resource.setrlimit(resource.RLIMIT_AS, (size + less_than_a_stack, resource.RLIM_INFINITY))
assert (fit(4) == here).all()
assert threads() == before
""",
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
