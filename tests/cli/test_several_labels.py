"""Models of ``ssnmf-fast fit`` for samples of several labels, and topics named by labels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from labeled_texts import MONEY, PAGE, PETS, fit
from outputs import error_line, measures_of, rows_of

import ssnmf_fast as sf
from ssnmf_fast.cli import main

OF_TERMS = {"coherence", "diversity", "exclusivity"}
TRUTH = ["pets"] * 10 + ["money"] * 10 + ["money; pets"] * 10


@pytest.fixture
def several(tmp_path: Path) -> tuple[Path, Path]:
    """The same texts and mixtures of them, labels by a separator and as lists."""
    texts = [(a, ["pets"]) for a in PETS] + [(b, ["money"]) for b in MONEY]
    mixed = [(f"{a} {b}", ["money", "pets"]) for a, b in zip(PETS, MONEY, strict=True)]
    rows = [*texts, *mixed, ("cat bank", [])]
    table, lines = tmp_path / "several.csv", tmp_path / "several.jsonl"
    body = [f"{text},{'; '.join(names)}" for text, names in rows]
    table.write_text("\n".join(["text,kind", *body]) + "\n", encoding="utf-8")
    written = [json.dumps({"text": text, "kind": names}) for text, names in rows]
    lines.write_text("\n".join(written) + "\n", encoding="utf-8")
    return table, lines


COLUMNS = {  # the options, and the labels of the samples
    "--labels a --labels b": ["x;y", "y", "x", "", "z;x", "9;y"],
    "--labels a,b": ["x;y", "y", "x", "", "z;x", "9;y"],
    "--labels b,a --unlabeled 9": ["y;x", "y", "x", "", "x;z", "y"],
    "--labels b --labels b": ["y", "", "x", "", "x", "y"],
    "--labels c,d": ["x", "y", "x", "y", "x", "y"],
    "--labels FILE --labels b": ["x;y", "y", "y;x", "y", "x", "y"],
}


@pytest.mark.parametrize("way", COLUMNS)
def test_several_columns(way: str, tmp_path: Path) -> None:
    cells = ["x,y,x", "y,,y", "x,x,x", ",,y", "z,x,x", "9,y,y"] * 5
    rows = [f"{text},{one}" for text, one in zip([*PETS, *MONEY, *PETS], cells, strict=True)]
    data, out = tmp_path / "a.csv", tmp_path / "out"
    data.write_text("\n".join(['text,a,b,"c,d"', *rows, ""]), encoding="utf-8")
    (tmp_path / "f,g").write_text("x\ny\ny\ny\nx\ny\n" * 5, encoding="utf-8")
    given = [*way.replace("FILE", str(tmp_path / "f,g")).split(), "--text", "text"]
    assert fit(data, "ts-nmf", out, *given, "--max-iter", "3") == 0
    assert [row["label"] for row in rows_of(out / "predictions.csv")] == COLUMNS[way] * 5
    assert main(["verify", str(out), str(data), *given]) == 0


def test_several_columns_to_fill_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{text},{'xy'[k > 9]},{'z' * (k % 3 > 1)}" for k, text in enumerate([*PETS, *MONEY])]
    data, todo, out = tmp_path / "a.csv", tmp_path / "todo.csv", tmp_path / "out"
    data.write_text("\n".join(["text,a,b", *rows, *[f"{text},," for text in PETS], ""]), "utf-8")
    given = [str(data), "--labels", "a,b", "--min-df", "1", "--out"]
    assert main(["suggest", *given, str(todo), "-n", "3", "--text", "text"]) == 0
    assert "fill in its column 'a' or 'b'" in capsys.readouterr().out
    header, *lines = todo.read_text("utf-8-sig").splitlines()
    assert header.endswith(",a,b")
    filled = [line[:-1] + cells for line, cells in zip(lines, ("x,z", ",y", ","), strict=True)]
    todo.write_text("\n".join([header, *filled, ""]), "utf-8")
    assert main(["fit", *given, str(out), "--text", "text", "--more-labels", str(todo)]) == 0
    found = rows_of(out / "predictions.csv")
    assert [found[int(line.split(",")[0])]["label"] for line in lines] == ["x;z", "y", ""]
    assert main(["fit", *given, str(out), "--labels", "b,c", "--text", "text"]) == 2
    assert "has no column 'c'; its columns are: text, a, b" in capsys.readouterr().err


class TestTopicSupervised:
    @pytest.mark.slow
    def test_number_of_topics(
        self, single: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        sizes = {(): 2, ("--free-topics", "2"): 4, ("--rank", "3"): 3}
        for more, size in sizes.items():
            assert fit(single, "ts-nmf", tmp_path / "out", "--labels", "kind", *more) == 0
            assert len(sf.load(tmp_path / "out" / "model.npz").components_) == size
        names = [row["name"] for row in rows_of(tmp_path / "out" / "topics.csv")]
        assert list(dict.fromkeys(names)) == [PAGE, "money", "free0"]
        capsys.readouterr()
        assert fit(single, "ts-nmf", tmp_path / "out", "--labels", "kind", "--rank", "1") == 2
        assert "--rank 1 is too small: the labels name 2 topics" in error_line(capsys)
        both = ["--rank", "3", "--free-topics", "1"]
        assert fit(single, "ts-nmf", tmp_path / "out", "--labels", "kind", *both) == 2
        assert "give one" in error_line(capsys)

    def test_measures_and_predictions(
        self, several: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        out = tmp_path / "out"
        more = ["--labels", "kind", "--label-separator", ";", "--free-topics", "1"]
        assert fit(several[0], "ts-nmf", out, *more) == 0
        rows = rows_of(out / "predictions.csv")
        assert set(rows[0]) == {
            *("sample", "text", "code", "source", "label", "prediction", "probability", "second"),
            *("topic", "weight"),
            *("weight money", "weight pets", "weight free0"),
        }
        assert rows[20]["label"] == "money;pets"
        hidden = [row for row in rows if row["source"] == "held out"]
        assert len(hidden) == 6
        right = np.mean([row["topic"] in row["label"].split(";") for row in hidden])
        S = np.array([[float(r["weight money"]), float(r["weight pets"])] for r in hidden])
        truth = np.array([["money" in r["label"], "pets" in r["label"]] for r in hidden])
        matching = sf.metrics.match_topics(S, truth.astype(float))
        found = measures_of(out)
        assert found["largest_topic_right"] == pytest.approx(right)
        assert found["similarity"] == pytest.approx(matching.score, rel=1e-4)
        assert found["resolved_topics"] == matching.n_resolved == 2
        printed = capsys.readouterr().out
        assert f"largest topic among the labels of 6 held-out samples: {right:.1%}" in printed
        assert "resolved topics: 2 of 2" in printed

        # What explains most of a sample does not depend on the scale of a topic.
        model = sf.load(out / "model.npz")
        model.components_[0] *= 100
        sf.save(model, out / "model.npz")
        new = tmp_path / "new.csv"
        assert main(["predict", str(out), str(several[0]), "--out", str(new)]) == 0
        again = rows_of(new)
        assert [row["topic"] for row in again] == [row["topic"] for row in rows]
        assert float(again[0]["weight"]) == pytest.approx(float(rows[0]["weight"]), rel=1e-3)

    @pytest.mark.slow
    def test_nothing_held_out(self, single: Path, tmp_path: Path) -> None:
        more = ["--labels", "kind", "--test-size", "0"]
        assert fit(single, "ts-nmf", tmp_path / "out", *more) == 0
        assert set(measures_of(tmp_path / "out")) == OF_TERMS


class TestSeveralLabels:
    @pytest.mark.slow
    @pytest.mark.parametrize("model", ["ssnmf", "ts-nmf", "nmf-alpha"])
    def test_lists_as_separated(
        self, model: str, several: tuple[Path, Path], tmp_path: Path
    ) -> None:
        table, lines = several
        more = ["--label-separator", ";"]
        assert fit(table, model, tmp_path / "a", "--labels", "kind", *more) == 0
        assert fit(lines, model, tmp_path / "b", "--labels", "kind") == 0
        for name in ("predictions.csv", "topic_classes.csv", "representation.npy"):
            assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()

    def test_f_scores(
        self, several: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert fit(several[1], "nmf-alpha", tmp_path / "out", "--labels", "kind") == 0
        found = measures_of(tmp_path / "out")
        own = {"micro_f", "macro_f"}
        others = {f"logistic_regression_{name}" for name in own}
        assert set(found) == {*own, *others, *OF_TERMS}
        assert found["micro_f"] > 0.8
        printed = capsys.readouterr().out
        assert "micro F on 6 held-out samples: " in printed
        assert "micro F of logistic regression (balanced), trained on the same labels: " in printed

    @pytest.mark.slow
    @pytest.mark.parametrize("model", ["ssnmf", "ts-nmf", "nmf-alpha"])
    def test_predicted_names(self, model: str, several: tuple[Path, Path], tmp_path: Path) -> None:
        out, new = tmp_path / "out", tmp_path / "new.csv"
        more = ["--labels", "kind", "--label-separator", "; "]
        assert fit(several[0], model, out, *more) == 0
        assert main(["predict", str(out), str(several[0]), "--out", str(new)]) == 0
        rows = rows_of(new)
        allowed = {"", "money", "pets", "money; pets"}
        assert {row["prediction"] for row in rows} <= allowed
        right = [row["prediction"] == kind for row, kind in zip(rows, TRUTH, strict=False)]
        assert np.mean(right) > 0.7
        assert all(0 <= float(row["probability pets"]) <= 1 for row in rows)
        first = [row["prediction"] for row in rows_of(out / "predictions.csv")]
        other = tmp_path / "other"
        other.mkdir()
        for file in ("model.npz", "vectorizer.json"):  # which are enough
            (out / file).rename(other / file)
        again = [str(other), str(several[0]), "--out", str(tmp_path / "again.csv")]
        assert main(["predict", *again]) == 0
        assert rows_of(tmp_path / "again.csv") == rows
        assert first == [row["prediction"] for row in rows]

    @pytest.mark.parametrize("model", ["cnmf", "supervised-vbnmf"])
    def test_refused(
        self,
        model: str,
        several: tuple[Path, Path],
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        assert fit(several[1], model, tmp_path / "out", "--labels", "kind") == 2
        message = error_line(capsys)
        assert "sample 20 has several labels (money, pets)" in message
        assert "ssnmf, ts-nmf, nmf-alpha take several" in message
