"""Entries and labels that are hidden: which they are, and that fits do not see them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from each import each
from planted_ranks import absent, amounts, counts, weighed

import ssnmf_fast as sf
from ssnmf_fast.selection import _held_out

FORMS = [np.array, sp.csr_array]
KINDS = [None, "array", "observed", "missing", "outer"]


def given(kind: str | None, shape: tuple[int, int]) -> Any:
    if kind == "outer":
        return sf.weights.outer(np.linspace(1, 2, shape[0]), np.linspace(0, 1, shape[1]))
    return weighed(absent(shape)).get(str(kind))


def hold_out(X: Any, weights: Any, share: float = 0.2) -> Any:
    data = _held_out.Data(X, weights, 1, tensor=False)
    return data.hold_out(share, True, np.random.default_rng(0))


def fit_of(S: Any, A: Any) -> Any:
    return _held_out.Fit(0.0, (S, A.T))


@each("form", FORMS)
@each("kind", KINDS)
def test_fits_do_not_see_hidden_entries(form: Any, kind: str | None) -> None:
    X, weights = amounts(n=20, m=15), given(kind, (20, 15))
    hidden = hold_out(form(X), weights)
    rows, columns = hidden.places
    assert np.array_equal(hidden.values, X[rows, columns])
    assert 0.08 * X.size < len(rows) < 0.32 * X.size
    other = X.copy()
    other[rows, columns] = 99
    again = hold_out(form(other), weights)
    fits = [
        sf.factorize(one.X, n_components=2, X_weights=one.X_weights, max_iter=20, random_state=0)
        for one in (hidden, again)
    ]
    assert fits[0].S.tobytes() == fits[1].S.tobytes()
    assert fits[0].A.tobytes() == fits[1].A.tobytes()


@each("form", FORMS)
@each("kind", KINDS)
def test_the_rest_keeps_its_weights(form: Any, kind: str | None) -> None:
    X, weights = amounts(n=20, m=15), given(kind, (20, 15))
    hidden = hold_out(form(X), weights)
    S, A = np.ones((20, 1)), np.ones((1, 15))
    value = sf.extend.objective(form(X), S, A, X_weights=weights)
    seen = sf.extend.objective(hidden.X, S, A, X_weights=hidden.X_weights)
    unseen = float(hidden.weights @ (hidden.values - 1) ** 2)
    assert seen + unseen == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_all_places_have_the_same_chance(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    """Also where places are few because the data are large: errors are not biased."""
    monkeypatch.setattr(_held_out, "MOST_PLACES", 300)
    X = sp.csr_array(counts(n=40, m=30) * (np.random.default_rng(0).random((40, 30)) < 0.3))
    S, A = np.ones((40, 1)), np.full((1, 30), X.mean())
    data = _held_out.Data(X, None, 1, tensor=False)
    rng, errors, places = np.random.default_rng(1), [], np.zeros(X.shape)
    for _ in range(300):
        hidden = data.hold_out(share, True, rng)
        assert len(hidden.values) < 450
        places[tuple(hidden.places)] += 1
        errors.append(hidden.measures(fit_of(S, A), "frobenius", 1)["error"])
    assert places.min() > 35  # of 75 expected
    assert places.max() < 125
    expected = sf.extend.objective(X, S, A) / X.shape[0] / X.shape[1]
    deviation = np.std(errors) / np.sqrt(len(errors))
    assert abs(np.mean(errors) - expected) < 4 * deviation


@pytest.mark.parametrize("share", [0.01, 0.3, 1.0])
def test_numbers_are_drawn_in_their_order(share: float) -> None:
    places = _held_out.draw_numbers(100_000, share, np.random.default_rng(0))
    assert (np.diff(places) > 0).all()
    assert places[0] >= 0
    assert places[-1] < 100_000
    assert len(places) == pytest.approx(100_000 * share, rel=0.1)


class TestErrors:
    def measures(self, X: Any, S: Any, A: Any, loss: Any) -> Any:
        places, values = np.array(np.nonzero(X)), X[np.nonzero(X)]
        held_out = places, values, np.ones(len(values))
        unseen = _held_out.HeldOut(X, None, *held_out, *_held_out.marginals_of(X), tensor=False)
        return unseen.measures(fit_of(S, A), loss, 1)

    def test_mean_squares(self) -> None:
        X = amounts(n=5, m=4)
        S, A = np.ones((5, 2)), np.ones((2, 4))
        found = self.measures(X, S, A, "frobenius")
        assert found == {"error": pytest.approx(np.mean((X - 2) ** 2))}

    def test_a_prediction_beyond_belief_is_cut(self) -> None:
        X = np.array([[1.0, 2.0], [3.0, 0.0]])
        found = self.measures(X, np.full((2, 1), 1e9), np.ones((1, 2)), "frobenius")
        cut = np.array([[6.0, 4.0], [6.0, 4.0]])
        assert found["error"] == pytest.approx(((cut - X) ** 2)[X > 0].mean())

    def test_a_prediction_of_zero_is_not_infinite(self) -> None:
        X = np.eye(4) + 1
        S, A = np.zeros((4, 1)), np.zeros((1, 4))
        for loss in ("kullback-leibler", 0.5):
            found = self.measures(X, S, A, loss)
            assert np.isfinite([*found.values()]).all()
            assert found["error"] < 100

    def test_the_perplexity_of_nothing_known_is_the_number_of_features(self) -> None:
        X = np.full((6, 7), 2.0)
        found = self.measures(X, np.ones((6, 1)), np.ones((1, 7)), "kullback-leibler")
        assert found["perplexity"] == pytest.approx(7)


class TestLabels:
    def test_every_class_keeps_a_sample(self) -> None:
        y = np.array(["a", "b", "b", "c", "c", "c", "c", None, "c", "c"], dtype=object)
        for seed in range(20):
            rng = np.random.default_rng(seed)
            known, rows, truth = _held_out.hold_out_labels(y, sf.SSNMFClassifier(), 10, 0.5, rng)
            seen = [label for label in known if label is not None]
            assert set(seen) == {"a", "b", "c"}
            assert len(seen) + len(rows) == 9
            assert list(truth) == [y[row] for row in rows]

    @pytest.mark.parametrize("form", [np.array, sp.csr_array])
    def test_several_labels(self, form: Any) -> None:
        Y = np.eye(3)[np.arange(12) % 3]
        rng = np.random.default_rng(0)
        seen, rows, truth = _held_out.hold_out_labels(form(Y), sf.SSNMFClassifier(), 12, 0.25, rng)
        assert np.isnan(seen).all(axis=1).sum() == len(rows) == 3
        np.testing.assert_array_equal(truth, Y[rows])

    @pytest.mark.parametrize(
        ("y", "message"),
        [
            (["a", "b", "a"], "y has 3 samples and X has 4"),
            (["a", "b", None, None], "too few to hide"),
        ],
    )
    def test_bad_labels(self, y: Any, message: str) -> None:
        rng = np.random.default_rng(0)
        with pytest.raises(ValueError, match=message):
            _held_out.hold_out_labels(y, sf.SSNMFClassifier(), 4, 0.2, rng)
