"""Penalties that make factors sparse, small, orthogonal or smooth.

Pass one of them, a list, or a mapping from factors ("S", "A", "B", "C") to them, as `penalties`.
They add to the objective of :func:`ssnmf_fast.factorize`; only the solver "mu" may raise the sum.

A penalty of S or C is multiplied by the number of features, and one of A or B by the number of
samples, as in scikit-learn: the same coefficient suits data of any size.  In its notation ::

    alpha_W = alpha_H = alpha, l1_ratio = q, beta_loss = "frobenius"           (half the squares)
        penalties = [L1(2 * alpha * q), L2(alpha * (1 - q))]
    beta_loss = "kullback-leibler"
        penalties = [L1(alpha * q), L2(alpha * (1 - q) / 2)]

The scale of components is arbitrary: S could shrink while A grows, and a penalty of S alone would
have no minimum.  If one factor has a penalty, all factors therefore need one that bounds the scale,
L1 or L2, unless all components are given in one of the factors.
"""

from __future__ import annotations

from ._solver.majorizer import Bound
from ._solver.penalties import L1, L2, Graph, Orthogonal, Penalty, Temporal

__all__ = ["L1", "L2", "Bound", "Graph", "Orthogonal", "Penalty", "Temporal"]
