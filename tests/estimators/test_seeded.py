"""SeededTopics: topics from a few words each, and classes without labels."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from helpers.refused import refused
from sklearn.base import clone

import ssnmf_fast as sf

NAMES = ["space", "sport", "cars"]
WORDS = np.array([f"{name}{i}" for name in NAMES for i in range(8)] + [f"any{i}" for i in range(6)])
SEEDS = {"space": ["space0", "space1"], "sport": ["sport0", "sport1"], "cars": ["cars0", "cars1"]}
QUICK = {"random_state": 0, "n_threads": 1}


def texts(n=240, seed=0):
    """Return counts of words, and the topic of each text; most texts have no seed."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    rates = np.full((3, len(WORDS)), 0.08)
    for c in range(3):
        rates[c, 8 * c : 8 * c + 8] = [0.2, 0.2, *[0.9] * 6]
    rates[:, 24:] = 1.0
    return rng.poisson(rates[y]).astype(np.float64), np.array(NAMES)[y]


def seeded(seeds=None, **parameters):
    given = {"feature_names": WORDS, **QUICK} | parameters
    return sf.SeededTopics(SEEDS if seeds is None else seeds, **given)


DATA = X, y = texts()


@pytest.mark.parametrize("loss", ["kullback-leibler", "frobenius"])
def test_words_alone_find_the_topics(loss):
    model = seeded(loss=loss).fit(X)
    assert model.score(X, y) > 0.95
    new, truth = texts(seed=1)
    assert model.score(new, truth) > 0.9
    named = model.topic_names_[model.topic_proportions(new).argmax(axis=1)]
    assert np.mean(named == truth) > 0.8
    chance = model.predict_proba(new)
    np.testing.assert_allclose(chance.sum(axis=1), 1)
    assert np.array_equal(model.classes_[chance.argmax(axis=1)], model.predict(new))
    falls = np.diff([value for _, value in model.objective_])
    assert (falls <= 1e-9 * model.objective_[0][1]).all()


def test_names_of_topics():
    model = seeded(n_free_topics=2).fit(X)
    assert list(model.get_feature_names_out()) == [*NAMES, "free0", "free1"]
    topics = model.topics(n_terms=4)
    assert [topic.name for topic in topics] == [*NAMES, "free0", "free1"]
    for topic in topics[:3]:
        assert sum(term.startswith(topic.name) for term in topic.terms) >= 2
    assert model.transform(X).shape == (len(X), 5)
    assert list(model.topic_names_) == NAMES
    assert list(model.classes_) == sorted(NAMES)
    assert set(model.predict(X)) <= set(NAMES)


def test_given_names_of_features_are_used_everywhere():
    X, names = np.random.default_rng(0).poisson(1.0, (30, 4)), list("wxyz")
    model = sf.SeededTopics({"a": ["w"], "b": ["x"]}, feature_names=names, random_state=0).fit(X)
    assert model.to_pyldavis(X)["vocab"] == names
    dated = sf.topics_over_time(model, X, np.arange(1990, 2020).astype(str), freq="year")
    found = [topic.terms for topic in model.topics()]
    found += [[row["term"] for row in dated.to_rows("words")]]
    assert all({*terms} <= {*names} for terms in found)


def test_order_of_the_lists_is_the_order_of_the_topics():
    order = [2, 0, 1]
    turned = {NAMES[c]: SEEDS[NAMES[c]][::-1] for c in order}
    one, other = seeded().fit(X), seeded(turned).fit(X)
    np.testing.assert_allclose(other.components_, one.components_[order], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(other.predict_proba(X), one.predict_proba(X), atol=1e-9)
    assert np.array_equal(other.predict(X), one.predict(X))


@pytest.mark.parametrize("longest", NAMES)
def test_long_lists_do_not_dominate(longest):
    many = [word for word in WORDS if word.startswith(longest)]
    model = seeded(SEEDS | {longest: many}).fit(X)
    assert model.score(X, y) > 0.95
    np.testing.assert_allclose(model.seed_weights_.sum(axis=1), 1)


def test_common_words_do_not_make_a_list_dominate():
    X, y = DATA
    X = X.copy()
    X[:, 24] += 50  # any0
    model = seeded(SEEDS | {"space": ["space0", "space1", "any0"]}).fit(X)
    assert model.score(X, y) > 0.9


def test_strengths_count():
    pair = {"space": ["space0"], "sport": ["sport0"]}

    def share_of_space(strength):
        seeds = pair | {"space": {"space0": 1.0, "any0": strength}}
        return seeded(seeds).fit(X).seed_weights_[0, 24]

    assert share_of_space(3.0) == pytest.approx(0.75)
    assert share_of_space(0.1) < share_of_space(1.0)
    listed = seeded(pair).fit(X).predict_proba(X)
    equal = seeded({name: dict.fromkeys(words, 7) for name, words in pair.items()}).fit(X)
    assert np.array_equal(equal.predict_proba(X), listed)


def test_strong_wrong_seed_misleads():

    def found(strength):
        seeds = SEEDS | {"space": {"space0": 1.0, "sport2": strength, "sport3": strength}}
        return np.mean(seeded(seeds).fit(X).predict(X)[y == "sport"] == "sport")

    assert found(0.01) > 0.9
    assert found(0.01) > found(100.0)


@pytest.mark.parametrize("free", [0, 2])
@pytest.mark.parametrize("loss", ["kullback-leibler", "frobenius"])
def test_forbidden_words_have_no_weight(loss, free):
    forbidden = {"space": ["any0", "sport2"], "cars": ["any0"]}
    model = seeded(loss=loss, forbidden=forbidden, n_free_topics=free).fit(X)
    place = {word: i for i, word in enumerate(WORDS)}
    assert (
        model.components_[[0, 0, 2], [place["any0"], place["sport2"], place["any0"]]] == 0
    ).all()
    assert model.components_[:, place["any0"]].any()
    assert model.score(X, y) > 0.95


def test_forbidden_words_do_not_speak_for_a_topic():
    known = [word for word in WORDS if word.startswith("sport") and word not in SEEDS["sport"]]

    def found(forbidden):
        model = seeded(forbidden={"sport": forbidden}).fit(X)
        return np.mean(model.predict(X)[y == "sport"] == "sport")

    assert found(known) < 0.7 < 0.95 < found(known[:1])


def test_sure_samples_have_one_topic():
    model = seeded(n_free_topics=1).fit(X)
    used = (model.representation_[:, :3] > 0).sum(axis=1)
    assert np.mean(used <= 1) >= 0.5
    assert np.mean(used > 1) > 0.1
    assert (model.representation_[:, 3] > 0).all()


def test_unknown_words_are_named():
    with pytest.warns(UserWarning, match="seeds has features .*'orbitt', 'nasaa'"):
        model = seeded(SEEDS | {"space": ["space0", "orbitt", "nasaa"]}).fit(X)
    assert model.unknown_seeds_ == ["orbitt", "nasaa"]
    with pytest.warns(UserWarning, match="forbidden has features .*'golf'"):
        seeded(forbidden={"space": ["golf"]}).fit(X)
    with (
        pytest.warns(UserWarning, match="'golf'"),
        pytest.raises(ValueError, match="No sample has a seed of the topic 'sport'"),
    ):
        seeded(SEEDS | {"sport": ["golf"]}).fit(X)
    assert seeded().fit(X).unknown_seeds_ == []


def test_features_by_number_and_by_columns():
    expected = seeded().fit(X).predict_proba(X)
    numbers = {name: np.array([8 * c, 8 * c + 1]) for c, name in enumerate(NAMES)}
    found = sf.SeededTopics(numbers, **QUICK).fit(X).predict_proba(X)
    assert np.array_equal(found, expected)
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=WORDS)
    model = sf.SeededTopics(SEEDS, **QUICK).fit(frame)
    np.testing.assert_allclose(model.predict_proba(frame), expected, atol=1e-9)
    assert model.topics(n_terms=1)[0].terms[0] in WORDS


def test_topics_of_an_earlier_model_are_seeds():
    old = seeded().fit(*texts(seed=5)[:1])
    rows = dict(zip(NAMES, old.components_, strict=True))
    model = sf.SeededTopics(rows, **QUICK).fit(X)
    assert model.score(X, y) > 0.95
    mixed = seeded(SEEDS | {"sport": old.components_[1]}).fit(X)
    assert mixed.score(X, y) > 0.9
    with pytest.raises(ValueError, match=r"seeds\['space'\] has shape \(5,\)"):
        sf.SeededTopics(rows | {"space": np.ones(5)}).fit(X)


def test_labels_and_words_together():
    X, y = DATA
    y = y.astype(object)
    few = np.full(len(y), None, dtype=object)
    rows = [np.flatnonzero(y == name)[:4] for name in NAMES]
    few[np.concatenate(rows)] = y[np.concatenate(rows)]
    model = seeded().fit(X, few)
    assert model.n_labeled_ == 12
    assert model.score(X, y) > 0.95
    # A label holds for its sample: the others of its topic are zero.
    for c, own in enumerate(rows):
        assert (np.delete(model.representation_[own], c, axis=1) == 0).all()
    # One topic is known by labels alone; words of the others lead away from it.
    model = seeded(SEEDS | {"cars": []}).fit(X, few)
    assert model.score(X, y) > 0.9
    assert np.array_equal(model.topic_names_, NAMES)
    # Without any label the words decide.
    plain, none = seeded().fit(X), seeded().fit(X, np.full(len(y), -1))
    assert np.array_equal(plain.predict_proba(X), none.predict_proba(X))
    assert none.n_labeled_ == 0


def test_labels_without_words():
    some = np.where(np.arange(len(y)) % 6 == 0, y, "-1").astype(object)
    some[some == "-1"] = None
    model = sf.SeededTopics(**QUICK).fit(X, some)
    assert list(model.classes_) == sorted(NAMES)
    assert model.score(X, y) > 0.95


def test_labels_correct_wrong_words():
    wrong = SEEDS | {"space": ["cars2", "cars3"], "cars": ["space2", "space3"]}
    misled = seeded(wrong).fit(X).score(X, y)
    assert seeded(wrong).fit(X, y).score(X, y) > 0.9 > misled


@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_matrix])
def test_sparse_equals_dense_and_scale_does_not_matter(container):
    # With "auto" and a small `tol`, sparse data alone take coordinate descent.
    options = {"solver": "mm", "tol": 0, "max_iter": 20}
    one, other = seeded(**options).fit(X), seeded(**options).fit(container(X))
    np.testing.assert_allclose(other.components_, one.components_, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(other.predict_proba(X), one.predict_proba(X), atol=1e-9)
    for factor in (4.0, 2.0**-40):
        scaled = seeded(**options).fit(factor * X)
        assert np.array_equal(scaled.predict_proba(factor * X), one.predict_proba(X))


def test_threads_do_not_matter_and_single_precision_stays():
    X, y = DATA
    X = X.astype(np.float32)
    one, two = seeded(n_threads=1).fit(X), seeded(n_threads=2).fit(X)
    assert np.array_equal(one.components_, two.components_)
    assert np.array_equal(one.predict_proba(X), two.predict_proba(X))
    assert one.components_.dtype == one.transform(X).dtype == np.float32
    assert one.score(X, y) > 0.95


def test_empty_samples_have_the_shares_of_the_topics():
    X, _ = DATA
    X = np.vstack([X, np.zeros((2, X.shape[1]))])
    model = seeded().fit(X)
    np.testing.assert_allclose(model.predict_proba(X[-2:]), [model.class_prior_] * 2, rtol=1e-6)
    assert np.isfinite(model.components_).all()


def test_saved_models_come_back(tmp_path):
    with pytest.warns(UserWarning, match="'comet'"):
        model = seeded(SEEDS | {"space": ["space0", "comet"]}, n_free_topics=1).fit(X)
    sf.save(model, tmp_path / "model.npz")
    loaded = sf.load(tmp_path / "model.npz")
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert np.array_equal(loaded.transform(X), model.transform(X))
    assert list(loaded.get_feature_names_out()) == list(model.get_feature_names_out())
    assert np.array_equal(loaded.seed_weights_.toarray(), model.seed_weights_.toarray())
    assert loaded.unknown_seeds_ == ["comet"]


def test_explanations_and_suggestions():
    model = seeded().fit(X)
    reasons = model.explain(X).top(0, feature_names=WORDS)
    terms = [name for kind, name, value in reasons.parts if kind == "term" and value > 0]
    assert any(term.startswith(str(model.predict(X[:1])[0])) for term in terms)
    assert len(set(model.suggest(X, 5))) == 5


def test_the_parameters_are_not_changed():
    seeds = {name: dict.fromkeys(words, 1.0) for name, words in SEEDS.items()}
    before = {name: dict(words) for name, words in seeds.items()}
    model = seeded(seeds, forbidden={"cars": ["any1"]}).fit(X)
    assert seeds == before
    assert clone(model).get_params()["forbidden"] == {"cars": ["any1"]}


@each(
    ("parameters", "error", "message"),
    [
        ({"seeds": ["space0"]}, TypeError, "seeds must be a dict"),
        ({"seeds": {"space": "space0", "sport": []}}, TypeError, "must be a list of features"),
        ({"seeds": {"space": [1.5], "sport": []}}, TypeError, "holds 1.5"),
        ({"seeds": {"space": [99], "sport": [1]}}, ValueError, "every number in"),
        ({"seeds": {"space": ["space0"]}}, ValueError, "expected two or more"),
        ({"seeds": SEEDS | {"space": {"space0": -1}}}, ValueError, "at least 0"),
        ({"seeds": SEEDS | {"space": {"space0": 0}}}, ValueError, "strengths must be above 0"),
        ({"seeds": SEEDS | {"space": []}}, ValueError, "No sample has a seed"),
        ({"forbidden": {"golf": ["any0"]}}, ValueError, "forbidden has the topic 'golf'"),
        ({"forbidden": {"space": ["space0"]}}, ValueError, "is both a seed of the topic 'space'"),
        ({"feature_names": None}, ValueError, "X has no feature names"),
        ({"feature_names": WORDS[:5]}, ValueError, "feature_names holds 5 names"),
        ({"n_free_topics": -1}, ValueError, "n_free_topics"),
    ],
)
def test_bad_parameters(parameters, error, message):
    refused(message, seeded(**parameters).fit, X, error=error)


def test_bad_labels_and_data():
    with pytest.raises(ValueError, match="y holds 'golf', which is not one of the topics"):
        seeded().fit(X, np.where(y == "cars", "golf", y))
    refused("requires y", sf.SeededTopics().fit, X)
    refused("X_weights", seeded().fit, X, X_weights=np.ones_like(X), error=TypeError)
    refused("NaN", seeded().fit, np.where(X == 1, np.nan, X))
