"""Matrices of so many entries that the measures read them in several blocks."""

import numpy as np
import pytest
import scipy.sparse as sp

from ssnmf_fast import metrics

TIMES = 40_000  # copies of 20 rows of 4 entries: more than a block


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_copies_of_all_samples_change_nothing(form):
    rng = np.random.default_rng(0)
    S = np.round(rng.random((20, 4)) * (rng.random((20, 4)) < 0.7), 2)
    labels, T = np.arange(20) % 3, np.eye(3)[np.arange(20) % 3]
    many = form(np.tile(S, (TIMES, 1)))
    for assignment in ("hard", "soft"):
        wanted = metrics.clustering_score(S, labels, assignment=assignment)
        found = metrics.clustering_score(many, np.tile(labels, TIMES), assignment=assignment)
        np.testing.assert_allclose(found.per_topic, wanted.per_topic, rtol=1e-9)
    wanted = metrics.jaccard_similarity(S, T, normalize="rows")
    found = metrics.jaccard_similarity(many, form(np.tile(T, (TIMES, 1))), normalize="rows")
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_terms_of_many_topics_are_those_of_each(form):
    """Columns of zeros are terms that no topic has."""
    A = np.random.default_rng(1).gamma(0.5, size=(5, 12))
    wide = form(np.pad(A, ((0, 0), (0, 500_000))))
    found, wanted = (metrics.topic_diversity(Z, n_terms=5) for Z in (wide, A))
    np.testing.assert_allclose(found.per_topic, wanted.per_topic, rtol=1e-9)
    found, wanted = (metrics.topic_exclusivity(Z) for Z in (wide, sp.csc_array(wide)))
    np.testing.assert_allclose(found.per_topic, wanted.per_topic, rtol=1e-9)


@pytest.mark.slow
def test_coherence_of_many_samples_and_windows():
    rng = np.random.default_rng(2)
    texts = [[f"w{k}" for k in rng.integers(12, size=9)] for _ in range(20)]
    topics = [["w0", "w1", "w2"], ["w3", "w4", "w5", "w6"]]
    for measure in ("c_v", "npmi"):
        found, wanted = (
            metrics.topic_coherence(texts=one, terms=topics, measure=measure, window=5)
            for one in (texts * 4500, texts)  # more entries than are counted at a time
        )
        np.testing.assert_allclose(found.per_topic, wanted.per_topic, atol=1e-12)
    X = rng.poisson(0.4, (20, 12))
    many = sp.csr_array(np.tile(X, (20_000, 1)))
    found, wanted = (metrics.topic_coherence(Z, terms=[[0, 1, 2], [3, 4, 5, 6]]) for Z in (many, X))
    np.testing.assert_allclose(found.per_topic, wanted.per_topic, atol=1e-12)
