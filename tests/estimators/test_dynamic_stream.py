"""DynamicTopics: documents that come later, their prevalence and what is learned from them."""

from copy import deepcopy
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import dated_documents as dated
from helpers.refused import refused

import ssnmf_fast as sf

X, TIMES, _ = dated.documents()
MONTH = (TIMES.astype("datetime64[M]") - dated.FIRST).astype(int)
EARLY = MONTH < 30
NAMES = ["tensor", "tied", "nmf", "neighbors"]
LOSSES = ["frobenius", "kullback-leibler"]


def new(method="tied", n_components=4, **options):
    return sf.DynamicTopics(n_components, method=method, random_state=0, **options)


@cache
def _fit_of_early(method, **options):
    return new(method, **options).fit(X[EARLY], TIMES[EARLY])


def fit_early(method="tied", **options):
    """Return a copy of a fit to the first 30 months, which is made once."""
    return deepcopy(_fit_of_early(method, **options))


def learned(model, parts):
    for some in parts:
        model.partial_fit(X[some], TIMES[some])
    return model


def months(first, end):
    return [t == MONTH for t in range(first, end)]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("method", NAMES)
class TestPrevalence:
    def test_of_the_documents_of_the_fit(self, method, loss):
        model = new(method, loss=loss, tol=1e-6, max_iter=2000).fit(X, TIMES)
        found = model.prevalence(sp.csr_array(X), TIMES)
        assert np.array_equal(found.slices, model.slices_)
        assert np.array_equal(found.sizes, model.slice_sizes_)
        # The tensor has drawn some documents of each slice.
        size = 0.1 * X.sum(1).mean() if method == "tensor" else 1e-3
        np.testing.assert_allclose(found.values, model.prevalence_, atol=size)

    def test_of_new_slices(self, method, loss):
        model = fit_early(method, loss=loss)
        kept = model.prevalence_.copy()
        found = model.prevalence(X[~EARLY], TIMES[~EARLY])
        assert np.array_equal(found.slices, dated.FIRST + np.arange(30, 36))
        assert found.sizes.sum() == (~EARLY).sum()
        words = X[~EARLY].sum(axis=1).mean() if method == "tensor" else 1
        assert 0.6 * words < found.values.sum(axis=1).mean() < 1.1 * words
        assert method == "tensor" or found.values.sum(axis=1) == pytest.approx(np.ones(6))
        assert np.array_equal(model.prevalence_, kept)
        one = model.prevalence(X[MONTH == 33], TIMES[MONTH == 33])
        np.testing.assert_allclose(one.values[0], found.values[3], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("method", NAMES)
class TestLearning:
    def test_new_slices_are_added(self, method, loss):
        model = fit_early(method, loss=loss)
        before = model.prevalence_.copy()
        learned(model, months(30, 36))
        assert np.array_equal(model.slices_, dated.FIRST + np.arange(36))
        assert np.array_equal(model.slice_sizes_, np.bincount(MONTH))
        assert np.array_equal(model.prevalence_[:30], before)
        np.testing.assert_allclose(model.components_.sum(axis=1), 1)
        assert model.n_iter_ == 6
        assert [number for number, _ in model.objective_] == [1, 2, 3, 4, 5, 6]
        assert not hasattr(model, "representation_")
        found = model.prevalence(X[~EARLY], TIMES[~EARLY]).values
        size = X.sum(1).mean() if method == "tensor" else 1
        np.testing.assert_allclose(found, model.prevalence_[30:], atol=0.05 * size)

    def test_a_slice_in_two_parts(self, method, loss):
        fitted = fit_early(method, loss=loss)
        last = np.flatnonzero(MONTH == 30)
        two, one = (
            learned(fit_early(method, loss=loss), parts)
            for parts in ([last[::2], last[1::2]], [last])
        )
        assert two.slice_sizes_[30] == one.slice_sizes_[30] == len(last)
        np.testing.assert_allclose(
            two.prevalence_[30], one.prevalence_[30], atol=2 if method == "tensor" else 0.05
        )
        # A slice of the fit, too.
        first = MONTH == 3
        learned(fitted, [first])
        assert fitted.slice_sizes_[3] == 2 * first.sum()
        assert len(fitted.slices_) == 30

    def test_files_keep_what_was_learned(self, method, loss, tmp_path):
        model = new(method, loss=loss, freq="5 weeks").fit(X[EARLY], TIMES[EARLY])
        learned(model, months(30, 32))
        sf.save(model, tmp_path / "model.npz")
        loaded = sf.load(tmp_path / "model.npz")
        assert loaded.slices_.dtype == model.slices_.dtype
        for one in (model, loaded):
            learned(one, months(32, 34))
        np.testing.assert_allclose(loaded.components_, model.components_, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(loaded.prevalence_, model.prevalence_, rtol=1e-9, atol=1e-12)
        # Without statistics it goes on from the fit.
        fitted = fit_early(method, loss=loss)
        sf.save(fitted, tmp_path / "model.npz")
        loaded = learned(sf.load(tmp_path / "model.npz"), months(30, 31))
        learned(fitted, months(30, 31))
        np.testing.assert_array_equal(loaded.components_, fitted.components_)

    def test_threads_and_forms(self, method, loss):
        one, two, sparse = (fit_early(method, loss=loss, n_threads=k) for k in (1, 2, 1))
        learned(one, months(30, 32))
        learned(two, months(30, 32))
        assert np.array_equal(one.components_, two.components_)
        for some in months(30, 32):
            sparse.partial_fit(sp.csr_array(X[some]), TIMES[some])
        np.testing.assert_allclose(sparse.components_, one.components_, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("method", "known"), [("tensor", 26), ("neighbors", 32)])
def test_a_stream_finds_what_a_fit_finds(method, known, loss):
    start = known > MONTH  # the fourth topic begins with the 24th month
    model = learned(new(method, loss=loss).fit(X[start], TIMES[start]), months(known, 36))
    whole = new(method, loss=loss).fit(X, TIMES)
    cosine = whole.components_ @ model.components_.T
    cosine /= np.linalg.norm(whole.components_, axis=1)[:, None]
    cosine /= np.linalg.norm(model.components_, axis=1)
    assert np.sort(cosine.max(axis=1))[1] > (0.95 if method == "tensor" else 0.7)
    assert cosine.max(axis=1).min() > 0.4


def test_the_first_call_is_a_fit():
    model = new().partial_fit(X[EARLY], TIMES[EARLY])
    fitted = fit_early()
    assert np.array_equal(model.prevalence_, fitted.prevalence_)
    assert model.n_iter_ == fitted.n_iter_
    # A fit forgets what was learned.
    learned(model, months(30, 31)).fit(X[EARLY], TIMES[EARLY])
    assert not hasattr(model, "stream_statistics_")
    assert np.array_equal(model.prevalence_, fitted.prevalence_)


def test_earlier_slices_and_gaps():
    some = (MONTH > 9) & (MONTH < 20)
    model = learned(
        new(freq="7 months", max_iter=1000).fit(X[some], TIMES[some]), [MONTH == 1, MONTH == 35]
    )
    assert set(np.diff(model.slices_).astype(int)) == {7}
    months = (model.slices_ - dated.FIRST).astype(int)
    assert 10 in months
    assert months[0] == -4
    assert model.slice_sizes_.sum() == some.sum() + np.isin(MONTH, [1, 35]).sum()
    empty = model.slice_sizes_ == 0
    assert empty.any()
    assert not model.prevalence_[empty].any()


def test_what_is_forgotten():
    """Topics move to the words of new slices the sooner, the less is kept."""
    rng = np.random.default_rng(0)
    old = np.kron(np.eye(2), np.ones((6, 3))) * rng.uniform(0.8, 1.2, (12, 6))
    when = np.arange("2020-01", "2021-01", dtype="datetime64[M]")
    moved = old[:, [0, 3, 2, 1, 4, 5]]
    shares = []
    for keep in (1.0, 0.5):
        model = sf.DynamicTopics(2, method="nmf", random_state=0, forget_factor=keep)
        model.fit(old, when)
        for k in range(12):
            model.partial_fit(moved[[k]], when[[k]] + np.timedelta64(12, "M"))
        topic = model.components_[:, 4:].sum(axis=1).argmax()
        shares.append(model.components_[topic, 1])
    assert shares[1] > shares[0] + 0.05


def test_documents_without_words():
    model = fit_early()
    model.partial_fit(np.zeros((3, 40)), TIMES[MONTH == 30][:3])
    assert np.isfinite(model.components_).all()
    assert not model.prevalence_[30].any()
    learned(model, months(31, 32))
    assert model.prevalence_[31].any()


class TestErrors:
    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"n_components": 3}, "n_components must stay 4.*got 3"),
            ({"loss": "kullback-leibler"}, "loss must stay 'frobenius'"),
            ({"freq": "week"}, "freq must stay 'month'"),
            ({"method": "nmf"}, "method must stay 'tied'.*'nmf'"),
            ({"forget_factor": 2}, "forget_factor must be at most 1"),
        ],
    )
    def test_changes(self, changed, message):
        model = fit_early().set_params(**changed)
        before = dict(vars(model))
        refused(message, learned, model, months(30, 31))
        assert vars(model) == before

    @pytest.mark.slow
    def test_data(self):
        model = fit_early()
        before = dict(vars(model))
        for call in (model.partial_fit, model.prevalence):
            refused("40 features", call, X[:, 1:], TIMES)
            refused("times has 1 entries and X has 2", call, X[:2], TIMES[:1])
            refused("Negative values", call, -X, TIMES)
        with pytest.raises(ValueError, match=r"earlier and new times span .*Correct a wrong year"):
            new(freq="hour").fit(X, TIMES).partial_fit(X[:1], ["1900-01-01"])
        assert vars(model) == before

    def test_a_number_of_slices(self):
        model = new(freq=5).fit(X[EARLY], TIMES[EARLY])
        for call in (model.partial_fit, model.prevalence):
            refused("freq=5 divides the time of one fit", call, X, TIMES)

    def test_spoiled_statistics(self, tmp_path):
        model = learned(fit_early(), months(30, 31))
        sf.save(model, tmp_path / "model.npz")
        with np.load(tmp_path / "model.npz") as archive:
            arrays = dict(archive)
        arrays["array/stream_statistics_/b0"] = np.ones((3, 4))
        np.savez(tmp_path / "model.npz", **arrays)
        refused("do not have the shapes", sf.load, tmp_path / "model.npz")
        model.stream_statistics_ = {**model.stream_statistics_, "b0": np.ones((3, 4))}
        refused(r"cannot be saved.*do not have the shapes", sf.save, model, tmp_path / "other.npz")
