"""Topics that are split and merged: what they explain, where they stand, what they are called."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.data import parted_texts
from helpers.random_examples import examples
from helpers.refused import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import ssnmf_fast as sf

LOSSES = ("frobenius", "kullback-leibler")


def loss_of(model: Any, X: Any, **weights: Any) -> float:
    """Return the loss of samples that are represented as well as they can be."""
    S = model.transform(X, **weights)
    return sf.extend.objective(X, S, model.components_, loss=model.loss, **weights)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_split_explains_as_much_and_finds_the_parts(loss: str) -> None:
    X, kinds = parted_texts()
    model = sf.NMF(3, loss=loss, random_state=0).fit(X)
    parts = sf.trees.split_topic(model, 1, 2, X)
    assert parts.topic_names_.tolist() == ["0", "1/0", "1/1", "2"]
    assert parts.objective_[-1][1] < 0.97 * loss_of(model, X)
    rows = model.topic_proportions(X)[:, 1] > 0.6
    first = parts.topic_proportions(X)[rows, 1:3].argmax(axis=1)
    same = first == kinds[rows] % 2
    assert max(same.mean(), 1 - same.mean()) > 0.9


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(
    seed=st.integers(0, 99), n=st.integers(2, 5), r=st.integers(1, 4), loss=st.sampled_from(LOSSES)
)
def test_the_loss_never_rises(seed: int, n: int, r: int, loss: str) -> None:
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.3, size=(20, 7)) * (rng.random((20, 7)) < 0.6)
    model = sf.NMF(r, loss=loss, random_state=seed, max_iter=5, tol=0).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ranks above those of so small data
        parts = sf.trees.split_topic(model, seed % r, n, X)
    assert parts.components_.shape == (r + n - 1, 7)
    assert loss_of(parts, X) <= loss_of(model, X) * (1 + 1e-6)


def test_a_topic_that_no_sample_has_is_split_too() -> None:
    X = np.kron(np.eye(2), np.ones((3, 3)))
    A = np.vstack([np.kron(np.eye(2), np.ones(3)), np.ones(6)])
    model = sf.NMF(3, max_iter=0, init=(np.ones((6, 3)), A)).fit(X)
    parts = sf.trees.split_topic(model, 2, 2, X)
    assert np.isfinite(parts.components_).all()
    assert loss_of(parts, X) <= loss_of(model, X) + 1e-9


def test_missing_and_weighted_entries() -> None:
    X, _ = parted_texts()
    X = X.toarray()
    holes = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    model = sf.NMF(3, random_state=0).fit(holes)
    assert sf.trees.split_topic(model, 0, 2, holes).objective_[-1][1] < loss_of(model, holes)
    weights = {"X_weights": sf.weights.outer(columns=np.linspace(1, 2, 24))}
    model = sf.NMF(3, random_state=0).fit(X, **weights)
    parts = sf.trees.split_topic(model, 0, 2, X, **weights)
    assert parts.objective_[-1][1] < loss_of(model, X, **weights)
    with pytest.raises(ValueError, match=r"weights\.missing.*NaN"):
        sf.trees.split_topic(model, 0, 2, X, X_weights=sf.weights.missing(X > 3))


def test_the_same_bits_again_and_the_model_as_it_was() -> None:
    X, _ = parted_texts()
    model = sf.NMF(3, random_state=0).fit(X)
    before = model.components_.copy()
    one, other = (sf.trees.split_topic(model, 0, 3, X) for _ in range(2))
    assert np.array_equal(one.components_, other.components_)
    assert np.array_equal(model.components_, before)
    assert not hasattr(model, "topic_names_")


def test_merged_parts_take_the_place_of_the_topic_again() -> None:
    X, _ = parted_texts()
    model = sf.NMF(3, loss="kullback-leibler", random_state=0).fit(X)
    merged = sf.trees.merge_topics(sf.trees.split_topic(model, "2", 2, X), ["2/0", "2/1"])
    assert merged.topic_names_.tolist() == ["0", "1", "2"]
    rows = [A.components_ / np.linalg.norm(A.components_, axis=1)[:, None] for A in (model, merged)]
    assert (rows[0] * rows[1]).sum(axis=1).min() > 0.95


@settings(max_examples=20)
@given(seed=st.integers(0, 99))
def test_a_sum_explains_what_its_topics_do(seed: int) -> None:
    X = np.random.default_rng(seed).gamma(0.5, size=(15, 6))
    model = sf.NMF(4, random_state=seed, max_iter=10, tol=0).fit(X)
    merged = sf.trees.merge_topics(model, [3, 1])
    assert merged.topic_names_.tolist() == ["0", "1+3", "2"]
    assert np.array_equal(merged.components_[[0, 2]], model.components_[[0, 2]])
    before, after = (m.representation_ * m.components_.sum(axis=1) for m in (model, merged))
    assert after[:, 1] == pytest.approx(before[:, [1, 3]].sum(axis=1))
    total = model.representation_[:, [1, 3]].sum(axis=0) @ model.components_[[1, 3]]
    assert merged.representation_[:, 1].sum() * merged.components_[1] == pytest.approx(total)


def test_names_of_sums_of_parts() -> None:
    X, _ = parted_texts()
    parts = sf.trees.split_topic(sf.NMF(2, random_state=0).fit(X), 0, 3, X)
    assert sf.trees.merge_topics(parts, ["0/2", "0/0"]).topic_names_.tolist() == [
        "0/0+2",
        "0/1",
        "1",
    ]
    assert sf.trees.merge_topics(parts, [0, 3]).topic_names_.tolist() == ["0.0+1", "0/1", "0/2"]
    deeper = sf.trees.split_topic(parts, "0/1", 2, X)
    assert deeper.topic_names_.tolist() == ["0/0", "0/1/0", "0/1/1", "0/2", "1"]


def test_names_are_saved_shown_and_left_by_a_new_fit(tmp_path: Path) -> None:
    X, _ = parted_texts()
    parts = sf.trees.split_topic(sf.NMF(2, random_state=0).fit(X), 0, 2, X)
    sf.save(sf.trees.merge_topics(parts, [1, 2]), tmp_path / "merged.npz")
    loaded = sf.load(tmp_path / "merged.npz")
    assert [topic.name for topic in loaded.topics()] == ["0/0", "0.1+1"]
    assert not hasattr(loaded, "reconstruction_err_")  # merged topics are fitted to nothing
    assert not hasattr(loaded.fit(X), "topic_names_")


def test_topics_that_labels_name() -> None:
    X, kinds = parted_texts()
    names = np.array(["red", "green", "blue"])[kinds // 2]
    model = sf.TopicSupervisedNMF(random_state=0).fit(X, np.where(np.arange(90) < 60, names, None))
    parts = sf.trees.split_topic(model, "green", 2, X)
    assert parts.topic_names_.tolist() == ["blue", "green/0", "green/1", "red"]
    assert isinstance(parts, sf.NMF)
    classifier = sf.SSNMFClassifier(3, supervision_weight=1.0, random_state=0).fit(X, names)
    assert sf.trees.split_topic(classifier, 0, 2, X).loss == "kullback-leibler"


def test_bad_calls() -> None:
    X, _ = parted_texts()
    model = sf.NMF(3, random_state=0).fit(X)
    with pytest.raises(NotFittedError):
        sf.trees.split_topic(sf.NMF(3), 0, 2, X)
    with pytest.raises(TypeError, match=r"model must be a fitted estimator.*BayesianNMF"):
        sf.trees.split_topic(sf.BayesianNMF(2), 0, 2, X)
    refused("topic is 3; the model has 3", sf.trees.split_topic, model, 3, 2, X)
    refused("Unknown topic 'x'; topics are", sf.trees.split_topic, model, "x", 2, X)
    refused("n must be", sf.trees.split_topic, model, 0, 1, X)
    refused("features", sf.trees.split_topic, model, 0, 2, X[:, :5])
    for topics in ([1], [1, 1]):
        refused("two different topics", sf.trees.merge_topics, model, topics)
    refused("topics must be a sequence", sf.trees.merge_topics, model, "01", error=TypeError)
    refused("representation_", sf.trees.merge_topics, sf.NMF(2).partial_fit(X), [0, 1])


GIVEN = {
    "loss": "kullback-leibler",
    "solver": "mm",
    "init": "random",
    "max_iter": 30,
    "tol": 1e-3,
    "random_state": 3,
    "n_threads": 1,
    "n_starts": 2,
    "verbose": 0,
    "dtype": "float32",
    "forget_factor": 0.5,
    "callback": None,
    "penalties": [sf.penalties.L1(0.02), sf.penalties.L2(0.01)],
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_all_parameters_stay() -> None:
    X, _ = parted_texts()
    assert {*GIVEN, "n_components", "A_support", "fixed_components"} == {*sf.NMF().get_params()}
    model = sf.NMF(3, **GIVEN).fit(X)
    for made in (sf.trees.split_topic(model, 1, 2, X), sf.trees.merge_topics(model, [0, 2])):
        assert made.get_params() == model.get_params() | {"n_components": len(made.components_)}
        assert made.sample_penalties_ == model.sample_penalties_
        assert made.transform(X).dtype == made.components_.dtype == np.float32
        again = sf.represent(X, made.components_, loss=model.loss, penalties=GIVEN["penalties"])
        assert made.transform(X) == pytest.approx(again, abs=1e-4)
    penalties = {"S": sf.penalties.L1(0.01), "A": sf.penalties.L1(0.01), "B": sf.penalties.L1(0.1)}
    regressor = sf.SSNMFRegressor(3, penalties=penalties, random_state=0).fit(X, X.sum(axis=1))
    parts = sf.trees.split_topic(regressor, 0, 2, X)
    assert parts.penalties == {name: penalties[name] for name in "SA"}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_known_parts_of_components_stay() -> None:
    X, _ = parted_texts()
    support = np.kron(np.eye(3, dtype=int), np.ones((1, 8), dtype=int))
    model = sf.NMF(3, A_support=support, random_state=0).fit(X)
    parts = sf.trees.split_topic(model, 1, 2, X)
    assert np.array_equal(parts.A_support, support[[0, 1, 1, 2]])
    assert not parts.components_[np.asarray(parts.A_support) == 0].any()
    merged = sf.trees.merge_topics(parts, ["1/0", "2"])
    assert np.array_equal(merged.A_support, [support[0], support[1] + support[2], support[1]])
    fixed = X[:1].toarray()
    model = sf.NMF(4, fixed_components=fixed, random_state=0).fit(X)
    parts = sf.trees.split_topic(model, 2, 2, X)
    for made in (parts, sf.trees.merge_topics(model, [1, 3])):
        assert np.array_equal(made.components_[:1], fixed)
        assert made.fixed_components is fixed
        assert made.partial_fit(X).components_[:1] == pytest.approx(fixed)
    for change in (
        lambda: sf.trees.split_topic(model, 0, 2, X),
        lambda: sf.trees.merge_topics(model, [0, 1]),
    ):
        refused("topic 0, one of fixed_components", change)


def test_covariates_are_named_where_they_would_be_lost() -> None:
    X, kinds = parted_texts()
    model = sf.NMF(3, random_state=0).fit(X, covariates=(kinds % 2)[:, None] * 1.0)
    months = np.datetime64("2020-01") + np.arange(90) % 6
    for lost, name in (
        (
            lambda: sf.trees.split_topic(model, 0, 2, X),
            "split_topic needs a fit without covariates",
        ),
        (
            lambda: sf.trees.merge_topics(model, [0, 1]),
            "merge_topics needs a fit without covariates",
        ),
        (lambda: sf.topics_over_time(model, X, months), "the fit had 1.*needs a model without"),
        (lambda: sf.trees.TopicTree(model).transform(X), "the fit had 1.*needs a model without"),
        (lambda: model.to_pyldavis(X), "the fit had 1.*needs a model without"),
        (lambda: model.score(X), "the fit had 1: give these"),
    ):
        refused(name, lost)
