"""The subclass: pipelines, searches, sparse and dense data, pickles."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from triage import CarefulClassifier

import ssnmf_fast as sf

QUICK: dict[str, Any] = {"self_training": 0, "random_state": 0}  # a fit takes little time


@pytest.fixture(scope="session")
def pipeline(tickets: Any) -> Pipeline:
    steps = make_pipeline(TfidfVectorizer(stop_words="english"), CarefulClassifier(**QUICK))
    return steps.fit(tickets.texts, tickets.queues)


def test_doubtful_samples_are_marked(pipeline: Pipeline, new: Any) -> None:
    probability = pipeline.predict_proba(new.texts).max(axis=1)
    limit = float(np.median(probability))
    predicted = copy.deepcopy(pipeline).set_params(carefulclassifier__min_probability=limit)
    assert np.array_equal(predicted.predict(new.texts) == "?", probability < limit)


def test_parameters_are_those_of_both_classes() -> None:
    model = CarefulClassifier(min_probability=0.8, max_iter=7)
    own = {"min_probability", "doubtful"}
    assert set(model.get_params()) == set(sf.FewLabelsClassifier().get_params()) | own
    copied = clone(model)
    assert (copied.min_probability, copied.max_iter) == (0.8, 7)
    assert "min_probability=0.8" in repr(copied)
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(minimum=1)


def test_steps_of_a_pipeline_have_names(pipeline: Pipeline) -> None:
    names = pipeline.get_feature_names_out()
    assert len(names) == 3
    assert all(name.startswith("carefulclassifier") for name in names)


def test_search(tickets: Any) -> None:
    labeled = [i for i, queue in enumerate(tickets.queues) if queue is not None]
    texts = [tickets.texts[i] for i in labeled]
    truth = [tickets.truth[i] for i in labeled]
    steps = make_pipeline(CountVectorizer(), CarefulClassifier(**QUICK, min_probability=0))
    grid = {"carefulclassifier__loss": ["kullback-leibler", "frobenius"]}
    search = GridSearchCV(steps, grid, cv=2, error_score="raise").fit(texts, truth)
    assert search.best_params_["carefulclassifier__loss"] in grid["carefulclassifier__loss"]
    assert search.best_score_ > 0.5


@pytest.mark.parametrize("form", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array])
def test_sparse_forms_give_the_same_numbers(form: Any, tickets: Any) -> None:
    X = TfidfVectorizer().fit_transform(tickets.texts)
    X.sort_indices()  # the order of the sums
    first = CarefulClassifier(**QUICK).fit(sp.csr_array(X), tickets.queues)
    other = CarefulClassifier(**QUICK).fit(form(X), tickets.queues)
    assert np.array_equal(first.transform(X), other.transform(form(X)))
    dense = CarefulClassifier(**QUICK).fit(X.toarray(), tickets.queues)
    assert np.array_equal(dense.predict(X.toarray()), first.predict(X))


def test_single_precision_stays(tickets: Any) -> None:
    X = TfidfVectorizer(dtype=np.float32).fit_transform(tickets.texts)
    assert CarefulClassifier(**QUICK).fit(X, tickets.queues).transform(X).dtype == np.float32


def test_pickles_come_back(pipeline: Pipeline, new: Any) -> None:
    copied = pickle.loads(pickle.dumps(pipeline))
    assert np.array_equal(copied.predict(new.texts), pipeline.predict(new.texts))
    assert type(copied[-1]) is CarefulClassifier


def test_files_are_for_classes_of_ssnmf_fast(pipeline: Pipeline, tmp_path: Path) -> None:
    """A file never names code to import, so a subclass saves its model in another way."""
    with pytest.raises(TypeError, match="CarefulClassifier cannot be saved"):
        sf.save(pipeline[-1], tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []
