"""Labels that are parts of others: levels that agree, labels of any level, files."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.data import parted_texts
from helpers.refused import refused
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.svm import LinearSVC

import ssnmf_fast as sf

FEW = sf.FewLabelsClassifier(random_state=0)
NAMES = np.array(["a/ant", "a/ape", "b/bat", "b/bee", "c/cat", "c/cow"])
PARENTS = {name.partition("/")[2]: name[0] for name in NAMES.tolist()}


def data(whole: int = 30, upper: int = 30) -> tuple[Any, Any, Any]:
    """Return samples, labels of some of them, of others their beginnings, and all labels."""
    X, kinds = parted_texts(n=120)
    truth = NAMES[kinds].astype(object)
    y = np.full(120, None, dtype=object)
    y[:whole] = truth[:whole]
    y[whole : whole + upper] = [name[0] for name in truth[whole : whole + upper]]
    return X, y, truth


@pytest.fixture(scope="module")
def fitted() -> sf.HierarchicalClassifier:
    X, y, _ = data()
    return sf.HierarchicalClassifier(FEW).fit(X, y)


@pytest.mark.slow
def test_probabilities_sum_along_the_tree(fitted: sf.HierarchicalClassifier) -> None:
    X, _, truth = data()
    assert [level.tolist() for level in fitted.levels_] == [["a", "b", "c"], NAMES.tolist()]
    top, last = (fitted.predict_proba(X, level=level) for level in (0, 1))
    assert last.sum(axis=1) == pytest.approx(1)
    for k, name in enumerate("abc"):
        parts = [label.startswith(name) for label in NAMES]
        assert top[:, k] == pytest.approx(last[:, parts].sum(axis=1))
    assert np.array_equal(fitted.predict_proba(X), last)
    assert fitted.score(X[60:], truth[60:]) > 0.8
    assert fitted.score(X[60:], truth[60:], level=0) > 0.95
    assert (fitted.predict(X, level=0) == fitted.levels_[0][top.argmax(axis=1)]).all()


@pytest.mark.slow
def test_levels_count_by_their_labels(fitted: sf.HierarchicalClassifier) -> None:
    assert fitted.level_weights_ == pytest.approx([60 / 150, 30 / 120])


@pytest.mark.slow
def test_the_last_level_alone_is_that_of_its_classifier() -> None:
    X, y, truth = data(upper=0)
    flat = clone(FEW).fit(X, y)
    model = sf.HierarchicalClassifier(FEW, separator=None).fit(X, y)
    assert np.array_equal(model.predict_proba(X), flat.predict_proba(X))
    assert model.score(X, truth) == flat.score(X, truth)
    assert np.array_equal(model.transform(X), flat.transform(X))


@pytest.mark.slow
def test_parents_by_a_mapping_give_the_same(fitted: sf.HierarchicalClassifier) -> None:
    X, y, _ = data()
    own = [name if name is None else name.split("/")[-1] for name in y]
    model = sf.HierarchicalClassifier(FEW, parents=PARENTS).fit(X, own)
    assert model.classes_.tolist() == [name.split("/")[1] for name in NAMES]
    assert model.node_parents_.tolist() == [-1, -1, -1, 0, 0, 1, 1, 2, 2]
    assert np.array_equal(model.predict_proba(X), fitted.predict_proba(X))


@pytest.mark.slow
def test_labels_of_other_names_predict_the_same(fitted: sf.HierarchicalClassifier) -> None:
    X, y, _ = data()
    other = {"a": "z", "b": "y", "c": "x"}
    renamed = [name if name is None else other[name[0]] + name[1:] for name in y]
    model = sf.HierarchicalClassifier(FEW).fit(X, renamed)
    back = dict(zip(other.values(), other, strict=True))
    found = [back[name[0]] + name[1:] for name in model.predict(X)]
    assert np.mean(np.array(found) == fitted.predict(X)) > 0.95


@pytest.mark.slow
def test_the_same_bits_again_and_from_a_file(
    fitted: sf.HierarchicalClassifier, tmp_path: Path
) -> None:
    X, y, truth = data()
    again = sf.HierarchicalClassifier(FEW).fit(X, y)
    expected = fitted.predict_proba(X, level=0)
    assert np.array_equal(again.predict_proba(X, level=0), expected)
    sf.save(fitted, tmp_path / "model.npz")
    loaded = sf.load(tmp_path / "model.npz")
    assert np.array_equal(loaded.predict_proba(X, level=0), expected)
    assert [level.tolist() for level in loaded.levels_] == [lv.tolist() for lv in fitted.levels_]
    assert loaded.score(X, truth, level=0) == fitted.score(X, truth, level=0)
    assert loaded.classifiers_[0].predict(X[:1]).tolist() == fitted.predict(X[:1], level=0).tolist()


@pytest.mark.slow
def test_a_label_without_parts_is_in_all_levels_below() -> None:
    X, _, truth = data()
    y = np.where([name[0] == "c" for name in truth], "c", truth)
    model = sf.HierarchicalClassifier(FEW).fit(X, np.where(np.arange(120) < 60, y, None))
    assert [level.tolist() for level in model.levels_] == [
        ["a", "b", "c"],
        ["a/ant", "a/ape", "b/bat", "b/bee", "c"],
    ]
    assert model.predict_proba(X, level=0)[:, 2] == pytest.approx(model.predict_proba(X)[:, 4])
    assert model.score(X, y) > 0.8


@pytest.mark.slow
def test_labels_of_the_top_help(fitted: sf.HierarchicalClassifier) -> None:
    X, y, truth = data(whole=12, upper=0)
    few = sf.HierarchicalClassifier(FEW).fit(X, y)
    X, y, truth = data(whole=12, upper=80)
    more = sf.HierarchicalClassifier(FEW).fit(X, y)
    assert more.score(X[92:], truth[92:], level=0) >= few.score(X[92:], truth[92:], level=0)


@pytest.mark.slow
def test_names_of_features_and_missing_entries() -> None:
    pd = pytest.importorskip("pandas")
    X, y, _ = data()
    table = pd.DataFrame(X.toarray(), columns=[f"w{k}" for k in range(24)])
    table.iloc[::7, 3] = np.nan
    model = sf.HierarchicalClassifier(FEW).fit(table, y)
    assert model.predict_proba(table, level=0).sum(axis=1) == pytest.approx(1)
    assert model.topics(n_terms=1)[0].terms[0].startswith("w")
    refused("feature names should match", model.predict, table.rename(columns={"w0": "other"}))


@pytest.mark.slow
def test_any_classifier_may_be_wrapped(tmp_path: Path) -> None:
    X, y, truth = data()
    weights = np.linspace(0, 2, 120)
    plain = sf.HierarchicalClassifier(LogisticRegression()).fit(X, y, sample_weight=weights)
    known = np.array([name in NAMES for name in y])
    last = LogisticRegression().fit(X[known], y[known].astype(str), weights[known])
    assert np.array_equal(plain.classifiers_[-1].coef_, last.coef_)
    assert plain.predict_proba(X).sum(axis=1) == pytest.approx(1)
    assert not hasattr(plain, "explain")
    with pytest.raises(TypeError, match="A LogisticRegression cannot be saved"):
        sf.save(plain, tmp_path / "model.npz")
    piped = sf.HierarchicalClassifier(make_pipeline(Normalizer(), clone(FEW))).fit(X, y)
    assert piped.score(X, truth) > 0.8
    assert piped.classifiers_[0][-1].unlabeled is None
    with pytest.raises(TypeError, match="estimator must be a classifier with predict_proba"):
        sf.HierarchicalClassifier(LinearSVC()).fit(X, y)


@pytest.mark.slow
def test_methods_of_a_level(fitted: sf.HierarchicalClassifier) -> None:
    X, _, _ = data()
    assert np.array_equal(fitted.suggest(X, 3), fitted.classifiers_[1].suggest(X, 3))
    top = fitted.explain(X[:5], level=0)
    assert top.classes.tolist() == ["a", "b", "c"]
    assert np.array_equal(top.totals, fitted.classifiers_[0].explain(X[:5]).totals)
    logs = fitted.decision_function(X, level=0)
    assert logs == pytest.approx(np.log(fitted.predict_proba(X, level=0)))
    assert fitted.transform(X).shape == (120, len(fitted.get_feature_names_out()))
    assert len(fitted.topics()) == 6


@pytest.mark.slow
def test_what_fit_is_given_is_passed_on() -> None:
    X, y, _ = data()
    given = {"label_weight": np.linspace(1, 2, 120), "side": {"copy": X.toarray()}}
    model = sf.HierarchicalClassifier(FEW, separator=None).fit(X, y, **given)
    flat = clone(FEW).fit(X, y, **given)
    side = {"side": given["side"]}
    assert np.array_equal(model.predict_proba(X, **side), flat.predict_proba(X, **side))


def test_attributes_that_contradict_themselves_are_not_saved(
    fitted: sf.HierarchicalClassifier, tmp_path: Path
) -> None:
    broken = copy.copy(fitted)
    for name, value in (
        ("node_parents_", fitted.node_parents_ * 0 + 5),
        ("level_weights_", fitted.level_weights_[:1]),
        ("nodes_", fitted.nodes_[:-1]),
    ):
        setattr(broken, name, value)
        with pytest.raises(ValueError, match="as load would fail"):  # the check of files, too
            sf.save(broken, tmp_path / "model.npz")
        setattr(broken, name, getattr(fitted, name))


def test_bad_calls(fitted: sf.HierarchicalClassifier) -> None:
    X, y, truth = data()
    for parents, error, match in (
        ({"ant": "a", "a": "ant"}, ValueError, "parents has a cycle"),
        ("a", TypeError, "parents must be a mapping"),
    ):
        with pytest.raises(error, match=match):
            sf.HierarchicalClassifier(parents=parents).fit(X, [n and n.split("/")[-1] for n in y])
    refused("'a//b' has an empty part", sf.HierarchicalClassifier().fit, X, ["a//b", "a/c"] * 60)
    with pytest.raises(TypeError, match="separator must be a nonempty string"):
        sf.HierarchicalClassifier(separator=1).fit(X, y)
    with pytest.raises(ValueError, match="only one label without parts, 'a/b'"):
        sf.HierarchicalClassifier().fit(X, ["a", "a/b"] * 60)
    refused("level is 2; there are 2", fitted.predict, X, level=2)
    with pytest.raises(ValueError, match="'d/dog', which is not a label"):
        fitted.score(X, np.where(truth == "a/ant", "d/dog", truth))
    refused("no labeled sample to score", fitted.score, X[30:60], y[30:60])
