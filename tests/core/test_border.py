"""The border of the data: a matrix is checked once, on a short way to the kernels."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from levels import kernels_in_use as kernels

import ssnmf_fast as sf
from ssnmf_fast._data.border import CleanMatrix, check_matrix

PACKAGE = str(Path(sf.__file__).parent)
X = np.random.default_rng(0).random((30, 12))
FORMS = {"dense": lambda: X.copy(), "sparse": lambda: sp.csr_array(X * (X > 0.5))}


@pytest.fixture
def passes(monkeypatch):
    """The functions of the package on the stack of every pass over the data."""
    stacks = []

    def watch(name):
        kernel = getattr(kernels, name)

        def watched(*arguments):
            frame, stack = sys._getframe(1), []
            while frame is not None:
                if frame.f_code.co_filename.startswith(PACKAGE):
                    stack.append(frame.f_code.co_name)
                frame = frame.f_back
            stacks.append(stack[::-1])
            return kernel(*arguments)

        monkeypatch.setattr(kernels, name, watched)

    for name in ("dense_pass", "sparse_pass"):
        watch(name)
    return stacks


def checks_of(call, *arguments, **options):
    """Return how often a call checks a matrix of the shape of X."""
    found = []

    def watch(frame, event, argument):
        if event == "call" and frame.f_code is check_matrix.__code__:
            found.append(np.shape(frame.f_locals["X"]) == X.shape)

    sys.setprofile(watch)
    try:
        call(*arguments, **options)
    finally:
        sys.setprofile(None)
    return sum(found)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler", 1.5])
def test_five_calls_from_factorize_to_a_pass(passes, form, loss):
    options = {"loss": loss, "init": "random", "random_state": 0, "max_iter": 3}
    sf.factorize(FORMS[form](), n_components=3, solver="mm", **options)
    stack = next(stack for stack in passes if "iterate" in stack)
    assert stack == ["factorize", "run", "iterate", "statistics", "P", "power"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("init", ["random", "least-squares", "nndsvda", "random-acol"])
def test_data_are_checked_once(form, init):
    Z, options = FORMS[form](), {"init": init, "random_state": 0, "max_iter": 2}
    assert checks_of(sf.factorize, Z, n_components=3, **options) == 1
    assert checks_of(sf.represent, Z, X[:3]) == 1
    clean = CleanMatrix(check_matrix(Z, "X"))
    assert checks_of(sf.factorize, clean, n_components=3, **options) == 0
    assert checks_of(sf.represent, clean, X[:3]) == 0


@pytest.mark.parametrize("form", FORMS)
def test_clean_data_have_the_same_fit(form):
    Z, options = FORMS[form](), {"n_components": 3, "random_state": 0}
    clean = CleanMatrix(check_matrix(Z, "X"))
    one, other = (sf.factorize(data, **options) for data in (Z, clean))
    np.testing.assert_array_equal(one.S, other.S)
    np.testing.assert_array_equal(one.A, other.A)
