"""DynamicTopics: documents of a slice share their coefficients."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import dated_documents as dated

import ssnmf_fast as sf

X, TIMES, _ = dated.documents()
MONTH = (TIMES.astype("datetime64[M]") - dated.FIRST).astype(int)
SIZES = np.bincount(MONTH)
LOSSES = ("frobenius", "kullback-leibler")
FINE = {"tol": 1e-9, "max_iter": 3000}


def fit(X=X, times=TIMES, **options):
    return sf.DynamicTopics(4, method="tied", random_state=0, **options).fit(X, times)


def means(values, month=MONTH):
    return np.stack([values[t == month].mean(axis=0) for t in range(dated.MONTHS)])


def correlations(model):
    truth = dated.shares()
    at = [model.components_[:, 10 * k : 10 * k + 10].sum(axis=1).argmax() for k in range(4)]
    return [np.corrcoef(model.prevalence_[:, a], truth[:, k])[0, 1] for k, a in enumerate(at)]


@pytest.mark.parametrize("loss", LOSSES)
def test_topics_follow_the_truth(loss):
    assert min(correlations(fit(loss=loss))) > 0.9


@pytest.mark.parametrize("loss", LOSSES)
def test_the_order_within_slices_means_nothing(loss):
    order = np.random.default_rng(0).permutation(len(X))
    first, second = fit(loss=loss), fit(X[order], TIMES[order], loss=loss)
    np.testing.assert_allclose(second.prevalence_, first.prevalence_, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(second.components_, first.components_, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_forms_and_threads(loss):
    model = fit(loss=loss)
    sparse = fit(sp.csr_array(X), loss=loss, n_threads=1)
    np.testing.assert_allclose(sparse.prevalence_, model.prevalence_, rtol=1e-7, atol=1e-9)
    again = fit(sp.csr_array(X), loss=loss, n_threads=3)
    assert np.array_equal(again.prevalence_, sparse.prevalence_)
    single = fit(X.astype(np.float32), loss=loss)
    assert single.prevalence_.dtype == single.components_.dtype == np.float32
    np.testing.assert_allclose(single.prevalence_, model.prevalence_, atol=0.05)


def test_a_slice_counts_for_so_many_documents():
    twice = np.flatnonzero(MONTH == 3).repeat(10)
    more, times = np.concatenate([X, X[twice]]), np.concatenate([TIMES, TIMES[twice]])
    few = fit(documents_per_slice=5), fit(more, times, documents_per_slice=5)
    # The unit of documents, and with it the smoothing, is that of all.
    np.testing.assert_allclose(few[1].prevalence_, few[0].prevalence_, atol=0.05)
    many = fit(documents_per_slice=500), fit(more, times, documents_per_slice=500)
    assert np.abs(many[1].components_ - many[0].components_).max() > 0.001


@pytest.mark.slow
def test_slices_without_documents_or_words_have_no_topics():
    gone = MONTH != 7
    half = X * (MONTH < 20)[:, None]
    for loss in LOSSES:
        model = fit(X[gone], TIMES[gone], loss=loss)
        assert not model.prevalence_[7].any()
        assert model.prevalence_[[6, 8]].any(axis=1).all()
        assert not fit(half, loss=loss).prevalence_[20:].any()
        assert not fit(0 * X, loss=loss).prevalence_.any()


@pytest.mark.parametrize("loss", ["itakura-saito", 1.5])
def test_other_losses(loss):
    model = fit(X + 0.1, loss=loss)
    np.testing.assert_allclose(model.prevalence_.sum(axis=1), 1, atol=0.1)
    assert min(correlations(model)) > 0.7


@pytest.mark.filterwarnings("ignore:Of the 4 topics")
def test_starts_and_callbacks():
    for loss in LOSSES:
        assert min(correlations(fit(loss=loss, init="nndsvda"))) > 0.8
        start = np.ones((dated.MONTHS, 4)), np.ones((4, 40)) + np.eye(4, 40)
        assert np.isfinite(fit(loss=loss, init=start).prevalence_).all()
        seen = []
        model = fit(loss=loss, callback=lambda state, seen=seen: seen.append(state) or True)
        assert len(seen) == 1
        assert np.isfinite(model.prevalence_).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_other_documents(loss):
    model = fit(loss=loss, **FINE)
    found = model.prevalence(X, TIMES)
    np.testing.assert_allclose(found.values, model.prevalence_, atol=0.02 * found.values.max())
    late = sf.DynamicTopics(4, method="tied", loss=loss, random_state=0).fit(
        X[MONTH < 30], TIMES[MONTH < 30]
    )
    late.partial_fit(X[MONTH >= 30], TIMES[MONTH >= 30])
    assert late.prevalence_.shape == (dated.MONTHS, 4)
    assert min(correlations(late)) > 0.8
