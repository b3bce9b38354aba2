"""TopicSupervisedNMF: what may be said of the topics of documents."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.data import digits
from helpers.refused import refused

import ssnmf_fast as sf

X, y = digits(600)


def _model(**parameters):
    return sf.TopicSupervisedNMF(**({"random_state": 0, "tol": 0, "max_iter": 30} | parameters))


def test_labels_name_the_topics_of_new_documents():
    known = [[int(label)] if i % 5 == 0 else [] for i, label in enumerate(y[:450])]
    model = _model().fit(X[:450], known)
    assert model.topic_names_.tolist() == list(range(10))
    assert model.n_labeled_ == 90
    found = model.topic_names_[model.transform(X[450:]).argmax(axis=1)]
    plain = sf.NMF(n_components=10, random_state=0, tol=0, max_iter=30).fit(X[:450])
    guided = sf.metrics.match_topics(model.transform(X[450:]), y[450:]).score
    assert (found == y[450:]).mean() > 0.6
    assert guided > 1.1 * sf.metrics.match_topics(plain.transform(X[450:]), y[450:]).score


def test_labeled_documents_have_no_other_topics():
    lists = [[int(label), (int(label) + 1) % 10] for label in y]
    lists[3::4] = [None] * len(lists[3::4])
    model = _model(n_free_topics=2).fit(X, lists)
    S = model.representation_
    for i, names in enumerate(lists):
        others = [k for k in range(12) if names is not None and k not in names]
        assert not S[i, others].any()
    assert S[3::4, 10:].any()
    assert list(model.get_feature_names_out()[-3:]) == ["9", "free0", "free1"]


def test_all_forms_of_y_are_equal():
    X, y = digits(100)
    y = y % 3
    hidden = np.arange(100) % 2 == 0
    expected = _model().fit(X, np.where(hidden, -1, y)).components_
    matrix = np.eye(3)[y]
    matrix[hidden] = 0
    gaps = np.where(hidden[:, None], np.nan, matrix)
    forms = [
        [[] if h else [v] for v, h in zip(y, hidden, strict=True)],
        [None if h else {int(v)} for v, h in zip(y, hidden, strict=True)],
        [None if h else int(v) for v, h in zip(y, hidden, strict=True)],
        matrix,
        matrix.astype(bool),
        gaps,
        np.where(hidden[:, None], -1, matrix),
        sp.csr_array(matrix),
        np.where(hidden[:, None], 1, matrix),  # L of the paper
        sp.csr_array(np.where(hidden[:, None], 1, matrix)),
        np.where(hidden, np.nan, y),
    ]
    for form in forms:
        assert np.array_equal(_model().fit(X, form).components_, expected)


def test_names_of_topics():
    X = np.random.default_rng(0).random((6, 5))
    lists = [["b", "a"], [], ["b"], None, ["a"], float("nan")]
    model = _model().fit(X, lists)
    assert model.topic_names_.tolist() == ["a", "b"]
    assert str(model.topics(n_terms=1)[1]).startswith("topic 1 (b) [b 73%, a 27%]: ")
    model = _model(topic_names=["c", "b", "a"]).fit(X, lists)
    assert model.topic_names_.tolist() == ["c", "b", "a"]
    assert not model.representation_[0, 0]
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame([[1, 1], [0, 0], [0, 1], [0, 0], [1, 0], [0, 0]], columns=["a", "b"])
    assert _model().fit(X, frame).topic_names_.tolist() == ["a", "b"]
    series = pd.Series(lists, index=range(10, 16))
    assert np.array_equal(_model().fit(X, series).components_, _model().fit(X, frame).components_)
    model = _model(topic_names=["c", "d"]).fit(X, frame.to_numpy())
    assert list(model.set_output(transform="pandas").transform(X).columns) == ["c", "d"]


def test_weight_of_labeled_documents():
    hidden = np.where(np.arange(600) % 4, -1, y)
    rows = np.where(hidden >= 0, 4.0, 1.0)
    automatic = _model().fit(X, hidden)
    by_hand = _model(labeled_weight=1).fit(X, hidden, X_weights=sf.weights.outer(rows=rows))
    assert np.array_equal(automatic.components_, by_hand.components_)
    assert np.array_equal(
        _model(labeled_weight=4.0).fit(X, hidden).components_, by_hand.components_
    )
    columns = np.linspace(1, 2, 64)
    both = _model(solver="mm").fit(X, hidden, X_weights=sf.weights.outer(columns=columns))
    dense = _model(solver="mm").fit(X, hidden, X_weights=np.tile(columns, (600, 1)))
    np.testing.assert_allclose(both.components_, dense.components_, rtol=1e-8, atol=1e-12)
    pattern = sp.csr_array(np.ones(X.shape))
    seen = _model(solver="mm").fit(X, hidden, X_weights=sf.weights.observed(pattern))
    whole = _model(solver="mm").fit(X, hidden)
    np.testing.assert_allclose(seen.components_, whole.components_, rtol=1e-8, atol=1e-12)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="labeled_weight must be 'inverse-rate' or a number"):
        _model(labeled_weight="much").fit(X, y)
    refused("labeled_weight must be finite and at least 0", _model(labeled_weight=-1).fit, X, y)
    refused("n_free_topics must be at least 0; got -1", _model(n_free_topics=-1).fit, X, y)
    refused("y names no topic for any document", _model().fit, X[:3], [[], None, []])
    with pytest.raises(ValueError, match="y names the topic 'z', which is not one of topic_names"):
        _model(topic_names=["a"]).fit(X[:2], [["z"], []])
    with pytest.raises(ValueError, match="topic_names holds 2 names; expected one for each"):
        _model(topic_names=["a", "b"]).fit(X[:3], np.eye(3))
    refused("topic_names holds 'a' twice", _model(topic_names=["a", "a"]).fit, X[:2], [["a"], []])
    with pytest.raises(ValueError, match=r"y\[1\] is 'b', but other entries are lists of topics"):
        _model().fit(X[:2], [["a"], "b"])
    refused("topics by text and by numbers", _model().fit, X[:2], [["a"], [1]])
    with pytest.raises(ValueError, match=r"y\[0, 1\] is NaN, but other entries of its row are not"):
        _model().fit(X[:2], np.array([[1, np.nan], [1, 0]]))
    with pytest.raises(ValueError, match="cannot be combined with weights of samples"):
        _model().fit(
            X[:4], [["a"], [], [], []], X_weights=sf.weights.missing(sp.csr_array((4, 64)))
        )
    refused("requires y", _model().fit, X, None)


@pytest.mark.parametrize("names", [np.arange(3), np.array(["ant", "bee", "cat"])])
def test_a_masked_label_is_none(names):
    """A masked entry is an array of its own kind, and must not be taken for a list of topics."""
    X = np.random.default_rng(0).random((12, 5))
    codes = np.arange(12) % 3
    hidden = np.arange(12) % 4 == 0
    listed = [None if one else label for one, label in zip(hidden, names[codes], strict=True)]
    masked = _model(max_iter=5).fit(X, np.ma.array(names[codes], mask=hidden))
    assert np.array_equal(masked.components_, _model(max_iter=5).fit(X, listed).components_)
