"""The command line: every file that it writes, and every error that it shows as one line."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from command import Result, run, write_lines
from helpers.absent_packages import hide
from labeled_texts import EVIL

import ssnmf_fast as sf

compiled = pytest.mark.compiled("takes minutes on the NumPy reference")
FIT = "--labels kind --model ssnmf --rank 2 --min-df 1 --test-size 0.25 --out out"
BOTH = ("frobenius", "kullback-leibler")


@pytest.fixture
def labels() -> Path:
    return write_lines("labels.txt", [*"aaaaa", "", *"bbbb", "", ""])


class TestFit:
    def test_writes_every_file(self, of_posts: Result) -> None:
        assert "accuracy on 2 held-out samples" in of_posts.out
        assert of_posts.files == {
            *("model.npz", "vectorizer.json", "topics.csv", "topic_classes.csv"),
            *("topic_examples.csv", "codes.csv", "predictions.csv", "probabilities.csv"),
            *("representation.npy", "metrics.json", "page.json", "report.html"),
        }
        assert all(str(of_posts.path / name) in of_posts.out for name in of_posts.files)
        assert sorted(of_posts.model.classes_) == sorted([EVIL, "money, bonds"])
        assert np.load(of_posts.path / "representation.npy").shape == (12, 2)
        assert set(of_posts.column("term", "topics.csv")) <= of_posts.terms
        for row in of_posts.rows("topic_classes.csv"):
            assert float(row[EVIL]) + float(row["money, bonds"]) == pytest.approx(1, abs=1e-4)

    def test_predictions(self, of_posts: Result) -> None:
        rows = of_posts.rows()
        used = [row["source"] for row in rows]
        assert [used.count(u) for u in ("given", "held out", "predicted")] == [6, 2, 4]
        assert [row["label"] == "" for row in rows] == [u == "predicted" for u in used]
        assert [row["prediction"] for row in rows] == [EVIL, "money, bonds"] * 6
        assert rows[0]["probability"] == rows[0]["second"] == ""  # the label stands
        assert float(rows[-1]["probability"]) > 0.5
        assert float(of_posts.rows("probabilities.csv")[0][f"probability {EVIL}"]) > 0.5

    def test_report_is_self_contained_and_escaped(self, of_posts: Result) -> None:
        pytest.importorskip("jinja2")
        pytest.importorskip("matplotlib")
        page = of_posts.read()
        assert EVIL not in page
        assert "&lt;script&gt;" in page
        assert "http" not in page
        for part in ("topics", "classes", "accuracy", "confusion", "objective", "settings"):
            assert f'<section id="{part}">' in page
        assert "data:image/png;base64," in page
        assert "supervision weight" in page

    def test_predict_on_raw_text(self, of_posts: Result, posts: Path) -> None:
        with gzip.open("new.jsonl.gz", "wt", encoding="utf-8") as file:
            file.write('{"text": "my cat and dog"}\n\n{"text": "bank price"}\n{"other": 1}\n')
        new = run("predict --out new.csv", of_posts.path, "new.jsonl.gz")
        assert new.column("prediction")[:2] == [EVIL, "money, bonds"]
        assert len(new.rows()) == 3
        # The table of the fit itself, by the model's file: the same predictions.
        again = run("predict --out new.csv", of_posts.path / "model.npz", posts)
        assert again.column("prediction") == of_posts.column("prediction")

    @pytest.mark.parametrize("losses", [(a, b) for a in BOTH for b in BOTH])
    def test_losses(self, losses: tuple[str, str], matrix: Path, labels: Path) -> None:
        given = f"--labels {labels} --rank 2 --model ssnmf --supervision-weight balanced"
        both = f"--loss {losses[0]} --supervision-loss {losses[1]}"
        fitted = run(f"fit {matrix} {given} {both} --out out")
        assert (fitted.model.loss, fitted.model.supervision_loss) == losses
        assert "vectorizer.json" not in fitted.files

    def test_nmf_without_labels(self, posts: Path) -> None:
        fitted = run(f"fit {posts} --text text --rank 2 --out out")
        assert type(fitted.model).__name__ == "NMF"
        assert set(fitted.rows()[0]) == {"sample", "text", "topic", "share"}
        assert len(run(f"predict out {posts} --out new.csv").rows()) == 12

    @pytest.mark.slow
    def test_same_seed_same_files(self, posts: Path) -> None:
        for folder in "ab":
            run(f"fit {posts} {FIT} --seed 5 --out {folder}")
        for name in ("predictions.csv", "topics.csv", "representation.npy"):
            assert Path("a", name).read_bytes() == Path("b", name).read_bytes()

    @pytest.mark.parametrize("ending", ["npz", "mtx", "dense.npz"])
    def test_matrix_files(self, ending: str, matrix: Path) -> None:
        X = np.load(matrix)
        writers: dict[str, Callable[[str], object]] = {
            "npz": lambda path: sp.save_npz(path, sp.csr_array(X)),
            "mtx": lambda path: scipy.io.mmwrite(path, sp.coo_array(X)),
            "dense.npz": lambda path: np.savez(path, X=X, other=np.zeros(3)),
        }
        writers[ending](f"data.{ending}")
        given = "--rank 2 --model nmf --loss kullback-leibler --out out --features"
        fitted = run(f"fit data.{ending} {given}", write_lines("features.txt", "uvwxyz"))
        assert set(fitted.column("term", "topics.csv")) <= set("uvwxyz")
        assert fitted.model.loss == "kullback-leibler"


class TestMissingPackages:
    @pytest.mark.parametrize("name", ["matplotlib", "jinja2"])
    def test_fit_says_what_is_left_out(
        self, name: str, posts: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hide(name, monkeypatch)
        fitted = run(f"fit {posts} {FIT}")
        assert "left out: report.html" in fitted.out
        assert "python -m pip install 'ssnmf-fast[plot]'" in fitted.out
        assert "report.html" not in fitted.files

    @pytest.mark.slow
    @compiled
    def test_demo_without_matplotlib(self, monkeypatch: pytest.MonkeyPatch) -> None:
        hide("matplotlib", monkeypatch)
        assert "left out: components.png, report.html" in run("demo --out demo --threads 1").out


class TestErrors:
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
    def test_bad_tables(self, name: str, content: str | bytes, message: str) -> None:
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
        assert message in run(f"fit {name} {FIT}", code=2).error

    def test_bad_matrices(self, matrix: Path) -> None:
        cases = {"Negative values": -np.ones((3, 2)), "shape (3,)": np.ones(3)}
        for message, array in {**cases, "cannot be read": np.array([[None]])}.items():
            np.save("bad.npy", array, allow_pickle=True)
            assert message in run("fit bad.npy --rank 2 --out out", code=2).error
        few = write_lines("few.txt", "ab")
        error = run(f"fit {matrix} --labels {few} --out out", code=2).error
        assert "has 2 lines; expected one for each of the 12 samples" in error

    def test_bad_models(self, posts: Path, model: Path) -> None:
        assert "no such file" in run(f"predict none {posts} --out p.csv", code=2).error
        assert run(f"predict {posts} {posts} --out p.csv", code=2).error
        assert "fitted to a matrix" in run(f"predict {model} {posts} --out p.csv", code=2).error
        (model / "vectorizer.json").write_text('{"format": "x"}', encoding="utf-8")
        assert "is not a vectorizer" in run(f"predict {model} {posts} --out p.csv", code=2).error

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ("--model xx", "invalid choice: 'xx'"),
            ("--rank 0", "at least 1"),
            ("--label kind", "--label-separator, --labeled-weight; perhaps --labels"),
            ("--supervision-weight -1", "must be balanced, auto, or a number of at least 0"),
            ("--test-size 2", "from 0 to 1"),
            ("--max-iter many", "whole number"),
            ("--stop-words nowhere.txt", "no such file"),
            ("--features", "expected one argument"),
            ("--out posts.csv", "--out needs a folder"),
        ],
    )
    def test_bad_options(self, given: str, message: str, posts: Path) -> None:
        Path("posts.csv").write_bytes(posts.read_bytes())
        assert message in run(f"fit posts.csv {FIT} {given}", code=2).error

    def test_missing_file(self) -> None:
        assert "no such file" in run(f"fit none.csv {FIT}", code=2).error

    def test_ctrl_c(self, posts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupted(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(sf.SSNMFClassifier, "fit", interrupted)
        assert "Traceback" not in run(f"fit {posts} {FIT}", code=130).err


@pytest.mark.slow
@compiled
def test_demo() -> None:
    shown = run("demo --threads 1 --out demo")
    assert "and 40 more" in shown.out
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    promised = re.search(
        r"\((\S+) %; (\d+)-(\d+) % with ten seeds; a linear SVM (\d+)-(\d+) %\)", readme
    )
    assert promised
    here, low, high, svm_low, svm_high = map(float, promised.groups())
    accuracy, svm = (100 * shown.measures[k] for k in ("accuracy", "linear_svc_accuracy"))
    assert low <= round(accuracy) <= high
    assert svm_low <= round(svm) <= svm_high
    assert accuracy == pytest.approx(here, abs=0.5)  # levels round otherwise
    assert accuracy >= svm > 85
    assert (shown.path / "components.png").read_bytes().startswith(b"\x89PNG")
    assert "LinearSVC" in shown.read()
    assert shown.model.components_.shape == (50, 64)


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
