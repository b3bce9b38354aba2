"""The subcommand `complete`: ratings and matrices, every file, and every error as one line."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from absent_packages import hide
from outputs import error_line, rows_of

import ssnmf_fast as sf
from ssnmf_fast.cli import main

FILES = {
    *("highest_predictions.csv", "report.json", "page.json"),
    *("model.npz", "users.csv", "items.csv"),
}
USERS, ITEMS = 24, 15


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


def write(path: Path, lines: list[tuple[str, str, float]], header: str) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",")
        writer.writerows([header.split(), *lines])
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write(tmp_path / "ratings.csv", ratings(), "user item rating")


def complete(data: Path, out: Path, *more: str) -> int:
    return main(["complete", str(data), "--out", str(out), "--threads", "1", *more])


class TestRatings:
    @pytest.mark.slow
    def test_the_largest_rank_that_is_tried_is_told(
        self, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert complete(table, tmp_path / "out") == 0
        assert "those tried" not in capsys.readouterr().out
        rng = np.random.default_rng(0)
        full = rng.standard_normal((100, 45)) @ rng.standard_normal((45, 100))
        users, items = np.nonzero(rng.random(full.shape) < 0.95)
        pairs = zip(users, items, strict=True)
        lines = [(f"u{u}", f"i{i}", round(full[u, i], 3)) for u, i in pairs]
        large = write(tmp_path / "large.csv", lines, "user item rating")
        assert complete(large, tmp_path / "out", "--test-size", "0") == 0
        told = "the rank is the largest of those tried, 1, 2, 5, 10, 20, 40; see --rank"
        assert told in capsys.readouterr().out
        pytest.importorskip("matplotlib")
        page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
        assert told[1:] in page
        assert "RMSE" not in page.partition("Examples")[0]  # no rating was hidden

    def test_writes_every_file(
        self, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        pytest.importorskip("matplotlib")
        out = tmp_path / "deep" / "out"
        assert complete(table, out) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        lines = ratings()
        assert f"{len(lines)} ratings of {ITEMS} items by {USERS} users" in captured.out
        assert "columns   user 'user', item 'item', rating 'rating'" in captured.out
        pictured = {"singular_values.png", "report.html"}
        assert {p.name for p in out.iterdir()} == FILES | pictured
        page = (out / "report.html").read_text(encoding="utf-8")
        assert f"{len(lines)} ratings of {ITEMS} items by {USERS} users." in page
        assert "RMSE of the model" in page
        assert "ítem, 1" in page.partition("Highest predictions")[2]
        assert all(str(out / p.name) in captured.out for p in out.iterdir())
        assert (out / "singular_values.png").read_bytes().startswith(b"\x89PNG")

        report = json.loads((out / "report.json").read_text(encoding="utf-8"))
        assert (report["users"], report["items"]) == (USERS, ITEMS)
        assert report["density"] == pytest.approx(len(lines) / (USERS * ITEMS))
        assert report["held_out"] == round(0.1 * len(lines))
        errors = report["errors"]
        assert errors["model"]["RMSE"] < 0.7 * errors["row and column means"]["RMSE"]
        assert errors["overall mean"]["MAE"] <= errors["overall mean"]["RMSE"]
        assert set(report["seconds"]) == {"evaluation", "fit", "all"}

    def test_highest_predictions(self, table: Path, tmp_path: Path) -> None:
        out = tmp_path / "out"
        assert complete(table, out, "--rank", "1", "--top", "4") == 0
        users = {row["user"]: int(row["place"]) for row in rows_of(out / "users.csv")}
        items = {row["item"]: int(row["place"]) for row in rows_of(out / "items.csv")}
        rated = {(u, i): r for u, i, r in ratings()}
        assert list(users) == list(dict.fromkeys(u for u, _ in rated))
        counts = {row["item"]: int(row["ratings"]) for row in rows_of(out / "items.csv")}
        assert counts["ítem, 0"] == USERS
        fitted = sf.load(out / "model.npz").to_dense()
        rows = rows_of(out / "highest_predictions.csv")
        for user, place in users.items():
            mine = [row for row in rows if row["user"] == user]
            free = [i for i in items if (user, i) not in rated]
            best = sorted(free, key=lambda i: -fitted[place, items[i]])[:4]
            assert [row["item"] for row in mine] == best
            assert [int(row["rank"]) for row in mine] == list(range(1, len(best) + 1))
            predicted = [float(row["predicted rating"]) for row in mine]
            np.testing.assert_allclose(predicted, [fitted[place, items[i]] for i in best], 1e-5)

    def test_same_seed_same_files(self, table: Path, tmp_path: Path) -> None:
        for folder in ("a", "b"):
            assert complete(table, tmp_path / folder, "--rank", "2", "--seed", "3") == 0
        for name in FILES - {"report.json", "model.npz"}:
            assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()

    def test_no_hold_out(
        self, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert complete(table, tmp_path / "out", "--rank", "1", "--test-size", "0") == 0
        report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
        assert (report["held_out"], report["errors"]) == (0, {})
        assert "RMSE" not in capsys.readouterr().out

    @pytest.mark.slow
    def test_columns_by_place_and_by_name(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        quick = ["--rank", "1", "--test-size", "0"]
        by_place = write(tmp_path / "a.tsv", ratings(), "userId movieId stars")
        assert complete(by_place, tmp_path / "a", *quick) == 0
        assert "user 'userId', item 'movieId', rating 'stars'" in capsys.readouterr().out
        mixed = tmp_path / "b.jsonl.gz"
        with gzip.open(mixed, "wt", encoding="utf-8") as file:
            for user, item, rating in ratings():
                # Numbers and text are one kind of id.
                row = {"score": rating, "who": user, "film": int(item.split()[1])}
                file.write(json.dumps(row) + "\n\n")
        named = ["--user", "who", "--item", "film", "--rating", "score"]
        assert complete(mixed, tmp_path / "b", *quick, *named) == 0
        first, second = (rows_of(tmp_path / f / "highest_predictions.csv") for f in "ab")
        assert [r["item"] for r in first] == [f"ítem, {r['item']}" for r in second]

    def test_equal_ratings(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """They may be implicit feedback, for which zeros are no missing values."""
        lines = [(u, i, 4.0) for u, i, _ in ratings()]
        path = write(tmp_path / "equal.csv", lines, "user item rating")
        assert complete(path, tmp_path / "out", "--rank", "1") == 0
        err = capsys.readouterr().err
        assert f"all {len(lines)} ratings are 4" in err
        assert "use ssnmf_fast.Recommender" in err
        assert err.count("\n") == 1
        rows = rows_of(tmp_path / "out" / "highest_predictions.csv")
        assert {row["predicted rating"] for row in rows} == {"4"}

    def test_exact(self, tmp_path: Path) -> None:
        rng = np.random.default_rng(1)
        full = np.outer(rng.random(20) + 1, rng.random(12) + 1)
        known = rng.random(full.shape) < 0.6
        lines = [(str(i), str(j), float(full[i, j])) for i, j in zip(*known.nonzero(), strict=True)]
        path = write(tmp_path / "exact.csv", lines, "user item rating")
        assert complete(path, tmp_path / "out", "--exact", "--rank", "1", "--top", "99") == 0
        for row in rows_of(tmp_path / "out" / "highest_predictions.csv"):
            truth = full[int(row["user"]), int(row["item"])]
            assert float(row["predicted rating"]) == pytest.approx(truth, rel=1e-4)

    @pytest.mark.slow
    def test_clip(self, tmp_path: Path) -> None:
        """Predictions, errors and the model keep to the scale of ratings, if not told otherwise."""
        low, high = 1.0, 5.0
        stars = np.random.default_rng(0).integers(1, 6, len(ratings())).astype(float)
        lines = [(u, i, r) for (u, i, _), r in zip(ratings(), stars, strict=True)]
        table = write(tmp_path / "cut.csv", lines, "user item rating")
        for name, options in (("free", ["--no-clip"]), ("kept", [])):
            assert complete(table, tmp_path / name, "--exact", "--rank", "2", *options) == 0
        free, kept = (rows_of(tmp_path / n / "highest_predictions.csv") for n in ("free", "kept"))
        assert [(r["user"], r["item"]) for r in free] == [(r["user"], r["item"]) for r in kept]
        beyond = [float(r["predicted rating"]) for r in free]
        assert max(beyond) > high
        inside = [float(r["predicted rating"]) for r in kept]
        np.testing.assert_allclose(inside, np.clip(beyond, low, high), rtol=1e-5)
        dense = sf.load(tmp_path / "kept" / "model.npz").to_dense()
        assert dense.min() >= low
        assert dense.max() == high
        for name, bounds in (("kept", [low, high]), ("free", None)):
            report = json.loads((tmp_path / name / "report.json").read_text(encoding="utf-8"))
            assert report["clip"] == bounds

    def test_without_matplotlib(
        self,
        table: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        hide("matplotlib", monkeypatch)
        out = tmp_path / "out"
        assert complete(table, out, "--rank", "1", "--test-size", "0") == 0
        assert "left out: singular_values.png" in capsys.readouterr().out
        assert {p.name for p in out.iterdir()} == FILES


def low_rank() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    full = (rng.random((20, 2)) + 0.5) @ (rng.random((2, 16)) + 0.5)
    return full, np.where(rng.random(full.shape) < 0.7, full, np.nan)


class TestMatrix:
    @pytest.mark.parametrize("ending", [".npy", ".npz", ".csv"])
    def test_nan(self, ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        full, holes = low_rank()
        np.save(tmp_path / "data.npy", holes)
        out = tmp_path / "deep" / f"completed{ending}"
        assert complete(tmp_path / "data.npy", out, "--rank", "2") == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        assert "20 x 16" in captured.out
        assert "RMSE" in captured.out
        if ending == ".csv":
            dense = np.loadtxt(out, delimiter=",")
        else:
            dense = np.load(out) if ending == ".npy" else np.load(out)["X"]
        np.testing.assert_allclose(dense, full, atol=1e-6)
        known = ~np.isnan(holes)
        assert (dense[known] == holes[known]).all()

    @pytest.mark.parametrize("ending", [".npz", ".mtx"])
    def test_sparse(self, ending: str, tmp_path: Path) -> None:
        full, holes = low_rank()
        known = ~np.isnan(holes)
        known[3, 5] = True
        full[3, 5] = 0  # an entry of 0 that is stored is observed
        entries = sp.coo_array((full[known], known.nonzero()), shape=full.shape)
        path = tmp_path / f"data{ending}"
        if ending == ".npz":
            sp.save_npz(path, entries)
        else:
            scipy.io.mmwrite(path, entries, symmetry="general")
        out = tmp_path / "completed.npy"
        assert complete(path, out, "--noisy", "--rank", "2", "--test-size", "0") == 0
        dense = np.load(out)
        assert dense[3, 5] == 0
        np.testing.assert_allclose(dense[known], full[known], rtol=1e-12)

    def test_noisy_matrix_far_from_zero(self, tmp_path: Path) -> None:
        rng = np.random.default_rng(0)
        full = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 12)) + 1e5 * np.arange(12)
        known = rng.random(full.shape) < 0.7
        np.save(tmp_path / "data.npy", np.where(known, full, np.nan))
        assert complete(tmp_path / "data.npy", tmp_path / "out.npy", "--noisy") == 0
        assert np.abs(np.load(tmp_path / "out.npy") - full).mean() < 0.1

    def test_columns_of_the_errors_stay_apart(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        _, holes = low_rank()
        np.save(tmp_path / "data.npy", holes * 1.2345e-9)
        assert complete(tmp_path / "data.npy", tmp_path / "out.npy", "--rank", "2") == 0
        lines = capsys.readouterr().out.splitlines()
        (model,) = (line.split() for line in lines if line.endswith("  model"))
        assert len(model) == 3
        assert all(len(number) == len("1.234e-09") for number in model[:2])

    def test_rank_is_estimated(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        full, holes = low_rank()
        np.save(tmp_path / "data.npy", holes)
        assert complete(tmp_path / "data.npy", tmp_path / "out.npy", "--test-size", "0") == 0
        assert "rank 2" in capsys.readouterr().out
        np.testing.assert_allclose(np.load(tmp_path / "out.npy"), full, atol=1e-6)

    def test_large_one_is_written_as_factors(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        rng, n = np.random.default_rng(0), 15_000
        places = np.divmod(rng.choice(n * n, 3 * n, replace=False), n)
        scipy.io.mmwrite(tmp_path / "data.mtx", sp.coo_array((rng.random(3 * n), places), (n, n)))
        quick = ["--rank", "1", "--test-size", "0", "--max-iter", "2"]
        assert complete(tmp_path / "data.mtx", tmp_path / "out.npy", *quick) == 2
        assert "the ending .npz to write its factors" in error_line(capsys)
        assert complete(tmp_path / "data.mtx", tmp_path / "out.npz", *quick) == 0
        assert sf.load(tmp_path / "out.npz").shape == (n, n)

    def test_empty_row_is_told(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        _, holes = low_rank()
        holes[4] = np.nan
        np.save(tmp_path / "data.npy", holes)
        assert complete(tmp_path / "data.npy", tmp_path / "out.npy", "--rank", "2") == 0
        err = capsys.readouterr().err
        assert "data.npy has no entry for 1 row; predictions for them are 0" in err
        assert err.count("\n") == 1


class TestErrors:
    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("a.csv", "", "has no ratings"),
            ("a.csv", "user,item,rating\n", "has no ratings"),
            ("a.jsonl", "\n", "has no ratings"),
            (
                "a.csv",
                "user,item\na,b\n",
                "columns user, item; expected those of users, items and",
            ),
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
            ("a.csv", b"user,item,rating\n\xff,b,1\n", "not UTF-8"),
            ("a.csv.gz", b"not gzip", "cannot be read"),
            ("a.data", "1 2 3\n", "unknown kind of file '.data'"),
        ],
    )
    def test_bad_tables(
        self,
        name: str,
        content: str | bytes,
        message: str,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        assert complete(path, tmp_path / "out") == 2
        assert message in error_line(capsys)
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            (["--user", "who"], "no column 'who'; its columns are: user, item, rating"),
            (["--item", "user"], "cannot tell"),
            (["--rank", "16"], f"--rank 16 is too large for {USERS} x {ITEMS} entries"),
            (["--method", "structured-irls"], "fits exactly; add --exact"),
            (
                ["--method", "nnm", "--exact", "--rank", "2"],
                "nnm determines the rank; leave --rank",
            ),
            (["--test-size", "1"], "--test-size 1 leaves no entry to fit"),
            (["--exact", "--noisy"], "not allowed with"),
            (["--top", "0"], "at least 1"),
            (["--method", "magic"], "invalid choice: 'magic'"),
        ],
    )
    def test_bad_options(
        self,
        more: list[str],
        message: str,
        table: Path,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        assert complete(table, tmp_path / "out", *more) == 2
        assert message in error_line(capsys)

    def test_bad_outputs(
        self, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert complete(table, tmp_path / "x.csv") == 2
        assert "expected a folder" in error_line(capsys)
        (tmp_path / "taken").write_text("x")
        assert complete(table, tmp_path / "taken") == 2
        assert "is a file; --out needs a folder" in error_line(capsys)
        matrix = tmp_path / "data.npy"
        np.save(matrix, low_rank()[1])
        for out in (tmp_path, tmp_path / "x.txt"):
            assert complete(matrix, out) == 2
            assert "expected a file (.npy, .npz, .csv)" in error_line(capsys)
        assert complete(matrix, matrix) == 2
        assert "would replace" in error_line(capsys)
        assert complete(matrix, tmp_path / "taken" / "x.npy") == 2
        error_line(capsys)

    def test_bad_matrices(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        matrix, out = tmp_path / "data.npy", tmp_path / "out.npy"
        cases = [
            (np.ones((3, 2)), "has no missing entry"),
            (np.ones((9, 3)), "A table of user, item and rating is read from a .csv"),
            (np.full((3, 2), np.nan), "has no observed entry"),
            (np.array([[1, np.inf], [np.nan, 2]]), "infinit"),
            (np.array([[1j, 2], [3, 4]]), "dtype"),
            (np.ones(3), "shape (3,)"),
        ]
        for array, message in cases:
            np.save(matrix, array)
            assert complete(matrix, out) == 2
            assert message in error_line(capsys)
        assert complete(matrix, out, "--user", "who") == 2
        assert "--user is for a table of ratings" in error_line(capsys)
        assert complete(tmp_path / "none.npy", out) == 2
        assert "no such file" in error_line(capsys)
        assert not out.exists()


def test_repeated_entries_of_a_matrix_file_are_named(tmp_path, capsys):
    path = tmp_path / "twice.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n1 1 2\n")
    assert main(["complete", str(path), "--out", str(tmp_path / "out.npy")]) == 2
    assert "[0, 0] more than once" in capsys.readouterr().err
