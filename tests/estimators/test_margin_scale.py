"""MarginNMF: data of any size, fits in threads, warning filters."""

import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from helpers.data import digits

import ssnmf_fast as sf

EXTREMES = """
import numpy as np
import scipy.sparse as sp
import ssnmf_fast as sf

rng = np.random.default_rng(0)
X, y = rng.random((60, 20)) * (rng.random((60, 20)) < 0.5), np.arange(60) % 3
for kind in (np.asarray, sp.csr_array):
    expected = None
    for power in (0, -48, 48):
        model = sf.papers.MarginNMF(n_components=4, random_state=0, max_iter=10, tol=0)
        model.fit(kind(np.ldexp(X, power)), y)
        found = model.representation_ @ np.ldexp(model.components_, -power)
        expected = found if expected is None else expected
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
"""


@pytest.mark.slow
def test_data_of_any_size():
    subprocess.run([sys.executable, "-c", EXTREMES], check=True, timeout=300)


X, y = digits(300)


@pytest.mark.slow
def test_fits_in_threads_have_the_bits_of_one():

    def fit(seed):
        model = sf.papers.MarginNMF(
            n_components=5, random_state=seed, max_iter=5, tol=0, n_threads=1
        )
        return model.fit(X, y).components_.tobytes()

    expected = [fit(seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(fit, range(8))) == expected


def test_the_library_leaves_the_filters_of_the_process_alone():
    """They cannot be set for one thread; the command, a process of its own, may set them."""
    package = Path(sf.__file__).parent
    for file in package.rglob("*.py"):
        if not {"cli", "evaluation.py"} & {*file.relative_to(package).parts}:
            for touch in ("catch_warnings", "simplefilter", "filterwarnings"):
                assert touch not in file.read_text(encoding="utf-8"), file


def test_callers_are_quiet_in_their_own_thread_alone():
    """A choice of rank tries more components than the data need, a fit by the way warns of them."""
    X = np.random.default_rng(0).poisson(0.3 * np.outer(np.arange(1, 31), np.arange(1, 13)))
    options = {"count_scale": 0.01, "max_iter": 30, "tol": 0, "random_state": 0}
    fits = []

    def fit_elsewhere(state):
        if not fits:
            fits.append(pool.submit(sf.BayesianNMF(8, **options).fit, X).result())

    with warnings.catch_warnings(record=True) as caught, ThreadPoolExecutor(1) as pool:
        warnings.simplefilter("always")
        model = sf.BayesianNMF(callback=fit_elsewhere, **options)
        sf.choose_rank(X, [8], estimator=model, criterion="bound", n_starts=1, random_state=0)
        assert len(fits) == 1
        assert ["repeat others" in str(one.message) for one in caught] == [True]
        sf.BayesianNMF(8, **options).fit(X)
    assert ["repeat others" in str(one.message) for one in caught] == [True, True]
