"""What a classifier carries from batch to batch: its classes and how often they occur."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._labels import ClassLabels, Indicators, is_indicator

Array = npt.NDArray[Any]


def batch_classes(model: Any, y: Any, classes: Any) -> tuple[bool, Array]:
    """Return whether there are several labels per sample, and the classes."""
    if hasattr(model, "classes_"):
        if classes is not None and not np.array_equal(np.unique(classes), model.classes_):
            raise ValueError(
                f"classes={classes!r} differ from those of the first call, "
                f"{model.classes_.tolist()}; leave them out, or start anew."
            )
        return model.multilabel_, model.classes_
    if is_indicator(y):
        return True, np.arange(np.shape(y)[1])
    if classes is None:
        raise ValueError(
            "classes must be passed on the first call to partial_fit: all classes that any batch "
            "will hold."
        )
    classes = np.unique(classes)
    if len(classes) < 2:
        raise ValueError(f"classes holds {classes.tolist()}; needed are two classes or more.")
    return False, classes


def running_prior(model: Any, targets: ClassLabels | Indicators) -> dict[str, Any]:
    """Return the shares of the classes over all batches so far, and the number of labels."""
    n, before = int(targets.labelled.sum()), getattr(model, "n_labelled_", 0)
    n_classes = len(targets.classes)
    prior = model.class_prior_ if before else np.full(n_classes, 1 / n_classes)
    if n:
        prior = (before * prior + n * targets.prior()) / (before + n)
    return {"class_prior_": prior, "n_labelled_": before + n}
