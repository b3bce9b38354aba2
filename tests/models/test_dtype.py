"""The dtype that a caller names: the same fits as of data of that dtype, in all that takes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.refused import refused
from hypothesis import given
from hypothesis import strategies as st

import ssnmf_fast as sf
from ssnmf_fast._data import border

N, M, RANK = 40, 25, 3
X = np.random.default_rng(0).poisson(1.0, (N, M))
A = np.random.default_rng(1).random((RANK, M))
GAPS = np.where(X == 0, np.nan, X / 3)
SETTINGS: dict[str, Any] = {"n_components": RANK, "random_state": 0, "max_iter": 20, "tol": 0}
NAMES = ("float32", np.float32, np.dtype(np.float32), "float64", np.float64)
FORMS: dict[str, Any] = {
    "counts": X,
    "bytes": X.astype(np.uint8),
    "sparse": sp.csr_array(X / 3),
    "sparse counts": sp.csc_array(X),
    "gaps": GAPS,
    "list": (X / 3).tolist(),
}


def same(found: Any, wanted: Any) -> None:
    for F, G in zip(found, wanted, strict=True):
        assert F.dtype == G.dtype
        np.testing.assert_array_equal(F, G)


def as_type(Z: Any, dtype: Any) -> Any:
    return Z.astype(dtype) if sp.issparse(Z) else np.asarray(Z, dtype)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
@pytest.mark.parametrize("dtype", NAMES, ids=str)
def test_fits_are_those_of_such_data(form: str, loss: str, dtype: Any) -> None:
    Z = FORMS[form]
    found = sf.factorize(Z, dtype=dtype, loss=loss, **SETTINGS)
    wanted = sf.factorize(as_type(Z, dtype), loss=loss, **SETTINGS)
    same((found.S, found.A), (wanted.S, wanted.A))
    assert found.S.dtype == np.dtype(dtype)
    assert found.objective == wanted.objective
    assert sf.verify(found, Z)
    S = sf.represent(Z, A, loss=loss, dtype=dtype)
    same([S], [sf.represent(as_type(Z, dtype), A, loss=loss)])


@given(wide=st.booleans(), dtype=st.sampled_from([np.float32, np.float64]))
def test_labels_weights_and_known_parts(wide: bool, dtype: Any) -> None:
    Z = (X / 3).astype(np.float64 if wide else np.float32)
    given: dict[str, Any] = {
        "y": np.eye(2)[np.arange(N) % 2],
        "X_weights": sf.weights.outer(rows=np.linspace(1, 2, N)),
        "feature_labels": np.eye(M)[:, :2],
        "covariates": np.ones((N, 1)),
    }
    found = sf.factorize(Z, **given, dtype=dtype, **SETTINGS)
    for F in (found.S, found.A, found.B, found.C):
        assert F is not None
        assert F.dtype == dtype
    assert sf.verify(found, Z, given.pop("y"), **given)
    S = sf.represent(Z, A, covariates=np.ones((N, 1)), dtype=dtype)
    assert S.dtype == dtype


def test_several_starts() -> None:
    given = {**SETTINGS, "n_starts": 3, "init": "random"}
    found = sf.factorize(X, dtype="float32", **given)
    wanted = sf.factorize(X.astype(np.float32), **given)
    same((found.S, found.A), (wanted.S, wanted.A))
    assert found.start_objectives == wanted.start_objectives


@pytest.mark.parametrize("sparse", [False, True])
def test_tensors(sparse: bool) -> None:
    T: Any = X.reshape(N, 5, 5)
    narrow: Any = T.astype(np.float32)
    if sparse:
        T, narrow = ((np.nonzero(Z), Z[np.nonzero(Z)], Z.shape) for Z in (T, narrow))
    found = sf.factorize_tensor(T, dtype="float32", **SETTINGS)
    wanted = sf.factorize_tensor(narrow, **SETTINGS)
    same([*found.factors, found.weights], [*wanted.factors, wanted.weights])
    assert found.weights.dtype == np.float32
    assert sf.verify(found, T)
    model = sf.NonnegativeCP(dtype="float32", **SETTINGS).fit(T)
    assert model.transform(T).dtype == np.float32
    stream = sf.NonnegativeCP(dtype="float32", stream_mode=0, **SETTINGS).partial_fit(T)
    assert stream.partial_fit(T).weights_.dtype == np.float32
    assert -1 < model.score(T) < 1


def test_completion() -> None:
    found = sf.complete(GAPS, n_components=2, random_state=0, dtype="float32")
    wanted = sf.complete(GAPS.astype(np.float32), n_components=2, random_state=0)
    same((found.left, found.right), (wanted.left, wanted.right))
    assert found.left.dtype == np.float32
    imputer = sf.LowRankImputer(2, gamma_min=1e-2, dtype="float32", random_state=0)
    assert imputer.fit_transform(GAPS).dtype == np.float32


@pytest.mark.slow
def test_files(tmp_path: Any) -> None:
    Z = sp.csr_array(X / 3)
    sp.save_npz(tmp_path / "X.npz", Z, compressed=False)
    narrow = sf.io.open_csr(tmp_path / "X.npz", dtype="float32", memory=2000)
    file = sf.io.open_csr(tmp_path / "X.npz", memory=2000)
    assert (narrow.dtype, file.dtype) == (np.float32, np.float64)
    found = sf.factorize(file, dtype="float32", **SETTINGS)
    wanted = sf.factorize(narrow, **SETTINGS)
    same((found.S, found.A), (wanted.S, wanted.A))
    assert found.receipt == wanted.receipt
    assert sf.verify(found, file)
    assert sf.verify(found, Z)
    several = sf.factorize(file, dtype="float32", n_starts=2, **SETTINGS)
    assert several.S.dtype == np.float32
    model = sf.NMF(dtype="float32", **SETTINGS).fit(file)
    same((model.representation_, model.transform(file)), (found.S, model.transform(Z)))


def test_files_with_numbers_beyond_the_range(tmp_path: Any) -> None:
    sp.save_npz(tmp_path / "X.npz", sp.csr_array(X * 1e60), compressed=False)
    refused("infinity", sf.io.open_csr, tmp_path / "X.npz", dtype="float32")


def test_converted_data_share_their_indices() -> None:
    Z = sp.csr_array(X)
    clean = border.check_data(Z, 1, "float32")
    assert np.shares_memory(clean.indices, Z.indices)
    assert np.shares_memory(clean.indptr, Z.indptr)
    assert clean.dtype == np.float32
    assert np.shares_memory(border.check_data(clean, 1, "float32").data, clean.data)


@pytest.mark.parametrize("form", [np.array, sp.csr_array])
def test_numbers_beyond_the_range(form: Any) -> None:
    Z = form(np.where(X > 0, X * 1e60, 0))
    for fit in (sf.factorize, lambda Z, **given: sf.NMF(**given).fit(Z)):
        refused("infinity", fit, Z, dtype="float32", **SETTINGS)
    with pytest.raises(ValueError, match="too far from 1 to work with in float32"):
        sf.factorize(Z / 1e45, dtype="float32", **SETTINGS)


@pytest.mark.parametrize(
    ("dtype", "error"),
    [("float16", ValueError), ("double", ValueError), (np.int64, ValueError), (32, TypeError)],
)
def test_other_dtypes_are_refused(dtype: Any, error: Any) -> None:
    calls: list[Any] = [
        lambda: sf.factorize(X, dtype=dtype, **SETTINGS),
        lambda: sf.represent(X, A, dtype=dtype),
        lambda: sf.factorize_tensor(X.reshape(N, 5, 5), dtype=dtype, **SETTINGS),
        lambda: sf.complete(GAPS, n_components=2, dtype=dtype),
        lambda: sf.LowRankImputer(dtype=dtype).fit(GAPS),
        lambda: sf.NMF(dtype=dtype).fit(X),
        lambda: sf.NMF(dtype=dtype).fit(sp.csr_array(X)),
        lambda: sf.NonnegativeCP(dtype=dtype).fit(X.reshape(N, 5, 5)),
        lambda: sf.BayesianNMF(dtype=dtype).fit(X),
    ]
    for call in calls:
        refused(r"dtype must be None, 'float32' or 'float64'; got", call, error=error)
