"""DynamicTopics: methods that find topics."""

from __future__ import annotations

import dated_documents as dated
import numpy as np
import pytest
import scipy.sparse as sp

import ssnmf_fast as sf

X, TIMES, TOPICS = dated.documents()
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


@pytest.mark.slow
def test_every_method_takes_any_floats():
    for method in ("tensor", "sums", "nmf"):
        for form in (np.array, sp.csr_array):
            model = fit(method, form(X.astype(np.float32)), TIMES)
            arrays = model.components_, model.prevalence_, model.representation_
            assert {array.dtype for array in arrays} == {np.dtype(np.float32)}


def test_one_thread_or_two():
    for method in ("sums", "nmf"):
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

    @pytest.mark.parametrize("method", ["tensor", "nmf"])
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
