"""Ratings that are empty or stand twice, and the bar of `complete`."""

from __future__ import annotations

import sys
import types
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Result, run, write_json, write_lines

from ssnmf_fast.cli import main

USERS, ITEMS = 12, 9


def written(*more: str, name: str = "a.csv") -> Path:
    rng = np.random.default_rng(0)
    lines = [
        f"u{u},i{i},{1 + (u + i) % 3}"
        for u in range(USERS)
        for i in range(ITEMS)
        if i == 0 or rng.random() < 0.6
    ]
    return write_lines(name, ["user,item,rating", *lines, *more])


def complete(data: object, more: str = "", out: str = "out", code: int = 0) -> Result:
    quick = "--rank 1 --test-size 0 --threads 1"
    return run(f"complete {data} --out {out} {quick} {more}", code=code)


class TestEmpty:
    @pytest.mark.slow
    def test_are_predicted(self) -> None:
        plain = written(name="plain.csv")
        assert "predictions.csv" not in complete(plain).files
        found = complete(written("u3,i0, ", "u4,i1,", "new,i1,"))
        assert "3 empty ratings, to be predicted" in found.out
        assert "has no rating for 1 user; predictions for them are the overall mean" in found.err
        rows = found.rows()
        pairs = [(row["user"], row["item"]) for row in rows]
        assert pairs == [("u3", "i0"), ("u4", "i1"), ("new", "i1")]
        users = {row["user"]: int(row["place"]) for row in found.rows("users.csv")}
        items = {row["item"]: int(row["place"]) for row in found.rows("items.csv")}
        fitted = found.model.to_dense()
        for row in rows:
            expected = fitted[users[row["user"]], items[row["item"]]]
            assert float(row["predicted rating"]) == pytest.approx(expected, rel=1e-5)
        report = found.json("report.json")
        assert (report["users"], report["empty"]) == (USERS + 1, 3)
        assert "predictions.csv" not in complete(plain).files  # nothing of the earlier run is left

    @pytest.mark.slow
    def test_in_json(self) -> None:
        rows: list[dict[str, Any]] = [
            {"user": u, "item": i, "rating": u + i} for u in range(4) for i in range(4) if u - i
        ]
        rows += [{"user": 0, "item": 0, "rating": None}, {"user": 1, "item": 1}]
        rows += [{"user": 2, "item": 2, "rating": float("nan")}]
        assert complete(write_json("a.jsonl", rows)).column("user") == ["0", "1", "2"]

    def test_nothing_else(self) -> None:
        table = write_lines("a.csv", ["user,item,rating", "a,b,"])
        assert "has no ratings" in complete(table, code=2).err


class TestDuplicates:
    @pytest.mark.slow
    @pytest.mark.parametrize(("how", "value"), [("mean", 13.0), ("first", 10.0), ("last", 17.0)])
    def test_merged(self, how: str, value: float) -> None:
        table = written("x,i0,10", "x,i1,3", "x,i0,12", "x,i0,", "x,i0,17")
        found = complete(table, f"--duplicates {how} --exact")
        assert "2 repeated pairs" in found.out
        counts = {row["user"]: int(row["ratings"]) for row in found.rows("users.csv")}
        assert counts["x"] == 2
        merged = complete(written(f"x,i0,{value}", "x,i1,3"), "--exact", "merged")
        for name in ("highest_predictions.csv", "users.csv", "items.csv"):
            assert found.read(name) == merged.read(name)

    def test_refused_unless_told(self) -> None:
        refused = complete(written("u3,i0,10"), code=2)
        assert "give --duplicates mean, first or last" in refused.err


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
def test_one_bar_for_all_ranks(bars: list[_Recorded]) -> None:
    assert main(["complete", str(written()), *["--out", "out", "--threads", "1"]]) == 0
    choice, final = bars
    assert choice.total == 4  # ranks 1, 2 and 5, and the fit of the one that is chosen
    assert final.total == 1
    done = [n for n, _ in choice.shown]
    assert done == sorted(done)
    assert 1 <= done[-1] < choice.total
    assert "rank 1, gamma 4, iteration" in choice.shown[0][1]


@pytest.mark.slow
def test_bar_of_an_exact_fit(bars: list[_Recorded]) -> None:
    for more in ("--rank 1", "--rank 3 --max-iter 7 --method irls"):
        given = f"--out out --test-size 0 --threads 1 --exact {more}"
        assert main(["complete", str(written()), *given.split()]) == 0
    assert [bar.total for bar in bars] == [200, 7]


class TestColumns:
    """Which columns hold users, items and ratings."""

    def complete(self, header: str, names: str, more: str = "") -> Result:
        """Complete a table whose users, items and ratings are in the named columns."""
        lines = [header]
        for user, item in product(range(6), range(6)):
            values = (f"a{user}", f"b{item}", str((user + item) % 5))
            cells = dict(zip(names.split(","), values, strict=True))
            lines.append(",".join(cells.get(name, "7") for name in header.split(",")))
        return complete(write_lines("a.csv", lines), f"--max-iter 3 {more}")

    @pytest.mark.parametrize(
        ("header", "more", "found"),
        [
            ("rating,user,item", "", "user,item,rating"),
            ("userId,movieId,rating,timestamp", "", "userId,movieId,rating"),
            ("rating,user_id,film", "", "user_id,film,rating"),
            (
                "stars,when,film,viewer",
                "--user viewer --item film --rating stars",
                "viewer,film,stars",
            ),
        ],
    )
    def test_by_name(self, header: str, more: str, found: str) -> None:
        result = self.complete(header, found, more)
        for name, letter in (("user", "a"), ("item", "b")):
            values = set(result.column(name, f"{name}s.csv"))
            assert values == {f"{letter}{k}" for k in range(6)}

    def test_by_place_warns(self) -> None:
        error = " ".join(self.complete("stars,film,viewer", "stars,film,viewer").err.split())
        assert "user 'stars', item 'film', rating 'viewer'" in error
        assert "--user" in error

    @pytest.mark.parametrize("cells", ["5,1,film,7", "5,1,80,7"])
    def test_numbers_do_not_pass_for_ratings(self, cells: str) -> None:
        table = write_lines("a.csv", ["stars,when,film,viewer", cells])
        refused = run(f"complete {table} --out out --duplicates mean", code=2)
        assert "name their columns with --user, --item and --rating" in refused.error
