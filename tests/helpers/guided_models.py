"""Guided models of every kind, with targets, for tests of what predicts."""

import numpy as np

import ssnmf_fast as sf

QUICK = {"random_state": 0, "max_iter": 20, "tol": 0, "n_threads": 1}


def guided_models(X, y):
    """Return name -> model to fit, targets."""
    several = np.where((y < 0)[:, None], -1, np.column_stack([y < 5, y % 2 == 0]))
    rank = {"n_components": 10, **QUICK}
    return {
        "chosen": (sf.FewLabelsClassifier(**QUICK), y),
        "several": (sf.FewLabelsClassifier(**QUICK), several),
        "logistic": (sf.SSNMFClassifier(**rank), y),
        "refit": (sf.SSNMFClassifier(readout="refit", **rank), y),
        "joint": (sf.SSNMFClassifier(readout="joint", **rank), y),
        "regressor": (sf.SSNMFRegressor(**rank), np.where(y < 0, np.nan, y)),
        "topics": (sf.TopicSupervisedNMF(**QUICK), y),
        "lists": (sf.TopicSupervisedNMF(**QUICK), [[] if c < 0 else [c, c % 3] for c in y]),
        "constrained": (sf.papers.ConstrainedNMF(**rank), y),
        "margin": (sf.papers.MarginNMF(**rank), several),
        "bayesian": (sf.papers.SupervisedBayesianNMF(**rank, count_scale=64), y),
    }
