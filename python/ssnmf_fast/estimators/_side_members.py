"""Side information in a committee: a member for each table, which also teaches the topics."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import binomtest

from .._common.arrays import Array
from .._data.threads import one_blas_thread
from ._committee import Truth, temperature
from ._folds import folds_of
from ._members import Linear, fit_logistic
from ._side import Tables
from ._training_data import TrainingLabels

_PENALTY = 10.0  # C, for rows of length 1
_CHANCE = 0.01  # that a table of noise teaches


def fit_tables(
    tables: Tables, names: set[str], labels: TrainingLabels, class_weight: Any
) -> dict[str, Linear]:
    """Fit a member to each table that is among the names."""
    rows, used = labels.known, [name for name in tables if name in names]
    return {name: _fit_table(tables[name][rows], labels, class_weight) for name in used}


@one_blas_thread()
def _fit_table(table: Any, labels: TrainingLabels, class_weight: Any) -> Linear:
    coefficients, intercepts = fit_logistic(table, labels, _PENALTY, class_weight)
    return Linear(intercepts, rows=coefficients)


@one_blas_thread()
def table_logits(member: Linear, table: Any) -> Array:
    """Return the logits of rows of a table, (rows, k)."""
    assert member.rows is not None
    return np.asarray(table @ member.rows.T) + member.intercepts


def joined(
    tables: Tables, members: dict[str, Linear], weights: dict[str, float], k: int
) -> tuple[Array | None, Array]:
    """Return the weighted coefficients of all tables, (k, q) or None, and intercepts, (k,)."""
    intercepts, parts = np.zeros(k), []
    for name, table in tables.items():
        member = members.get(name)
        if member is None or member.rows is None:  # no weight
            parts.append(np.zeros((k, table.shape[1])))
            continue
        parts.append(weights[name] * member.rows)
        intercepts += weights[name] * member.intercepts
    return np.hstack(parts) if parts else None, intercepts


@one_blas_thread()
def products_of_tables(tables: Tables, coefficients: Array) -> dict[str, Array]:
    """Return the product of each table with its part of the coefficients of all, (n, k)."""
    ends = np.cumsum([table.shape[1] for table in tables.values()])
    parts = np.split(coefficients, ends[:-1], axis=1)
    return {
        name: np.asarray(table @ part.T)
        for (name, table), part in zip(tables.items(), parts, strict=True)
    }


def product_of_tables(tables: Tables, coefficients: Array) -> Array:
    """Return the sum of the products, (n, k)."""
    return np.asarray(sum(products_of_tables(tables, coefficients).values()))


def with_tables(scores: Array, readout: Any, tables: Tables) -> Array:
    """Return scores of samples, (n, k), and what their tables add to these."""
    if not tables:
        return scores
    return np.asarray(scores + readout.slopes * product_of_tables(tables, readout.side))


def taught_by_tables(
    tables: Tables, labels: TrainingLabels, seed: int, class_weight: Any
) -> Array | None:
    """Return what tables add to the logits of labels for self-training, (n, k), or None.

    A table teaches only if it predicts hidden labels better than their largest class: even faint
    noise among the labels costs more than a poor table could add.
    """
    folds, taught = folds_of(labels, seed), None
    rows = folds >= 0
    if not rows.any():
        return None
    truth = Truth.of(labels, rows)
    for table in tables.values():
        hidden = _hidden_logits(table, labels, folds, class_weight)[rows]
        if not _is_informative(hidden, truth):
            continue
        member = _fit_table(table[labels.known], labels, class_weight)
        own = temperature(hidden, truth) * table_logits(member, table)
        taught = own if taught is None else taught + own
    return taught


def _hidden_logits(table: Any, labels: TrainingLabels, folds: Array, class_weight: Any) -> Array:
    """Return what a table predicts for the labels that a fold hides, (n, k); 0 for others."""
    found = np.zeros(labels.members.shape)
    for fold in range(int(folds.max()) + 1):
        hidden = folds == fold
        seen = labels.only(~hidden)
        member = _fit_table(table[seen.known], seen, class_weight)
        found[hidden] = table_logits(member, table[hidden])
    return found


def _is_informative(logits: Array, truth: Truth) -> bool:
    weight, right = truth.weights[:, 0], logits.argmax(axis=1) == truth.members.argmax(axis=1)
    largest = float(np.average(truth.members, axis=0, weights=weight).max())
    counts = round(float(weight @ right)), round(float(weight.sum()))
    return bool(binomtest(*counts, largest, alternative="greater").pvalue < _CHANCE)
