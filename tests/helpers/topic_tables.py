"""Tables of topics from given matrices, as the estimators return them of fitted ones."""

from __future__ import annotations

from typing import Any

import numpy as np

import ssnmf_fast as sf
from ssnmf_fast.results import Topics


def make_topics(
    A: Any, names: Any = None, n_terms: int = 10, classes: Any = None, shares: Any = None
) -> Topics:
    """Return the topics of a model with the components A, and shares of classes."""
    model = sf.NMF(len(A))
    model.components_ = np.asarray(A, dtype=float)
    model.n_features_in_ = model.components_.shape[1]
    topics = model.topics(names, n_terms)
    return topics if classes is None else topics.with_shares(list(classes), shares)
