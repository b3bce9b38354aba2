"""How much of a tensor a CP model explains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._backend.dispatch import padded
from .._common.arrays import Array
from .._data.tensors import SparseTensor, Tensor
from .._data.threads import resolve_threads
from .._solver.losses import loss_named
from .._solver.problem import Problem
from .tensor_terms import terms_of_tensor

_ROUNDING = 64.0


def explained_deviance(
    X: Tensor,
    factors: Sequence[Array],
    *,
    loss: str | float,
    X_weights: Any = None,
    n_threads: int | None = None,
) -> float:
    """Return 1 - the loss of a model over that of the mean of X, D^2.

    X is a tensor of :func:`check_tensor`, and the model is the sum of the products of the columns
    of its factors.  0 for an X that is constant.
    """
    divergence = loss_named(loss, "loss")
    parts = (X.at.places, X.values, X.shape) if isinstance(X, SparseTensor) else X
    losses = divergence, divergence
    terms = terms_of_tensor(parts, X_weights, None, losses, 1.0, resolve_threads(n_threads))
    (relation,), dtype = terms.relations, terms.X.dtype

    def value(first: Array, *others: Array) -> float:
        pairs = zip(relation.names, (first, *others), strict=True)
        return Problem({name: padded(F, dtype) for name, F in pairs}, [relation]).objective()

    first, *others = factors
    mean = relation.term.mean()
    of_model = value(np.ldexp(first, -terms.units.x), *others)
    of_mean = value(*(np.ones((n, 1)) for n in X.shape[:-1]), np.full((X.shape[-1], 1), mean))
    # A constant X, whose loss is rounding alone; losses grow like a power of the data.
    size = mean ** (divergence.degree or 0) * relation.term.form.total(X.shape)
    if of_mean <= _ROUNDING * np.finfo(dtype).eps * size:
        return 0.0
    return float(1 - of_model / of_mean)
