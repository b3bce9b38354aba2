"""``ssnmf-fast predict``: labels or topics of new data, ratings of new pairs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._common.warn import UNINFORMED, quietly
from .._data.arrays import entry_rows
from .._persist.texts import VECTORIZER_NAME
from ..completion._read import counts
from ..completion._result import Completion
from ._fitted import Data, Fitted
from ._outputs import METRICS_NAME, MODEL_NAME, separator_of
from ._predictions import Output, output_of, predictions, refuse_replacing, table_of_samples
from ._ratings import read_pairs
from ._read import MATRIX_HINT, Source, UsageError, read_matrix, read_table, source
from ._text import ids_of, load_vectorizer, read_texts, warn_of_empty


def run(options: Any) -> dict[str, Any]:
    """Run the subcommand."""
    from .. import load

    out = output_of(options)
    data = source(options)
    path = model_file(options.model)
    stored = path.parent / VECTORIZER_NAME
    if out.path is not None:
        refuse_replacing(out.path, (path, data.path, stored, path.parent / METRICS_NAME))
    model = load(path)
    if isinstance(model, Completion):
        return _write_ratings(out, model, path, data, options)
    of_ratings = f"belongs to a model of `ssnmf-fast complete`; not {path}"
    _refuse(options, ("user", "item"), of_ratings)
    if not hasattr(model, "topics"):  # as all have that represent samples by components
        raise UsageError(f"{path} holds a {type(model).__name__}; expected a model with topics")
    model.set_params(n_threads=options.threads)
    fitted = Fitted(model=model, **vars(_read(data, stored, options)))
    if not fitted.predicts:
        _refuse(options, ("explain",), f"needs a model that predicts labels; not {path}")
    separator = separator_of(path.parent)
    out.write(*predictions(fitted, separator, new=True, explain=options.explain))
    count = int(fitted.X.shape[0])
    if out.path is not None:
        what = "predictions" if fitted.predicts else "samples with the weights of their topics"
        print(f"{count} {what} are in {out}")
    return {"model": type(model).__name__, "samples": count, "out": str(out)}


def model_file(given: str) -> Path:
    """Return the file of a model, given itself or by the folder that it is in."""
    path = Path(given)
    if path.is_dir():
        path = path / MODEL_NAME
    if not path.is_file():
        raise UsageError(f"{path}: no such file; expected a folder of `ssnmf-fast fit` or complete")
    return path


def _refuse(options: Any, names: tuple[str, ...], reason: str) -> None:
    """Raise UsageError for options that belong elsewhere."""
    for name in names:
        if getattr(options, name) not in (None, False):
            raise UsageError(f"--{name} {reason}")


def _read(data: Source, stored: Path, options: Any) -> Data:
    if not data.is_table:
        _refuse(options, ("id", "text"), f"names a column of a table; {data} is a matrix")
        X = read_matrix(data)
        if not sp.issparse(X) and X.dtype.kind == "f":
            unknown = np.flatnonzero(np.isnan(X).all(axis=1))
            if len(unknown):
                warnings.warn(
                    f"{len(unknown)} of {len(X)} samples have no value but NaN (the first is "
                    f"sample {unknown[0]}): their predictions tell nothing of them",
                    stacklevel=2,
                )
        return Data(X=X)
    if not stored.is_file():
        raise UsageError(
            f"{stored} is missing, so the model was fitted to a matrix; {data} is a table. "
            f"Give a matrix: {MATRIX_HINT}"
        )
    vectorizer = load_vectorizer(stored)
    table = read_table(data)
    column = options.text or vectorizer.column
    X = vectorizer.transform(read_texts(table, column, keep_markup=vectorizer.keep_markup))
    warn_of_empty(X, "they all get the same prediction, which tells nothing of them")
    return Data(X=X, ids=ids_of(table, options.id, column), terms=vectorizer.terms)


def _write_ratings(
    out: Output, model: Completion, path: Path, data: Source, options: Any
) -> dict[str, Any]:
    """Write the predicted rating of every pair in a table; return a summary."""
    row_ids, column_ids = model.row_ids, model.column_ids
    if row_ids is None or column_ids is None:
        raise UsageError(
            f"{path} holds a completion without ids of users and items, as of a matrix; "
            "ssnmf_fast.load(...).predict(rows, columns) takes positions"
        )
    if not data.is_table:
        raise UsageError(f"{data} is a matrix; expected a table of users and items, as {path} has")
    _refuse(
        options, ("text", "id", "explain"), f"belongs to a model of `ssnmf-fast fit`; not {path}"
    )
    # As tables have them, also where the model was saved in Python.
    row_ids, column_ids = row_ids.astype(str), column_ids.astype(str)
    model = replace(model, row_ids=row_ids, column_ids=column_ids)
    users, items = read_pairs(data, [options.user, options.item])
    unknown = len(set(users) - set(row_ids)), len(set(items) - set(column_ids))
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
    out.write(*table_of_samples(None, columns))
    if out.path is not None:
        print(f"{len(users)} predicted ratings are in {out}")
    return {
        "model": "Completion",
        "samples": len(users),
        "unknown users": unknown[0],
        "unknown items": unknown[1],
        "out": str(out),
    }


_BLOCK_ENTRIES = 4_000_000  # predictions held at a time (32 MB of float64)


def recommendations(
    completion: Any, rated: sp.csr_array, top: int
) -> Iterator[tuple[int, int, int, float]]:
    """Yield user, rank (from 1), item and predicted rating, user by user and best first.

    The stored entries of `rated` (n, m) are left out.  A user gets `top` items, or all if fewer are
    left.
    """
    n, m = rated.shape
    step, top = max(1, _BLOCK_ENTRIES // m), min(top, m)
    for first in range(0, n, step):
        # The least loss comes first.
        losses = -(completion.left[first : first + step] @ completion.right)
        indptr = rated.indptr[first : first + step + 1]
        losses[entry_rows(indptr), rated.indices[slice(*indptr[[0, -1]])]] = np.inf
        items = np.argpartition(losses, top - 1, axis=1)[:, :top]
        chosen = np.take_along_axis(losses, items, axis=1)
        order = np.lexsort((items, chosen), axis=1)  # of equal predictions the first item
        items = np.take_along_axis(items, order, axis=1)
        chosen = np.take_along_axis(chosen, order, axis=1)
        values = np.clip(completion.offset - chosen, completion.lower, completion.upper)
        for row, count in enumerate(np.isfinite(chosen).sum(axis=1)):
            pairs = zip(items[row, :count].tolist(), values[row, :count].tolist(), strict=True)
            for rank, (item, value) in enumerate(pairs, start=1):
                yield first + row, rank, item, value
