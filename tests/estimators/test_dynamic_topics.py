"""DynamicTopics: topics are found in the slices of time in which they live."""

from copy import copy

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import dated_documents as dated
from helpers.absent_packages import hide
from helpers.each import each
from helpers.refused import refused
from sklearn.base import clone

import ssnmf_fast as sf

X, TIMES, TOPICS = dated.documents()
MONTHS = (TIMES.astype("datetime64[M]") - dated.FIRST).astype(int)
SMALL = np.kron(np.eye(2), np.ones((6, 3)))
MONTHLY = np.arange("2020-01", "2021-01", dtype="datetime64[M]")


def component_of(model, topic):
    """The component that has most of the terms of a topic."""
    return int(model.components_[:, 10 * topic : 10 * topic + 10].sum(axis=1).argmax())


@pytest.fixture(scope="module", params=["frobenius", "kullback-leibler"])
def fitted(request):
    return sf.DynamicTopics(4, loss=request.param, random_state=0).fit(X, TIMES)


class TestTopicsInTime:
    def test_every_topic_has_a_component(self, fitted):
        assert len({component_of(fitted, topic) for topic in range(4)}) == 4

    def test_an_event_peaks_when_it_happens(self, fitted):
        peak = fitted.peaks()[component_of(fitted, dated.EVENT)]
        assert (peak.slice - dated.FIRST).astype(int) in dated.EVENT_AT
        assert peak.concentration > 0.6
        assert peak.periodicity < 0.1

    def test_a_persistent_topic_is_always_there(self, fitted):
        topic = component_of(fitted, dated.PERSISTENT)
        values = fitted.prevalence_[:, topic]
        assert (values > 0.1 * values.max()).mean() > 0.8
        assert fitted.peaks()[topic].concentration < 0.25

    def test_a_yearly_topic_has_a_period(self, fitted):
        topic = component_of(fitted, dated.YEARLY)
        assert set(np.argsort(fitted.prevalence_[:, topic])[-3:]) == set(dated.YEARLY_AT)
        assert fitted.peaks()[topic].periodicity > 0.7
        others = [fitted.peaks()[component_of(fitted, k)] for k in (0, 1, 3)]
        assert all(other.periodicity < 0.3 for other in others)

    def test_prevalence_follows_the_truth(self, fitted):
        truth = dated.shares()
        for topic in range(4):
            found = fitted.prevalence_[:, component_of(fitted, topic)]
            if topic != dated.PERSISTENT:
                assert np.corrcoef(found, truth[:, topic])[0, 1] > 0.9

    def test_every_document_is_represented(self, fitted):
        largest = fitted.representation_.argmax(axis=1)
        wanted = np.array([component_of(fitted, topic) for topic in range(4)])[TOPICS]
        assert (largest == wanted).mean() > 0.85

    def test_the_matrix_misses_what_lasts_shortly(self, fitted):
        model = sf.DynamicTopics(4, method="nmf", loss=fitted.loss, random_state=0).fit(X, TIMES)
        assert model.prevalence_.shape == (36, 4)
        if fitted.loss == "frobenius":
            assert max(peak.concentration for peak in model.peaks()) < 0.5


class TestFit:
    def test_shapes_and_units(self, fitted):
        assert fitted.components_.shape == (4, 40)
        np.testing.assert_allclose(fitted.components_.sum(axis=1), 1)
        assert fitted.prevalence_.shape == (36, 4)
        assert str(fitted.slices_[0]) == "2001-01"
        assert fitted.slice_sizes_.sum() == len(X)
        np.testing.assert_allclose(fitted.prevalence_.sum(axis=1), 1)

    def test_transform(self, fitted):
        assert np.array_equal(fitted.transform(X), fitted.representation_)
        assert np.array_equal(clone(fitted).fit_transform(X, TIMES), fitted.representation_)
        assert list(fitted.get_feature_names_out()[:1]) == ["dynamictopics0"]
        refused("40 features", fitted.transform, X[:, 1:])

    def test_sparse_is_dense_and_seeds_repeat(self, fitted):
        again = clone(fitted).fit(sp.coo_array(X), TIMES.tolist())
        np.testing.assert_allclose(again.prevalence_, fitted.prevalence_, rtol=1e-6, atol=1e-9)
        assert again.n_iter_ == fitted.n_iter_
        assert again.objective_[-1][1] == pytest.approx(fitted.objective_[-1][1])

    def test_single_precision(self):
        model = sf.DynamicTopics(4, random_state=0).fit(X.astype(np.float32), TIMES)
        arrays = model.components_, model.prevalence_, model.representation_
        assert {array.dtype for array in arrays} == {np.dtype(np.float32)}

    def test_documents_per_slice(self):
        for number in (5, 10_000):
            model = sf.DynamicTopics(4, documents_per_slice=number, random_state=0).fit(X, TIMES)
            assert model.representation_.shape == (len(X), 4)
            assert np.isfinite(model.prevalence_).all()
        every = sf.DynamicTopics(4, documents_per_slice=60, random_state=0, init="random")
        assert np.isfinite(every.fit(X, TIMES).prevalence_).all()

    def test_slices_without_documents(self):
        month = MONTHS
        gap = (month < 12) | (month >= 15)
        model = sf.DynamicTopics(4, random_state=0).fit(X[gap], TIMES[gap])
        assert len(model.slices_) == 36
        assert not model.slice_sizes_[12:15].any()
        assert not model.prevalence_[12:15].any()

    def test_documents_without_words(self):
        model = sf.DynamicTopics(2, random_state=0).fit(np.zeros((12, 6)), MONTHLY)
        assert not model.prevalence_.any()
        assert not model.representation_.any()
        half = SMALL * (np.arange(12) < 6)[:, None]
        model = sf.DynamicTopics(2, random_state=0).fit(half, MONTHLY)
        assert not model.prevalence_[6:].any()

    @pytest.mark.parametrize("freq", ["day", "week", "quarter", "year", 7])
    def test_frequencies(self, freq):
        model = sf.DynamicTopics(2, freq=freq, random_state=0).fit(X, TIMES)
        assert len(model.slices_) == len(model.prevalence_) == len(model.slice_sizes_)
        assert np.isnan(model.peaks()[0].periodicity) == (freq in ("year", 7))

    def test_input_is_not_changed(self):
        kept, days = X.copy(), TIMES.copy()
        sf.DynamicTopics(2, random_state=0, max_iter=3, tol=0).fit(X, TIMES)
        assert np.array_equal(X, kept)
        assert np.array_equal(TIMES, days)


class TestDegenerateTopics:
    @pytest.mark.parametrize(
        ("loss", "message"),
        [
            ("frobenius", r"Of the 10 topics, \d+ resemble others"),
            ("kullback-leibler", "n_components=10 is near or above the number of slices"),
        ],
    )
    def test_nearly_as_many_topics_as_slices(self, loss, message):
        months = np.repeat(np.arange("2001-01", "2002-01", dtype="datetime64[M]"), 20)
        words = 0.7 ** np.arange(20)  # the same in all months
        counts = np.random.default_rng(0).poisson(40 * words, (len(months), 20)).astype(float)
        model = sf.DynamicTopics(10, method="tensor", loss=loss, random_state=0)
        with pytest.warns(UserWarning, match=f"{message}.*method='nmf'"):
            model.fit(counts, months)

    def test_topics_of_one_slice_each(self):
        months = np.repeat(np.arange("2001-01", "2001-06", dtype="datetime64[M]"), 4)
        counts = np.kron(np.eye(5), np.ones((4, 3)))
        model = sf.DynamicTopics(5, method="nmf", random_state=0)
        with pytest.warns(UserWarning, match="lie in one slice of time alone, with 5") as found:
            model.fit(counts, months)
        assert "method=" not in str(found[0].message)


@pytest.fixture(scope="module")
def quarters():
    return sf.DynamicTopics(2, freq="quarter", random_state=0).fit(SMALL, MONTHLY)


class TestTables:
    def test_with_pandas(self, quarters):
        pytest.importorskip("pandas")
        table = quarters.to_frame(list("abcdef"), n_terms=2)
        assert sorted(name[3:] for name in table.columns) == ["a, b", "d, e"]
        assert [name[:3] for name in table.columns] == ["0: ", "1: "]
        assert [f"{day:%Y-%m-%d}" for day in table.index[:2]] == ["2020-01-01", "2020-04-01"]
        np.testing.assert_array_equal(table.to_numpy(), quarters.prevalence_)
        table = quarters.peaks().to_frame()
        assert list(table.columns) == list(quarters.peaks()[0]._fields)
        assert table["topic"].tolist() == [0, 1]
        assert len(quarters.intervals(SMALL, MONTHLY, n_fits=2).to_frame()) == 2

    def test_without_pandas(self, quarters, monkeypatch):
        hide("pandas", monkeypatch)
        for call in (quarters.to_frame, quarters.peaks().to_frame):
            refused(r"ssnmf-fast\[cli\]", call, error=sf.MissingPackageError)

    def test_peaks(self):
        model = sf.DynamicTopics(2, random_state=0).fit(SMALL, MONTHLY)
        assert [peak.topic for peak in model.peaks()] == [0, 1]
        assert all(np.isnan(peak.periodicity) for peak in model.peaks())  # one year only
        assert all(peak.concentration == pytest.approx(1) for peak in model.peaks(window=6))
        assert not np.isnan(model.peaks(period=4)[0].periodicity)
        refused("window must be at least 0", model.peaks, window=-1)
        refused("period must be at least 2", model.peaks, period=1)

    def test_periodicity_is_not_that_of_a_trend(self, fitted):
        model, t = copy(fitted), np.arange(36)
        series = np.stack([t, np.exp(-(((t - 18) / 8) ** 2)), t % 12 == 3, t == 9], axis=1)
        model.prevalence_ = series.astype(float)
        found = [peak.periodicity for peak in model.peaks()]
        assert found[2] > 0.9
        assert max(found[0], found[1], found[3]) < 0.1

    def test_lengths(self, fitted):
        model = copy(fitted)
        model.prevalence_ = np.zeros((36, 4))
        model.prevalence_[3:7, 0] = [1, 2, 4, 2]
        model.prevalence_[::12, 1] = 1
        model.prevalence_[:, 2] = 1
        assert model.lengths().tolist() == [3, 3, 36, 0]
        assert model.lengths(share=0.25).tolist() == [4, 3, 36, 0]
        assert model.lengths(share=1).tolist() == [1, 3, 36, 0]
        for share in (0, 1.5):
            refused("share must be above 0 and at most 1", model.lengths, share)

    def test_a_period_of_a_day(self):
        hours = np.datetime64("2020-01-01", "h") + np.arange(96)
        counts = np.where(np.arange(96)[:, None] % 24 < 6, [5, 5, 0, 0], [0, 0, 5, 5])
        model = sf.DynamicTopics(2, freq="6 hours", random_state=0)
        assert model.fit(counts, hours).peaks()[0].periodicity > 0.6
        assert str(model.slices_[1]) == "2020-01-01T06"
        assert (
            model.prevalence(counts[:1], hours[:1] + np.timedelta64(200, "h")).slices.dtype
            == model.slices_.dtype
        )


@pytest.mark.parametrize("drawn", [None, 30])
def test_every_document_is_in_its_slice(drawn):
    """One component of the tensor, under the divergence, has the sums of its slices."""
    sizes = np.bincount(MONTHS)
    per_slice = drawn or int(sizes.max())
    options = {"loss": "kullback-leibler", "random_state": 0, "tol": 1e-10, "max_iter": 500}
    model = sf.DynamicTopics(1, method="tensor", documents_per_slice=per_slice, **options)
    model.fit(X, TIMES)
    sums = np.array([X[month == MONTHS].sum() for month in range(len(sizes))])
    whole = sizes <= per_slice  # of others `per_slice` documents are drawn
    found = model.prevalence_[:, 0] * model.slice_sizes_
    np.testing.assert_allclose(found[whole], sums[whole], rtol=1e-4)
    np.testing.assert_allclose(found, sums, rtol=1e-4 if drawn is None else 0.2)


def test_the_model_of_the_thesis_makes_all_its_iterations():
    settings = {"method": "tensor", "init": "svd", "max_iter": 60, "random_state": 0}
    model = sf.DynamicTopics(2, solver="mu", **settings).fit(SMALL, MONTHLY)
    assert model.n_iter_ == 60
    same = sf.DynamicTopics(2, solver="mu", tol=0, **settings).fit(SMALL, MONTHLY)
    np.testing.assert_array_equal(model.components_, same.components_)
    for more in ({"solver": "mu", "tol": 1e-4}, {"solver": "auto"}):
        assert sf.DynamicTopics(2, **settings, **more).fit(SMALL, MONTHLY).n_iter_ < 60


@pytest.mark.parametrize("method", ["neighbors", "tied", "tensor", "nmf"])
def test_data_of_any_size_have_the_same_topics(method):
    model = sf.DynamicTopics(4, method=method, random_state=0)
    expected = clone(model).fit(X, TIMES).components_
    for exponent in (-40, 40):
        found = clone(model).fit(X * 2.0**exponent, TIMES).components_
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


class TestErrors:
    @each(
        ("parameters", "times", "message"),
        [
            ({}, MONTHLY[:-1], "times has 11 entries and X has 12 documents"),
            (
                {},
                [*MONTHLY.astype(str)[:-1], "soon"],
                r"times\[11\] is 'soon', which is not a date",
            ),
            ({}, [*MONTHLY.astype(str)[:-1], None], r"times\[11\] is missing"),
            ({}, np.repeat(MONTHLY[:1], 12), "all times lie in one slice"),
            ({"freq": "fortnight"}, MONTHLY, "freq must be one of"),
            ({"freq": 1}, MONTHLY, "freq must be at least 2"),
            ({"method": "two-layer"}, MONTHLY, "method must be one of 'auto', 'neighbors', "),
            ({"loss": "squares"}, MONTHLY, "loss must be one of"),
            ({"documents_per_slice": 0}, MONTHLY, "documents_per_slice must be at least 1"),
            (
                {"documents_per_slice": 2, "method": "nmf"},
                MONTHLY,
                "Leave out documents_per_slice with method='nmf'",
            ),
            ({"n_components": 0}, MONTHLY, "n_components must be at least 1"),
            ({"init": "nndsvda", "method": "tensor"}, MONTHLY, "init must be one of"),
        ],
    )
    def test_values(self, parameters, times, message):
        model = sf.DynamicTopics(**{"n_components": 2} | parameters)
        refused(message, model.fit, SMALL, times)
        assert not hasattr(model, "components_")

    def test_types(self):
        for call in (sf.DynamicTopics(2).fit, sf.DynamicTopics(2).fit_transform):
            refused("times must be a sequence of times", call, SMALL, error=TypeError)
        with pytest.raises(TypeError, match="freq must be one of"):
            sf.DynamicTopics(2, freq=1.5).fit(SMALL, MONTHLY)
        refused("Negative values", sf.DynamicTopics(2).fit, -SMALL, MONTHLY)
        refused("NaN", sf.DynamicTopics(2).fit, SMALL * np.nan, MONTHLY)
        broken = sp.csr_array(SMALL)
        broken.data[5] = -1
        refused(r"X\[1, 2\]", sf.DynamicTopics(2).fit, broken, MONTHLY)
        broken = sp.csr_array(SMALL)
        broken.indices[3] = 1000
        refused("1000", sf.DynamicTopics(2).fit, broken, MONTHLY)
