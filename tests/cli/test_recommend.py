"""``ssnmf-fast recommend``, and lists for new users by ``ssnmf-fast predict``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command import Result, empty_pictures, run, write_lines

import ssnmf_fast as sf

USERS, ITEMS, KINDS = 40, 24, 3


def kind(name: str) -> int:
    return int(name) % KINDS


def written(
    path: str | Path = "a.csv", head: str = "user,item,rating", more: Sequence[str] = ()
) -> Path:
    """Pairs of users with four or five items of their kind (5), and one of another (1)."""
    rng, found = np.random.default_rng(0), []
    for user in range(USERS):
        own = rng.permutation(np.arange(user % KINDS, ITEMS, KINDS))[: 4 + user % 2]
        found += [f"{user},{item},5" for item in own]
        found.append(f"{user},{(user + 1) % KINDS},1")
    return write_lines(path, [head, *found, *more])


def recommend(data: object, more: str = "", out: object = "out", code: int = 0) -> Result:
    return run(f"recommend {data} --out {out} --threads 1 {more}", code=code)


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> Result:
    base = tmp_path_factory.mktemp("recommend")
    with empty_pictures():
        return recommend(written(base / "ratings.csv"), "--quiet", base / "out")


def test_lists_are_those_of_python(lists: Result) -> None:
    table = pd.read_csv(lists.path.parent / "ratings.csv")
    auto = {"unseen_weight": "auto", "ridge": "auto", "neighbors": "auto"}
    expected = sf.Recommender("auto", random_state=0, **auto).fit(table).recommend().to_frame()
    found = pd.read_csv(lists.path / "recommendations.csv")
    assert [*found] == ["user", "item", "score", "rank"]
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, rtol=1e-5)
    best = found[found["rank"] == 1]
    assert np.mean(best["user"] % KINDS == best["item"] % KINDS) > 0.9


def test_what_is_printed() -> None:
    data = written("a.csv.gz", "userId,movieId,rating", ["0,0,5", "0,0,5"])
    found = recommend(data, "--rank 2 --no-neighbors")
    text = found.out
    assert "columns   user 'userId', item 'movieId', value 'rating'" in text
    assert "repeated pairs, merged with these" in text
    assert "ratings from 1 to 5; low ratings mean that an item was not liked" in text
    assert "rank 2, unseen weight 4, ridge 0.02" in text
    assert "popular items" in text
    assert "similar items" not in text
    for name in ("recommendations.csv", "model.npz", "metrics.json", "report.html"):
        assert str(found.path / name) in text
    content = found.json()
    assert (content["users"], content["items"], content["lists"]) == (USERS, ITEMS, USERS)
    settings = content["settings"]
    assert (settings["n_components"], settings["neighbors"]) == (2, False)
    assert [one["name"] for one in content["validation"]][-1] == "popular items"
    assert found.model.user_ids_.tolist() == [str(user) for user in range(USERS)]


def test_report() -> None:
    found = recommend(written(), "--nonnegative --rank 3 --quiet --users 7,8")
    page = found.read()
    for part in ("Validation", "popular items", "Examples", "The items of largest weight"):
        assert part in page
    assert "<td>7</td><td>" in page
    assert f"<td>{found.column('item', 'recommendations.csv')[0]}, " in page
    assert page.count("<b>Topic ") == 3


@pytest.mark.parametrize("as_file", [False, True])
def test_some_users(as_file: bool) -> None:
    given = write_lines("users.txt", ["3", "", "zoe", "5"]) if as_file else "3,zoe,5"
    result = recommend(written(), f"--users {given} --n 2")
    assert "1 of --users are not in " in result.err
    found = [(row["user"], row["rank"]) for row in result.rows("recommendations.csv")]
    assert found == [(user, rank) for user in ("3", "zoe", "5") for rank in ("1", "2")]


@pytest.mark.parametrize(
    ("head", "more", "kind", "columns"),
    [
        ("user,item,when", "--value when", "graded", "user,item,when"),
        ("user,item,timestamp", "", "ones", "user,item"),
        ("item,user,value", "", "graded", "user,item,value"),
        ("viewer,film,stars", "--values counts", "counts", "viewer,film,stars"),
    ],
)
def test_columns_and_values(head: str, more: str, kind: str, columns: str) -> None:
    content = recommend(written(head=head), f"--quiet {more}").json()
    assert ",".join(content["columns"].values()) == columns
    assert content["settings"]["values"] == kind


@pytest.mark.parametrize(
    ("lines", "more", "message"),
    [
        (
            ["user,item,rating", "a,b,5", "a,c,good"],
            "",
            "line 3: the value in column 'rating' is 'good'",
        ),
        (["user,item,rating", "a,b,"], "", "line 2: the value in column 'rating' is ''"),
        (["user,item", "a,b", ",c"], "", "line 3: no value in column 'user'"),
        (["user,item"], "", "has no pairs of users and items"),
        (["1,2", "3,4"], "", "the first line, 1,2, looks like a rating or a pair"),
        (["user,item", "a,b"], "--value stars", "no column 'stars'"),
        (
            ["u1,i1,5,978300760", "u1,i2,4,978300760"],
            "",
            "the first line, u1,i1,5,978300760, looks like a rating",
        ),
        (["1::2::5::97", "1::3::5::97"], "", "The delimiter '::' has two characters"),
        (["user,item,rating", 'a,b,"2,5"'], "", "need a decimal point, such as 2.5 for 2,5"),
    ],
)
def test_bad_input(lines: list[str], more: str, message: str) -> None:
    refused = recommend(write_lines("a.csv", lines), more, code=2)
    assert message in refused.error
    assert not refused.path.exists()


def test_matrices_are_refused(matrix: Path) -> None:
    assert "expected a table of users and items" in recommend(matrix, code=2).error


def test_ids_of_any_length() -> None:
    """No name of a file is as long, and Python reads no integer of as many digits."""
    users = [*"21", "10" * 2500, "0" * 5000 + "3"]
    pairs = [f"{user},{item},5" for user in users for item in range(4)]
    table = write_lines("a.csv", ["user,item,rating", *pairs])
    assert recommend(table).model.user_ids_.tolist() == ["1", "2", users[3], users[2]]
    recommend(table, f"--users {users[2]}")
    assert "1 of --users are not in" in recommend(table, f"--users {'u' * 300}").err


def test_too_few_pairs() -> None:
    found = recommend(write_lines("a.csv", ["user,item", "a,b"]))
    assert "Not validated" in found.out
    assert "Too few pairs to validate" in found.err
    assert "report.html" in found.files
    assert found.rows("recommendations.csv") == []


def predict(model: object, lines: list[str], more: str = "", code: int = 0) -> Result:
    """Recommend to new users."""
    return run(f"predict {model} --out l.csv {more}", write_lines("new.csv", lines), code=code)


def test_new_users(lists: Result) -> None:
    new = ["user,item,value", "zoe,3,5", "zoe,99,5", "zoe,6,4", "bo,1,5", "mo,98,3"]
    found = predict(lists.path, new, "--n 3")
    assert "Lists of items for 3 users" in found.out
    assert "2 of 5 items of " in found.err
    assert "1 of 3 users have no others, and get popular items" in found.err
    histories = {"zoe": {"3": 5, "6": 4}, "bo": {"1": 5}, "mo": {}}
    expected = lists.model.recommend(histories, 3).to_rows()
    for key in ("user", "item"):
        assert found.column(key) == [row[key] for row in expected]
    assert kind(found.column("item")[0]) == 0
    found = predict(lists.path, ["who,what", "zoe,3", "zoe,6"], "--json")
    summary = json.loads(found.out)
    assert (summary["users"], summary["unknown items"], summary["popular"]) == (1, 0, 0)
    assert len(found.rows()) == 10


def test_ids_that_are_integers_in_python() -> None:
    table = pd.read_csv(written())
    sf.save(sf.Recommender(2, random_state=0).fit(table), "model.npz")
    assert kind(predict("model.npz", ["user,item", "zoe,3"]).column("item")[0]) == 0


@pytest.mark.parametrize(
    ("lines", "more", "message"),
    [
        (["user,item", "zoe,99"], "", "no item of "),
        (["user,item", "zoe,3"], "--text user", "--text is for a model of `ssnmf-fast fit`"),
        (["user,item,value", "zoe,3,x"], "", "line 2: the value in column 'value' is 'x'"),
    ],
)
def test_bad_new_users(lists: Result, lines: list[str], more: str, message: str) -> None:
    assert message in predict(lists.path, lines, more, code=2).error


def test_options_of_lists_are_refused_elsewhere(of_matrix: Result, matrix: Path) -> None:
    refused = run(f"predict {of_matrix.path} {matrix} --n 3", code=2)
    assert "--n is for a model of `ssnmf-fast recommend`" in refused.error


@pytest.mark.parametrize("values", [False, True])
def test_repeated_pairs_of_new_users_are_merged_as_in_the_fit(values: bool) -> None:
    rng = np.random.default_rng(0)
    rows = [(u, f"i{i}") for u in range(40) for i in rng.integers(0, 12, 20) ** 2 // 12]
    pairs = [f"{u},{i}" + f",{rng.integers(1, 6)}" * values for u, i in rows]
    table = write_lines("a.csv", ["user,item" + ",rating" * values, *pairs])
    fit = recommend(table).model
    run(f"predict out/model.npz {table} --out new.csv")
    found, lists = pd.read_csv("new.csv"), fit.recommend(fit.pairs_, 10).to_frame()
    assert found["item"].tolist() == lists["item"].tolist()
    assert found["score"].to_numpy() == pytest.approx(lists["score"].to_numpy(), abs=1e-5)
