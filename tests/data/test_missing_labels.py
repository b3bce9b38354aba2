"""Which samples have no label: one rule for estimators, metrics, pictures and the command."""

import warnings
from decimal import Decimal

import numpy as np
import pytest
from helpers.each import each
from helpers.refused import refused

import ssnmf_fast as sf

NAN = float("nan")

CASES = [
    ([0, -1, 2], "auto", [0, 1, 0]),
    ([3, -1, 3], "auto", [0, 1, 0]),
    ([3.0, -1.0, NAN], "auto", [0, 1, 1]),
    ([3, -1, None], None, [0, 0, 1]),
    ([1, -1, 1], -1, [0, 1, 0]),
    ([1, -1, 1], None, [0, 0, 0]),
    ([1, 0, 0], 0, [0, 1, 1]),
    (["a", "-1", "b"], None, [0, 0, 0]),
    (["a", "?", None], "?", [0, 1, 1]),
    (["a", -1, "b"], "auto", [0, 1, 0]),
    (["auto", "b", "b"], "auto", [0, 0, 0]),
    ([True, False, None], 0, [0, 0, 1]),
]


def fitted(labels, marker):
    """Fit a model that takes every form of labels."""
    X = np.random.default_rng(0).random((len(labels), 4))
    model = sf.TopicSupervisedNMF(unlabeled=marker, predicts=False, max_iter=1, tol=0)
    return model.fit(X, labels)


def scored(labels, marker):
    """Return a measure of some representation."""
    S = np.random.default_rng(1).random((len(labels), 3))
    return sf.metrics.jaccard_similarity(S, labels, unlabeled=marker)


def drawn(labels, marker):
    """Return the numbers of samples that a picture shows for each class, and for none."""
    plotting = pytest.importorskip("ssnmf_fast.plotting")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    picture = plotting.representation_map(np.ones((len(labels), 2)), labels, unlabeled=marker)
    names = [label.get_text() for label in picture.axes[0].get_yticklabels()]
    pyplot.close(picture)
    return names


@each(("labels", "marker", "absent"), CASES)
def test_all_readers_agree(labels, marker, absent):
    unlabeled = np.array(absent, dtype=bool)
    assert fitted(labels, marker).n_labeled_ == (~unlabeled).sum()
    known = [label for label, out in zip(labels, absent, strict=True) if not out]
    S = np.random.default_rng(1).random((len(labels), 3))[~unlabeled]
    expected = sf.metrics.jaccard_similarity(S, known, unlabeled=None)
    np.testing.assert_allclose(scored(labels, marker), expected)
    names = drawn(labels, marker)
    assert len(names) == len(set(known)) + unlabeled.any()
    assert not unlabeled.any() or names[-1] == f"(no label) ({unlabeled.sum()})"


NONE = {
    "None": None,
    "float": NAN,
    "float32": np.float32("nan"),
    "Decimal": Decimal("nan"),
    "signaling": Decimal("snan"),
    "NaT": np.datetime64("NaT", "D"),
    "masked": np.ma.masked,
}


@pytest.mark.slow
@each("kind", [*NONE, "pandas.NA", "pandas.NaT"])
def test_what_is_no_label_anywhere(kind):
    if kind.startswith("pandas"):
        pandas = pytest.importorskip("pandas")
        none = getattr(pandas, kind.removeprefix("pandas."))
    else:
        none = NONE[kind]
    texts, numbers = ["a", none, "b", none, "a"], [0, none, 1, none, 0]
    array = np.empty(5, dtype=object)
    array[:] = texts
    for labels in (texts, tuple(texts), array, *([] if kind == "NaT" else [numbers])):
        for marker in ("auto", None, none):
            if not isinstance(marker, np.ma.core.MaskedConstant):
                assert fitted(labels, marker).n_labeled_ == 3
        scored(labels, "auto")
        assert labels is numbers or drawn(labels, "auto")[-1] == "(no label) (2)"
    lists = fitted([["a", none], [none], none, ["b"], []], "auto")
    assert lists.topic_names_.tolist() == ["a", "b"]
    assert lists.n_labeled_ == 2
    tree = {"a": "top", "b": "top", "top": none}
    X = np.random.default_rng(0).random((5, 4))
    options = {"n_components": 2, "max_iter": 1, "tol": 0}
    few = sf.FewLabelsClassifier(max_iter=1, tol=0, random_state=0)
    model = sf.HierarchicalClassifier(few, parents=tree).fit(X, texts)
    assert [level.tolist() for level in model.levels_] == [["top"], ["a", "b"]]
    model = sf.SSNMFClassifier(supervision_weight=1.0, readout="joint", **options)
    model.partial_fit(X, array, classes=[none, "b", "a"])
    assert (model.classes_.tolist(), model.n_labeled_) == (["a", "b"], 3)
    if not isinstance(none, (np.datetime64, np.ma.core.MaskedConstant)):
        indicator = np.array([[1, 0], [none, none], [0, 1], [none, none], [1, 0]], dtype=object)
        assert model.fit(X, indicator).n_labeled_ == 3


@each("text", ["-1", "-1.0", "\u22121", "--", " nan", "NaT", "<NA>", "None"])
@each("marker", ["auto", -1])
def test_texts_that_numpy_makes_of_no_label(text, marker):
    with pytest.warns(UserWarning, match="looks like a missing label.* pass unlabeled=' ?"):
        fitted(np.array(["a", text, "b"]), marker)
    with pytest.warns(UserWarning, match="truth has the class .*looks like a missing label"):
        scored(["a", text, "b"], marker)
    with pytest.warns(UserWarning, match="looks like a missing label"):
        fitted([["a"], ["b", text], None], marker)
    assert fitted(np.array(["a", text, "b"]), text).n_labeled_ == 2
    assert fitted(np.array(["a", text, "b"]), None).n_labeled_ == 3


def test_numpy_makes_text_of_minus_one():
    for number in (-1, -1.0):
        with pytest.warns(UserWarning, match="has the class '-1"):
            fitted(np.array(["a", "b", number]), "auto")


@pytest.mark.parametrize("labels", [[1, -1, 1], [1.0, -1.0, NAN], [-1, None, 1]])
def test_minus_one_and_one_are_classes_with_a_warning(labels):
    array = np.array(labels, dtype=float)
    for read in (fitted, scored, drawn):
        with pytest.warns(UserWarning, match="only labels in .* are -1 and 1"):
            read(array, "auto")
    with pytest.warns(UserWarning, match="only labels in y are -1 and 1"):
        assert fitted(array, "auto").n_labeled_ == (~np.isnan(array)).sum()


def test_the_classes_of_a_fitted_model_tell_what_minus_one_is():
    rng = np.random.default_rng(0)
    X, options = (
        rng.random((12, 4)),
        {"n_components": 2, "max_iter": 1, "tol": 0, "random_state": 0},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for classes, count in ((np.array([-1, 1]), 12), (np.array([0, 1]), 6)):
            model = sf.papers.ConstrainedNMF(**options).fit(X, np.tile(classes, 6))
            truth = np.tile([-1, 1], 6)
            guess = model.predict(X)
            counted = truth == 1 if count == 6 else np.ones(12, bool)
            assert model.score(X, truth) == pytest.approx((guess == truth)[counted].mean())


@pytest.mark.parametrize("marker", [[1], np.array([1, 2]), {}])
def test_bad_markers(marker):
    with pytest.raises(TypeError, match='unlabeled must be "auto", None or a label'):
        scored(np.arange(3), marker)


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (["a", 1, "b"], TypeError, "labels of one kind"),
        ([True, 2, None], TypeError, "labels of one kind"),
        ([0.5, 1.0, 2.0], ValueError, "holds 0.5; labels must be text or whole numbers"),
        ([1j, 2j], TypeError, "labels must be text or integers"),
    ],
)
def test_all_readers_refuse_alike(labels, error, message):
    for read in (fitted, scored, drawn):
        refused(message, read, labels, None, error=error)


SPELLINGS = [
    *[("1", "1.0"), ("1", "1,0"), ("1", "+1"), ("7", "007"), ("1", "\uff11"), ("-1", "\u22121.0")],
    *[("True", "TRUE"), ("yes", "Yes"), ("a", " a"), ("a b", "a  b"), ("a b", "a\xa0b")],
    *[("a", "a\u200b"), ("a", "\ufeffa"), ("a", "a\xad"), ("a", "a."), ("a b", "a\nb")],
    *[("non-fiction", "non\u2011fiction"), ("a", "a\x07")],
]
DIFFERENT = ["1", "10", "1.5", "1.10", "1.1", "-2", "a b", "ab", "C", "C#", "C++", "*", "**"]
DIFFERENT += ["alt.atheism", "news", "news/politics", "Arts & Crafts", "Crafts", "(a)", "[deleted]"]
FEW = {"max_iter": 2, "tol": 0, "random_state": 0}


def doubtful(read):
    """Return the warnings of a call."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        read()
    return [str(one.message) for one in told]


@each(("one", "other"), SPELLINGS)
def test_two_spellings_of_one_class(one, other):
    (told,) = doubtful(lambda: fitted([one, one, other, "z"], None))
    assert f"{one!r} (2 samples) and {other!r} (1 sample)" in told


def test_ordinary_labels():
    assert doubtful(lambda: fitted(DIFFERENT, "auto")) == []


TWO = np.array(["a", "b"] * 18 + ["A", "b"] * 2, dtype=object)
ONES = np.random.default_rng(0).random((40, 6)) + 4 * np.eye(6)[np.arange(40) % 2]
SMALL = {"n_components": 3, "supervision_weight": 1.0, **FEW}
MODEL = sf.SSNMFClassifier(**SMALL).fit(ONES, np.array(["a", "b"] * 20))
DOORS = {
    "FewLabelsClassifier": lambda y: sf.FewLabelsClassifier(**FEW).fit(ONES, y),
    "SeededTopics": lambda y: sf.SeededTopics(**FEW).fit(ONES, y),
    "lists": lambda y: sf.TopicSupervisedNMF(**FEW).fit(ONES, [[one] for one in y]),
    "array of texts": lambda y: sf.SSNMFClassifier(**SMALL).fit(ONES, y.astype(str)),
    "score": lambda y: MODEL.score(ONES, y),
    "scorer": lambda y: sf.metrics.labeled_scorer()(MODEL, ONES, y),
    "metric": lambda y: sf.metrics.clustering_score(ONES, y),
    "by": lambda y: sf.topics_over_time(MODEL, ONES, ["2020-01-01", "2020-02-01"] * 20, by=y),
    "unlabeled": lambda y: fitted(np.where(y == "a", "b", y), "a"),
    "seeds": lambda y: sf.SeededTopics({"a": [0], "A": [1]}, **FEW).fit(ONES),
}


@each("door", DOORS)
def test_every_door_tells_of_spellings_once(door):
    (told,) = doubtful(lambda: DOORS[door](TWO))
    assert "differ only in spelling" in told
    assert "'a'" in told
    assert "'A'" in told


@each(
    ("labels", "message"),
    [
        (["\\N", "a", "b"], "looks like a missing label"),
        (["(blank)", "a", "b"], "looks like a missing label"),
        (["N.A.", "a", "b"], "looks like a missing label"),
        (["\u2014", "a", "b"], "looks like a missing label"),
        (["a#n", "b#n", "n"], "contain '#'"),
        (["a\nn", "a", "n"], "contain '.n'"),
        (["a+b", "a", "b"], "contain '.'"),
        (["['a', 'b']", "a", "b"], "looks like a list"),
        (['{"choices": ["a"]}', "a", "b"], "looks like a list"),
    ],
)
def test_labels_that_are_hardly_meant(labels, message):
    with pytest.warns(UserWarning, match=message):
        fitted(labels, "auto")


@each(
    ("most", "others", "asked"),
    [
        (99, range(1, 9), True),
        (99.0, range(1, 9), True),
        (-9, range(3), True),
        (98, range(1, 90), True),
        (0, range(10, 90, 10), True),
        ("0", "12345678", True),
        ("9", "12345678", True),
        (" 99.0", "12345678", True),
        ("99", ["good", "bad"], True),
        (99, [1], True),
        (0, range(1, 9), False),
        (9, range(9), False),
        (0, [1], False),
        (9, [4], False),  # fours and nines
        ("0", "1", False),
        (5, range(1, 9), False),
        ("7", "01234568", False),
        (99, range(99), False),
    ],
)
def test_codes_of_most_samples_are_asked_about(most, others, asked):
    labels = np.array([*others, *[most] * (len(others) + 1)])
    told = doubtful(lambda: fitted(labels, "auto"))
    assert [f"pass unlabeled={most!r}," in one for one in told] == [True] * asked
    assert not doubtful(lambda: fitted(labels, None))
    assert not doubtful(lambda: fitted(labels[:-2], "auto"))  # not most samples
