"""The readout of a fit, made as sure as its validation tells, with the shares of the classes."""

from __future__ import annotations

from dataclasses import replace

from ._class_topics import LabeledSamples
from ._classifier_training import Plan, Trained, logits_without_labels, readout_of
from ._label_shift import log_ratio, shares_of_classes
from ._readout import LogisticReadout
from ._validation import Validation


def calibrated(
    samples: LabeledSamples, plan: Plan, trained: Trained, validation: Validation
) -> tuple[LogisticReadout, Validation]:
    """Return the readout, and the validation with the shares of the classes where labels mislead.

    These are found from predictions for the unlabeled samples, which must be probable.
    """
    weights = {name: weight for name, weight in validation.weights.items() if weight > 0}
    readout = validation.calibrate(readout_of(samples, trained, weights))
    if not plan.corrects or not validation.rows.any():
        return readout, validation
    logits, prior = logits_without_labels(samples, trained, readout), samples.labels.prior()
    shares = shares_of_classes(logits, prior)
    return readout.shifted(log_ratio(shares, prior)), replace(validation, shares=shares)
