"""Samples that show best what a topic is about."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..report import Example
from ._fitted import Fitted

_LENGTH = 200  # characters of a text
_LEAST = 0.01  # share of a topic in a sample that is worth showing


def examples(fitted: Fitted, count: int = 3) -> list[list[Example]]:
    """Return for every topic the samples of which it explains the largest share.

    Of texts that begin alike only one is shown; of equal shares the sample comes first of which
    more is explained.
    """
    explained = fitted.amounts
    totals = explained.sum(axis=1, keepdims=True)
    shares = np.divide(explained, totals, out=np.zeros_like(explained), where=totals > 0)
    labels = fitted.labels.text("; ") if fitted.labels is not None else [""] * len(shares)
    found = []
    for share, amount in zip(shares.T, explained.T, strict=True):
        chosen: dict[str, Example] = {}
        for sample in np.lexsort((-amount, -share)):
            if len(chosen) == count or share[sample] < _LEAST:
                break
            text = "" if fitted.texts is None else excerpt(fitted.texts[sample])
            example = Example(
                int(sample), float(share[sample]), labels[sample], text, _image(fitted, sample)
            )
            chosen.setdefault(text or str(sample), example)
        found.append(list(chosen.values()))
    return found


def _image(fitted: Fitted, sample: int) -> npt.NDArray[Any] | None:
    if fitted.image_shape is None:
        return None
    row = fitted.X[[sample]]
    return np.asarray(row.toarray() if sp.issparse(row) else row).reshape(fitted.image_shape)


def excerpt(text: str, length: int = _LENGTH) -> str:
    """Return the beginning of a text on one line, cut between words where there are any."""
    line = " ".join(text.split())
    if len(line) <= length:
        return line
    cut = line[: length - 1]
    words = cut.rpartition(" ")[0]
    return (words if len(words) > length / 2 else cut).rstrip() + "…"
