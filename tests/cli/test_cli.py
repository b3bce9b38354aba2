"""The command line: every file that it writes, and every error that it shows as one line."""

from __future__ import annotations

import csv
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from absent_packages import hide
from outputs import error_line, measures_of, rows_of

import ssnmf_fast as sf
from ssnmf_fast.cli import main

compiled = pytest.mark.skipif(
    os.environ.get("SSNMF_FAST_ISA") == "reference", reason="takes minutes on the NumPy reference"
)
ANIMALS = [
    "cat dog pet",
    "cats dogs pet",
    "dog cat mat",
    "pet cat vet",
    "dog vet pet",
    "cat mat pet",
]
MONEY = [
    "stock bank",
    "bank price stock",
    "price market",
    "market bank",
    "stock price",
    "bank stock",
]
EVIL = "<script>alert('x')</script>"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "posts.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "kind"])
        for k, (a, b) in enumerate(zip(ANIMALS, MONEY, strict=True)):
            writer.writerow([a, EVIL if k < 4 else ""])
            writer.writerow([b, "money, bonds" if k < 4 else ""])
    return path


@pytest.fixture
def matrix(tmp_path: Path) -> tuple[Path, Path]:
    rng = np.random.default_rng(0)
    X = rng.random((12, 6)) * np.kron([[1, 0.05], [0.05, 1]], np.ones((6, 3)))
    np.save(tmp_path / "X.npy", X)
    labels = tmp_path / "labels.txt"
    labels.write_text("a\na\na\na\na\n\nb\nb\nb\nb\n\n\n", encoding="utf-8")
    return tmp_path / "X.npy", labels


def fit(table: Path, out: Path, *more: str) -> int:
    return main(
        [
            "fit",
            str(table),
            "--labels",
            "kind",
            "--model",
            "ssnmf",
            "--rank",
            "2",
            "--out",
            str(out),
            "--min-df",
            "1",
            "--test-size",
            "0.25",
            *more,
        ]
    )


class TestFit:
    @pytest.mark.slow
    def test_writes_every_file(
        self, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        out = tmp_path / "deep" / "out"
        assert fit(table, out) == 0
        printed = capsys.readouterr().out
        assert "accuracy on 2 held-out samples" in printed
        assert {p.name for p in out.iterdir()} == {
            "model.npz",
            "vectorizer.json",
            "topics.csv",
            "topic_classes.csv",
            "topic_examples.csv",
            "codes.csv",
            "predictions.csv",
            "probabilities.csv",
            "representation.npy",
            "metrics.json",
            "page.json",
            "report.html",
        }
        assert all(str(out / p.name) in printed for p in out.iterdir())

        model = sf.load(out / "model.npz")
        assert sorted(model.classes_) == sorted([EVIL, "money, bonds"])
        assert np.load(out / "representation.npy").shape == (12, 2)
        terms = json.loads((out / "vectorizer.json").read_text(encoding="utf-8"))["terms"]
        assert {row["term"] for row in rows_of(out / "topics.csv")} <= set(terms)
        for row in rows_of(out / "topic_classes.csv"):
            assert float(row[EVIL]) + float(row["money, bonds"]) == pytest.approx(1, abs=1e-4)

    @pytest.mark.slow
    def test_predictions(self, table: Path, tmp_path: Path) -> None:
        assert fit(table, tmp_path / "out") == 0
        rows = rows_of(tmp_path / "out" / "predictions.csv")
        used = [row["source"] for row in rows]
        assert [used.count(u) for u in ("given", "held out", "predicted")] == [6, 2, 4]
        assert [row["label"] == "" for row in rows] == [u == "predicted" for u in used]
        assert [row["prediction"] for row in rows] == [EVIL, "money, bonds"] * 6
        assert rows[0]["probability"] == rows[0]["second"] == ""  # the label stands
        assert float(rows[-1]["probability"]) > 0.5
        rows = rows_of(tmp_path / "out" / "probabilities.csv")
        assert float(rows[0][f"probability {EVIL}"]) > 0.5

    def test_report_is_self_contained_and_escaped(self, table: Path, tmp_path: Path) -> None:
        pytest.importorskip("jinja2")
        pytest.importorskip("matplotlib")
        assert fit(table, tmp_path / "out") == 0
        page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
        assert EVIL not in page
        assert "&lt;script&gt;" in page
        assert "http" not in page
        for part in ("topics", "classes", "accuracy", "confusion", "objective", "settings"):
            assert f'<section id="{part}">' in page
        assert "data:image/png;base64," in page
        assert "supervision weight" in page

    @pytest.mark.slow
    def test_predict_on_raw_text(self, table: Path, tmp_path: Path) -> None:
        out = tmp_path / "out"
        assert fit(table, out) == 0
        new = tmp_path / "new.jsonl.gz"
        with gzip.open(new, "wt", encoding="utf-8") as file:
            file.write('{"text": "my cat and dog"}\n\n{"text": "bank price"}\n{"other": 1}\n')
        result = tmp_path / "new.csv"
        assert main(["predict", str(out), str(new), "--out", str(result)]) == 0
        assert [row["prediction"] for row in rows_of(result)][:2] == [EVIL, "money, bonds"]
        assert len(rows_of(result)) == 3
        # The table of the fit itself, by the model's file: the same predictions.
        again = ["predict", str(out / "model.npz"), str(table), "--out", str(result)]
        assert main(again) == 0
        first = [row["prediction"] for row in rows_of(out / "predictions.csv")]
        assert [row["prediction"] for row in rows_of(result)] == first

    @pytest.mark.parametrize(
        "losses",
        [
            ("frobenius", "frobenius"),
            ("frobenius", "kullback-leibler"),
            ("kullback-leibler", "frobenius"),
            ("kullback-leibler", "kullback-leibler"),
        ],
    )
    def test_losses(
        self, losses: tuple[str, str], matrix: tuple[Path, Path], tmp_path: Path
    ) -> None:
        X, labels = matrix
        out = tmp_path / "out"
        given = ["fit", str(X), "--labels", str(labels), "--rank", "2", "--out", str(out)]
        given += ["--model", "ssnmf", "--supervision-weight", "balanced"]
        assert main([*given, "--loss", losses[0], "--supervision-loss", losses[1]]) == 0
        fitted = sf.load(out / "model.npz")
        assert (fitted.loss, fitted.supervision_loss) == losses
        assert not (out / "vectorizer.json").exists()

    def test_nmf_without_labels(self, table: Path, tmp_path: Path) -> None:
        out = tmp_path / "out"
        assert main(["fit", str(table), "--text", "text", "--rank", "2", "--out", str(out)]) == 0
        assert type(sf.load(out / "model.npz")).__name__ == "NMF"
        assert set(rows_of(out / "predictions.csv")[0]) == {"sample", "text", "topic", "share"}
        result = tmp_path / "new.csv"
        assert main(["predict", str(out), str(table), "--out", str(result)]) == 0
        assert len(rows_of(result)) == 12

    @pytest.mark.slow
    def test_same_seed_same_files(self, table: Path, tmp_path: Path) -> None:
        names = ("predictions.csv", "topics.csv", "representation.npy")
        for folder in ("a", "b"):
            assert fit(table, tmp_path / folder, "--seed", "5") == 0
        for name in names:
            assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()

    @pytest.mark.parametrize("ending", ["npz", "mtx", "dense.npz"])
    def test_matrix_files(self, ending: str, matrix: tuple[Path, Path], tmp_path: Path) -> None:
        X = np.load(matrix[0])
        path = tmp_path / f"data.{ending}"
        if ending == "npz":
            sp.save_npz(path, sp.csr_array(X))
        elif ending == "mtx":
            scipy.io.mmwrite(path, sp.coo_array(X))
        else:
            np.savez(path, X=X, other=np.zeros(3))
        features = tmp_path / "features.txt"
        features.write_text("\n".join("uvwxyz") + "\n", encoding="utf-8")
        out = tmp_path / "out"
        assert (
            main(
                [
                    "fit",
                    str(path),
                    "--rank",
                    "2",
                    "--out",
                    str(out),
                    "--model",
                    "nmf",
                    "--loss",
                    "kullback-leibler",
                    "--features",
                    str(features),
                ]
            )
            == 0
        )
        assert {row["term"] for row in rows_of(out / "topics.csv")} <= set("uvwxyz")
        assert sf.load(out / "model.npz").loss == "kullback-leibler"


class TestMissingPackages:
    @pytest.mark.parametrize("name", ["matplotlib", "jinja2"])
    def test_fit_says_what_is_left_out(
        self,
        name: str,
        table: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        hide(name, monkeypatch)
        assert fit(table, tmp_path / "out") == 0
        printed = capsys.readouterr().out
        assert "left out: report.html" in printed
        assert "python -m pip install 'ssnmf-fast[plot]'" in printed
        assert not (tmp_path / "out" / "report.html").exists()

    @pytest.mark.slow
    @compiled
    def test_demo_without_matplotlib(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        hide("matplotlib", monkeypatch)
        assert main(["demo", "--out", str(tmp_path / "demo"), "--threads", "1"]) == 0
        assert "left out: components.png, report.html" in capsys.readouterr().out


class TestErrors:
    def test_missing_file(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert fit(tmp_path / "none.csv", tmp_path / "out") == 2
        assert "no such file" in error_line(capsys)

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("a.csv", "", "has no rows"),
            ("a.csv", "text,kind\n", "has no rows"),
            ("a.csv", "text,other\nx,y\n", "no column 'kind'; its columns are: text, other"),
            ("a.csv", "body,head,kind\nx,y,z\n", "--text"),
            ("a.csv", "text,kind\ncat dog,\nbank,\n", "all labels are empty"),
            ("a.csv", "text,kind\ncat,a\ndog,a\n", "class"),
            ("a.csv", "text,kind\n,a\n,b\n", "no terms are left"),
            ("a.csv", "text,kind\n\x00\xff,a\n".encode("latin-1"), "not UTF-8"),
            ("a.jsonl", '{"text": 1}\nnonsense\n', "line 2: not JSON"),
            ("a.jsonl", "[1]\n", "expected a JSON object"),
            ("a.csv.gz", b"not gzip", "cannot be read"),
            ("a.xlsx", "x", "unknown kind of file '.xlsx'"),
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
        assert fit(path, tmp_path / "out") == 2
        assert message in error_line(capsys)

    def test_bad_matrices(
        self, matrix: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        X, labels = matrix
        out = ["--rank", "2", "--out", str(tmp_path / "out")]
        np.save(tmp_path / "negative.npy", -np.ones((3, 2)))
        assert main(["fit", str(tmp_path / "negative.npy"), *out]) == 2
        assert "Negative values" in error_line(capsys)
        np.save(tmp_path / "flat.npy", np.ones(3))
        assert main(["fit", str(tmp_path / "flat.npy"), *out]) == 2
        assert "shape (3,)" in error_line(capsys)
        np.save(tmp_path / "object.npy", np.array([[None]]), allow_pickle=True)
        assert main(["fit", str(tmp_path / "object.npy"), *out]) == 2
        assert "cannot be read" in error_line(capsys)
        labels.write_text("a\nb\n", encoding="utf-8")
        assert main(["fit", str(X), "--labels", str(labels), *out[2:]]) == 2
        assert "has 2 lines; expected one for each of the 12 samples" in error_line(capsys)

    def test_bad_models(
        self,
        table: Path,
        matrix: tuple[Path, Path],
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        result = ["--out", str(tmp_path / "p.csv")]
        assert main(["predict", str(tmp_path / "none"), str(table), *result]) == 2
        assert "no such file" in error_line(capsys)
        assert main(["predict", str(table), str(table), *result]) == 2
        error_line(capsys)
        out = tmp_path / "out"
        assert main(["fit", str(matrix[0]), "--rank", "2", "--out", str(out)]) == 0
        capsys.readouterr()
        assert main(["predict", str(out), str(table), *result]) == 2
        assert "fitted to a matrix" in error_line(capsys)
        (out / "vectorizer.json").write_text('{"format": "x"}', encoding="utf-8")
        assert main(["predict", str(out), str(table), *result]) == 2
        assert "is not a vectorizer" in error_line(capsys)

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            (["--model", "xx"], "invalid choice: 'xx'"),
            (["--rank", "0"], "at least 1"),
            (["--label", "kind"], "--label-separator, --labeled-weight; perhaps --labels"),
            (["--supervision-weight", "-1"], "must be balanced, auto, or a number of at least 0"),
            (["--test-size", "2"], "from 0 to 1"),
            (["--max-iter", "many"], "whole number"),
            (["--stop-words", "nowhere.txt"], "no such file"),
            (["--features"], "expected one argument"),
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
        assert fit(table, tmp_path / "out", *more) == 2
        assert message in error_line(capsys)

    def test_out_is_a_file(self, table: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert fit(table, table) == 2
        assert "--out needs a folder" in error_line(capsys)

    def test_ctrl_c(
        self,
        table: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        def interrupted(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(sf.SSNMFClassifier, "fit", interrupted)
        assert fit(table, tmp_path / "out") == 130
        assert "Traceback" not in capsys.readouterr().err


@pytest.mark.slow
@compiled
def test_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--out", str(tmp_path), "--threads", "1"]) == 0
    printed = capsys.readouterr().out
    assert "and 40 more" in printed
    measures = measures_of(tmp_path)
    assert measures["accuracy"] >= measures["linear_svc_accuracy"] > 0.85
    assert (tmp_path / "components.png").read_bytes().startswith(b"\x89PNG")
    assert "LinearSVC" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert sf.load(tmp_path / "model.npz").components_.shape == (50, 64)


@pytest.mark.slow
def test_subprocess(tmp_path: Path) -> None:
    """The module runs as a program, and a table on standard error stays free of progress bars."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "ssnmf_fast", *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=False,
            cwd=tmp_path,
        )

    assert run("--version").stdout == f"ssnmf-fast {sf.__version__}\n"
    shown = run("show-config")
    assert shown.returncode == 0
    assert "level in use" in shown.stdout
    failed = run("fit", "none.csv", "--rank", "2", "--out", "out")
    assert failed.returncode == 2
    assert failed.stderr == "ssnmf-fast: error: none.csv: no such file\n"
