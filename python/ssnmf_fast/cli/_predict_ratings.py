"""Predicted ratings of pairs of users and items, by a model of ``ssnmf-fast complete``."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from .._common.warn import UNINFORMED, quietly
from ..completion import Completion
from ..completion._uninformed import counts
from ._errors import UsageError
from ._predictions import Output, write_columns
from ._ratings import read_pairs
from ._source import Source


def write_predicted_ratings(
    out: Output, model: Completion, path: Path, data: Source, options: Any
) -> dict[str, Any]:
    """Write the predicted rating of every pair in a table; return a summary."""
    if model.row_ids is None or model.column_ids is None:
        raise UsageError(
            f"{path} holds a completion without ids of users and items, as of a matrix; "
            "ssnmf_fast.load(...).predict(rows, columns) takes positions"
        )
    if not data.is_table:
        raise UsageError(f"{data} is a matrix; expected a table of users and items, as {path} has")
    for name in ("text", "id"):
        if getattr(options, name) is not None:
            raise UsageError(f"--{name} belongs to a model of `ssnmf-fast fit`; not {path}")
    users, items = read_pairs(data, [options.user, options.item])
    unknown = len(set(users) - set(model.row_ids)), len(set(items) - set(model.column_ids))
    if unknown == (len(set(users)), len(set(items))):
        raise UsageError(
            f"no user and no item of {data} is in {path} (the first are {users[0]!r} and "
            f"{items[0]!r}); name their columns with --user and --item"
        )
    if any(unknown):
        how = "the mean of all users or items"
        if model.has_biases:
            how = "the overall mean plus the bias of the user or the item that is known"
        warnings.warn(
            f"not in the model: {counts(*unknown, ('user', 'item'))} of {data}; predictions for "
            f"them are {how}",
            stacklevel=2,
        )
    values = quietly(UNINFORMED, model.predict, np.array(users), np.array(items))
    columns = [("user", users), ("item", items), ("predicted rating", values.tolist())]
    write_columns(out, None, columns)
    if out.path is not None:
        print(f"{len(users)} predicted ratings are in {out}")
    names = ("unknown users", "unknown items")
    return {
        "model": "Completion",
        "samples": len(users),
        **dict(zip(names, unknown, strict=True)),
        "out": str(out),
    }
