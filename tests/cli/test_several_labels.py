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
