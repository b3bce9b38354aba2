"""`verify` accepts every honest result, at every level and for any threads, and no other one."""

from __future__ import annotations

import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import honest_fits
import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from helpers.levels import AVAILABLE, environment
from helpers.random_examples import ALL
from helpers.refused import refused
from honest_fits import Fit, N, counts

import ssnmf_fast as sf

RNG = np.random.default_rng(0)
X = counts(RNG)
LABELS = np.eye(3)[RNG.integers(0, 3, N)]


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    return honest_fits.honest_fits(tmp_path_factory.mktemp("fits"))


@pytest.mark.slow
def test_honest_results_are_accepted(fits):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, fit in fits.items():
            result = fit.result(n_threads=1)
            found = sf.verify(result, fit.X, n_threads=2, **fit.inputs)
            assert found.ok, (name, found)


@pytest.mark.slow
def test_honest_results_of_other_levels_are_accepted(tmp_path):
    levels = [*AVAILABLE, "reference"]
    program = str(Path(honest_fits.__file__))

    def run(level: str, *actions: str) -> str:
        command = [sys.executable, program, str(tmp_path), *actions]
        variables = environment(SSNMF_FAST_ISA=level)
        done = subprocess.run(command, capture_output=True, text=True, env=variables, check=True)
        return done.stdout

    least, best, reference = levels[0], levels[-2], levels[-1]
    assert run(least, f"make:{least}") == ""
    if not ALL:  # NumPy takes most of the time
        assert run(best, f"check:{least}") == ""
        return
    assert run(reference, f"check:{least}", f"make:{reference}") == ""
    for level in {least, best}:  # of its own results, the best where it is not the least one
        assert run(level, f"check:{reference}", *[f"check:{least}"] * (level != least)) == ""


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, np.asfortranarray, np.float32])
def test_the_form_of_the_data_has_no_say(form):
    whole = X if form is not np.float32 else X.astype(np.float32).astype(float)
    result = sf.factorize(whole, n_components=3, random_state=0)
    assert sf.verify(result, form(whole))


def test_receipts_do_not_depend_on_threads_and_are_kept_in_files(tmp_path):
    one, two = (Fit(X, {}).result(n_threads=n) for n in (1, 2))
    assert one.receipt == two.receipt
    sf.save(one, tmp_path / "model.npz")
    assert sf.load(tmp_path / "model.npz").receipt == one.receipt


def pick(F, rng):
    """Return a place of one of the larger entries."""
    places = np.argwhere(np.median(F) <= F)
    return tuple(places[rng.integers(len(places))])


def changed(F, rng):
    F = F.copy()
    F[pick(F, rng)] *= 1.5
    return F


def forged(result, **changes):
    """Return a result with a receipt that fits to its factors and its history."""
    of_receipt = {name: changes.pop(name) for name in tuple(changes) if name in FIELDS}
    made = replace(result, **changes)
    of_factors = sf.factorize(
        np.ones((len(made.S), made.A.shape[1]), dtype=made.S.dtype),
        np.ones((len(made.S), made.B.shape[1])),
        n_components=len(made.A),
        init=(made.S, made.A, made.B),
        max_iter=0,
    )
    own = {"n_iter": made.n_iter, "converged": made.converged, "parts": of_factors.receipt.parts}
    receipt = replace(made.receipt, **own).with_objective(made.objective)
    return replace(made, receipt=replace(receipt, **of_receipt).sealed())


FIELDS = {"settings", "residuals", "data", "inputs"}


def settings(result, **changes):
    return {**result.receipt.settings, **changes}


def residuals(result, rng):
    name = "SAB"[rng.integers(3)]
    return {**result.receipt.residuals, name: result.receipt.residuals[name] * 0.9}


def last(result, factor):
    *before, (iteration, value) = result.objective
    return [*before, (iteration, value * factor)]


def of_receipt(result, rng, **changes):
    del rng
    return replace(result, receipt=replace(result.receipt, **changes))


# What becomes of a result of X and LABELS.
TAMPERED = {
    "an entry of S": lambda r, g: replace(r, S=changed(r.S, g)),
    "an entry of A": lambda r, g: replace(r, A=changed(r.A, g)),
    "an entry of B": lambda r, g: replace(r, B=changed(r.B, g)),
    "an entry of S, forged": lambda r, g: forged(r, S=changed(r.S, g)),
    "an entry of A, forged": lambda r, g: forged(r, A=changed(r.A, g)),
    "an entry of B, forged": lambda r, g: forged(r, B=changed(r.B, g)),
    "the order of the components": lambda r, g: replace(
        r, S=r.S[:, ::-1].copy(), A=r.A[::-1].copy(), B=r.B[::-1].copy()
    ),
    "a component less": lambda r, g: replace(r, S=r.S[:, 1:], A=r.A[1:], B=r.B[1:]),
    "a component less, forged": lambda r, g: forged(r, S=r.S[:, 1:], A=r.A[1:], B=r.B[1:]),
    "a sample less": lambda r, g: replace(r, S=r.S[1:]),
    "the objective": lambda r, g: replace(r, objective=last(r, 0.99)),
    "the objective, forged": lambda r, g: forged(r, objective=last(r, 1 - 1e-4)),
    "the residuals, forged": lambda r, g: forged(r, residuals=residuals(r, g)),
    "the loss, forged": lambda r, g: forged(r, settings=settings(r, loss="kullback-leibler")),
    "an unknown loss, forged": lambda r, g: forged(r, settings=settings(r, loss="none")),
    "the weight, forged": lambda r, g: forged(
        r, supervision_weight=2.0, settings=settings(r, supervision_weight=2.0)
    ),
    "the seed": lambda r, g: of_receipt(r, g, settings=settings(r, random_state=1)),
    "the fingerprint of X": lambda r, g: forged(r, data=r.receipt.data[:-1] + "g"),
    "no seal": lambda r, g: of_receipt(r, g, seal=""),
}


def other_entry(r, rng):
    Z = X.copy()
    Z[pick(Z, rng)] += 1
    return Z, LABELS


def other_rows(r, rng):
    i, j = rng.choice(np.flatnonzero(X.any(axis=1)), 2, replace=False)
    Z = X.copy()
    Z[[i, j]] = Z[[j, i]]
    return Z, LABELS


def other_labels(r, rng):
    Z = LABELS.copy()
    i = rng.integers(N)
    Z[i] = np.roll(Z[i], 1)
    return X, Z


# Other data than those of the fit.
OTHERS = {
    "an entry of X": other_entry,
    "two rows of X": other_rows,
    "a label": other_labels,
    "no labels": lambda r, g: (X, None),
    "a sample less": lambda r, g: (X[1:], LABELS[1:]),
    "a feature less": lambda r, g: (X[:, 1:], LABELS),
    "twice the size": lambda r, g: (2 * X, LABELS),
}


def guided(dtype):
    given = {"y": LABELS, "n_components": 4, "random_state": 0, "tol": 0, "max_iter": 20}
    return sf.factorize(X.astype(dtype), **given)


RESULTS = {dtype: guided(dtype) for dtype in ("float64", "float32")}


@pytest.mark.slow
@each("dtype", RESULTS)
@each("draw", range(2))
@each("kind", TAMPERED)
def test_tampered_results_are_refused(kind, draw, dtype):
    rng = np.random.default_rng([draw, sorted(TAMPERED).index(kind)])
    result = RESULTS[dtype]
    assert sf.verify(result, X, LABELS)
    found = sf.verify(TAMPERED[kind](result, rng), X, LABELS)
    assert not found
    assert found.differences[0] in repr(found)


@each("dtype", RESULTS)
@each("draw", range(2))
@each("kind", OTHERS)
def test_other_data_are_refused(kind, draw, dtype):
    rng = np.random.default_rng([draw, sorted(OTHERS).index(kind)])
    Z, Y = OTHERS[kind](RESULTS[dtype], rng)
    found = sf.verify(RESULTS[dtype], Z, Y)
    assert not found
    if Y is LABELS:
        assert found.differences[0] == "X is not the one of the fit."


INPUTS = {
    "X_weights": (sf.weights.outer(rows=np.ones(N)), sf.weights.outer(rows=np.arange(1, N + 1))),
    "S_support": (np.ones((N, 4)), np.ones((N, 4)) - np.eye(N, 4)),
    "covariates": (np.ones((N, 1)), np.full((N, 1), 2.0)),
    "penalties": (sf.penalties.L2(0.1), sf.penalties.L2(0.2)),
}


@pytest.mark.parametrize("name", INPUTS)
def test_other_inputs_are_told_by_name(name):
    given, other = INPUTS[name]
    result = sf.factorize(X, n_components=4, random_state=0, **{name: given})
    assert sf.verify(result, X, **{name: given})
    for wrong in (other, None):
        found = sf.verify(result, X, **{name: wrong})
        assert any(name in sentence for sentence in found.differences)
    plain = sf.factorize(X, n_components=4, random_state=0)
    assert f"The fit was not given {name}." in sf.verify(plain, X, **{name: given}).differences


def test_a_result_without_a_receipt_says_so():
    result = replace(RESULTS["float64"], receipt=None)
    found = sf.verify(result, X, LABELS)
    assert not found
    assert "has no receipt" in repr(found)


def test_what_cannot_be_verified_is_refused():
    refused("verify is not available for dict", sf.verify, {}, X, error=TypeError)
    with pytest.raises(TypeError, match="no argument 'Z_weights'"):
        sf.verify(RESULTS["float64"], X, LABELS, Z_weights=1)
    refused("Negative values", sf.verify, RESULTS["float64"], -X, LABELS)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_tensors(dtype):
    T = X.reshape(N, 5, 6).astype(dtype)
    given = {"n_components": 3, "random_state": 0, "loss": "kullback-leibler"}
    labels = {0: LABELS, -1: np.eye(6)[:, :2]}
    result = sf.factorize_tensor(T, y=labels, **given)
    places = np.array(np.nonzero(T))
    assert sf.verify(result, T, y=labels)
    assert sf.verify(result, (places, T[tuple(places)], T.shape), y=labels)
    other = T.copy()
    other[0, 0, 0] += 1
    assert not sf.verify(result, other, y=labels)
    assert not sf.verify(result, T)
    for factor in range(3):
        factors = [changed(F, RNG) if k == factor else F for k, F in enumerate(result.factors)]
        assert not sf.verify(replace(result, factors=factors), T, y=labels)
    penalized = sf.factorize_tensor(T, penalties=sf.penalties.L2(0.1), **given)
    refused("penalties", sf.verify, penalized, T, penalties=sf.penalties.L2(0.1), error=TypeError)


@pytest.mark.slow
def test_tensors_whose_components_died():
    """With more components than the data need, of which labels keep some."""
    died = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        shape = tuple(rng.integers(1, 6, 2 + seed % 3))
        T = rng.gamma(1, 1, shape) * (rng.random(shape) < 0.4) * 10.0 ** (seed % 5 - 2)
        T = T.astype(["float32", "float64"][seed % 2])
        modes = np.flatnonzero(rng.random(len(shape)) < 0.6)
        labels = {int(k): (rng.random((shape[k], 2)) < 0.6) * 1.0 for k in modes}
        losses = rng.choice(["frobenius", "kullback-leibler"], 2)
        given = {"loss": losses[0], "supervision_loss": losses[1], "supervision_weight": 1000.0}
        given |= {"solver": rng.choice(["auto", "hals", "mm", "mu"]), "random_state": seed}
        given |= {"y": labels, "n_components": 7, "init": "random", "max_iter": 60, "tol": 0}
        result = sf.factorize_tensor(T, **given)
        found = sf.verify(result, T, y=labels)
        assert found, (seed, found)
        died += (result.weights < 1e-30).any()
        again = sf.factorize_tensor(T, **{**given, "init": result, "max_iter": 0})
        first, last = result.objective[0][1], result.objective[-1][1]
        assert abs(again.objective[0][1] - last) <= 1e-6 * first, seed
        for k, B in result.label_components.items():
            if B.any():
                other = {**result.label_components, k: 1.001 * B}
                assert not sf.verify(replace(result, label_components=other), T, y=labels)
    assert died > 3


def test_a_tiny_model_of_tiny_data_is_as_in_the_fit():
    """Where it vanishes, it is the least number that the kernels take for one."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        Z = rng.random((16, 16)) * (rng.random((16, 16)) < 0.4) * 2.0**-20
        Z = np.where(np.arange(16) == 3, 0, Z).astype(np.float32)
        given = {"n_components": 12, "loss": 0.5, "init": "least-squares", "random_state": seed}
        result = sf.factorize(Z, max_iter=16, tol=0, solver="mm", **given)
        assert sf.verify(result, Z), seed
