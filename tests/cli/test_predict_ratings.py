"""The subcommand `predict` with a model of `complete`: ratings of new pairs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from outputs import error_line, rows_of

import ssnmf_fast as sf
from ssnmf_fast.cli import main


@pytest.fixture
def model(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    values = np.clip(3 + rng.standard_normal((12, 1)) + rng.standard_normal(9), 1, 5)
    lines = [
        f"u{u},i{i},{values[u, i]:.3f}" for u in range(12) for i in range(9) if rng.random() < 0.6
    ]
    table = tmp_path / "ratings.csv"
    table.write_text("who,film,stars\n" + "\n".join(lines) + "\n", encoding="utf-8")
    quick = ["--rank", "1", "--test-size", "0", "--clip", "--quiet"]
    assert main(["complete", str(table), "--out", str(tmp_path / "rec"), *quick]) == 0
    return tmp_path / "rec"


def pairs(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def predict(model: Path, data: Path, *more: str) -> int:
    return main(["predict", str(model), str(data), "--out", str(data.with_name("p.csv")), *more])


def test_pairs(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = pairs(tmp_path / "new.csv", "item,note,user\ni3,x,u5\ni0,,u11\n")
    assert predict(model, data) == 0
    captured = capsys.readouterr()
    assert "2 predicted ratings are in" in captured.out
    assert captured.err == ""
    rows = rows_of(tmp_path / "p.csv")
    assert [(r["sample"], r["user"], r["item"]) for r in rows] == [
        ("0", "u5", "i3"),
        ("1", "u11", "i0"),
    ]
    fit = sf.load(model / "model.npz")
    expected = fit.predict(["u5", "u11"], ["i3", "i0"])
    np.testing.assert_allclose([float(r["predicted rating"]) for r in rows], expected, 1e-5)
    users = [row["user"] for row in rows_of(model / "users.csv")]
    assert users == list(fit.row_ids)


def test_ids_of_other_kinds(model: Path, tmp_path: Path) -> None:
    """Integers, as a model of Python may have them, are text in a table; accents are one thing."""
    fit = sf.load(model / "model.npz")
    items = [f"e\u0301{k}" for k in range(9)]
    named = replace(fit, row_ids=np.arange(101, 113), column_ids=items)
    sf.save(named, tmp_path / "model.npz")
    data = pairs(tmp_path / "new.csv", "user,item\n103,\u00e92\n103,e\u03012\n")
    assert predict(tmp_path / "model.npz", data) == 0
    expected = replace(fit, row_ids=None, column_ids=None).predict([2, 2], [2, 2])
    found = [float(row["predicted rating"]) for row in rows_of(tmp_path / "p.csv")]
    np.testing.assert_allclose(found, expected, 1e-5)


def test_users_in_two_forms_are_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = pairs(tmp_path / "a.csv", "user,item,rating\n\u00e9,i,1\ne\u0301,i,2\nu,j,3\n")
    assert main(["complete", str(table), "--out", str(tmp_path / "out")]) == 2
    assert "user '\u00e9' has more than one rating of item 'i'" in error_line(capsys)


def test_by_place_and_from_json(model: Path, tmp_path: Path) -> None:
    assert predict(model, pairs(tmp_path / "new.csv", "who,film\nu5,i3\n")) == 0
    first = rows_of(tmp_path / "p.csv")
    lines = json.dumps({"film": "i3", "who": "u5"}) + "\n"
    named = ["--user", "who", "--item", "film"]
    assert predict(model, pairs(tmp_path / "new.jsonl", lines), *named) == 0
    assert rows_of(tmp_path / "p.csv") == first


def test_unknown_ones_are_counted(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "user,item\nzoe,i3\nzoe,i4\nu1,new\nu1,i1\nzoe,new\n"
    assert predict(model, pairs(tmp_path / "new.csv", text)) == 0
    err = capsys.readouterr().err
    assert "not in the model: 1 user and 1 item of " in err
    assert err.count("\n") == 1
    found = [float(row["predicted rating"]) for row in rows_of(tmp_path / "p.csv")]
    fit = sf.load(model / "model.npz")
    i3 = list(fit.column_ids).index("i3")
    expected = np.clip(fit.offset + fit.right[-1, i3], fit.lower, fit.upper)
    assert found[0] == pytest.approx(expected, rel=1e-5)
    assert found[4] == pytest.approx(fit.offset, rel=1e-5)
    data = tmp_path / "new.csv"
    assert predict(model, data, "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["unknown users"], summary["unknown items"], summary["samples"]) == (1, 1, 5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        ("user,item\n", [], "has no pairs of users and items"),
        ("user\nu1\n", [], "expected those of users and items"),
        ("item,x,y\ni1,u1,2\n", [], "cannot tell users and items apart"),
        ("user,item\nu1,\n", [], "line 2: no value in column 'item'"),
        ("user,item\ni1,u1\n", [], "no user and no item of "),
        ("user,item\nu1,i1\n", ["--user", "name"], "no column 'name'"),
        ("user,item\nu1,i1\n", ["--text", "user"], "--text is for a model of `ssnmf-fast fit`"),
        ("user,item\nu1,i1\n", ["--explain"], "--explain is for a model of `ssnmf-fast fit`"),
    ],
)
def test_bad_tables(
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: str,
    more: list[str],
    message: str,
) -> None:
    assert predict(model, pairs(tmp_path / "new.csv", text), *more) == 2
    assert message in error_line(capsys)
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.slow
def test_models_of_other_kinds(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = pairs(tmp_path / "new.csv", "user,item\nu1,i1\n")
    sf.save(sf.complete(np.array([[1.0, 2, 3], [2, 4, np.nan]])), tmp_path / "matrix.npz")
    assert predict(tmp_path / "matrix.npz", data) == 2
    assert "without ids of users and items" in error_line(capsys)
    sf.save(sf.NMF(n_components=1).fit(np.eye(3)), tmp_path / "nmf.npz")
    assert predict(tmp_path / "nmf.npz", data, "--user", "user") == 2
    assert "--user is for a model of `ssnmf-fast complete`" in error_line(capsys)
    np.save(tmp_path / "matrix.npy", np.eye(3))
    assert predict(model, tmp_path / "matrix.npy") == 2
    assert "expected a table of users and items" in error_line(capsys)
