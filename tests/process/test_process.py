"""Behavior of the process: Ctrl-C, fork, forced levels, imports, threads."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import threadpoolctl
from helpers.levels import AVAILABLE, run_python
from sklearn.cluster import KMeans

import ssnmf_fast as sf

FIT = """
import sys
import numpy as np, scipy.sparse as sp
import ssnmf_fast as sf
rng = np.random.default_rng(0)
X = sp.random(400, 300, density=0.1, format="csr", random_state=1)
Y = np.eye(3)[rng.integers(0, 3, 400)]
parts = []
for r in ("frobenius", "kullback-leibler"):
    for s in ("frobenius", "kullback-leibler"):
        for W in (None, rng.random(X.shape), sf.weights.missing(X[::-1] > 0)):
            fit = sf.factorize(X, Y, n_components=6, loss=r, supervision_loss=s, X_weights=W,
                               random_state=0, max_iter=20, tol=0)
            parts += [fit.S.ravel(), fit.A.ravel(), fit.B.ravel()]
np.save(sys.argv[1], np.concatenate(parts))
"""


@pytest.mark.slow
@pytest.mark.compiled("every level, the reference too, is forced here in any case")
def test_forced_levels_agree(tmp_path):
    results = []
    for level in [*AVAILABLE, "reference"]:
        path = str(tmp_path / f"{level}.npy")
        done = run_python(FIT, path, SSNMF_FAST_ISA=level)
        assert done.returncode == 0, done.stderr
        results.append(np.load(path))
    for other in results[1:]:
        np.testing.assert_allclose(other, results[0], rtol=1e-8, atol=1e-10)


@pytest.mark.slow
def test_unknown_level_is_refused():
    done = run_python("import ssnmf_fast", SSNMF_FAST_ISA="v9")
    assert done.returncode != 0
    assert "SSNMF_FAST_ISA='v9' cannot be used" in done.stderr
    assert "Available here: " in done.stderr


@pytest.mark.slow
def test_interrupt_stops_a_long_fit_at_once():
    code = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
import numpy as np, scipy.sparse as sp
import ssnmf_fast as sf
X = sp.random(20000, 2000, density=0.02, format="csr", random_state=1)
print("ready", flush=True)
try:
    sf.factorize(X, n_components=20, loss="kullback-leibler", tol=0, max_iter=10**6)
except KeyboardInterrupt:
    print("interrupted", time.time(), flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "ready\n"
        time.sleep(1.0)
        sent = time.time()
        child.send_signal(signal.SIGINT)
        word, when = child.stdout.readline().split()
        assert word == "interrupted"
        assert float(when) - sent < 0.5
        assert child.wait(timeout=10) == 0


# Kernels that would not end within the lifetime of the test: no residual is below -1.
ENDLESS = """
import os, signal, threading, time
import numpy as np, scipy.sparse as sp
import ssnmf_fast as sf
from helpers.levels import kernels_in_use as kernels
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
rng = np.random.default_rng(0)

def kl_rows(rows, columns, n_threads, short_rows=0, steps=2**31 - 1):
    X = rng.random((short_rows + rows, columns)) + 0.1
    X[:short_rows, 1:] = 0
    X, G = sp.csr_array(X), rng.random((columns, 24))
    F, N = np.ones((short_rows + rows, 24)), G.sum(axis=0, keepdims=True)
    kernels.kl_rows(X.indptr, X.indices, X.data, G, N, F, -1.0, steps, n_threads)

def nnls(n_threads):
    G, F = rng.random((50, 24)), np.ones((100, 24))
    P = np.ones((100, 50)) @ G
    kernels.nnls(G.T @ G, None, None, None, None, G, P, F, -1.0, 2**31 - 1, n_threads)

def interrupted(kernel, *arguments, after=0.3):
    begin = time.perf_counter()
    threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        kernel(*arguments)
    except KeyboardInterrupt:
        assert time.perf_counter() - begin < after + 0.5
        return
    raise AssertionError("not interrupted")
"""


@pytest.mark.slow
@pytest.mark.compiled("NumPy is not interrupted")
def test_interrupt_stops_a_kernel():
    """By many threads and by one, between blocks, within one, and while the caller waits."""
    done = run_python(
        ENDLESS
        + """
def fit():
    return sf.factorize(np.ones((3000, 50)), n_components=5, random_state=0, n_threads=2).S

here = fit()
for n_threads in (1, 2):
    interrupted(kl_rows, 2000, 300, n_threads)
    interrupted(kl_rows, 1, 3000, n_threads)
    interrupted(nnls, n_threads)
    assert (fit() == here).all()
# The first block, the caller's, takes a part of a second, the other a minute.
interrupted(kl_rows, 16, 3000, 2, 16, 4000, after=1.5)
"""
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.compiled("NumPy is not interrupted")
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs setitimer")
def test_handlers_of_signals_run_during_a_kernel():
    done = run_python(
        ENDLESS
        + """
calls, factorize = [], sf.factorize  # imported now

def handle(number, frame):
    interim = factorize(np.ones((3000, 50)), n_components=5, max_iter=3, n_threads=2)
    calls.append(interim)
    if len(calls) == 3:
        raise TimeoutError("enough")

signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
try:
    kl_rows(2000, 300, 2)
except TimeoutError as error:
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert str(error) == "enough"
else:
    raise AssertionError("not interrupted")
"""
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fit_in_a_forked_child():
    code = """
import os, warnings
warnings.simplefilter("ignore", DeprecationWarning)
import numpy as np
import ssnmf_fast as sf
X = np.random.default_rng(0).random((3000, 50))
here = sf.factorize(X, n_components=5, random_state=0, max_iter=5, n_threads=2).S
child = os.fork()
if child == 0:
    there = sf.factorize(X, n_components=5, random_state=0, max_iter=5, n_threads=2).S
    os._exit(0 if (there == here).all() else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    done = run_python(code)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_build_for_a_better_processor_warns_and_works():
    code = """
import sys, types, warnings
cpu = types.ModuleType("ssnmf_fast._cpu")
cpu.levels, cpu.built_levels = ("base",), ("v4",)
sys.modules["ssnmf_fast._cpu"] = cpu
with warnings.catch_warnings(record=True) as caught:
    import ssnmf_fast as sf
assert "built for another processor" in str(caught[0].message), caught
sf.factorize([[1.0, 2.0], [3.0, 4.0]], n_components=1)
sf.show_config()
"""
    done = run_python(code, SSNMF_FAST_ISA="")
    assert done.returncode == 0, done.stderr
    assert "SSNMF_FAST_LEVELS=all" in done.stdout


def threads_in(printed):
    return [line.split()[1] for line in printed.splitlines() if line.startswith("threads ")]


@pytest.mark.slow
@pytest.mark.compiled("plain NumPy has no threads")
def test_threads_follow_the_environment_and_threadpoolctl(capsys):
    code = "import ssnmf_fast; ssnmf_fast.show_config()"
    assert threads_in(run_python(code, OMP_NUM_THREADS="3").stdout) == ["3"]
    # A limit that is set before anything is used holds too.
    limited = "with threadpoolctl.threadpool_limits(1):\n    ssnmf_fast.show_config()"
    code = f"import ssnmf_fast, threadpoolctl\n{limited}"
    assert threads_in(run_python(code).stdout) == ["1"]
    with threadpoolctl.threadpool_limits(1, user_api="openmp"):
        elsewhere = threading.Thread(target=sf.show_config)
        elsewhere.start()
        elsewhere.join()
        sf.show_config()
    assert threads_in(capsys.readouterr().out) == ["1", "1"]


@pytest.mark.compiled("plain NumPy has no threads")
def test_threadpoolctl_shows_and_limits_the_kernels(capsys):
    def shown():
        found = threadpoolctl.threadpool_info()
        return [each for each in found if each["internal_api"] == "ssnmf_fast"]

    (before,) = shown()
    assert before["user_api"] == "openmp"
    assert before["version"] == sf.__version__
    sf.show_config()
    with threadpoolctl.threadpool_limits(1):
        assert [each["num_threads"] for each in shown()] == [1]
        sf.show_config()
    assert threads_in(capsys.readouterr().out) == [str(before["num_threads"]), "1"]
    assert shown() == [before]


@pytest.mark.compiled("plain NumPy has no threads")
def test_limits_of_other_libraries_leave_the_kernels_alone(monkeypatch, capsys):
    fit, others = KMeans.fit, []

    def watched(self, *arguments, **options):
        sf.show_config()
        found = threadpoolctl.threadpool_info()
        others.extend(each["num_threads"] for each in found if each["internal_api"] == "openmp")
        return fit(self, *arguments, **options)

    monkeypatch.setattr(KMeans, "fit", watched)
    sf.show_config()
    X = np.random.default_rng(0).random((8, 6))
    given = {"criterion": "stability", "n_starts": 3, "max_iter": 2, "tol": 0, "random_state": 0}
    sf.choose_rank(X, [2], **given)  # whose clusters are found by one thread of OpenMP
    before, *within = threads_in(capsys.readouterr().out)
    assert {*within} == {before}
    assert {*others} <= {1}


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="BLAS has one thread anyway")
def test_blas_is_limited_until_no_thread_needs_it():
    code = """
import threading
import numpy as np, ssnmf_fast as sf
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_info

def blas():
    return max(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")

def watched(self, *arguments, **options):
    me = threading.current_thread()
    if me not in met:
        met.append(me)
        both.wait()
        if me is second:
            first.join()
        seen.append(blas())
    return fit(self, *arguments, **options)

def search():
    X = np.random.default_rng(0).random((8, 6))
    given = {"criterion": "stability", "n_starts": 3, "max_iter": 2, "tol": 0, "random_state": 0}
    sf.choose_rank(X, [2], **given)

fit, KMeans.fit = KMeans.fit, watched
before, met, seen, both = blas(), [], [], threading.Barrier(2, timeout=20)
for turn in range(2):
    first, second = (threading.Thread(target=search) for _ in range(2))
    first.start(), second.start(), second.join()
print(before, *seen, blas())
"""
    done = run_python(code, OPENBLAS_NUM_THREADS="2", MKL_NUM_THREADS="2")
    assert done.stdout.split() == ["2", "1", "1", "1", "1", "2"], done.stderr


def test_show_config(capsys):
    sf.show_config()
    printed = capsys.readouterr().out
    for word in ("ssnmf_fast", "level in use", "eigen", "threads"):
        assert word in printed
