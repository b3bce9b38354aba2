"""The subcommand `predict` with a model of `complete`: ratings of new pairs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command import Result, empty_pictures, run, write_lines

import ssnmf_fast as sf


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Result:
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("ratings")
    values = np.clip(3 + rng.standard_normal((12, 1)) + rng.standard_normal(9), 1, 5)
    lines = [
        f"u{u},i{i},{values[u, i]:.3f}" for u in range(12) for i in range(9) if rng.random() < 0.6
    ]
    table = write_lines(folder / "ratings.csv", ["who,film,stars", *lines])
    with empty_pictures():
        return run(f"complete {table} --rank 1 --test-size 0 --clip --quiet --out {folder}/rec")


def predict(model: object, lines: list[str], more: str = "", code: int = 0) -> Result:
    """Predict ratings of pairs."""
    name = "new.jsonl" if lines[0].startswith("{") else "new.csv"
    return run(f"predict {model} --out p.csv {more}", write_lines(name, lines), code=code)


def ratings_of(found: Result) -> list[float]:
    return [float(one) for one in found.column("predicted rating")]


def test_pairs(fitted: Result) -> None:
    found = predict(fitted.path, ["item,note,user", "i3,x,u5", "i0,,u11"])
    assert "2 predicted ratings are in" in found.out
    assert found.err == ""
    rows = found.rows()
    assert [(r["sample"], r["user"], r["item"]) for r in rows] == [
        ("0", "u5", "i3"),
        ("1", "u11", "i0"),
    ]
    expected = fitted.model.predict(["u5", "u11"], ["i3", "i0"])
    np.testing.assert_allclose(ratings_of(found), expected, 1e-5)
    assert fitted.column("user", "users.csv") == list(fitted.model.row_ids)


def test_ids_of_other_kinds(fitted: Result) -> None:
    """Integers, as a model of Python may have them, are text in a table; accents are one thing."""
    items = [f"e\u0301{k}" for k in range(9)]
    sf.save(replace(fitted.model, row_ids=np.arange(101, 113), column_ids=items), "model.npz")
    found = predict("model.npz", ["user,item", "103,\u00e92", "103,e\u03012"])
    expected = replace(fitted.model, row_ids=None, column_ids=None).predict([2, 2], [2, 2])
    np.testing.assert_allclose(ratings_of(found), expected, 1e-5)


def test_by_place_and_from_json(fitted: Result) -> None:
    first = predict(fitted.path, ["who,film", "u5,i3"]).rows()
    line = json.dumps({"film": "i3", "who": "u5"})
    assert predict(fitted.path, [line], "--user who --item film").rows() == first


def test_unknown_ones_are_counted(fitted: Result) -> None:
    pairs = ["user,item", "zoe,i3", "zoe,i4", "u1,new", "u1,i1", "zoe,new"]
    result = predict(fitted.path, pairs)
    assert "not in the model: 1 user and 1 item of " in result.err
    assert result.err.count("\n") == 1
    found, fit = ratings_of(result), fitted.model
    i3 = list(fit.column_ids).index("i3")
    expected = np.clip(fit.offset + fit.right[-1, i3], fit.lower, fit.upper)
    assert found[0] == pytest.approx(expected, rel=1e-5)
    assert found[4] == pytest.approx(fit.offset, rel=1e-5)
    summary = json.loads(predict(fitted.path, pairs, "--json").out)
    assert (summary["unknown users"], summary["unknown items"], summary["samples"]) == (1, 1, 5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lines", "more", "message"),
    [
        (["user,item"], "", "has no pairs of users and items"),
        (["user", "u1"], "", "expected those of users and items"),
        (["item,x,y", "i1,u1,2"], "", "cannot tell users and items apart"),
        (["user,item", "u1,"], "", "line 2: no value in column 'item'"),
        (["user,item", "i1,u1"], "", "no user and no item of "),
        (["user,item", "u1,i1"], "--user name", "no column 'name'"),
        (["user,item", "u1,i1"], "--text user", "--text is for a model of `ssnmf-fast fit`"),
        (["user,item", "u1,i1"], "--explain", "--explain is for a model of `ssnmf-fast fit`"),
    ],
)
def test_bad_tables(fitted: Result, lines: list[str], more: str, message: str) -> None:
    refused = predict(fitted.path, lines, more, code=2)
    assert message in refused.error
    assert not refused.path.exists()


@pytest.mark.slow
def test_models_of_other_kinds(fitted: Result, of_matrix: Result, matrix: Path) -> None:
    pairs = ["user,item", "u1,i1"]
    sf.save(sf.complete(np.array([[1.0, 2, 3], [2, 4, np.nan]])), "matrix.npz")
    assert "without ids of users and items" in predict("matrix.npz", pairs, code=2).error
    refused = predict(of_matrix.path / "model.npz", pairs, "--user user", code=2)
    assert "--user is for a model of `ssnmf-fast complete`" in refused.error
    refused = run(f"predict {fitted.path} {matrix} --out p.csv", code=2)
    assert "expected a table of users and items" in refused.error
