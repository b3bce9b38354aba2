"""DynamicTopics: methods that find topics, among them those of other libraries."""

from __future__ import annotations

import dated_documents as dated
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import NMF, LatentDirichletAllocation, TruncatedSVD
from sklearn.pipeline import make_pipeline

import ssnmf_fast as sf

X, TIMES, TOPICS = dated.documents()
SMALL = np.kron(np.eye(2), np.ones((6, 3)))
MONTHLY = np.arange("2020-01", "2021-01", dtype="datetime64[M]")
MONTH = (TIMES.astype("datetime64[M]") - dated.FIRST).astype(int)


def fit(method, X=X, times=TIMES, n_components=4, **options):
    return sf.DynamicTopics(n_components, method=method, random_state=0, **options).fit(X, times)


def means(values):
    return np.stack([values[t == MONTH].mean(axis=0) for t in range(dated.MONTHS)])


def correlations(model):
    """Correlation of every planted topic with the component that has most of its terms."""
    truth = dated.shares()
    at = [model.components_[:, 10 * k : 10 * k + 10].sum(axis=1).argmax() for k in range(4)]
    return [np.corrcoef(model.prevalence_[:, a], truth[:, k])[0, 1] for k, a in enumerate(at)]


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
class TestSums:
    def test_topics_in_time(self, loss):
        model = fit("sums", loss=loss)
        assert min(correlations(model)) > 0.9
        assert (model.prevalence_.sum(axis=1) > 0).all()
        # In the unit of X: a mean document has so many words.
        assert model.prevalence_.sum(axis=1).mean() == pytest.approx(X.sum(axis=1).mean(), rel=0.1)

    def test_it_is_nmf_of_the_sums(self, loss):
        options = {"loss": loss, "tol": 1e-7, "max_iter": 5000}
        model = fit("sums", **options)
        sums = np.stack([X[t == MONTH].sum(axis=0) for t in range(dated.MONTHS)])
        S = model.prevalence_ * model.slice_sizes_[:, None]
        found = sf.extend.objective(sums, S, model.components_, loss=loss)
        assert found == pytest.approx(model.objective_[-1][1], rel=1e-4)
        best = sf.factorize(sums, n_components=4, n_starts=5, random_state=0, **options)
        assert found < 1.01 * best.objective[-1][1]

    def test_starts_may_be_given(self, loss):
        model = fit("sums", loss=loss, init="random")
        assert min(correlations(model)) > 0.8
        start = np.ones((36, 4)), np.ones((4, 40)) + np.eye(4, 40)
        assert np.isfinite(fit("sums", loss=loss, init=start).prevalence_).all()


class TestTwoLayers:
    def test_what_is_always_there_is_found(self):
        model = fit("two-layer")
        assert correlations(model)[dated.PERSISTENT] > 0.9
        np.testing.assert_allclose(model.components_.sum(axis=1), 1)
        np.testing.assert_allclose(model.prevalence_, means(model.representation_))

    def test_topics_of_slices_are_matched(self):
        """Two topics, both of which every slice has, in an order of its own."""
        rng = np.random.default_rng(0)
        kinds = np.array([[0, 0, 0, 1], [1, 1, 1, 0], [0, 1, 0, 1]] * 4).ravel()
        data = np.kron(np.eye(2), np.ones(6))[kinds] * rng.uniform(0.5, 1.5, (48, 1))
        model = fit("two-layer", data, np.repeat(MONTHLY, 4), 2)
        early = model.components_[:, :6].sum(axis=1)
        np.testing.assert_allclose(np.sort(early), [0, 1], atol=1e-6)
        assert model.prevalence_[0].argmax() == early.argmax()

    def test_few_documents_and_none(self):
        data = SMALL[[0, 1, 2, 9, 10]]
        model = fit("two-layer", data, MONTHLY[[0, 1, 2, 9, 10]], 3)
        assert not model.prevalence_[3:9].any()
        assert not fit("two-layer", np.zeros((12, 6)), MONTHLY, 2).prevalence_.any()

    def test_a_start_of_arrays_is_refused(self):
        with pytest.raises(ValueError, match=r"init holds arrays.*'two-layer'"):
            fit("two-layer", init=(np.ones((36, 4)), np.ones((4, 40))))


class TestEstimators:
    @pytest.mark.slow
    def test_shares_stay_as_they_are(self):
        given = LatentDirichletAllocation(random_state=3, max_iter=3, max_doc_update_iter=10)
        model = fit(given)
        theirs = LatentDirichletAllocation(4, random_state=3, max_iter=3, max_doc_update_iter=10)
        np.testing.assert_allclose(model.prevalence_, means(theirs.fit_transform(X)))
        np.testing.assert_allclose(model.prevalence_.sum(axis=1), 1)
        wanted = theirs.components_ / theirs.components_.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(model.components_, wanted)
        assert (given.n_components, model.estimator_.n_components) == (10, 4)
        assert not hasattr(given, "components_")
        np.testing.assert_allclose(model.prevalence(X, TIMES).values, model.prevalence_)

    def test_weights_are_in_the_unit_of_the_data(self):
        model = fit(NMF(random_state=1, max_iter=1000))
        theirs = NMF(4, random_state=1, max_iter=1000)
        W = theirs.fit_transform(X)
        np.testing.assert_allclose(model.prevalence_, means(W * theirs.components_.sum(axis=1)))

    def test_a_seed_repeats(self):
        first, again = (fit(sf.NMF(max_iter=5, tol=0), sp.csr_array(X)) for _ in range(2))
        assert np.array_equal(first.prevalence_, again.prevalence_)
        other = sf.DynamicTopics(4, method=sf.NMF(max_iter=5, tol=0), random_state=1).fit(X, TIMES)
        assert not np.allclose(first.prevalence_, other.prevalence_)

    def test_saved_without_the_estimator(self, tmp_path):
        model = fit(sf.NMF())
        sf.save(model, tmp_path / "model.npz")
        loaded = sf.load(tmp_path / "model.npz")
        assert loaded.method_ == "NMF"
        assert np.array_equal(loaded.transform(X), model.representation_)
        assert [peak.slice for peak in loaded.peaks()] == [peak.slice for peak in model.peaks()]
        with pytest.raises(ValueError, match="the NMF that found the topics is not saved"):
            loaded.prevalence(X, TIMES)
        with pytest.raises(ValueError, match="method='tied' differs from method='NMF'"):
            loaded.partial_fit(X, TIMES)

    def test_a_fit_by_name_forgets_the_estimator(self):
        model = fit(sf.NMF())
        assert not hasattr(model.set_params(method="sums").fit(X, TIMES), "estimator_")

    def test_what_has_no_topics(self):
        with pytest.raises(ValueError, match=r"method=TruncatedSVD: .*negative or not finite"):
            fit(TruncatedSVD())
        with pytest.raises(ValueError, match=r"method=Pipeline: its components_ have shape \(\)"):
            fit(make_pipeline(sf.NMF(4)))


@pytest.mark.slow
def test_every_method_takes_any_floats():
    for method in ("tensor", "sums", "two-layer", "nmf", sf.NMF()):
        for form in (np.array, sp.csr_array):
            model = fit(method, form(X.astype(np.float32)), TIMES)
            arrays = model.components_, model.prevalence_, model.representation_
            assert {array.dtype for array in arrays} == {np.dtype(np.float32)}


def test_one_thread_or_two():
    for method in ("sums", "two-layer"):
        one, two = (fit(method, n_threads=number) for number in (1, 2))
        assert np.array_equal(one.prevalence_, two.prevalence_)


class TestIntervals:
    @pytest.mark.slow
    def test_an_event_is_sure(self):
        model = fit("sums")
        for over in ("documents", "starts"):
            table = model.intervals(X, TIMES, over=over, n_fits=8)
            assert [row.topic for row in table] == [0, 1, 2, 3]
            for row, peak, length in zip(table, model.peaks(), model.lengths(), strict=True):
                assert (row.slice, row.length) == (peak.slice, length)
                assert row.low_slice <= row.high_slice
                assert row.low_length <= row.high_length
                assert 0.9 < row.similarity <= 1
            event = table[model.components_[:, :10].sum(axis=1).argmax()]
            assert {event.low_slice, event.high_slice} <= set(dated.FIRST + np.array([10, 11]))
            assert (event.low_length, event.high_length) == (2, 2)

    @pytest.mark.slow
    def test_more_level_is_wider_and_seeds_repeat(self):
        model = fit("sums")
        narrow, wide = (model.intervals(X, TIMES, n_fits=6, level=level) for level in (0.1, 0.99))
        for one, other in zip(narrow, wide, strict=True):
            assert other.low_slice <= one.low_slice <= one.high_slice <= other.high_slice
            assert other.low_length <= one.low_length <= one.high_length <= other.high_length
        assert wide == model.intervals(X, TIMES, n_fits=6, level=0.99)

    @pytest.mark.parametrize("method", ["tensor", "nmf", NMF(max_iter=1000)])
    def test_other_methods(self, method):
        model = fit(method)
        before = model.prevalence_.copy()
        table = model.intervals(X, TIMES, n_fits=3)
        assert len(table) == 4
        assert np.array_equal(model.prevalence_, before)

    def test_errors(self):
        model = fit("sums")
        with pytest.raises(ValueError, match="over must be one of 'documents', 'starts'"):
            model.intervals(X, TIMES, over="slices")
        with pytest.raises(ValueError, match="n_fits must be at least 2"):
            model.intervals(X, TIMES, n_fits=1)
        with pytest.raises(ValueError, match="level must be above 0 and below 1"):
            model.intervals(X, TIMES, level=1)
        late = MONTH > 3
        with pytest.raises(ValueError, match="32 slices from 2001-05 on, and the fit had 36"):
            model.intervals(X[late], TIMES[late])
