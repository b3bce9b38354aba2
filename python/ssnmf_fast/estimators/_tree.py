"""Function :func:`tree`: topics, their parts and so on, from the top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._common.arrays import Array, Seed
from .._common.text import short
from .._data.border import check_integer
from .._solver.losses import LossOption
from .._topics import amounts, divide_by_sums
from ._nmf import NMF
from ._splitting import divided
from ._topic_tree import TopicTree

Parts = tuple[Any, ...]  # one for each part of a topic, each the parts of that


def tree(
    X: npt.ArrayLike,
    levels: Sequence[Any],
    *,
    loss: LossOption = "frobenius",
    X_weights: Any = None,
    feature_names: Any = None,
    max_iter: int = 200,
    tol: float = 1e-4,
    random_state: Seed = None,
    n_threads: int | None = None,
) -> TopicTree:
    """Find topics, their parts, the parts of these and so on.

    The topics of the first level are those of :class:`NMF`.  Then topics are split as by
    :func:`split`, all of a level at once, and fitted again together.

    Parameters
    ----------
    X : array_like or scipy.sparse, shape (n_samples, m)
        Nonnegative samples; NaN in a dense X means missing.
    levels : sequence
        Either growing numbers of topics, as ``[5, 20]``: parts are given to topics by their sizes.
        Or an item for each topic, those of the largest first: the number of its parts, or the same
        for each of them, as ``[[2, 0], 3, 0]``; at least one item is a sequence.
    loss, X_weights, max_iter, tol, random_state, n_threads
        As in :class:`NMF`.
    feature_names : array_like of str, shape (m,), optional
        Names of the features.

    Returns
    -------
    TopicTree

    Raises
    ------
    ValueError, TypeError
        For bad data or levels.

    See Also
    --------
    HierarchicalClassifier : A tree that labels name.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.kron(np.eye(3), np.ones((4, 3)))
    >>> tree = sf.trees.tree(X, [[0, 0], 0], feature_names=list("abcdefghi"), random_state=0)
    >>> [len(tree.topics(level)) for level in range(tree.depth)]
    [2, 3]
    """
    shape = _read_levels(levels)
    nested = isinstance(shape[0], tuple)
    model = NMF(
        len(shape) if nested else shape[0],
        loss=loss,
        max_iter=max_iter,
        tol=tol,
        random_state=random_state,
        n_threads=n_threads,
    ).fit(X, X_weights=X_weights)
    if nested:
        parts = _parts_by_size([shape], _sizes(model))
        while any(parts):
            model = divided(model, [max(len(part), 1) for part in parts], X, X_weights)
            parts = _parts_by_size(parts, _sizes(model))
    else:
        for level, total in enumerate(shape[1:], start=1):
            model = divided(model, _allotted(_sizes(model), total), X, X_weights, level)
    return TopicTree(model, feature_names)


def _read_levels(levels: Any) -> Parts:
    """Return growing numbers, or a tuple of the parts of each topic, which are tuples too."""
    levels = levels.tolist() if isinstance(levels, np.ndarray) else levels
    if isinstance(levels, (str, bytes)) or not isinstance(levels, Sequence) or not len(levels):
        raise TypeError(
            f"levels must be a sequence, such as [5, 20] or [[2, 3], 0]; got {short(levels)}."
        )
    if any(isinstance(item, Sequence) for item in levels):
        return tuple(_read_parts(item) for item in levels)
    numbers = tuple(check_integer(number, "levels", 1) for number in levels)
    if list(numbers) != sorted(set(numbers)):
        raise ValueError(f"levels is {list(levels)}; numbers of topics must grow from the top.")
    return numbers


def _read_parts(item: Any) -> Parts:
    if isinstance(item, Sequence) and not isinstance(item, (str, bytes)):
        parts = tuple(_read_parts(part) for part in item)
    else:
        parts = ((),) * check_integer(item, "levels", 0)
    if len(parts) == 1:
        raise ValueError("levels gives a topic one part; expected 0, or two and more.")
    return parts


def _parts_by_size(parts: Sequence[Parts], sizes: Array) -> list[Parts]:
    """Return the parts of every topic, once these are divided: the largest has the first."""
    found: list[Parts] = []
    for part in parts:
        if not part:
            found.append(())
            continue
        order = np.argsort(-sizes[len(found) : len(found) + len(part)], kind="stable")
        found += [part[rank] for rank in np.argsort(order)]
    return found


def _sizes(model: NMF) -> Array:
    """Return the share of the samples of the fit that each topic explains, (r,)."""
    return divide_by_sums(amounts(model.representation_, model.components_).sum(axis=0), axis=0)


def _allotted(sizes: Array, total: int) -> list[int]:
    """Return the number of parts of each topic: one, and a share of the rest by its size."""
    quotas = sizes * (total - len(sizes))
    counts = np.floor(quotas).astype(np.int64)
    left = total - len(sizes) - int(counts.sum())
    counts[np.argsort(counts - quotas, kind="stable")[:left]] += 1
    return [int(count) + 1 for count in counts]
