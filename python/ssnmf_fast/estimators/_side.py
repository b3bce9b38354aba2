"""Side information: tables of the same samples beside X, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._common.text import short
from .._data.border import check_matrix
from .._linalg.operators import unit_rows

Tables = dict[str, Any]  # by their names; rows have length 1

_TAKEN = ("topics", "features", "directions", "naive Bayes", "margins", "neighbors")


def tables_to_fit(side: Any, n_samples: int) -> Tables:
    """Return the tables of a fit; ValueError for names that other members have."""
    tables = _checked(side, n_samples)
    for name in tables:
        if name in (*_TAKEN, "committee"):
            raise ValueError(
                f"side has a table {name!r}, which is the name of a member of the committee. Give "
                "it another one, such as 'embedding'."
            )
    return tables


def tables_to_predict(side: Any, n_samples: int, columns: Mapping[str, int]) -> Tables:
    """Return the tables of a prediction: those of the fit, with as many columns."""
    tables = _checked(side, n_samples)
    if tables.keys() != columns.keys():
        wanted = f"side with the tables {_listed(columns)}" if columns else "no side"
        given = f"the tables {_listed(tables)}" if tables else "none"
        raise ValueError(
            f"The model was fitted with {wanted}; got {given}. Predictions need the same tables "
            "as the fit."
        )
    for name, count in columns.items():
        if tables[name].shape[1] != count:
            raise ValueError(
                f"side[{short(name)}] has {tables[name].shape[1]} columns; expected {count}, as in "
                "fit."
            )
    return {name: tables[name] for name in columns}


def _listed(names: Any) -> str:
    return f"[{', '.join(map(repr, names))}]"


def _checked(side: Any, n_samples: int) -> Tables:
    if side is None:
        return {}
    if not isinstance(side, Mapping) or not all(isinstance(name, str) for name in side):
        raise TypeError(
            f"side must be a mapping of names to tables; got {type(side).__name__}. Give, for "
            "example, side={'embedding': E}."
        )
    return {name: _table(table, f"side[{short(name)}]", n_samples) for name, table in side.items()}


def _table(table: Any, name: str, n_samples: int) -> Any:
    matrix = check_matrix(table, name, allow_nan=False, allow_negative=True)
    if matrix.shape[0] != n_samples or not matrix.shape[1]:
        raise ValueError(
            f"{name} has shape {matrix.shape}; expected {n_samples} rows, one for each sample of "
            "X, and at least one column."
        )
    return unit_rows(matrix)
