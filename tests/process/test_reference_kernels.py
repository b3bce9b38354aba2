"""Every public function and class gives the same with the kernels in NumPy, in one process."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from sklearn.base import BaseEstimator

import ssnmf_fast as sf

RNG = np.random.default_rng(0)
X = RNG.poisson(1.0, (40, 25)).astype(float) * (RNG.random((40, 25)) < 0.5)
X[:, 0] += 1
Y = np.arange(40) % 2
HIDDEN = np.where(np.arange(40) % 3, -1, Y)
GAPS = np.where(RNG.random(X.shape) < 0.3, np.nan, RNG.random((40, 3)) @ RNG.random((3, 25)))
T = RNG.random((6, 7, 8))
A = RNG.random((3, 25))
DAYS = np.datetime64("2020-01", "M") + np.arange(40) // 10
FIT: dict[str, Any] = {"n_components": 3, "random_state": 0, "max_iter": 5, "tol": 0}
GUIDED = {**FIT, "init": "random-acol"}
del GUIDED["n_components"]
PATHS = [f"{a}/{b}" for a, b in zip("ab" * 20, "xxyy" * 10, strict=True)]


def fitted(model: Any, data: Any, *y: Any) -> list[Any]:
    model.fit(data, *y)
    after = [model]
    for name in ("transform", "predict_proba", "decision_function"):
        if hasattr(model, name) and not isinstance(model, sf.DynamicTopics):
            after.append(getattr(model, name)(data))
    return after


CALLS: dict[str, Callable[[], Any]] = {
    "NMF": lambda: fitted(sf.NMF(**FIT), X),
    "BayesianNMF": lambda: fitted(sf.BayesianNMF(**FIT), X),
    "DynamicTopics": lambda: fitted(sf.DynamicTopics(**FIT), X, DAYS),
    "FewLabelsClassifier": lambda: fitted(
        sf.FewLabelsClassifier(random_state=0, max_iter=5, tol=0, unlabeled=-1), X, HIDDEN
    ),
    "HierarchicalClassifier": lambda: fitted(
        sf.HierarchicalClassifier(sf.SSNMFClassifier(**FIT), separator="/"), X, PATHS
    ),
    "LowRankImputer": lambda: fitted(sf.LowRankImputer(3, gamma_min=0.1, random_state=0), GAPS),
    "NonnegativeCP": lambda: fitted(sf.NonnegativeCP(**FIT), T),
    "Recommender": lambda: fitted(sf.Recommender(3, random_state=0), sp.csr_array(X)),
    "SSNMFClassifier": lambda: fitted(sf.SSNMFClassifier(**FIT), X, Y),
    "SSNMFRegressor": lambda: fitted(sf.SSNMFRegressor(**FIT), X, Y.astype(float)),
    "SeededTopics": lambda: fitted(sf.SeededTopics(random_state=0, max_iter=5, tol=0), X, Y),
    "TopicSupervisedNMF": lambda: fitted(sf.TopicSupervisedNMF(**GUIDED), X, Y),
    "ConstrainedNMF": lambda: fitted(sf.papers.ConstrainedNMF(**FIT), X, Y),
    "MarginNMF": lambda: fitted(sf.papers.MarginNMF(**FIT), X, Y),
    "SupervisedBayesianNMF": lambda: fitted(sf.papers.SupervisedBayesianNMF(**FIT), X, Y),
    "choose_rank": lambda: sf.choose_rank(X, [2, 3], random_state=0, max_iter=5, tol=0),
    "complete": lambda: sf.complete(GAPS, n_components=3, random_state=0, max_iter=5, tol=0),
    "consensus": lambda: sf.consensus(X, 3, n_starts=5, random_state=0, max_iter=5, tol=0),
    "factorize": lambda: sf.factorize(sp.csr_array(X), np.eye(2)[Y], **FIT),
    "factorize_tensor": lambda: sf.factorize_tensor(T, **FIT),
    "represent": lambda: sf.represent(X, A, loss="kullback-leibler"),
    "topics_over_time": lambda: sf.topics_over_time(sf.NMF(**FIT).fit(X), X, DAYS),
    "verify": lambda: sf.verify(sf.factorize(X, **FIT), X),
}
OTHERS: dict[str, Callable[[], Any]] = {
    "factorize, nndsvda": lambda: sf.factorize(X, init="nndsvda", **FIT),
    "factorize_tensor, svd": lambda: sf.factorize_tensor(T, init="svd", **FIT),
    "linalg.randomized_svd": lambda: sf.linalg.randomized_svd(X, 3, random_state=0),
    "trees.topic_tree": lambda: sf.trees.topic_tree(X, [2, 3], random_state=0).model,
    "trees.split_topic": lambda: sf.trees.split_topic(sf.NMF(**FIT).fit(X), 0, 2, X),
    "extend.objective": lambda: sf.extend.objective(X, np.ones((40, 3)), A),
    "extend.fit": lambda: sf.extend.fit(
        [sf.extend.relation("S", "A", X)], n_components=3, max_iter=5, random_state=0
    ),
    **{
        f"completion.{name}": lambda name=name: sf.complete(
            GAPS, method=getattr(sf.completion, name)(), max_iter=5, random_state=0
        )
        for name in sf.completion.__all__
    },
}
NO_KERNELS = {
    "MissingPackageError",
    "load",
    "reference_kernels",
    "save",
    "set_thread_backend",
    "show_config",
}


def test_all_public_names_are_compared() -> None:
    names = {name for name in sf.__all__ if callable(getattr(sf, name))} | {*sf.papers.__all__}
    assert names == {*CALLS} | NO_KERNELS


def numbers(value: Any) -> Iterator[np.ndarray]:
    """Yield the numbers of a result, or of the attributes of a fitted model."""
    if isinstance(value, BaseEstimator):
        value = {name: v for name, v in vars(value).items() if name.endswith("_")}
    elif is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, sf.results.Receipt):
        return
    if isinstance(value, dict):
        value = [value[name] for name in sorted(value, key=str) if "seconds" not in str(name)]
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from numbers(part)
    elif sp.issparse(value):
        yield value.toarray()
    elif isinstance(value, (float, np.ndarray)) and np.asarray(value).dtype.kind == "f":
        yield np.asarray(value)


# Logistic regressions, support vector machines and rows of Kullback-Leibler end at tolerances.
LOOSE = {"FewLabelsClassifier": 2e-3, "HierarchicalClassifier": 2e-3}


@pytest.mark.slow
@pytest.mark.compiled("compares the reference with the compiled kernels")
@each("name", [*CALLS, *OTHERS])
def test_the_reference_gives_the_same(name: str) -> None:
    call = (CALLS | OTHERS)[name]
    expected = [*numbers(call())]
    with sf.reference_kernels():
        other = [*numbers(call())]
    assert expected or name == "verify"
    assert_close(other, expected, LOOSE.get(name, 1e-5))


def assert_close(found: list[Any], expected: list[Any], tolerance: float) -> None:
    for one, wanted in zip(found, expected, strict=True):
        atol = tolerance * abs(wanted).max(initial=1)
        np.testing.assert_allclose(one, wanted, rtol=0, atol=atol)


OF_SIGNS = ["FewLabelsClassifier", "LowRankImputer", "MarginNMF", "complete", *OTHERS]


@pytest.mark.slow
@each("name", OF_SIGNS)
def test_no_result_has_the_signs_of_a_blas(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Singular vectors and eigenvectors have either sign: libraries and processors differ."""
    call = (CALLS | OTHERS)[name]
    svd, eigh, qr = np.linalg.svd, np.linalg.eigh, np.linalg.qr

    def flipped(columns: np.ndarray) -> np.ndarray:
        return np.where(np.arange(columns.shape[1]) % 2, 1, -1).astype(columns.dtype)

    def other_svd(A: np.ndarray, **options: Any) -> Any:
        U, singular, Vt = svd(A, **options)
        return U * flipped(U), singular, Vt * flipped(Vt.T)[:, None]

    def other_eigh(A: np.ndarray) -> Any:
        values, vectors = eigh(A)
        return values, vectors * flipped(vectors)

    def other_qr(A: np.ndarray) -> Any:
        Q, R = qr(A)
        return Q * flipped(Q), R * flipped(Q)[:, None]

    expected = [*numbers(call())]
    monkeypatch.setattr(np.linalg, "svd", other_svd)
    monkeypatch.setattr(np.linalg, "eigh", other_eigh)
    monkeypatch.setattr(np.linalg, "qr", other_qr)
    assert_close([*numbers(call())], expected, 1e-7)


def level_of(**more: Any) -> str:
    return sf.factorize(X, **FIT, init="random", **more).receipt.level


@pytest.mark.compiled("has no other level")
def test_which_calls_use_the_reference() -> None:
    own, others = level_of(), []
    with contextlib.suppress(OSError), sf.reference_kernels():
        with sf.reference_kernels():
            assert level_of() == "reference"
        thread = threading.Thread(target=lambda: others.append(level_of()))
        thread.start()
        thread.join()
        assert level_of(n_starts=4, n_threads=2) == "reference"
        raise OSError
    assert own == level_of() == others[0] != "reference"


@pytest.mark.compiled("has no other level")
@each("loss", ["frobenius", "kullback-leibler"])
def test_parts_of_a_fit_may_change_the_kernels(loss: str) -> None:
    """Stored factors are padded for the compiled kernels alone."""
    models = sf.NMF(**FIT, loss=loss), sf.NMF(**FIT, loss=loss)
    for number in range(4):
        models[0].partial_fit(X)
        with sf.reference_kernels() if number % 2 else contextlib.nullcontext():
            models[1].partial_fit(X)
    np.testing.assert_allclose(models[1].components_, models[0].components_, rtol=1e-9)
