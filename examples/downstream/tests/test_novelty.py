"""The composed estimator: scikit-learn's checks, and its use in a pipeline."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from triage import Novelty

every_check = parametrize_with_checks([Novelty(random_state=0)])


@every_check  # type: ignore[untyped-decorator]
def test_sklearn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_new_subjects_are_novel() -> None:
    words = CountVectorizer(vocabulary=["charged", "invoice", "router", "connection", "printer"])
    novelty = make_pipeline(words, Novelty(random_state=0))
    novelty.fit(["charged invoice", "router connection"])
    shares = novelty.transform(["invoice charged", "connection router", "printer"])
    assert shares.ravel() == pytest.approx([0, 0, 1], abs=1e-2)
    assert list(novelty.get_feature_names_out()) == ["novelty"]
