"""Labels that were drawn evenly from uneven classes: how to tell, and the true shares then.

Who labels the same number of samples of each class says nothing of how frequent the classes are.
Where the unlabeled samples show that they differ much, one component for each class is too few for
the large ones, and predictions that only know the shares of the labels are wrong.
"""

from __future__ import annotations

import numpy as np
from scipy.special import entr, softmax

from .._common.arrays import Array
from ._class_topics import LabeledSamples

_MUCH_LESS_EVEN = 0.8  # of the effective numbers of classes, of what neighbors say and of labels
_LEAST_PER_CLASS = 20  # unlabeled samples on average
_STEPS = 30
_LEAST_SHARE = 1e-4


def effective_number(shares: Array) -> float:
    """Return the number of equal classes that would be as uncertain as these shares."""
    return float(np.exp(entr(shares / shares.sum()).sum()))


def drawn_evenly(samples: LabeledSamples) -> bool:
    """Whether the classes of the unlabeled samples are much less even than the labels.

    The classes are those that the labels spread to over the graph of neighbors.
    """
    labels, graph = samples.labels, samples.graph
    unlabeled = np.flatnonzero(~labels.known)
    k = labels.members.shape[1]
    if graph is None or len(unlabeled) < _LEAST_PER_CLASS * k:
        return False
    codes = graph.spread(labels)[unlabeled].argmax(axis=1)
    counts = np.bincount(codes, labels.weight[unlabeled], minlength=k)
    return effective_number(counts) < _MUCH_LESS_EVEN * effective_number(labels.prior())


def log_ratio(shares: Array, prior: Array) -> Array:
    """Return what to add to the logits of a classifier that learned from other shares, (k,)."""
    return np.asarray(np.log(np.maximum(shares, _LEAST_SHARE) / np.maximum(prior, _LEAST_SHARE)))


def shares_of_classes(logits: Array, prior: Array, weight: Array) -> Array:
    """Return the shares of the classes, (k,), by the EM algorithm of Saerens et al. (2002).

    The logits of samples, (n, k), are those of a classifier that learned from classes with the
    shares `prior`; `weight` (n,) are their weights.
    """
    prior = np.maximum(prior, _LEAST_SHARE)
    chances, found = softmax(logits, axis=1), prior
    for _ in range(_STEPS):
        again = chances * (found / prior)
        likely = again / again.sum(axis=1, keepdims=True)
        found = np.maximum(np.average(likely, axis=0, weights=weight), _LEAST_SHARE)
        found = found / found.sum()
    return np.asarray(found)
