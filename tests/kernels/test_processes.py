"""Kernels in threads with small stacks and in daemon threads, forked or interrupted by handlers."""

import sys

import pytest
from helpers.levels import AVAILABLE, WITH_OPENMP, run_python

pytestmark = [
    pytest.mark.compiled("plain NumPy has no kernels"),
    pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals and forks"),
]

START = """
import os, resource, signal, sys, threading, time, warnings
import numpy as np, scipy.sparse as sp
import ssnmf_fast as sf
from helpers.levels import kernels_in_use as kernels
warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
rng = np.random.default_rng(0)

def kl_rows(rows, n_threads, sweeps=50):
    X, G = sp.csr_array(rng.random((rows, 300)) + 0.1), rng.random((300, 24))
    F, N = np.ones((rows, 24)), G.sum(axis=0, keepdims=True)
    kernels.kl_rows(X.indptr, X.indices, X.data, G, N, F, -1.0, sweeps, n_threads)
    return F
"""


def check(code, **variables):
    """Run code in a process of its own."""
    done = run_python(START + code, timeout=60, **variables)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_daemon_thread_in_a_kernel_does_not_abort_the_end_of_the_process():
    check("""
begun = time.perf_counter()
kl_rows(5, 1)
rows = max(1, int(5 / (time.perf_counter() - begun)))  # of a second

class EndsSlowly:  # the kernel ends while the interpreter shuts down
    def __del__(self):
        time.sleep(3)

keep = EndsSlowly()
threading.Thread(target=kl_rows, args=(rows, 1), daemon=True).start()
time.sleep(0.2)
""")


@pytest.mark.slow
@pytest.mark.parametrize("level", AVAILABLE)
def test_threads_with_small_stacks(level):
    """128 KiB is what musl gives."""
    check(
        """
def work():
    for rank in (5, 64, 130):
        Z, A, S = rng.random((300, 300)), np.ones((300, 136)), np.ones((300, 136))
        out = np.zeros_like(S)
        kernels.dense_pass(-1.0, Z, False, S, A, out, 1.0, False, 1)
        kernels.mapped_product(S, A, A, 0.1, 0.05, 0.5, True, 0.0, out, 1)
        kernels.gram(A, None, np.zeros((136, 136)), 1)
        for loss in ("frobenius", "kullback-leibler"):
            for X in (Z, sp.csr_array(Z * (Z > 0.9))):
                A = sf.factorize(X, n_components=rank, loss=loss, max_iter=2).A
                sf.represent(X[:20], A, loss=loss, tol=1e-2)
    ended.append(True)

ended = []
threading.stack_size(128 * 1024)
thread = threading.Thread(target=work)
thread.start()
thread.join()
assert ended
""",
        SSNMF_FAST_ISA=level,
    )


@pytest.mark.slow
@pytest.mark.skipif(WITH_OPENMP, reason="the child waits for ever: a known difference")
def test_a_handler_that_forks():
    """The child has lost the threads, and says so; its parent goes on.  One thread is enough."""
    check("""
begun = time.perf_counter()
kl_rows(5, 1)
rows = max(40, int(5 / (time.perf_counter() - begun)))  # of a second
rng = np.random.default_rng(0)
expected = kl_rows(rows, 1)

def fork(number, frame):
    children.append(os.fork())

signal.signal(signal.SIGALRM, fork)
for n_threads in (1, 2):
    children, rng = [], np.random.default_rng(0)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        same = np.array_equal(kl_rows(rows, n_threads), expected)
    except RuntimeError as error:
        assert "forked" in str(error) and children == [0] and n_threads == 2, error
        os._exit(7)
    if children == [0]:
        os._exit(0 if same else 1)
    assert same and len(children) == 1
    status = os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1])
    assert status in ((0,) if n_threads == 1 else (0, 7)), status
""")


@pytest.mark.slow
def test_handlers_compute_with_denormal_numbers():
    check("""
least, seen = np.finfo(float).tiny, []
signal.signal(signal.SIGALRM, lambda number, frame: seen.append(least / 2 > 0))
signal.setitimer(signal.ITIMER_REAL, 0.1)
begun = time.perf_counter()
while not seen and time.perf_counter() < begun + 60:
    kl_rows(300, 1)
assert seen and all(seen)
""")


@pytest.mark.slow
def test_the_transpose_of_a_wide_matrix_takes_no_memory_for_each_thread():
    check("""
rows, columns, entries = 10_000, 4_000_000, 1_000_000
X = sp.csr_array(
    (np.ones(entries), rng.integers(0, columns, entries, np.int32), np.arange(0, entries + 1, 100)),
    shape=(rows, columns),
)
out = np.zeros(columns + 1, np.int64), np.ones(entries, np.int32), np.ones(entries)
out[0][:] = 1
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
kernels.transpose(X.indptr.astype(np.int64), X.indices, X.data, *out, 8)
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
assert grown < 100, f"{grown} MiB"  # 31 for each part
assert (out[0][1:] - out[0][:-1] == np.bincount(X.indices, minlength=columns)).all()
""")
