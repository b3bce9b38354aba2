"""The pool and OpenMP: chosen by the environment and at run time, forked and interrupted often."""

import importlib.util
import os
import signal
import sys

import numpy as np
import pytest
from helpers.levels import run_python

import ssnmf_fast as sf

HAS_OPENMP = importlib.util.find_spec("ssnmf_fast._openmp") is not None
BACKENDS = ["pool", "openmp"][: 1 + HAS_OPENMP]
need_openmp = pytest.mark.skipif(not HAS_OPENMP, reason="built without OpenMP")
compiled = pytest.mark.compiled("plain NumPy has no threads")

START = """
import os, signal, threading, warnings
import numpy as np, scipy.sparse as sp
import ssnmf_fast as sf
from helpers.levels import kernels_in_use as kernels
warnings.simplefilter("ignore", DeprecationWarning)  # of forks while threads run
X = sp.random(2000, 800, density=0.02, format="csr", random_state=0)

def fit(n_threads, **given):
    given = {"n_components": 10, "random_state": 0, "max_iter": 3, **given}
    return sf.factorize(X, n_threads=n_threads, **given).S

def has_libgomp():
    return "libgomp" in open("/proc/self/maps").read()
"""


def succeeds(code, **variables):
    done = run_python(START + code, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@need_openmp
@compiled
def test_the_pool_loads_no_library_of_openmp():
    """And the other back end gives the same bits."""
    succeeds(
        """
here = fit(3)
assert kernels.build_info()["threads"].startswith("pool (")
assert not has_libgomp()
sf.set_thread_backend("openmp")
assert has_libgomp() and kernels.build_info()["threads"] == "openmp"
assert (fit(3) == here).all() and (fit(1) == here).all()
with sf.reference_kernels():
    sf.set_thread_backend("pool")
assert kernels.build_info()["threads"].startswith("pool (")
assert (fit(3) == here).all()
""",
        SSNMF_FAST_THREADS="pool",
    )


@pytest.mark.slow
@need_openmp
@compiled
def test_the_environment_chooses():
    shown = succeeds("sf.show_config()", SSNMF_FAST_THREADS=" OpenMP ")
    assert "thread back end   openmp\n" in shown
    done = run_python(START, SSNMF_FAST_THREADS="4")
    assert done.returncode != 0
    assert "SSNMF_FAST_THREADS='4' cannot be used" in done.stderr
    for word in ("'pool' or 'openmp'", "n_threads", "OMP_NUM_THREADS"):
        assert word in done.stderr


def test_other_back_ends_are_refused(monkeypatch):
    for backend in ("", "OpenMP", 2, None, np.arange(2)):
        with pytest.raises(
            ValueError, match=r"backend=.* cannot be used; expected 'pool' or 'openmp'"
        ):
            sf.set_thread_backend(backend)
    monkeypatch.setitem(sys.modules, "ssnmf_fast._openmp", None)
    with pytest.raises(ValueError, match="backend='openmp' cannot be used: this installation has"):
        sf.set_thread_backend("openmp")


@pytest.mark.slow
@compiled
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("backend", BACKENDS)
def test_sixty_forks_while_another_thread_fits(backend):
    succeeds(
        """
here = fit(1)
stop = threading.Event()

def work():
    while not stop.is_set():
        fit(3)

worker = threading.Thread(target=work)
worker.start()
for _ in range(60):
    child = os.fork()
    if child == 0:
        os._exit(0 if (fit(3) == here).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
worker.join()
assert (fit(3) == here).all()
""",
        SSNMF_FAST_THREADS=backend,
    )


@pytest.mark.slow
@compiled
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs setitimer")
@pytest.mark.parametrize("backend", BACKENDS)
def test_fifty_interrupts(backend):
    """Of fits, wherever they are, and of kernels that would not end."""
    succeeds(
        """
def kl_rows():
    rng = np.random.default_rng(0)
    X, G = sp.csr_array(rng.random((200, 300)) + 0.1), rng.random((300, 24))
    F, N = np.ones((200, 24)), G.sum(axis=0, keepdims=True)
    kernels.kl_rows(X.indptr, X.indices, X.data, G, N, F, -1.0, 2**31 - 1, 3)

signal.signal(signal.SIGALRM, signal.default_int_handler)
here = fit(1)
for number in range(50):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001 * (1 + number))
        while number % 5:
            fit(3, max_iter=1000, tol=0)
        kl_rows()
    except KeyboardInterrupt:
        continue
    raise AssertionError("not interrupted")
assert (fit(3) == here).all()
""",
        SSNMF_FAST_THREADS=backend,
    )
