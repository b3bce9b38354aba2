"""Side information: tables of the same samples beside X."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.data import hide, tfidf, zipf_documents
from helpers.each import each
from helpers.refused import refused
from sklearn.base import clone

import ssnmf_fast as sf

N_CLASSES = 4


def planted(y, seed, strength=0.6, columns=20):
    """Return points around one center for each class."""
    centers = strength * np.random.default_rng(9).standard_normal((N_CLASSES, columns))
    return centers[y] + np.random.default_rng(seed).standard_normal((len(y), columns))


def make_data():
    """Documents of which 16 are labeled, and a table that tells their classes apart."""
    counts, y = zipf_documents(0, n=160, m=80)
    return tfidf(counts), y, hide(y, 4, 0), planted(y, 1, 1.0)


DATA = X, y, hidden, E = make_data()


@pytest.fixture(scope="module")
def fitted():
    return quick().fit(X, hidden, side={"embedding": E})


def quick(**settings):
    return sf.FewLabelsClassifier(**{"random_state": 0, "n_threads": 1} | settings)


@pytest.mark.slow
def test_a_good_table_is_used(fitted):
    rest = hidden < 0
    plain = quick().fit(X, hidden)
    with_table = fitted.predict(X, side={"embedding": E})
    assert np.mean(with_table[rest] == y[rest]) > np.mean(plain.predict(X)[rest] == y[rest]) + 0.03
    assert fitted.side_ == {"embedding": 20}
    assert fitted.committee_["embedding"]["weight"] > 0.3
    assert fitted.committee_["embedding"]["score"] > 0.5


def test_predictions_depend_on_the_table(fitted):
    score = fitted.score(X, y, side={"embedding": E})
    assert score == np.mean(fitted.predict(X, side={"embedding": E}) == y)
    assert fitted.score(X, y, side={"embedding": -E}) < score - 0.1
    proba = fitted.predict_proba(X, side={"embedding": E})
    assert np.array_equal(np.log(proba), fitted.predict_log_proba(X, side={"embedding": E}))
    decision = fitted.decision_function(X, side={"embedding": E})
    assert np.array_equal(decision.argmax(axis=1), proba.argmax(axis=1))


@pytest.mark.slow
def test_noise_does_no_harm():
    losses, weights = [], []
    for seed in range(4):
        counts, y = zipf_documents(seed)
        X, hidden = tfidf(counts), hide(y, 8, seed)
        E = planted(y, seed, 0.0)
        model = quick().fit(X, hidden, side={"noise": E})
        losses.append(quick().fit(X, hidden).score(X, y) - model.score(X, y, side={"noise": E}))
        weights.append(model.committee_.get("noise", {"weight": 0})["weight"])
    assert np.mean(losses) < 0.01
    assert np.mean(weights) < 0.2


@pytest.mark.slow
@pytest.mark.parametrize("form", [sp.csr_array, sp.coo_array, np.asfortranarray])
def test_the_form_of_a_table_does_not_matter(form, fitted):
    model = quick().fit(X, hidden, side={"embedding": form(E)})
    found = model.predict_proba(X, side={"embedding": form(E)})
    assert np.allclose(found, fitted.predict_proba(X, side={"embedding": E}), atol=1e-6)


def test_the_scale_of_a_row_does_not_matter(fitted):
    scaled = E * np.random.default_rng(0).uniform(0.1, 10, (len(E), 1))
    found = fitted.predict_proba(X, side={"embedding": scaled})
    assert np.allclose(found, fitted.predict_proba(X, side={"embedding": E}), atol=1e-9)


@pytest.mark.slow
def test_single_precision():
    side = {"embedding": E.astype(np.float32)}
    model = quick().fit(X.astype(np.float32), hidden, side=side)
    assert model.components_.dtype == np.float32
    assert model.score(X.astype(np.float32), y, side=side) > 0.8


@pytest.mark.slow
def test_same_bits_for_any_number_of_threads_and_the_same_tables(fitted):
    side = {"embedding": E.copy()}
    model = quick(n_threads=2).fit(X, hidden, side=side)
    assert np.array_equal(model.predict_proba(X, side=side), fitted.predict_proba(X, side=side))
    assert np.array_equal(side["embedding"], E)


def test_rows_are_predicted_one_by_one(fitted):
    rows = np.random.default_rng(0).permutation(len(E))[:20]
    whole = fitted.decision_function(X, side={"embedding": E})[rows]
    assert np.allclose(fitted.decision_function(X[rows], side={"embedding": E[rows]}), whole)


def test_an_empty_sample_is_predicted_from_its_table(fitted):
    empty = sp.csr_array((len(y), 80))
    assert np.mean(fitted.predict(empty, side={"embedding": E}) == y) > 0.6


def test_topics_do_not_need_the_table(fitted):
    X = DATA[0]
    assert fitted.transform(X).shape == (len(DATA[1]), len(fitted.components_))


@pytest.mark.slow
def test_fit_transform(fitted):
    found = quick().fit_transform(X, hidden, side={"embedding": E})
    assert np.array_equal(found, fitted.transform(X))


@pytest.mark.slow
def test_two_tables_keep_to_their_names():
    side = {"embedding": E, "place": sp.csr_array(np.eye(3)[np.arange(len(y)) % 3])}
    model = quick().fit(X, hidden, side=side)
    assert model.side_ == {"embedding": 20, "place": 3}
    other_order = dict(reversed(side.items()))
    assert np.array_equal(
        model.predict_proba(X, side=side), model.predict_proba(X, side=other_order)
    )


@pytest.mark.slow
def test_several_labels():
    Y = np.eye(N_CLASSES)[y]
    Y[::3, 0] = 1
    Y[hidden < 0] = np.nan
    model = quick().fit(X, Y, side={"embedding": E})
    assert model.predict(X, side={"embedding": E}).shape == Y.shape
    assert "embedding" in model.validation_scores_


@pytest.mark.slow
def test_with_weights_of_entries():
    weights = sf.weights.outer(rows=np.linspace(0.5, 1.5, len(y)))
    side = {"embedding": E}
    model = quick().fit(X, hidden, X_weights=weights, side=side)
    assert "embedding" in model.committee_
    assert model.score(X, y, X_weights=weights, side=side) > 0.8


@pytest.mark.slow
def test_with_data_on_disk(tmp_path):
    sp.save_npz(tmp_path / "X.npz", X, compressed=False)
    on_disk, side = sf.io.open_csr(tmp_path / "X.npz"), {"embedding": E}
    model = quick().fit(on_disk, hidden, side=side)
    assert "embedding" in model.committee_
    assert model.score(on_disk, y, side=side) > 0.8


def test_without_validation():
    side = {"embedding": E}
    model = quick().fit(X, hide(y, 1, 0), side=side)
    assert not model.validation_scores_
    assert model.committee_["embedding"]["weight"] > 0
    assert model.score(X, y, side=side) > 0.3


def test_files_and_copies(fitted, tmp_path):
    sf.save(fitted, tmp_path / "model.npz")
    loaded = sf.load(tmp_path / "model.npz")
    wanted = fitted.predict_proba(X, side={"embedding": E})
    for model in (loaded, copy.deepcopy(fitted)):
        assert model.side_ == fitted.side_
        assert np.array_equal(model.predict_proba(X, side={"embedding": E}), wanted)
    assert not hasattr(clone(fitted), "side_")


def test_attributes_that_contradict_themselves_are_not_saved(fitted, tmp_path):
    damaged = copy.copy(fitted)
    damaged.side_ = {"embedding": 19}
    with pytest.raises(ValueError, match="side_ and the readout"):  # the check of files, too
        sf.save(damaged, tmp_path / "model.npz")


@each(
    ("side", "error", "message"),
    [
        (np.ones((160, 2)), TypeError, "mapping of names"),
        (3, TypeError, "mapping of names .* got int"),
        ({1: np.ones((160, 2))}, TypeError, "mapping of names .* got the name 1"),
        ({"e": np.ones((159, 2))}, ValueError, r"side\['e'\] has shape \(159, 2\)"),
        ({"e": np.ones((160, 0))}, ValueError, "at least one column"),
        ({"e": np.ones(160)}, ValueError, r"side\['e'\] must have two dimensions"),
        ({"e": np.full((160, 2), np.nan)}, ValueError, r"side\['e'\] contains NaN"),
        ({"e": np.full((160, 2), np.inf)}, ValueError, r"side\['e'\] contains infinity"),
        ({"topics": np.ones((160, 2))}, ValueError, "name of a member"),
    ],
)
def test_bad_tables_are_refused(side, error, message):
    refused(message, quick().fit, X, hidden, side=side, error=error)


@pytest.mark.slow
def test_names_of_all_members_are_taken():
    names = {*quick().fit(X, hidden).validation_scores_}
    indicators = np.where(hidden[:, None] < 0, np.nan, np.eye(N_CLASSES)[y])
    names |= {*quick().fit(X, indicators).validation_scores_}
    assert {"committee", "topics", "neighbors"} < names
    for name in names:
        refused("the name of a member of the committee", quick().fit, X, hidden, side={name: E})


@pytest.mark.parametrize(
    ("side", "message"),
    [
        (None, r"fitted with side with the tables \['embedding'\]; got none"),
        ({"other": np.ones((160, 20))}, r"got the tables \['other'\]"),
        ({"embedding": np.ones((160, 19))}, "has 19 columns; expected 20"),
    ],
)
def test_predictions_need_the_tables_of_the_fit(side, message, fitted):
    for call in (fitted.predict, fitted.predict_proba, fitted.decision_function):
        refused(message, call, X, side=side)
    refused(message, fitted.score, X, y, side=side)


@pytest.mark.slow
def test_a_fit_without_tables_refuses_them():
    for model in (
        quick(),
        sf.SSNMFClassifier(5, random_state=0),
        sf.papers.MarginNMF(5, random_state=0),
    ):
        model.fit(X, hidden)
        refused("fitted with no side; got the tables", model.predict, X, side={"embedding": E})


def test_tables_are_explained(fitted):
    side = {"embedding": E}
    found = fitted.explain(X, side=side)
    logits = fitted.decision_function(X, side=side)
    np.testing.assert_allclose(found.totals, logits - logits.mean(axis=1, keepdims=True), atol=1e-9)
    parts = found.intercepts + found.neighbors + found.tables["embedding"]
    for k, name in enumerate(found.classes):
        sums = found.topics(name).sum(axis=1) + found.features(name).sum(axis=1)
        np.testing.assert_allclose(parts[:, k] + sums, found.totals[:, k], atol=1e-9)
    assert ("table", "embedding") in [part[:2] for part in found.top(0).parts]
    refused("fitted with side with the tables", fitted.explain, X)


@pytest.mark.slow
def test_suggestions_see_the_table(fitted):
    rest = np.flatnonzero(hidden < 0)
    chosen = fitted.suggest(X[rest], 5, side={"embedding": E[rest]})
    assert len(set(chosen)) == 5
    others = fitted.suggest(X[rest], 5, side={"embedding": -E[rest]})
    assert chosen.tolist() != others.tolist()
    refused("Predictions need the same tables", fitted.suggest, X[rest], 5)
    rest = np.tile(rest, -(-10_500 // len(rest)))  # of so many only some are looked at
    looked = rest[np.arange(10_000) * len(rest) // 10_000]
    places = np.arange(10_000) * len(rest) // 10_000
    chosen = fitted.suggest(X[rest], 5, side={"embedding": E[rest]})
    alone = fitted.suggest(X[looked], 5, side={"embedding": E[looked]})
    assert chosen.tolist() == places[alone].tolist()


@pytest.fixture(scope="module")
def named():
    """Return samples with names, their classes, a table that tells them, and a fit."""
    pandas = pytest.importorskip("pandas")
    rng, y = np.random.default_rng(0), np.arange(120) % 3
    X = pandas.DataFrame(rng.poisson(1.0, (120, 12)).astype(float)).add_prefix("x")
    X.index = [f"s{i}" for i in range(120)]
    E = pandas.DataFrame(np.eye(3)[y] * 4 + 0.3 * rng.standard_normal((120, 3)), X.index)
    E = E.add_prefix("e")
    return X, y, E, quick().fit(X, y, side={"e": E})


@each("method", ["predict", "predict_proba", "decision_function", "explain", "suggest", "score"])
def test_columns_and_rows_of_tables_are_matched_by_name(named, method, tmp_path):
    X, y, E, model = named
    given = (X, y) if method == "score" else (X,)
    sf.save(model, tmp_path / "model.npz")
    for one in (model, sf.load(tmp_path / "model.npz")):
        call = getattr(one, method)
        wanted = call(*given, side={"e": E})
        for other in (E[["e1", "e2", "e0"]], E.iloc[::-1], E.to_numpy()):
            found = call(*given, side={"e": other})
            parts = (wanted.totals, found.totals) if method == "explain" else (wanted, found)
            np.testing.assert_array_equal(*parts)
        for wrong, problem in ((E.add_prefix("a"), "columns of the fit"), (E[:60], "rows of X")):
            refused(rf"side\['e'\] lacks {problem}: '", call, *given, side={"e": wrong})
