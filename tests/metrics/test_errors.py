"""Metrics: what they refuse, what they load, and that inputs stay as they are."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from brute_force import (
    NORMALIZATIONS,
    class_numbers,
    counts,
    representation,
    sparse_forms,
    topic_matrix,
)
from helpers.each import each
from helpers.refused import refused

import ssnmf_fast as sf
from ssnmf_fast import metrics


@pytest.mark.slow
def test_import_is_lazy_and_needs_no_scikit_learn() -> None:
    code = (
        "import sys, ssnmf_fast as sf; assert 'ssnmf_fast.metrics' not in sys.modules; "
        "assert 'metrics' in dir(sf); sf.metrics.hoyer_sparsity([1, 2]); "
        "assert 'sklearn' not in sys.modules; assert sf.metrics.__all__"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'metric'"):
        _ = sf.metric


GOOD = np.arange(8.0).reshape(4, 2)
LABELS = [0, 1, 0, 1]


def changed(value: float) -> np.ndarray:
    S = GOOD.copy()
    S[2, 1] = value
    return S


@each(
    "call",
    [
        metrics.clustering_score,
        metrics.jaccard_similarity,
        metrics.match_topics,
        metrics.inter_label_sparsity,
    ],
)
@each(
    ("S", "labels", "error", "message"),
    [
        (changed(-1), LABELS, ValueError, r"S\[2, 1\] = -1"),
        (changed(np.nan), LABELS, ValueError, "S contains NaN at .*. Fill it here"),
        (sp.csr_array(changed(np.nan)), LABELS, ValueError, "S contains NaN at .*. Fill it here"),
        (changed(np.inf), LABELS, ValueError, r"S contains infinity at \[2, 1\]"),
        ([[1.0], [1.0, 2.0]], LABELS, ValueError, "S has rows of different lengths"),
        (GOOD[0], LABELS, ValueError, "S must have two dimensions"),
        (GOOD[:, :0], LABELS, ValueError, "S has shape .* at least one row"),
        (GOOD.astype(str), LABELS, TypeError, "S has dtype <U"),
        (GOOD, LABELS[:3], ValueError, "holds 3 labels; expected one for each of the 4"),
        (GOOD, [None] * 4, ValueError, "has no labeled sample"),
        (GOOD, [0.5, 1, 0, 1], ValueError, "holds 0.5; labels must be text or whole numbers"),
        (GOOD, [0, np.inf, 0, 1], ValueError, "holds inf"),
        (GOOD, ["a", 1, "a", 1], TypeError, "labels of one kind"),
        (GOOD, np.array(LABELS, dtype=complex), TypeError, "labels must be text or integers"),
    ],
)
def test_errors_of_representations(call, S, labels, error, message) -> None:
    refused(message, call, S, labels, error=error)


@each(
    ("call", "error", "message"),
    [
        (
            lambda m: m.clustering_score(GOOD, LABELS, assignment="best"),
            ValueError,
            "assignment must be one of 'hard', 'soft'; got 'best'",
        ),
        (
            lambda m: m.clustering_score(GOOD, np.ones((3, 2))),
            ValueError,
            r"truth has shape \(3, 2\); expected \(4, 2\)",
        ),
        (lambda m: m.clustering_score(GOOD, np.ones((4, 1))), ValueError, r"truth\.ravel\(\)"),
        (lambda m: m.match_topics(GOOD, np.zeros((4, 2))), ValueError, "truth has no member"),
        (lambda m: m.match_topics(GOOD, -GOOD), ValueError, r"truth\[0, 1\] = -1"),
        (lambda m: m.match_topics(GOOD, np.ones((2, 2, 2))), ValueError, "truth must have one"),
        (lambda m: m.match_topics(GOOD, [[1], [1, 0], [1], [0]]), ValueError, "truth holds lists"),
        (
            lambda m: m.match_topics(GOOD, LABELS, normalize="row"),
            ValueError,
            "normalize must be one of 'rows', 'columns', 'none'; got 'row'",
        ),
        (lambda m: m.match_topics(GOOD, LABELS, threshold=2), ValueError, "threshold must be at"),
        (lambda m: m.match_topics(GOOD, LABELS, threshold="x"), TypeError, "threshold must be a"),
        (lambda m: m.match_topics(GOOD, LABELS, unlabeled=[1]), TypeError, "unlabeled must be"),
        (lambda m: m.hoyer_sparsity([1.0]), ValueError, r"x has shape \(1,\)"),
        (lambda m: m.hoyer_sparsity(np.ones((2, 2, 2))), ValueError, r"x has shape \(2, 2, 2\)"),
        (lambda m: m.hoyer_sparsity([1.0, np.nan]), ValueError, "x contains NaN"),
        (lambda m: m.hoyer_sparsity(["a", "b"]), TypeError, "x has dtype <U1"),
        (lambda m: m.inter_label_sparsity(GOOD, [1] * 4), ValueError, "one class only, 1"),
        (lambda m: m.inter_label_sparsity(GOOD, np.eye(4)), ValueError, "labels must have one"),
        (lambda m: m.inter_label_sparsity(GOOD, sp.eye_array(4)), TypeError, "a sparse matrix"),
    ],
)
def test_errors(call, error, message) -> None:
    refused(message, call, metrics, error=error)


@each(
    ("given", "error", "message"),
    [
        ({"X": GOOD}, TypeError, "one of components"),
        ({"X": GOOD, "components": GOOD, "terms": [[0, 1]]}, TypeError, "one of components"),
        (
            {"X": GOOD, "components": np.ones((2, 3))},
            ValueError,
            r"components has shape \(2, 3\); expected \(2, 2\)",
        ),
        (
            {"X": GOOD, "components": [[1.0, 1.0], [1.0, 0.0]]},
            ValueError,
            r"components\[1\] has 1 terms",
        ),
        ({"X": GOOD, "components": GOOD, "n_terms": 1}, ValueError, "n_terms must be at"),
        ({"X": GOOD, "terms": []}, ValueError, "terms holds no topic"),
        ({"X": GOOD, "terms": [0, 1]}, TypeError, r"give \[terms\]"),
        ({"X": GOOD, "terms": [[0]]}, ValueError, r"terms\[0\] is \[0\]"),
        ({"X": GOOD, "terms": [[1, 1]]}, ValueError, "different terms"),
        ({"X": GOOD, "terms": [[0, 2]]}, ValueError, "must be at most 1; got 2"),
        ({"X": GOOD, "terms": [[0, 1], [0.5, 1]]}, TypeError, "must be an integer"),
        ({"X": GOOD, "terms": "ab"}, TypeError, "got str"),
        ({"X": -GOOD, "terms": [[0, 1]]}, ValueError, r"X\[0, 1\] = -1"),
        (
            {"X": GOOD, "terms": [[0, 1]], "measure": "c_w"},
            ValueError,
            "measure must be one of 'npmi', 'umass', 'c_v'",
        ),
        (
            {"X": [[0, 1], [0, 1]], "terms": [[0, 1]], "measure": "umass"},
            ValueError,
            "term 0 of topic 0 occurs in no document",
        ),
        ({"terms": [["a", "b"]]}, TypeError, "expected one of X"),
        ({"X": GOOD, "texts": [["a"]], "terms": [["a", "b"]]}, TypeError, "expected one of X"),
        ({"texts": [["a"]], "components": GOOD}, TypeError, "feature_names"),
        ({"X": GOOD, "components": GOOD, "feature_names": ["a", "b"]}, TypeError, "feature_names"),
        (
            {"texts": [["a"]], "components": GOOD, "feature_names": {"a": 1}},
            TypeError,
            r"feature_names must be a sequence of names; got dict",
        ),
        (
            {"texts": [["a"]], "components": GOOD, "feature_names": ["a"]},
            ValueError,
            "feature_names holds 1 names; expected one for each of the 2",
        ),
        ({"texts": "a b", "terms": [["a", "b"]]}, TypeError, "got str"),
        (
            {"texts": [["a"], "a b"], "terms": [["a", "b"]]},
            TypeError,
            r"texts\[1\] is a str.*build_analyzer",
        ),
        (
            {"texts": [3], "terms": [["a", "b"]]},
            TypeError,
            r"texts\[0\] must be a sequence of tokens; got 3",
        ),
        ({"texts": [], "terms": [["a", "b"]]}, ValueError, "texts holds no document"),
        (
            {"texts": [["a"]], "terms": [["a", "b"]], "window": 0},
            ValueError,
            "window must be at least 1",
        ),
        (
            {"texts": [["a"]], "terms": [["a", 1]]},
            TypeError,
            r"every entry of terms\[0\] must be a word",
        ),
        ({"texts": [["a"]], "terms": ["a", "b"]}, TypeError, r"give \[terms\]"),
        (
            {"texts": [["a"]], "terms": [["b", "a"]], "measure": "umass"},
            ValueError,
            "term 'b' of topic 0 occurs in no document",
        ),
    ],
)
def test_errors_of_coherence(given, error, message) -> None:
    refused(message, metrics.topic_coherence, error=error, **given)


def test_inputs_are_not_modified() -> None:
    S, T, X = representation(), topic_matrix(), counts()
    labels = class_numbers().astype(object)
    labels[2] = None
    for left, right, data in zip(
        [S, *sparse_forms(S)], [T, *sparse_forms(T)], [X, *sparse_forms(X)], strict=True
    ):
        kept = [Z.copy() for Z in (left, right, data)]
        for truth in (right, labels):
            metrics.clustering_score(left, truth, assignment="soft")
            metrics.clustering_score(left, truth)
            for normalize in NORMALIZATIONS:
                metrics.match_topics(left, truth, normalize=normalize)
        metrics.inter_label_sparsity(left, labels)
        metrics.hoyer_sparsity(left)
        metrics.topic_coherence(data, terms=[[3, 1, 2]])
        for Z, copy in zip((left, right, data), kept, strict=True):
            if not sp.issparse(Z):
                assert np.array_equal(Z, copy)
                continue
            assert np.array_equal(Z.data, copy.data)
            for name in ("indices", "indptr", "row", "col"):
                if hasattr(Z, name):
                    assert np.array_equal(getattr(Z, name), getattr(copy, name))
    assert labels[2] is None
