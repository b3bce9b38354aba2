"""topics_over_time: prevalence, words, documents and peaks of the topics of any fitted model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.refused import refused
from sklearn.decomposition import NMF as OtherNMF
from sklearn.decomposition import PCA, LatentDirichletAllocation

import ssnmf_fast as sf

MONTHS, EARLY, LATE, STEADY, BOTH = 12, range(10), range(10, 20), range(20, 30), range(30, 40)
NAMES = [f"w{j}" for j in range(40)]


def dated(n: int = 600, seed: int = 0) -> tuple[Any, Any, Any]:
    """Two topics; ten words of topic 0 give way to ten others after six months."""
    rng = np.random.default_rng(seed)
    month, topic = rng.permutation(np.arange(n) % MONTHS), rng.integers(0, 2, n)
    means = np.full((n, 40), 0.02)
    means[np.ix_(topic == 1, STEADY)] = 1
    means[np.ix_(topic == 0, BOTH)] = 1
    means[np.ix_((topic == 0) & (month < 6), EARLY)] = 1
    means[np.ix_((topic == 0) & (month >= 6), LATE)] = 1
    times = np.datetime64("2001-01") + month
    return sp.csr_array(rng.poisson(means).astype(float)), times, topic


X, TIMES, TOPIC = dated()
CLASSES = np.array(["moving", "steady"])[TOPIC]
SEEDS = {"moving": [30, 31], "steady": [20, 21]}
SOME = np.where(np.arange(len(CLASSES)) % 4, CLASSES, None)
MODELS = {
    "NMF": lambda: sf.NMF(2, random_state=0).fit(X),
    "KL": lambda: sf.NMF(2, loss="kullback-leibler", random_state=0).fit(X),
    "SSNMF": lambda: sf.SSNMFClassifier(2, random_state=0).fit(X, SOME),
    "few labels": lambda: sf.FewLabelsClassifier(random_state=0).fit(X, SOME),
    "seeded": lambda: sf.SeededTopics(SEEDS, random_state=0).fit(X),
    "Bayesian": lambda: sf.BayesianNMF(2, random_state=0).fit(X),
    "TS-NMF": lambda: sf.TopicSupervisedNMF(random_state=0).fit(X, SOME),
    "dynamic": lambda: sf.DynamicTopics(2, method="nmf", random_state=0).fit(X, TIMES),
    "scikit-learn's NMF": lambda: OtherNMF(2, random_state=0).fit(X),
    "LDA": lambda: LatentDirichletAllocation(2, random_state=0).fit(X),
}


@pytest.fixture(scope="module")
def model() -> sf.NMF:
    return sf.NMF(2, random_state=0).fit(X)


@pytest.fixture(scope="module")
def over_time(model: sf.NMF) -> sf.results.TopicsOverTime:
    return sf.topics_over_time(model, X, TIMES, feature_names=NAMES, by=CLASSES)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_words_of_a_topic_that_changes(name: str) -> None:
    over_time = sf.topics_over_time(MODELS[name](), X, TIMES, feature_names=NAMES)
    np.testing.assert_allclose(over_time.prevalence.sum(axis=1), 1)
    k, found = int(over_time.shares[TOPIC == 0].mean(axis=0).argmax()), []
    for slices, words in ((("2001-01", "2001-03"), EARLY), (("2001-10", "2001-12"), LATE)):
        for one in slices:
            found.append(len({NAMES[j] for j in words} & {*over_time.terms(one)[k].terms}))
    assert min(found) >= 8


def test_shares_are_parts_of_the_squared_length(model: Any, over_time: Any) -> None:
    squares = (model.transform(X) * np.linalg.norm(model.components_, axis=1)) ** 2
    shares = squares / squares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(over_time.shares, shares)
    month = (TIMES - np.datetime64("2001-01")).astype(int)
    assert over_time.slices.astype(str).tolist() == [f"2001-{k:02d}" for k in range(1, 13)]
    np.testing.assert_array_equal(over_time.sizes, np.bincount(month))
    for k in range(MONTHS):
        np.testing.assert_allclose(over_time.prevalence[k], shares[month == k].mean(axis=0))
        for label in ("moving", "steady"):
            some = (month == k) & (label == CLASSES)
            np.testing.assert_allclose(over_time.by_class[label][k], shares[some].mean(axis=0))
            assert over_time.class_sizes[label][k] == some.sum()


def test_prevalence_by_loadings_is_the_mean_of_S(model: Any) -> None:
    over_time = sf.topics_over_time(model, X, TIMES, by=CLASSES, measure="loading")
    S, month = model.transform(X), (TIMES - np.datetime64("2001-01")).astype(int)
    np.testing.assert_allclose(over_time.shares, S / S.sum(axis=1, keepdims=True))
    for k in range(MONTHS):
        for found, some in (
            (over_time.prevalence, month == k),
            (over_time.by_class["moving"], (month == k) & (CLASSES == "moving")),
        ):
            mean = S[some].mean(axis=0)
            np.testing.assert_allclose(found[k], mean / mean.sum())
    with pytest.raises(ValueError, match="measure must be one of"):
        sf.topics_over_time(model, X, TIMES, measure="mean")


def test_weights_that_sum_to_one_are_shares() -> None:
    model = LatentDirichletAllocation(2, max_iter=2, random_state=0).fit(X)
    over_time = sf.topics_over_time(model, X, TIMES)
    np.testing.assert_allclose(over_time.shares, model.transform(X))


def test_words_are_those_of_the_update(model: Any, over_time: Any) -> None:
    """By the formula, with dense arrays."""
    A, Q = model.components_ / model.components_.sum(axis=1, keepdims=True), over_time.shares
    ratios, month = X.toarray() / np.maximum(Q @ A, 1e-300), over_time.document_slices
    E = np.stack([A * (Q[month == t].T @ ratios[month == t]) for t in range(MONTHS)])
    G = E.sum(axis=0)
    H = np.stack([sum(0.8 ** abs(t - s) * E[s] for s in range(MONTHS)) for t in range(MONTHS)])
    H = H + G / MONTHS
    G, H = G / G.sum(axis=1, keepdims=True), H / H.sum(axis=2, keepdims=True)
    for kind, values in (
        ("increase", H * np.log(np.where(H > 0, H, 1) / np.where(H > 0, G, 1))),
        ("top", H),
    ):
        best = -np.sort(-values, axis=2)[:, :, :10]
        np.testing.assert_allclose(over_time.word_weights[kind], best, atol=1e-12)
        for t, k in ((0, 0), (5, 1), (11, 0)):
            topic, listed = over_time.terms(t, kind)[k], best[t, k][best[t, k] > 0]
            np.testing.assert_allclose(topic.weights, listed)
            np.testing.assert_allclose(values[t, k, [NAMES.index(w) for w in topic.terms]], listed)


def test_documents_and_peaks(over_time: Any) -> None:
    k = int(over_time.shares[TOPIC == 0].mean(axis=0).argmax())
    rows = over_time.documents("2001-02", k, 7)
    assert len(rows) == 7
    assert set(TIMES[rows].astype(str)) == {"2001-02"}
    assert (TOPIC[rows] == 0).all()
    assert (np.diff(over_time.typicality[rows, k]) <= 0).all()
    np.testing.assert_array_equal(rows, over_time.documents(np.datetime64("2001-02"), k, 7))
    np.testing.assert_array_equal(rows, over_time.documents(1, k, 7))
    peak = over_time.peaks()[k]
    assert peak.prevalence == over_time.prevalence[:, k].max()
    assert peak.slice == over_time.slices[over_time.prevalence[:, k].argmax()]
    assert over_time.peaks(period=2)[k].periodicity >= 0


def test_notes_of_small_slices(model: Any, over_time: Any) -> None:
    note = "12 of 12 slices have fewer than 50 documents per topic: their words are for reading"
    assert over_time.notes[0].startswith(note)
    assert over_time.notes[0] in repr(over_time)
    assert "2 topics, 600 documents, 12 slices from 2001-01 to 2001-12" in repr(over_time)
    assert sf.topics_over_time(model, X, TIMES, freq="year").notes == []


def test_tables(over_time: Any) -> None:
    pytest.importorskip("pandas")
    frame = over_time.to_frame()
    assert list(frame["slice"]) == over_time.slices.astype(str).tolist()
    np.testing.assert_allclose(frame.iloc[:, 2:], over_time.prevalence)
    classes = over_time.to_frame("classes")
    assert list(classes["class"]) == ["moving"] * 12 + ["steady"] * 12
    np.testing.assert_allclose(classes.iloc[12:, 3:], over_time.by_class["steady"])
    words = over_time.to_frame("words")
    first = over_time.terms(0)[1]
    some = words[(words["slice"] == "2001-01") & (words["kind"] == "increase")]
    assert tuple(some[some["topic"] == 1]["term"]) == first.terms
    assert set(words["name"]) == {*frame.columns[2:]}


@pytest.mark.parametrize("freq", ["week", 5])
def test_save_and_load(freq: Any, model: Any, tmp_path: Any) -> None:
    by = np.where(np.arange(len(TOPIC)) % 3, TOPIC, 7)
    over_time = sf.topics_over_time(model, X, TIMES, freq=freq, by=by)
    sf.save(over_time, tmp_path / "over.npz")
    loaded = sf.load(tmp_path / "over.npz")
    assert isinstance(loaded, sf.results.TopicsOverTime)
    assert loaded.terms(1) == over_time.terms(1)
    assert loaded.to_rows("classes") == over_time.to_rows("classes")
    assert loaded.freq == freq
    assert list(loaded.by_class) == [0, 1, 7]
    np.testing.assert_array_equal(loaded.slices, over_time.slices)


def test_dynamic_topics_have_a_prevalence_over_time(tmp_path: Any) -> None:
    model = MODELS["dynamic"]()
    sf.save(model.over_time_, tmp_path / "over.npz")
    for over in (model.over_time_, sf.load(tmp_path / "over.npz")):
        np.testing.assert_array_equal(over.prevalence, model.prevalence_)
        np.testing.assert_array_equal(over.lengths(0.3), model.lengths(0.3))
        assert repr(over.peaks(2)) == repr(model.peaks(2))
        assert (
            repr(over)
            == "TopicsOverTime(2 topics, 600 documents, 12 slices from 2001-01 to 2001-12)"
        )
        assert [row["documents"] for row in over.to_rows()] == model.slice_sizes_.tolist()
        assert over.to_rows("words") == []
        assert not len(over.documents(0, 1))
    with pytest.raises(AttributeError, match="not fitted"):
        _ = sf.DynamicTopics().over_time_


def test_names_of_the_model(tmp_path: Any) -> None:
    model = sf.TopicSupervisedNMF(random_state=0, max_iter=5, tol=0).fit(X, CLASSES)
    over_time = sf.topics_over_time(model, X, TIMES)
    assert [topic.name for topic in over_time.terms(0)] == ["moving", "steady"]
    sf.save(over_time, tmp_path / "over.npz")
    assert sf.load(tmp_path / "over.npz").topic_names == ["moving", "steady"]


def test_several_labels_and_missing_ones(model: Any) -> None:
    both = np.stack([TOPIC == 0, np.ones(len(TOPIC), bool)], axis=1).astype(float)
    over_time = sf.topics_over_time(model, X, TIMES, by=both)
    np.testing.assert_allclose(over_time.by_class[1], over_time.prevalence)
    numbers = TOPIC.astype(int) + 3
    for missing in (None, np.nan, -1, "?"):  # as everywhere
        by = [missing if one == 4 else int(one) for one in numbers]
        more = {"unlabeled": "?"} if missing == "?" else {}
        if missing == "?":
            by = [str(one) for one in by]
        found = sf.topics_over_time(model, X, TIMES, by=by, **more)
        assert [*map(int, found.by_class)] == [3], missing
    two = sf.topics_over_time(model, X, TIMES, by=np.where(TOPIC, 3, -1), unlabeled=None)
    assert [*two.by_class] == [-1, 3]
    some = sf.topics_over_time(model, X, TIMES, by=np.where(TOPIC, "steady", None))
    assert list(some.by_class) == ["steady"]
    assert some.class_sizes["steady"].sum() == (TOPIC == 1).sum()


@pytest.mark.parametrize(
    ("times", "freq", "starts"),
    [
        (["2001-01-05", "2001-04-02", "2001-04-30"], "month", ["2001-01", "", "", "2001-04"]),
        (["2001-01-05", "2001-01-06", "2001-01-07"], "month", ["2001-01"]),
        (["1958-03", "1958-04", "1958-05"], "month", ["1958-03", "1958-04", "1958-05"]),
        ([1899, 1900, 1902], "year", ["1899", "1900", "", "1902"]),
        (["2001", "2001", "2003"], 2, ["2001", "2002"]),
    ],
)
def test_slices(times: Any, freq: Any, starts: list[str], tmp_path: Any) -> None:
    """Empty slices, one slice, dates before 1970, years alone, slices of one document."""
    few = np.array([[2.0, 1, 0, 0], [0, 0, 1, 2], [0, 0, 3, 1]])
    model = sf.NMF(2, random_state=0).fit(few)
    over_time = sf.topics_over_time(model, few, times, freq=freq)
    assert len(over_time.slices) == len(starts)
    for t, (start, size) in enumerate(zip(starts, over_time.sizes, strict=True)):
        assert str(over_time.slices[t]).startswith(start)
        assert over_time.prevalence[t].sum() == pytest.approx(float(size > 0))
        for kind in ("increase", "top"):
            words = [word for topic in over_time.terms(t, kind) for word in topic.terms]
            assert bool(words) == (size > 0) or (kind == "increase" and not words)
        assert len(over_time.documents(t, 0)) <= size
    sf.save(over_time, tmp_path / "over.npz")
    assert sf.load(tmp_path / "over.npz").to_rows() == over_time.to_rows()
    pytest.importorskip("matplotlib")
    over_time.plot()


def test_documents_that_no_topic_explains(model: Any) -> None:
    few = sp.vstack([X[:3], sp.csr_array((2, 40))], format="csr")
    over_time = sf.topics_over_time(
        model, few, ["2001", "2001", "2002", "2002", "2003"], freq="year"
    )
    np.testing.assert_allclose(over_time.prevalence.sum(axis=1), [1, 1, 0])
    assert len(over_time.documents(2, 0)) == 0


def test_dense_data_with_missing_entries(model: Any) -> None:
    dense = X.toarray()
    expected = sf.topics_over_time(model, dense, TIMES)
    np.testing.assert_allclose(
        expected.words["top"], sf.topics_over_time(model, X, TIMES).words["top"]
    )
    dense[0, 0] = np.nan
    assert sf.topics_over_time(model, dense, TIMES).prevalence.sum() == pytest.approx(MONTHS)


def test_picture(over_time: Any) -> None:
    pytest.importorskip("matplotlib")
    drawn = over_time.plot(kind="lines", share="slice", title="Months")
    (axes,) = drawn.axes
    assert axes.get_title() == "Months"
    drawn = sf.plotting.topics_over_time(over_time, topics=[1])
    assert len(drawn.axes[0].get_yticklabels()) == 1


def test_refusals(model: Any, over_time: Any, tmp_path: Any) -> None:
    def call_refused(kind: Any, message: str, *given: Any, **more: Any) -> None:
        refused(message, sf.topics_over_time, *given, **more, error=kind)

    sp.save_npz(tmp_path / "X.npz", sp.csr_matrix(X), compressed=False)
    on_disk = sf.io.open_csr(tmp_path / "X.npz")
    call_refused(TypeError, "X is on disk, and topics_over_time", model, on_disk, TIMES)
    call_refused(TypeError, "model must be fitted", sf.NMF(2), X, TIMES)
    call_refused(TypeError, "model must be fitted", "NMF", X, TIMES)
    tensor = sf.NonnegativeCP(1, max_iter=5, tol=0).fit(np.ones((2, 3, 4)))
    call_refused(TypeError, "model must be fitted", tensor, X, TIMES)
    call_refused(ValueError, "negative components_", PCA(2).fit(X.toarray()), X, TIMES)
    call_refused(ValueError, "times has 3 entries and X has 600", model, X, TIMES[:3])
    call_refused(ValueError, "by has 3 entries and X has 600", model, X, TIMES, by=CLASSES[:3])
    call_refused(ValueError, "X has 3 features", model, X[:, :3], TIMES)
    call_refused(ValueError, "feature_names holds 1 names", model, X, TIMES, feature_names=["a"])
    call_refused(ValueError, "freq must be one of", model, X, TIMES, freq="eon")
    call_refused(ValueError, "n_terms", model, X, TIMES, n_terms=0)
    call_refused(ValueError, "0 sample", model, X[:0], [])
    call_refused(ValueError, "is not a date", model, X, ["soon"] * 600)
    for wrong, message in ((12, "slice"), (-1, "slice"), ("2009-01", "none begins")):
        refused(message, over_time.terms, wrong)
    refused("kind", over_time.terms, 0, "more")
    refused("topic", over_time.documents, 0, 2)
    refused("part", over_time.to_rows, "terms")


def test_dask_arrays_are_refused(model: Any) -> None:
    array = pytest.importorskip("dask.array")
    with pytest.raises(TypeError, match="X is a Dask array"):
        sf.topics_over_time(model, array.from_array(X.toarray()), TIMES)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["neighbors", "tied", "nmf"])
def test_dynamic_topics_have_the_same_prevalence(method: str) -> None:
    model = sf.DynamicTopics(2, freq="quarter", method=method, random_state=0).fit(X, TIMES)
    over_time = sf.topics_over_time(model, X, TIMES, freq="quarter")
    np.testing.assert_array_equal(over_time.prevalence, model.prevalence_)
    np.testing.assert_array_equal(over_time.slices, model.slices_)
    np.testing.assert_array_equal(over_time.sizes, model.slice_sizes_)
    assert repr(over_time.peaks()) == repr(model.peaks())
