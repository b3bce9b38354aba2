"""``ssnmf-fast predict``, of labels, topics, ratings or lists, and ``ssnmf-fast verify``."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from .. import Recommender, load, verify
from .._common.warn import UNINFORMED, quietly
from .._persist.io import read_notes
from .._persist.texts import VECTORIZER_NAME
from ..completion._complete import counts
from ..completion._result import Completion
from ._complete import read_pairs
from ._labels import read_labels_of
from ._models import MODEL_TYPES, SEPARATOR, FittedModel
from ._options import UsageError, refuse, warn
from ._outputs import (
    METRICS_NAME,
    MODEL_NAME,
    TableOutput,
    make_predictions,
    make_table,
    refuse_replacing,
)
from ._read import Source, Table, find_source, read_matrix
from ._recommend import recommend_to_new
from ._text import find_ids, read_for_model


def run(options: Namespace) -> dict[str, Any]:
    out, data, path = TableOutput(options), find_source(options), _find_model(options.model)
    vectorizer_path = path.parent / VECTORIZER_NAME
    if out.path is not None:
        refuse_replacing(out.path, (path, data.path, vectorizer_path, path.parent / METRICS_NAME))
    model = load(path)
    if isinstance(model, (Completion, Recommender)):
        reason = f"is for a model of `ssnmf-fast fit`; not {path}"
        refuse(options, ("text", "id", "explain"), reason)
    if isinstance(model, Recommender):
        return recommend_to_new(out, model, path, data, options)
    refuse(options, ("value", "n"), f"is for a model of `ssnmf-fast recommend`; not {path}")
    if isinstance(model, Completion):
        return _predict_ratings(out, model, path, data, options)
    refuse(options, ("user", "item"), f"is for a model of `ssnmf-fast complete`; not {path}")
    if not hasattr(model, "topics"):  # all models of samples by components have it
        raise UsageError(f"{path} holds a {type(model).__name__}; expected a model with topics")
    model.set_params(n_threads=options.threads)
    notes = read_notes(path)
    if data.is_table:
        vectorizer, table, texts, X = read_for_model(data, vectorizer_path, options.text)
        id_column = notes.get("id")  # as in the fit
        name = options.id or (id_column if id_column in [*table.frame] else None)
        ids = find_ids(table, name, options.text or vectorizer.column)
        fields: dict[str, Any] = {"ids": ids, "terms": vectorizer.terms, "texts": texts}
    else:
        refuse(options, ("id", "text"), f"names a column of a table; {data} is a matrix")
        X, fields = read_matrix(data), {}
    fields["separator"] = str(notes.get("label_separator", SEPARATOR))
    fit = FittedModel(model=model, X=X, least=notes.get("least"), **fields)
    fit.warn_of_reasons("nothing is predicted for them")
    if not fit.predicts:
        refuse(options, ("explain",), f"needs a model that predicts labels; not {path}")
    out.write(*make_predictions(fit, new=True, explain=options.explain))
    count = int(fit.X.shape[0])
    if out.path is not None:
        what = "predictions" if fit.predicts else "samples with the weights of their topics"
        remark = "" if fit.least is None else f"; to check by hand: {len(fit.to_check)}"
        print(f"{count} {what} are in {out}{remark}")
    return {"model": type(model).__name__, "samples": count, "out": str(out)}


def _find_model(name: str) -> Path:
    path = Path(name)
    path = path / MODEL_NAME if path.is_dir() else path
    if not path.is_file():
        raise UsageError(f"{path}: no such file; expected a folder of fit, complete or recommend")
    return path


def _predict_ratings(
    out: TableOutput, model: Completion, path: Path, data: Source, options: Namespace
) -> dict[str, Any]:
    row_ids, column_ids = model.row_ids, model.column_ids
    if row_ids is None or column_ids is None:
        hint = "ssnmf_fast.load(...).predict(rows, columns) takes positions"
        raise UsageError(f"{path} holds a completion without ids of users and items; {hint}")
    row_ids, column_ids = row_ids.astype(str), column_ids.astype(str)  # as in tables
    model = replace(model, row_ids=row_ids, column_ids=column_ids)
    _, users, items, pairs = read_pairs(data, options)
    unknown = len({*users} - {*row_ids}), len({*items} - {*column_ids})
    if unknown == (len(users), len(items)):
        wrong = f"no user and no item of {data} is in {path}"
        first = f"the first are {users[0]!r} and {items[0]!r}"
        raise UsageError(f"{wrong} ({first}); name their columns with --user and --item")
    if any(unknown):
        how = "the mean of all users or items"
        if model.has_biases:
            how = "the overall mean plus the bias of the user or the item that is known"
        names = counts(*unknown, ("user", "item"))
        warn(f"not in the model: {names} of {data}; predictions for them are {how}")
    columns = {"user": np.array(users)[pairs["user"]], "item": np.array(items)[pairs["item"]]}
    columns["predicted rating"] = quietly(UNINFORMED, model.predict, *columns.values())
    out.write(*make_table(None, [(name, column.tolist()) for name, column in columns.items()]))
    if out.path is not None:
        print(f"{len(pairs)} predicted ratings are in {out}")
    sizes = {"samples": len(pairs), "unknown users": unknown[0], "unknown items": unknown[1]}
    return {"model": "Completion", **sizes, "out": str(out)}


def run_verify(options: Namespace) -> dict[str, Any]:
    source, path = find_source(options), _find_model(options.model)
    data: Table | Source = source
    if source.is_table:
        _, data, _, X = read_for_model(source, path.parent / VECTORIZER_NAME, options.text)
    else:
        X = read_matrix(source)
    y, model = None, load(path)
    if options.labels is None and isinstance(model, (ClassifierMixin, RegressorMixin)):
        raise UsageError(f"{path} was fitted to labels, too: name their column with --labels")
    if options.labels is not None:  # as the fit saw them
        try:
            content = json.loads((path.parent / METRICS_NAME).read_text(encoding="utf-8"))
            model_type, settings = MODEL_TYPES[content["model"]], content["settings"]
            share, seed = float(settings.get("test size", 0.0)), int(settings.get("seed", 0))
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as why:
            where = f"{METRICS_NAME} is missing there, or from another command"
            raise UsageError(f"--labels needs the folder of `ssnmf-fast fit`; {where}") from why
        labels = read_labels_of(options, data, X.shape[0]) if model_type.guided else None
        if labels is not None:
            y = model_type.targets(labels.without(labels.hold_out(share, seed)))
    verification = verify(model, X, y, n_threads=options.threads)
    print(verification)
    values = [list(row) for row in verification.table]
    return {"ok": verification.ok, "differences": verification.differences, "values": values}
