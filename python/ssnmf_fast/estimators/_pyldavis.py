"""What pyLDAvis draws: distributions of topics, documents and terms."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._data.csr_file import CsrFile
from .._topics import divide_by_sums

_LEAST = 1e-12  # share that stands for 0, of which pyLDAvis would take the logarithm


def arrays_for_pyldavis(X: Any, shares: Array, A: Array, vocabulary: list[str]) -> dict[str, Any]:
    """Return the arguments of ``pyLDAvis.prepare``, without documents of no word or no topic.

    `shares` (n, r) are those of every topic in the documents X (n, m), and A (r, m) has the topics.
    """
    blocks = X.blocks() if isinstance(X, CsrFile) else [(slice(len(shares)), X)]
    kept, lengths, frequency = [], [], np.zeros(A.shape[1])
    for rows, block in blocks:
        values = block if sp.issparse(block) else np.nan_to_num(block)
        words = np.asarray(values.sum(axis=1, dtype=np.float64)).ravel()
        some = (words > 0) & shares[rows].any(axis=1)
        frequency += some.astype(np.float64) @ values
        kept.append(some)
        lengths.append(words[some])
    documents = np.concatenate(kept)
    if not documents.any():
        raise ValueError(
            "X has no document of which a topic explains something: there is nothing to draw. Give "
            "documents with words that the fit knows."
        )
    return {
        "topic_term_dists": _distributions(A),
        "doc_topic_dists": _distributions(shares[documents]),
        "doc_lengths": np.concatenate(lengths),
        "vocab": vocabulary,
        "term_frequency": frequency,
    }


def _distributions(values: Array) -> Array:
    """Return rows that sum to 1 and have no zeros; a row of zeros becomes an even one."""
    return divide_by_sums(np.maximum(divide_by_sums(values), _LEAST))
