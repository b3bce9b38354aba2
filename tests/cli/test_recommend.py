"""``ssnmf-fast recommend``, and lists for new users by ``ssnmf-fast predict``."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from outputs import error_line, rows_of

import ssnmf_fast as sf
from ssnmf_fast.cli import main

USERS, ITEMS, KINDS = 40, 24, 3


def kind(name: str) -> int:
    return int(name) % KINDS


def lines(*, low: bool = True) -> list[str]:
    """Pairs of users with four or five items of their kind (5), and one of another (1)."""
    rng, found = np.random.default_rng(0), []
    for user in range(USERS):
        own = rng.permutation(np.arange(user % KINDS, ITEMS, KINDS))[: 4 + user % 2]
        found += [f"{user},{item},5" for item in own]
        found += [f"{user},{(user + 1) % KINDS},1"] * low
    return found


def written(path: Path, head: str = "user,item,rating", more: str = "") -> Path:
    text = "\n".join([head, *lines()]) + "\n" + more
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def recommend(data: Path, out: Path, *more: str) -> int:
    return main(["recommend", str(data), "--out", str(out), "--threads", "1", *more])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("recommend")
    assert recommend(written(base / "ratings.csv"), base / "out", "--quiet") == 0
    return base / "out"


def test_lists_are_those_of_python(folder: Path) -> None:
    table = pd.read_csv(folder.parent / "ratings.csv")
    auto = {"unseen_weight": "auto", "ridge": "auto", "neighbors": "auto"}
    expected = sf.Recommender("auto", random_state=0, **auto).fit(table).recommend().to_frame()
    found = pd.read_csv(folder / "recommendations.csv")
    assert [*found] == ["user", "item", "score", "rank"]
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, rtol=1e-5)
    best = found[found["rank"] == 1]
    assert np.mean(best["user"] % KINDS == best["item"] % KINDS) > 0.9


def test_what_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = written(tmp_path / "a.csv.gz", "userId,movieId,rating", "0,0,5\n0,0,5\n")
    assert recommend(data, tmp_path / "out", "--rank", "2", "--no-neighbors") == 0
    text = capsys.readouterr().out
    assert "columns   user 'userId', item 'movieId', value 'rating'" in text
    assert "repeated pairs, merged with these" in text
    assert "ratings from 1 to 5; low ratings mean that an item was not liked" in text
    assert "rank 2, unseen weight 4, ridge 0.02" in text
    assert "popular items" in text
    assert "similar items" not in text
    for name in ("recommendations.csv", "model.npz", "metrics.json", "report.html"):
        assert str(tmp_path / "out" / name) in text
    content = json.loads((tmp_path / "out" / "metrics.json").read_text(encoding="utf-8"))
    assert (content["users"], content["items"], content["lists"]) == (USERS, ITEMS, USERS)
    settings = content["settings"]
    assert (settings["n_components"], settings["neighbors"]) == (2, False)
    assert [one["name"] for one in content["validation"]][-1] == "popular items"
    fitted = sf.load(tmp_path / "out" / "model.npz")
    assert fitted.user_ids_.tolist() == [str(user) for user in range(USERS)]


def test_report(tmp_path: Path) -> None:
    more = ["--nonnegative", "--rank", "3", "--quiet", "--users", "7,8"]
    assert recommend(written(tmp_path / "a.csv"), tmp_path / "out", *more) == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    for part in ("Validation", "popular items", "Examples", "The items of largest weight"):
        assert part in page
    first = next(row for row in rows_of(tmp_path / "out" / "recommendations.csv"))
    assert "<td>7</td><td>" in page
    assert f"<td>{first['item']}, " in page
    assert page.count("<b>Topic ") == 3


@pytest.mark.parametrize("as_file", [False, True])
def test_some_users(as_file: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = "3,zoe,5"
    if as_file:
        (tmp_path / "users.txt").write_text("3\n\nzoe\n5\n", encoding="utf-8")
        given = str(tmp_path / "users.txt")
    data = written(tmp_path / "a.csv")
    assert recommend(data, tmp_path / "out", "--users", given, "--n", "2") == 0
    assert "1 of --users are not in " in capsys.readouterr().err
    found = [(row["user"], row["rank"]) for row in rows_of(tmp_path / "out/recommendations.csv")]
    assert found == [(user, rank) for user in ("3", "zoe", "5") for rank in ("1", "2")]


@pytest.mark.parametrize(
    ("head", "more", "kind", "columns"),
    [
        ("user,item,when", ["--value", "when"], "graded", ["user", "item", "when"]),
        ("user,item,timestamp", [], "ones", ["user", "item"]),
        ("item,user,value", [], "graded", ["user", "item", "value"]),
        ("viewer,film,stars", ["--values", "counts"], "counts", ["viewer", "film", "stars"]),
    ],
)
def test_columns_and_values(
    head: str, more: list[str], kind: str, columns: list[str], tmp_path: Path
) -> None:
    data = written(tmp_path / "a.csv", head)
    assert recommend(data, tmp_path / "out", "--quiet", *more) == 0
    content = json.loads((tmp_path / "out" / "metrics.json").read_text(encoding="utf-8"))
    assert [*content["columns"].values()] == columns
    assert content["settings"]["values"] == kind


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        (
            "user,item,rating\na,b,5\na,c,good\n",
            [],
            "line 3: the value in column 'rating' is 'good'",
        ),
        ("user,item,rating\na,b,\n", [], "line 2: the value in column 'rating' is ''"),
        ("user,item\na,b\n,c\n", [], "line 3: no value in column 'user'"),
        ("user,item\n", [], "has no pairs of users and items"),
        ("1,2\n3,4\n", [], "the first line, 1,2, looks like a rating or a pair"),
        ("user,item\na,b\n", ["--value", "stars"], "no column 'stars'"),
        (
            "u1,i1,5,978300760\nu1,i2,4,978300760\n",
            [],
            "the first line, u1,i1,5,978300760, looks like a rating",
        ),
        ("1::2::5::97\n1::3::5::97\n", [], "The delimiter '::' has two characters"),
        ('user,item,rating\na,b,"2,5"\n', [], "need a decimal point, such as 2.5 for 2,5"),
    ],
)
def test_bad_input(
    text: str, more: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    assert recommend(tmp_path / "a.csv", tmp_path / "out", *more) == 2
    assert message in error_line(capsys)
    assert not (tmp_path / "out").exists()


def test_matrices_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "X.npy", np.eye(3))
    assert recommend(tmp_path / "X.npy", tmp_path / "out") == 2
    assert "expected a table of users and items" in error_line(capsys)


def test_ids_of_any_length(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No name of a file is as long, and Python reads no integer of as many digits."""
    users, table = [*"21", "10" * 2500, "0" * 5000 + "3"], tmp_path / "a.csv"
    pairs = [f"{user},{item},5" for user in users for item in range(4)]
    table.write_text("\n".join(["user,item,rating", *pairs]), encoding="utf-8")
    assert recommend(table, tmp_path / "out") == 0
    assert sf.load(tmp_path / "out").user_ids_.tolist() == ["1", "2", users[3], users[2]]
    assert recommend(table, tmp_path / "out", "--users", users[2]) == 0
    assert recommend(table, tmp_path / "out", "--users", "u" * 300) == 0
    assert "1 of --users are not in" in capsys.readouterr().err


def test_too_few_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text("user,item\na,b\n", encoding="utf-8")
    assert recommend(tmp_path / "a.csv", tmp_path / "out") == 0
    captured = capsys.readouterr()
    assert "Not validated" in captured.out
    assert "Too few pairs to validate" in captured.err
    assert (tmp_path / "out" / "report.html").exists()
    assert rows_of(tmp_path / "out" / "recommendations.csv") == []


def predict(folder: Path, data: Path, *more: str) -> int:
    return main(["predict", str(folder), str(data), "--out", str(data.with_name("l.csv")), *more])


def test_new_users(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "user,item,value\nzoe,3,5\nzoe,99,5\nzoe,6,4\nbo,1,5\nmo,98,3\n"
    (tmp_path / "new.csv").write_text(text, encoding="utf-8")
    assert predict(folder, tmp_path / "new.csv", "--n", "3") == 0
    captured = capsys.readouterr()
    assert "Lists of items for 3 users" in captured.out
    assert "2 of 5 items of " in captured.err
    assert "1 of 3 users have no others, and get popular items" in captured.err
    histories = {"zoe": {"3": 5, "6": 4}, "bo": {"1": 5}, "mo": {}}
    expected = sf.load(folder / "model.npz").recommend(histories, 3).to_rows()
    found = rows_of(tmp_path / "l.csv")
    keys = ("user", "item")
    assert [[row[key] for key in keys] for row in found] == [
        [row[key] for key in keys] for row in expected
    ]
    assert kind(found[0]["item"]) == 0
    (tmp_path / "new.csv").write_text("who,what\nzoe,3\nzoe,6\n", encoding="utf-8")
    assert predict(folder, tmp_path / "new.csv", "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["users"], summary["unknown items"], summary["popular"]) == (1, 0, 0)
    assert len(rows_of(tmp_path / "l.csv")) == 10


def test_ids_that_are_integers_in_python(tmp_path: Path) -> None:
    table = pd.read_csv(written(tmp_path / "a.csv"))
    sf.save(sf.Recommender(2, random_state=0).fit(table), tmp_path / "model.npz")
    (tmp_path / "new.csv").write_text("user,item\nzoe,3\n", encoding="utf-8")
    assert predict(tmp_path / "model.npz", tmp_path / "new.csv") == 0
    assert kind(rows_of(tmp_path / "l.csv")[0]["item"]) == 0


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        ("user,item\nzoe,99\n", [], "no item of "),
        ("user,item\nzoe,3\n", ["--text", "user"], "--text is for a model of `ssnmf-fast fit`"),
        ("user,item,value\nzoe,3,x\n", [], "line 2: the value in column 'value' is 'x'"),
    ],
)
def test_bad_new_users(
    folder: Path,
    text: str,
    more: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "new.csv").write_text(text, encoding="utf-8")
    assert predict(folder, tmp_path / "new.csv", *more) == 2
    assert message in error_line(capsys)


def test_options_of_lists_are_refused_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sf.save(sf.NMF(n_components=1).fit(np.eye(3)), tmp_path / "nmf.npz")
    np.save(tmp_path / "X.npy", np.eye(3))
    assert predict(tmp_path / "nmf.npz", tmp_path / "X.npy", "--n", "3") == 2
    assert "--n is for a model of `ssnmf-fast recommend`" in error_line(capsys)


@pytest.mark.parametrize("values", [False, True])
def test_repeated_pairs_of_new_users_are_merged_as_in_the_fit(
    values: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    rows = [(u, f"i{i}") for u in range(40) for i in rng.integers(0, 12, 20) ** 2 // 12]
    lines = [f"{u},{i}" + f",{rng.integers(1, 6)}" * values for u, i in rows]
    text = "\n".join(["user,item" + ",rating" * values, *lines, ""])
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    assert recommend(tmp_path / "a.csv", tmp_path / "out") == 0
    model = tmp_path / "out" / "model.npz"
    new = tmp_path / "new.csv"
    assert main(["predict", str(model), str(tmp_path / "a.csv"), "--out", str(new)]) == 0
    fit, found = sf.load(model), pd.read_csv(new)
    lists = fit.recommend(fit.pairs_, 10).to_frame()
    assert found["item"].tolist() == lists["item"].tolist()
    assert found["score"].to_numpy() == pytest.approx(lists["score"].to_numpy(), abs=1e-5)
