"""Every result is finite, or refused with what to do about it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.each import each
from helpers.refused import refused

import ssnmf_fast as sf

LOSSES: list[Any] = ["frobenius", "kullback-leibler", 1.5, 0.5, "itakura-saito"]
DTYPES = ["float32", "float64"]
REFUSED = "would hold NaN or infinity: numbers are outside of the range of"
TINY = {"float32": 1e-40, "float64": 1e-310}  # subnormal


def data(dtype: str, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = (rng.random((20, 8)) + 0.1).astype(dtype)
    return X, np.eye(3, dtype=dtype)[rng.integers(0, 3, 20)]


def parts(fit: Any) -> list[Any]:
    values = [fit.S, fit.A, [value for _, value in fit.objective]]
    return values if fit.B is None else [*values, fit.B]


def finite(*results: Any) -> bool:
    return all(np.isfinite(np.asarray(result)).all() for result in results)


@each("dtype", DTYPES)
@each("loss", ["frobenius", "kullback-leibler"])
@each("supervision_loss", ["frobenius", "kullback-leibler"])
def test_huge_supervision(loss: str, supervision_loss: str, dtype: str) -> None:
    """Labels count alone: the fit is that to the labels."""
    X, Y = data(dtype)
    losses = {"loss": loss, "supervision_loss": supervision_loss}
    options = {"n_components": 3, "random_state": 0, "tol": 0, "max_iter": 40, **losses}
    with pytest.raises(ValueError, match="supervision_weight must be at most"):
        sf.factorize(X, Y, supervision_weight=1e300, **options)
    fit = sf.factorize(X, Y, supervision_weight=1e18, **options)
    assert finite(*parts(fit))
    ordinary = sf.factorize(X, Y, supervision_weight=1e12, **options)
    of_labels = [sf.extend.objective(Y, f.S, f.B, loss=supervision_loss) for f in (fit, ordinary)]
    assert of_labels[0] == pytest.approx(of_labels[1], rel=1e-3, abs=1e-4)


@each("dtype", DTYPES)
@each("loss", LOSSES)
@each("labeled", [False, True])
def test_tiny_start_of_the_rows(loss: Any, labeled: bool, dtype: str) -> None:
    """A start of S near 0, beside Y or alone, is the same start times a power of two."""
    X, Y = data(dtype)
    rng = np.random.default_rng(1)
    S, A, B = (rng.random(shape).astype(dtype) + 0.1 for shape in ((20, 3), (3, 8), (3, 3)))
    exponent = {"float32": -60, "float64": -600}[dtype]
    labels, more = (Y, (B,)) if labeled else (None, ())
    options = {"n_components": 3, "loss": loss, "max_iter": 20, "tol": 0}
    fit = sf.factorize(X, labels, init=(np.ldexp(S, exponent), A, *more), **options)
    assert finite(*parts(fit))
    assert fit.objective[-1][1] < fit.objective[0][1]


@each("dtype", DTYPES)
@each("loss", LOSSES)
def test_representation_over_tiny_components(loss: Any, dtype: str) -> None:
    X, _ = data(dtype)
    A = (np.random.default_rng(1).random((3, 8)) * TINY[dtype]).astype(dtype)
    refused(f"the representation {REFUSED} {dtype}.*components", sf.represent, X, A, loss=loss)


def test_objective_of_a_large_dictionary() -> None:
    """The factors of a model may be larger than data may."""
    X, _ = data("float32")
    rng = np.random.default_rng(1)
    S, A = (rng.random((20, 3)) * 1e-9).astype("f4"), (rng.random((3, 8)) * 3e9).astype("f4")
    expected = sf.extend.objective(X.astype("f8"), S.astype("f8"), A.astype("f8"))
    assert sf.extend.objective(X, S, A) == pytest.approx(expected, rel=1e-5)


def test_objective_out_of_range() -> None:
    X, Y = data("float64")
    fit = sf.factorize(X, Y, n_components=3, random_state=0)
    with pytest.raises(ValueError, match=f"the objective {REFUSED}"):
        sf.extend.objective(X, fit.S, fit.A, y=Y * 1e14, B=fit.B, supervision_weight=1e300)


def test_a_start_of_subnormal_numbers() -> None:
    X, _ = data("float32")
    init = np.full((20, 2), 1e-42, np.float32), np.ones((2, 8), np.float32)
    assert finite(*parts(sf.factorize(X, n_components=2, init=init)))


@pytest.mark.parametrize(
    ("kind", "attribute", "value", "place"),
    [
        (sf.NMF, "components_", np.array([[1.0, np.inf]]), ""),
        (sf.NonnegativeCP, "factors_", [np.ones((2, 1)), np.array([[np.nan]])], r"\[1\]"),
        (sf.NonnegativeCP, "label_components_", {0: np.array([[-np.inf]])}, r"\[0\]"),
    ],
)
def test_estimator_keeps_no_infinity(kind: Any, attribute: str, value: Any, place: str) -> None:
    class Broken(kind):  # type: ignore[misc]
        def fit(self, X: Any, y: Any = None) -> Broken:
            setattr(self, attribute, value)
            return self

    model = Broken()
    refused(f"{attribute}{place} {REFUSED} float64", model.fit, None)
    assert not hasattr(model, attribute)


@pytest.mark.parametrize("model", [sf.BayesianNMF, sf.NMF])
def test_products_in_another_dtype(model: Any) -> None:
    """The dictionary may be out of the range of the dtype of a representation."""
    X, _ = data("float64")
    fitted = model(n_components=2, random_state=0, max_iter=20, tol=0).fit(X)
    fitted.components_ = fitted.components_ * 1e89
    S = fitted.transform(X.astype(np.float32))
    assert finite(S)
    refused(f"the data {REFUSED} float32", fitted.inverse_transform, np.ones_like(S))
    back = fitted.inverse_transform(S * 0)  # 0 times infinity would be NaN
    assert back.dtype == np.float32
    assert not back.any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("model", [sf.BayesianNMF, sf.papers.SupervisedBayesianNMF])
def test_bayesian_model_of_zeros(model: Any, dtype: str) -> None:
    """Without data the prior speaks: a count goes to all components alike."""
    X, y = data(dtype)[0], np.arange(20) % 2
    options = {"n_components": 4, "A_shape": 1e-5, "random_state": 0, "max_iter": 20, "tol": 0}
    with pytest.warns(UserWarning, match="explain nothing"):
        fitted = model(**options).fit(X * 0, y)
    for given in (X, X * 0):
        S = fitted.transform(given)
        assert finite(S)
        assert np.allclose(S, S[:, :1], rtol=1e-3)


def test_topics_of_zeros() -> None:
    X, y = data("float64")[0], np.arange(20) % 2
    model = sf.TopicSupervisedNMF(random_state=0).fit(X * 0, y)
    for given in (X, X * 0, X.astype(np.float32)):
        assert finite(model.transform(given), model.predict_proba(given))
