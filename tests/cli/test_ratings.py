"""Ratings that are empty or stand twice, and the bar of `complete`."""

from __future__ import annotations

import json
import sys
import types
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from outputs import error_line, rows_of

import ssnmf_fast as sf
from ssnmf_fast.cli import main

USERS, ITEMS = 12, 9


def written(path: Path, more: str = "") -> Path:
    rng = np.random.default_rng(0)
    lines = [
        f"u{u},i{i},{1 + (u + i) % 3}"
        for u in range(USERS)
        for i in range(ITEMS)
        if i == 0 or rng.random() < 0.6
    ]
    path.write_text("\n".join(["user,item,rating", *lines]) + "\n" + more, encoding="utf-8")
    return path


def complete(data: Path, out: Path, *more: str) -> int:
    quick = ["--rank", "1", "--test-size", "0", "--threads", "1"]
    return main(["complete", str(data), "--out", str(out), *quick, *more])


class TestEmpty:
    @pytest.mark.slow
    def test_are_predicted(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        out = tmp_path / "out"
        plain = written(tmp_path / "a.csv")
        assert complete(plain, out) == 0
        assert not (out / "predictions.csv").exists()
        capsys.readouterr()
        assert complete(written(tmp_path / "b.csv", "u3,i0, \nu4,i1,\nnew,i1,\n"), out) == 0
        captured = capsys.readouterr()
        assert "3 empty ratings, to be predicted" in captured.out
        assert "has no rating for 1 user; predictions for them are the overall mean" in captured.err
        found = rows_of(out / "predictions.csv")
        assert [(r["user"], r["item"]) for r in found] == [
            ("u3", "i0"),
            ("u4", "i1"),
            ("new", "i1"),
        ]
        users = {row["user"]: int(row["place"]) for row in rows_of(out / "users.csv")}
        items = {row["item"]: int(row["place"]) for row in rows_of(out / "items.csv")}
        fitted = sf.load(out / "model.npz").to_dense()
        for row in found:
            expected = fitted[users[row["user"]], items[row["item"]]]
            assert float(row["predicted rating"]) == pytest.approx(expected, rel=1e-5)
        report = json.loads((out / "report.json").read_text(encoding="utf-8"))
        assert (report["users"], report["empty"]) == (USERS + 1, 3)
        assert complete(plain, out) == 0  # nothing of the earlier run is left
        assert not (out / "predictions.csv").exists()

    @pytest.mark.slow
    def test_in_json(self, tmp_path: Path) -> None:
        rows = [
            {"user": u, "item": i, "rating": u + i} for u in range(4) for i in range(4) if u - i
        ]
        rows += [{"user": 0, "item": 0, "rating": None}, {"user": 1, "item": 1}]
        rows += [{"user": 2, "item": 2, "rating": float("nan")}]
        path = tmp_path / "a.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        assert complete(path, tmp_path / "out") == 0
        found = rows_of(tmp_path / "out" / "predictions.csv")
        assert [row["user"] for row in found] == ["0", "1", "2"]

    def test_nothing_else(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "a.csv"
        path.write_text("user,item,rating\na,b,\n", encoding="utf-8")
        assert complete(path, tmp_path / "out") == 2
        assert "has no ratings" in capsys.readouterr().err


class TestDuplicates:
    @pytest.mark.slow
    @pytest.mark.parametrize(("how", "value"), [("mean", 13.0), ("first", 10.0), ("last", 17.0)])
    def test_merged(
        self, how: str, value: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        table = written(tmp_path / "a.csv", "x,i0,10\nx,i1,3\nx,i0,12\nx,i0,\nx,i0,17\n")
        out = tmp_path / "out"
        assert complete(table, out, "--duplicates", how, "--exact") == 0
        assert "2 repeated pairs" in capsys.readouterr().out
        counts = {row["user"]: int(row["ratings"]) for row in rows_of(out / "users.csv")}
        assert counts["x"] == 2
        merged = written(tmp_path / "b.csv", f"x,i0,{value}\nx,i1,3\n")
        assert complete(merged, tmp_path / "merged", "--exact") == 0
        for name in ("highest_predictions.csv", "users.csv", "items.csv"):
            assert (out / name).read_bytes() == (tmp_path / "merged" / name).read_bytes()

    def test_refused_unless_told(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        table = written(tmp_path / "a.csv", "u3,i0,10\n")
        assert complete(table, tmp_path / "out") == 2
        assert "give --duplicates mean, first or last" in capsys.readouterr().err
        np.save(tmp_path / "X.npy", np.ones((3, 2)))
        assert complete(tmp_path / "X.npy", tmp_path / "o.npy", "--duplicates", "mean") == 2
        assert "--duplicates is for a table of ratings" in capsys.readouterr().err


class _Recorded:
    """Stands for tqdm: what it was told."""

    made: list[_Recorded]

    def __init__(self, total: int | None, **_: object) -> None:
        self.total, self.n, self.shown, self.unit = total, 0, [], ""
        self.made.append(self)

    def update(self, steps: int) -> None:
        assert steps >= 0
        self.n += steps

    def set_postfix_str(self, text: str, refresh: bool = True) -> None:
        self.shown.append((self.n, text))

    def close(self) -> None:
        pass


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[_Recorded]:
    stub = types.ModuleType("tqdm")
    made: list[_Recorded] = []
    monkeypatch.setattr(_Recorded, "made", made, raising=False)
    monkeypatch.setattr(stub, "tqdm", _Recorded, raising=False)
    monkeypatch.setitem(sys.modules, "tqdm", stub)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    return made


@pytest.mark.slow
def test_one_bar_for_all_ranks(bars: list[_Recorded], tmp_path: Path) -> None:
    table = written(tmp_path / "a.csv")
    command = ["complete", str(table), "--out", str(tmp_path / "out"), "--threads", "1"]
    assert main(command) == 0
    choice, final = bars
    assert choice.total == 4  # ranks 1, 2 and 5, and the fit of the one that is chosen
    assert final.total == 1
    done = [n for n, _ in choice.shown]
    assert done == sorted(done)
    assert 1 <= done[-1] < choice.total
    assert "rank 1, gamma 4, iteration" in choice.shown[0][1]


@pytest.mark.slow
def test_bar_of_an_exact_fit(bars: list[_Recorded], tmp_path: Path) -> None:
    table = written(tmp_path / "a.csv")
    assert complete(table, tmp_path / "out", "--exact") == 0
    given = ["--exact", "--rank", "3", "--max-iter", "7", "--method", "irls"]
    assert complete(table, tmp_path / "out", *given) == 0
    assert [bar.total for bar in bars] == [200, 7]


class TestColumns:
    """Which columns hold users, items and ratings."""

    @pytest.mark.parametrize(
        ("header", "more", "found"),
        [
            ("rating,user,item", (), ("user", "item", "rating")),
            ("userId,movieId,rating,timestamp", (), ("userId", "movieId", "rating")),
            ("rating,user_id,film", (), ("user_id", "film", "rating")),
            ("stars,when,film,viewer", ("viewer", "film", "stars"), ("viewer", "film", "stars")),
        ],
    )
    def test_by_name(self, header: str, more: Any, found: Any, tmp_path: Path) -> None:
        options = zip(("--user", "--item", "--rating"), more, strict=False)
        given = [part for option in options for part in option]
        assert self.complete(tmp_path, header, found, *given) == 0
        for name, letter in (("user", "a"), ("item", "b")):
            values = {row[name] for row in rows_of(tmp_path / "out" / f"{name}s.csv")}
            assert values == {f"{letter}{k}" for k in range(6)}

    def test_by_place_warns(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        header = "stars,film,viewer"
        assert self.complete(tmp_path, header, header.split(",")) == 0
        error = " ".join(capsys.readouterr().err.split())
        assert "user 'stars', item 'film', rating 'viewer'" in error
        assert "--user" in error

    def complete(self, folder: Path, header: str, names: Any, *given: str) -> int:
        """Complete a table whose users, items and ratings are in the named columns."""
        lines = [header]
        for user, item in product(range(6), range(6)):
            cells = dict(zip(names, (f"a{user}", f"b{item}", str((user + item) % 5)), strict=True))
            lines.append(",".join(cells.get(name, "7") for name in header.split(",")))
        table = folder / "a.csv"
        table.write_text("\n".join(lines), encoding="utf-8")
        quick = ["--rank", "1", "--max-iter", "3", "--test-size", "0"]
        return main(["complete", str(table), "--out", str(folder / "out"), *quick, *given])

    @pytest.mark.parametrize("cells", ["5,1,film,7", "5,1,80,7"])
    def test_numbers_do_not_pass_for_ratings(
        self, cells: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "a.csv").write_text(f"stars,when,film,viewer\n{cells}\n", encoding="utf-8")
        out = str(tmp_path / "out")
        given = ["complete", str(tmp_path / "a.csv"), "--out", out, "--duplicates", "mean"]
        assert main(given) == 2
        assert "name their columns with --user, --item and --rating" in error_line(capsys)
