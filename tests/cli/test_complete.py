"""The subcommand `complete`: ratings and matrices, every file, and every error as one line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from command import Result, run, write_table
from helpers.absent_packages import hide

import ssnmf_fast as sf

FILES = {
    *("highest_predictions.csv", "report.json", "page.json"),
    *("model.npz", "users.csv", "items.csv"),
}
USERS, ITEMS = 24, 15
HEADS = ("user", "item", "rating")
QUICK = "--rank 1 --test-size 0"
BEST = "highest_predictions.csv"


def ratings(seed: int = 0) -> list[tuple[str, str, float]]:
    """Ratings of rank 1 and biases, half of them; every user and every item has some."""
    rng = np.random.default_rng(seed)
    taste, kind = rng.choice([-1.0, 1.0], USERS), rng.choice([-1.0, 1.0], ITEMS)
    full = 3 + np.outer(taste, kind) + 0.3 * rng.standard_normal((USERS, 1))
    known = rng.random(full.shape) < 0.5
    known[:, 0] = known[0] = True
    users, items = np.nonzero(known)
    order = rng.permutation(len(users))
    pairs = zip(users[order], items[order], strict=True)
    return [(f"user {u}", f"ítem, {i}", round(full[u, i], 3)) for u, i in pairs]


def complete(data: object, more: str = "", out: object = "out", code: int = 0) -> Result:
    return run(f"complete --threads 1 {more}", data, "--out", out, code=code)


@pytest.fixture
def table() -> Path:
    return write_table("ratings.csv", [HEADS, *ratings()])


class TestRatings:
    @pytest.mark.slow
    def test_the_largest_rank_that_is_tried_is_told(self, table: Path) -> None:
        assert "those tried" not in complete(table).out
        rng = np.random.default_rng(0)
        full = rng.standard_normal((100, 45)) @ rng.standard_normal((45, 100))
        pairs = np.argwhere(rng.random(full.shape) < 0.95).tolist()
        lines = [(f"u{u}", f"i{i}", round(full[u, i], 3)) for u, i in pairs]
        large = complete(write_table("large.csv", [HEADS, *lines]), "--test-size 0")
        told = "the rank is the largest of those tried, 1, 2, 5, 10, 20, 40; see --rank"
        assert told in large.out
        pytest.importorskip("matplotlib")
        assert told[1:] in large.read()
        assert "RMSE" not in large.read().partition("Examples")[0]  # no rating was hidden

    def test_writes_every_file(self, table: Path) -> None:
        pytest.importorskip("matplotlib")
        found, lines = complete(table, out="deep/out"), ratings()
        assert found.err == ""
        assert f"{len(lines)} ratings of {ITEMS} items by {USERS} users" in found.out
        assert "columns   user 'user', item 'item', rating 'rating'" in found.out
        assert found.files == FILES | {"singular_values.png", "report.html"}
        assert all(str(found.path / name) in found.out for name in found.files)
        page = found.read()
        assert f"{len(lines)} ratings of {ITEMS} items by {USERS} users." in page
        assert "RMSE of the model" in page
        assert "ítem, 1" in page.partition("Highest predictions")[2]
        assert (found.path / "singular_values.png").read_bytes().startswith(b"\x89PNG")

        report = found.json("report.json")
        assert (report["users"], report["items"]) == (USERS, ITEMS)
        assert report["density"] == pytest.approx(len(lines) / (USERS * ITEMS))
        assert report["held_out"] == round(0.1 * len(lines))
        errors = report["errors"]
        assert errors["model"]["RMSE"] < 0.7 * errors["row and column means"]["RMSE"]
        assert errors["overall mean"]["MAE"] <= errors["overall mean"]["RMSE"]
        assert set(report["seconds"]) == {"evaluation", "fit", "all"}

    def test_highest_predictions(self, table: Path) -> None:
        found = complete(table, "--rank 1 --top 4")
        users = {row["user"]: int(row["place"]) for row in found.rows("users.csv")}
        items = {row["item"]: int(row["place"]) for row in found.rows("items.csv")}
        rated = {(u, i): r for u, i, r in ratings()}
        assert list(users) == list(dict.fromkeys(u for u, _ in rated))
        counts = {row["item"]: int(row["ratings"]) for row in found.rows("items.csv")}
        assert counts["ítem, 0"] == USERS
        fitted, rows = found.model.to_dense(), found.rows(BEST)
        for user, place in users.items():
            mine = [row for row in rows if row["user"] == user]
            free = [i for i in items if (user, i) not in rated]
            best = sorted(free, key=lambda i: -fitted[place, items[i]])[:4]
            assert [row["item"] for row in mine] == best
            assert [int(row["rank"]) for row in mine] == list(range(1, len(best) + 1))
            predicted = [float(row["predicted rating"]) for row in mine]
            np.testing.assert_allclose(predicted, [fitted[place, items[i]] for i in best], 1e-5)

    def test_same_seed_same_files(self, table: Path) -> None:
        for folder in "ab":
            complete(table, "--rank 2 --seed 3", folder)
        for name in FILES - {"report.json", "model.npz"}:
            assert Path("a", name).read_bytes() == Path("b", name).read_bytes()

    def test_no_hold_out(self, table: Path) -> None:
        found = complete(table, QUICK)
        report = found.json("report.json")
        assert (report["held_out"], report["errors"]) == (0, {})
        assert "RMSE" not in found.out

    @pytest.mark.slow
    def test_columns_by_place_and_by_name(self) -> None:
        heads = ("userId", "movieId", "stars")
        by_place = complete(write_table("a.tsv", [heads, *ratings()], delimiter="\t"), QUICK, "a")
        assert "user 'userId', item 'movieId', rating 'stars'" in by_place.out
        with gzip.open("b.jsonl.gz", "wt", encoding="utf-8") as file:
            for user, item, rating in ratings():
                # Numbers and text are one kind of id.
                row = {"score": rating, "who": user, "film": int(item.split()[1])}
                file.write(json.dumps(row) + "\n\n")
        named = complete("b.jsonl.gz", f"{QUICK} --user who --item film --rating score", "b")
        assert by_place.column("item", BEST) == [f"ítem, {i}" for i in named.column("item", BEST)]

    def test_equal_ratings(self) -> None:
        """They may be implicit feedback, for which zeros are no missing values."""
        lines = [(u, i, 4.0) for u, i, _ in ratings()]
        found = complete(write_table("equal.csv", [HEADS, *lines]), "--rank 1")
        assert f"all {len(lines)} ratings are 4" in found.err
        assert "use ssnmf_fast.Recommender" in found.err
        assert found.err.count("\n") == 1
        assert set(found.column("predicted rating", BEST)) == {"4"}

    def test_exact(self) -> None:
        rng = np.random.default_rng(1)
        full = np.outer(rng.random(20) + 1, rng.random(12) + 1)
        lines = [(i, j, full[i, j]) for i, j in np.argwhere(rng.random(full.shape) < 0.6).tolist()]
        found = complete(write_table("exact.csv", [HEADS, *lines]), "--exact --rank 1 --top 99")
        for row in found.rows(BEST):
            truth = full[int(row["user"]), int(row["item"])]
            assert float(row["predicted rating"]) == pytest.approx(truth, rel=1e-4)

    @pytest.mark.slow
    def test_clip(self) -> None:
        """Predictions, errors and the model keep to the scale of ratings, if not told otherwise."""
        low, high = 1.0, 5.0
        stars = np.random.default_rng(0).integers(1, 6, len(ratings())).astype(float)
        lines = [(u, i, r) for (u, i, _), r in zip(ratings(), stars, strict=True)]
        table = write_table("cut.csv", [HEADS, *lines])
        free = complete(table, "--exact --rank 2 --no-clip", "free")
        kept = complete(table, "--exact --rank 2", "kept")
        for name in ("user", "item"):
            assert free.column(name, BEST) == kept.column(name, BEST)
        beyond, inside = (
            [float(value) for value in one.column("predicted rating", BEST)] for one in (free, kept)
        )
        assert max(beyond) > high
        np.testing.assert_allclose(inside, np.clip(beyond, low, high), rtol=1e-5)
        dense = kept.model.to_dense()
        assert dense.min() >= low
        assert dense.max() == high
        assert kept.json("report.json")["clip"] == [low, high]
        assert free.json("report.json")["clip"] is None

    def test_without_matplotlib(self, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        hide("matplotlib", monkeypatch)
        found = complete(table, QUICK)
        assert "left out: singular_values.png" in found.out
        assert found.files == FILES


def low_rank() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    full = (rng.random((20, 2)) + 0.5) @ (rng.random((2, 16)) + 0.5)
    return full, np.where(rng.random(full.shape) < 0.7, full, np.nan)


@pytest.fixture
def full() -> np.ndarray:
    """A matrix, which is in `data.npy` with holes."""
    full, holes = low_rank()
    np.save("data.npy", holes)
    return full


class TestMatrix:
    @pytest.mark.parametrize("ending", [".npy", ".npz", ".csv"])
    def test_nan(self, ending: str, full: np.ndarray) -> None:
        found = complete("data.npy", "--rank 2", f"deep/completed{ending}")
        assert found.err == ""
        assert "20 x 16" in found.out
        assert "RMSE" in found.out
        if ending == ".csv":
            dense = np.loadtxt(found.path, delimiter=",")
        else:
            dense = np.load(found.path) if ending == ".npy" else np.load(found.path)["X"]
        np.testing.assert_allclose(dense, full, atol=1e-6)
        holes = np.load("data.npy")
        known = ~np.isnan(holes)
        assert (dense[known] == holes[known]).all()

    @pytest.mark.parametrize("ending", [".npz", ".mtx"])
    def test_sparse(self, ending: str) -> None:
        full, holes = low_rank()
        known = ~np.isnan(holes)
        known[3, 5] = True
        full[3, 5] = 0  # an entry of 0 that is stored is observed
        entries = sp.coo_array((full[known], known.nonzero()), shape=full.shape)
        if ending == ".npz":
            sp.save_npz("data.npz", entries)
        else:
            scipy.io.mmwrite("data.mtx", entries, symmetry="general")
        complete(f"data{ending}", "--noisy --rank 2 --test-size 0", "completed.npy")
        dense = np.load("completed.npy")
        assert dense[3, 5] == 0
        np.testing.assert_allclose(dense[known], full[known], rtol=1e-12)

    def test_noisy_matrix_far_from_zero(self) -> None:
        rng = np.random.default_rng(0)
        full = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 12)) + 1e5 * np.arange(12)
        np.save("data.npy", np.where(rng.random(full.shape) < 0.7, full, np.nan))
        complete("data.npy", "--noisy", "out.npy")
        assert np.abs(np.load("out.npy") - full).mean() < 0.1

    def test_columns_of_the_errors_stay_apart(self) -> None:
        np.save("data.npy", low_rank()[1] * 1.2345e-9)
        lines = complete("data.npy", "--rank 2", "out.npy").out.splitlines()
        (model,) = (line.split() for line in lines if line.endswith("  model"))
        assert len(model) == 3
        assert all(len(number) == len("1.234e-09") for number in model[:2])

    def test_rank_is_estimated(self, full: np.ndarray) -> None:
        assert "rank 2" in complete("data.npy", "--test-size 0", "out.npy").out
        np.testing.assert_allclose(np.load("out.npy"), full, atol=1e-6)

    def test_large_one_is_written_as_factors(self) -> None:
        rng, n = np.random.default_rng(0), 15_000
        places = np.divmod(rng.choice(n * n, 3 * n, replace=False), n)
        scipy.io.mmwrite("data.mtx", sp.coo_array((rng.random(3 * n), places), (n, n)))
        quick = f"{QUICK} --max-iter 2"
        refused = complete("data.mtx", quick, "out.npy", code=2)
        assert "the ending .npz to write its factors" in refused.error
        complete("data.mtx", quick, "out.npz")
        assert sf.load("out.npz").shape == (n, n)

    def test_empty_row_is_told(self) -> None:
        _, holes = low_rank()
        holes[4] = np.nan
        np.save("data.npy", holes)
        err = complete("data.npy", "--rank 2", "out.npy").err
        assert "data.npy has no entry for 1 row; predictions for them are 0" in err
        assert err.count("\n") == 1


class TestErrors:
    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("a.csv", "", "has no ratings"),
            ("a.csv", "user,item,rating\n", "has no ratings"),
            ("a.jsonl", "\n", "has no ratings"),
            ("a.csv", "user,item\na,b\n", "columns user, item; expected those of users, items and"),
            ("a.csv", "1,2,3\n4,5,6\n", "the first line, 1,2,3, looks like a rating"),
            ("a.csv", "1,2,3,4\n4,5,6,7\n", "the first line, 1,2,3,4, looks like a rating"),
            ("a.csv", "user::item::rating\na::b::3\n", "The delimiter '::' has two characters"),
            ("a.csv", 'user,item,rating\na,b,"2,5"\n', "need a decimal point, such as 2.5 for 2,5"),
            ("a.csv", "time,user,score\n1,a,3\n", "cannot tell users, items and ratings apart"),
            ("a.csv", "user,item,rating\na,b,1\n\na,c,good\n", "line 4: the rating in column"),
            ("a.csv", "user,item,rating\na,b,good\n", "'good', not a number"),
            ("a.csv", "user,item,rating\na,b,nan\n", "'nan', not a number"),
            ("a.csv", "user,item,rating\na,b\n", "line 2: 2 cells between delimiters ','"),
            ("a.csv", "user,item,rating\na, ,3\n", "line 2: no value in column 'item'"),
            ("a.jsonl", '{"user":1,"item":2,"rating":3}\n{"user":1}\n', "line 2: no value in"),
            (
                "a.jsonl",
                '\n{"user":[1],"item":2,"rating":3}\n',
                "line 2: column 'user' holds a list",
            ),
            ("a.jsonl", '{"user":1,"item":2,"rating":3}\n\nbad\n', "line 3: not JSON"),
            (
                "a.csv",
                "user,item,rating\na,b,1\nc,b,2\na,b,3\na,b,4\n",
                "user 'a' has more than one rating of item 'b': 1 and 3 (2 such repeats in all)",
            ),
            (  # two forms of one name
                "a.csv",
                "user,item,rating\n\u00e9,i,1\ne\u0301,i,2\nu,j,3\n",
                "user '\u00e9' has more than one rating of item 'i'",
            ),
            ("a.csv", b"user,item,rating\n\xff,b,1\n", "not UTF-8"),
            ("a.csv.gz", b"not gzip", "cannot be read"),
            ("a.data", "1 2 3\n", "unknown kind of file '.data'"),
        ],
    )
    def test_bad_tables(self, name: str, content: str | bytes, message: str) -> None:
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
        assert message in complete(name, code=2).error
        assert not Path("out").exists()

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            ("--user who", "no column 'who'; its columns are: user, item, rating"),
            ("--item user", "cannot tell"),
            ("--rank 16", f"--rank 16 is too large for {USERS} x {ITEMS} entries"),
            ("--method structured-irls", "fits exactly; add --exact"),
            ("--method nnm --exact --rank 2", "nnm determines the rank; leave --rank"),
            ("--test-size 1", "--test-size 1 leaves no entry to fit"),
            ("--exact --noisy", "not allowed with"),
            ("--top 0", "at least 1"),
            ("--method magic", "invalid choice: 'magic'"),
        ],
    )
    def test_bad_options(self, more: str, message: str, table: Path) -> None:
        assert message in complete(table, more, code=2).error

    def test_bad_outputs(self, table: Path, full: np.ndarray) -> None:
        Path("taken").write_text("x", encoding="utf-8")
        for data, out, message in [
            (table, "x.csv", "expected a folder"),
            (table, "taken", "is a file; --out needs a folder"),
            ("data.npy", ".", "expected a file (.npy, .npz, .csv)"),
            ("data.npy", "x.txt", "expected a file (.npy, .npz, .csv)"),
            ("data.npy", "data.npy", "would replace"),
            ("data.npy", "taken/x.npy", ""),
        ]:
            assert message in complete(data, out=out, code=2).error

    def test_bad_matrices(self) -> None:
        for array, message in [
            (np.ones((3, 2)), "has no missing entry"),
            (np.ones((9, 3)), "A table of user, item and rating is read from a .csv"),
            (np.full((3, 2), np.nan), "has no observed entry"),
            (np.array([[1, np.inf], [np.nan, 2]]), "infinit"),
            (np.array([[1j, 2], [3, 4]]), "dtype"),
            (np.ones(3), "shape (3,)"),
        ]:
            np.save("data.npy", array)
            assert message in complete("data.npy", out="out.npy", code=2).error
        for option, value in {"--user": "who", "--duplicates": "mean"}.items():
            error = complete("data.npy", f"{option} {value}", "out.npy", code=2).error
            assert f"{option} is for a table of ratings" in error
        assert "no such file" in complete("none.npy", out="out.npy", code=2).error
        assert not Path("out.npy").exists()

    def test_repeated_entries_of_a_matrix_file_are_named(self) -> None:
        text = "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n1 1 2\n"
        Path("twice.mtx").write_text(text, encoding="utf-8")
        assert "[0, 0] more than once" in complete("twice.mtx", out="out.npy", code=2).err
