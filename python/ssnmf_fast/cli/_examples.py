"""Samples that show best what a topic is about."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import scipy.sparse.linalg

from .._common.arrays import Array
from ..report import Example
from ._fitted import Fitted
from ._judged import features

_LENGTH = 200  # characters of a text
_LEAST = 0.01  # share of a topic in a sample that is worth showing
_MAIN = 0.5  # of the largest share of a topic: what samples of that topic have


def examples(fitted: Fitted, count: int = 3) -> list[list[Example]]:
    """Return for every topic the samples that are typical of it.

    These are, of the samples of which it explains much, those most like the topic by the cosine: a
    text of two words may have a share of 100 %, and shows little.  Of texts that begin alike only
    one is shown.
    """
    shares, alike = fitted.shares, _cosines(fitted)
    labels = fitted.labels.text("; ") if fitted.labels is not None else [""] * len(shares)
    ids = None if fitted.ids is None else fitted.ids[1]
    found = []
    for share, cosine in zip(shares.T, alike.T, strict=True):
        chosen: dict[str, Example] = {}
        main = np.flatnonzero(share >= max(_LEAST, _MAIN * share.max()))
        for sample in main[np.lexsort((-share[main], -cosine[main]))]:
            if len(chosen) == count:
                break
            text = "" if fitted.texts is None else excerpt(fitted.texts[sample])
            example = Example(
                int(sample),
                float(share[sample]),
                labels[sample],
                text,
                _image(fitted, sample),
                "" if ids is None else str(ids[sample]),
            )
            chosen.setdefault(text or str(sample), example)
        found.append(list(chosen.values()))
    return found


def _cosines(fitted: Fitted) -> Array:
    """Return the cosines of samples and topics, (n, r)."""
    X, A = features(fitted), fitted.model.components_
    lengths = scipy.sparse.linalg.norm(X, axis=1) if sp.issparse(X) else np.linalg.norm(X, axis=1)
    products = np.asarray(X @ A.T)
    scales = np.outer(lengths, np.linalg.norm(A, axis=1))
    return np.asarray(np.divide(products, scales, out=np.zeros_like(products), where=scales > 0))


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
