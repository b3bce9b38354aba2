"""Entries and labels that are hidden: which they are, and that fits do not see them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from helpers.refused import refused
from planted_ranks import absent, amounts, counts, weighed

import ssnmf_fast as sf

FORMS = [np.array, sp.csr_array]
KINDS = [None, "array", "observed", "missing", "outer", "base"]


def given(kind: str | None, shape: tuple[int, int]) -> Any:
    if kind == "outer":
        return sf.weights.outer(np.linspace(1, 2, shape[0]), np.linspace(0, 1, shape[1]))
    if kind == "base":
        return sf.weights.base(0.5, sp.csr_array(absent(shape) * 1.5))
    return weighed(absent(shape)).get(str(kind))


def watched(S: Any, A: Any, loss: Any = "frobenius") -> tuple[sf.NMF, list[Any]]:
    """Return an estimator whose fits are S and A, and a list of the data and weights that it sees.

    It may be cloned: all copies have the same list.
    """
    seen: list[Any] = []

    class Watched(sf.NMF):
        def fit(self, X: Any, X_weights: Any = None) -> Any:
            seen.append((X, X_weights))
            self.representation_, self.components_, self.objective_ = S, A, [(0, 0.0)]
            return self

    return Watched(loss=loss), seen


def hide(X: Any, model: Any, share: float = 0.2, **options: Any) -> sf.results.RankChoice:
    given = {"n_splits": 1, "n_starts": 1, "n_threads": 1, "random_state": 0} | options
    return sf.choose_rank(X, [1], estimator=model, validation_fraction=share, **given)


def hidden_by(X: Any, weights: Any, seen: tuple[Any, Any]) -> Any:
    """Return the weights of the entries that fits do not see, and 0 for all others.

    Entries that they see must have their own weights.
    """
    hidden, units = np.zeros(X.shape), 2.0 ** np.arange(X.shape[1])
    for i in range(len(X)):  # the squared errors of a row are powers of 2, all others are 0
        model = X.copy()
        model[i] += np.sqrt(units / np.where(weights[i] > 0, weights[i], 1))
        found = sf.extend.objective(seen[0], np.eye(len(X)), model, X_weights=seen[1])
        assert found == pytest.approx(round(found), abs=1e-6)
        bits = np.array([round(found) >> k & 1 for k in range(X.shape[1])])
        hidden[i] = np.where(bits, 0, weights[i])
    return hidden


def weight_of(kind: str | None, shape: tuple[int, int]) -> Any:
    """Return the weights of `given` as an array."""
    if kind == "outer":
        return np.outer(np.linspace(1, 2, shape[0]), np.linspace(0, 1, shape[1]))
    if kind == "base":
        return 0.5 + 1.5 * absent(shape)
    if kind is None:
        return np.ones(shape)
    return np.where(absent(shape), 0.0, 1.0 if kind == "missing" else 2.0)


@pytest.mark.slow
@each("form", FORMS)
@each("kind", KINDS)
def test_fits_do_not_see_hidden_entries(form: Any, kind: str | None) -> None:
    shape = 20, 15
    X, weights = amounts(n=20, m=15), given(kind, shape)
    if form is sp.csr_array and kind == "outer":
        return  # refused for estimators; see below
    ones = np.ones((20, 1)), np.ones((1, 15))
    model, seen = watched(*ones)
    choice = hide(form(X), model, X_weights=weights)
    hidden = hidden_by(X, weight_of(kind, shape), seen[0])
    assert 0.08 * X.size < (hidden > 0).sum() < 0.32 * X.size
    hide(form(np.where(hidden > 0, 99, X)), model, X_weights=weights)
    fits = [
        sf.factorize(X, n_components=2, X_weights=X_weights, max_iter=20, random_state=0)
        for X, X_weights in seen
    ]
    assert fits[0].S.tobytes() == fits[1].S.tobytes()
    assert fits[0].A.tobytes() == fits[1].A.tobytes()
    # The error is that of the hidden entries, and the rest keeps its weights.
    unseen = choice.scores[0, 0] * hidden.sum()
    assert unseen == pytest.approx(((X - 1) ** 2 * hidden).sum(), rel=1e-9)
    rest = sf.extend.objective(seen[0][0], *ones, X_weights=seen[0][1])
    value = sf.extend.objective(form(X), *ones, X_weights=weights)
    assert rest + unseen == pytest.approx(value, rel=1e-9)


def test_weights_of_rows_hide_the_same_of_sparse_data() -> None:
    X, weights = amounts(n=20, m=15), given("outer", (20, 15))
    settings = {"n_splits": 2, "n_starts": 1, "max_iter": 20, "tol": 0, "random_state": 0}
    dense, sparse = (
        sf.choose_rank(form(X), [1, 2], X_weights=weights, **settings).scores for form in FORMS
    )
    np.testing.assert_allclose(sparse, dense, rtol=1e-6)


@pytest.mark.slow
def test_all_places_have_the_same_chance() -> None:
    """Errors are not biased."""
    X = sp.csr_array(counts(n=40, m=30) * (np.random.default_rng(0).random((40, 30)) < 0.3))
    S, A = np.ones((40, 1)), np.full((1, 30), X.mean())
    model, seen = watched(S, A)
    errors = hide(X, model, 0.25, n_splits=300, random_state=1).scores[0]
    places = sum((weights.pattern != 0).astype(int).toarray() for _, weights in seen)
    assert places.min() > 35  # of 75 expected
    assert places.max() < 125
    expected = sf.extend.objective(X, S, A) / X.shape[0] / X.shape[1]
    deviation = np.std(errors) / np.sqrt(len(errors))
    assert abs(np.mean(errors) - expected) < 4 * deviation


@pytest.mark.slow
def test_few_places_of_large_data_are_hidden() -> None:
    """At most about four million, from all parts with the same chance."""
    seen: list[Any] = []

    class Watched(sf.NMF):
        def fit(self, X: Any, X_weights: Any = None) -> Any:
            seen.append(X_weights.pattern)
            raise ZeroDivisionError

    X = sp.csr_array((np.ones(1), ([0], [0])), shape=(2500, 2000))
    with pytest.raises(ZeroDivisionError):
        hide(X, Watched(), 0.99)
    assert 4.15e6 < seen[0].nnz < 4.25e6
    for axis, length in enumerate(X.shape):
        of_slices = np.bincount(seen[0].nonzero()[1 - axis], minlength=X.shape[1 - axis])
        assert abs(of_slices / length / 0.839 - 1).max() < 0.1


@pytest.mark.parametrize("share", [0.01, 0.3, 0.99])
def test_as_many_places_are_hidden_as_wanted(share: float) -> None:
    X = sp.csr_array((np.ones(1), ([0], [0])), shape=(400, 250))
    model, seen = watched(np.ones((400, 1)), np.ones((1, 250)))
    hide(X, model, share)
    assert seen[0][1].pattern.nnz == pytest.approx(100_000 * share, rel=0.1)


class TestErrors:
    def measures(self, X: Any, S: Any, A: Any, loss: Any) -> tuple[dict[str, float], Any]:
        """Return the measures of a split, and where entries are hidden."""
        model, seen = watched(S, A, loss)
        choice = hide(X, model, 0.4)
        measures = {name: float(values[0, 0]) for name, values in choice.measures.items()}
        return {"error": float(choice.scores[0, 0]), **measures}, hidden_by(
            X, np.ones(X.shape), seen[0]
        ) > 0

    def test_mean_squares(self) -> None:
        X = amounts(n=5, m=4)
        found, hidden = self.measures(X, np.ones((5, 2)), np.ones((2, 4)), "frobenius")
        assert found == {"error": pytest.approx(np.mean((X - 2)[hidden] ** 2))}

    def test_a_prediction_beyond_belief_is_cut(self) -> None:
        X = np.arange(1.0, 13).reshape(4, 3)
        found, hidden = self.measures(X, np.full((4, 1), 1e9), np.ones((1, 3)), "frobenius")
        cut = np.broadcast_to(2 * np.where(hidden, 0, X).max(axis=0), X.shape)
        assert found["error"] == pytest.approx(np.mean((cut - X)[hidden] ** 2))

    def test_a_prediction_of_zero_is_not_infinite(self) -> None:
        X = np.eye(4) + 1
        S, A = np.zeros((4, 1)), np.zeros((1, 4))
        for loss in ("kullback-leibler", 0.5):
            found, hidden = self.measures(X, S, A, loss)
            assert hidden.any()
            assert np.isfinite([*found.values()]).all()
            assert found["error"] < 100

    def test_the_perplexity_of_nothing_known_is_the_number_of_features(self) -> None:
        X = np.full((6, 7), 2.0)
        found, _ = self.measures(X, np.ones((6, 1)), np.ones((1, 7)), "kullback-leibler")
        assert found["perplexity"] == pytest.approx(7, rel=0.02)  # but for the sums of what is seen


class TestLabels:
    def split(self, y: Any, n: int, share: float, n_splits: int = 1) -> list[Any]:
        """Return what fits see of labels, the samples that are predicted, and their labels."""
        found: list[Any] = []

        class Watched(sf.SSNMFClassifier):
            def fit(self, X: Any, y: Any, X_weights: Any = None) -> Any:
                found.append([y])
                self.representation_, self.components_ = np.ones((n, 1)), np.ones((1, 4))
                self.objective_ = [(0, 0.0)]
                return self

            def score(self, X: Any, y: Any) -> float:
                found[-1] += [X[:, 0].astype(int).tolist(), y]  # the number of each sample
                return 0.5

        X = np.column_stack([np.arange(n), np.ones((n, 3))])
        choice = hide(X, Watched(), share, y=y, n_splits=n_splits)
        assert (choice.measures["label_score"] == 0.5).all()
        return found

    def test_every_class_keeps_a_sample(self) -> None:
        y = np.array(["a", "b", "b", "c", "c", "c", "c", None, "c", "c"], dtype=object)
        splits = self.split(y, 10, 0.5, 20)
        assert len(splits) == 20
        for known, rows, truth in splits:
            seen = [label for label in known if label is not None]
            assert set(seen) == {"a", "b", "c"}
            assert len(seen) + len(rows) == 9
            assert list(truth) == [y[row] for row in rows]

    @pytest.mark.parametrize("form", [np.array, sp.csr_array])
    def test_several_labels(self, form: Any) -> None:
        Y = np.eye(3)[np.arange(12) % 3]
        ((seen, rows, truth),) = self.split(form(Y), 12, 0.25)
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
        refused(message, self.split, y, 4, 0.3)
