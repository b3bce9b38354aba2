"""Models of ``ssnmf-fast fit`` for samples of several labels, and topics named by labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command import Result, run, write_json, write_lines
from labeled_texts import MONEY, PAGE, PETS

import ssnmf_fast as sf

OF_TERMS = {"coherence", "diversity", "exclusivity"}
TRUTH = ["pets"] * 10 + ["money"] * 10 + ["money; pets"] * 10


def fit(data: object, model: str, more: str = "--labels kind", code: int = 0) -> Result:
    size = "" if model == "ts-nmf" else "--rank 2"
    return run(f"fit {data} --model {model} --out out --min-df 1 {size} {more}", code=code)


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same texts and mixtures of them, labels by a separator and as lists."""
    folder = tmp_path_factory.mktemp("several")
    texts = [(a, ["pets"]) for a in PETS] + [(b, ["money"]) for b in MONEY]
    mixed = [(f"{a} {b}", ["money", "pets"]) for a, b in zip(PETS, MONEY, strict=True)]
    rows = [*texts, *mixed, ("cat bank", [])]
    table = [f"{text},{'; '.join(names)}" for text, names in rows]
    lists = [{"text": text, "kind": names} for text, names in rows]
    return write_lines(folder / "several.csv", ["text,kind", *table]), write_json(
        folder / "several.jsonl", lists
    )


COLUMNS = {  # the options, and the labels of the samples
    "--labels a --labels b": ["x;y", "y", "x", "", "z;x", "9;y"],
    "--labels a,b": ["x;y", "y", "x", "", "z;x", "9;y"],
    "--labels b,a --unlabeled 9": ["y;x", "y", "x", "", "x;z", "y"],
    "--labels b --labels b": ["y", "", "x", "", "x", "y"],
    "--labels c,d": ["x", "y", "x", "y", "x", "y"],
    "--labels FILE --labels b": ["x;y", "y", "y;x", "y", "x", "y"],
}


@pytest.mark.parametrize("way", COLUMNS)
def test_several_columns(way: str) -> None:
    cells = ["x,y,x", "y,,y", "x,x,x", ",,y", "z,x,x", "9,y,y"] * 5
    rows = [f"{text},{one}" for text, one in zip([*PETS, *MONEY, *PETS], cells, strict=True)]
    data = write_lines("a.csv", ['text,a,b,"c,d"', *rows])
    write_lines("f,g", "xyyyxy" * 5)
    given = f"{way.replace('FILE', str(Path('f,g').absolute()))} --text text"
    assert fit(data, "ts-nmf", f"{given} --max-iter 3").column("label") == COLUMNS[way] * 5
    run(f"verify out {data} {given}")


def test_several_columns_to_fill_in() -> None:
    rows = [f"{text},{'xy'[k > 9]},{'z' * (k % 3 > 1)}" for k, text in enumerate([*PETS, *MONEY])]
    write_lines("a.csv", ["text,a,b", *rows, *[f"{text},," for text in PETS]])
    given = "a.csv --labels a,b --min-df 1 --text text"
    todo = run(f"suggest {given} --out todo.csv -n 3")
    assert "fill in its column 'a' or 'b'" in todo.out
    header, *lines = todo.path.read_text("utf-8-sig").splitlines()
    assert header.endswith(",a,b")
    filled = [line[:-1] + cells for line, cells in zip(lines, ("x,z", ",y", ","), strict=True)]
    write_lines(todo.path, [header, *filled])
    found = run(f"fit {given} --out out --more-labels todo.csv").column("label")
    assert [found[int(line.split(",")[0])] for line in lines] == ["x;z", "y", ""]
    refused = run(f"fit {given} --out out --labels b,c", code=2)
    assert "has no column 'c'; its columns are: text, a, b" in refused.err


class TestTopicSupervised:
    @pytest.mark.slow
    def test_number_of_topics(self, single: Path) -> None:
        for more, size in {"": 2, "--free-topics 2": 4, "--rank 3": 3}.items():
            fitted = fit(single, "ts-nmf", f"--labels kind {more}")
            assert len(fitted.model.components_) == size
        names = list(dict.fromkeys(fitted.column("name", "topics.csv")))
        assert names == [PAGE, "money", "free0"]
        refused = fit(single, "ts-nmf", "--labels kind --rank 1", code=2)
        assert "--rank 1 is too small: the labels name 2 topics" in refused.error
        refused = fit(single, "ts-nmf", "--labels kind --rank 3 --free-topics 1", code=2)
        assert "give one" in refused.error

    def test_measures_and_predictions(self, several: tuple[Path, Path]) -> None:
        more = "--labels kind --label-separator ';' --free-topics 1"
        fitted = fit(several[0], "ts-nmf", more)
        rows = fitted.rows()
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
        found = fitted.measures
        assert found["largest_topic_right"] == pytest.approx(right)
        assert found["similarity"] == pytest.approx(matching.score, rel=1e-4)
        assert found["resolved_topics"] == matching.n_resolved == 2
        assert f"largest topic among the labels of 6 held-out samples: {right:.1%}" in fitted.out
        assert "resolved topics: 2 of 2" in fitted.out

        # What explains most of a sample does not depend on the scale of a topic.
        model = fitted.model
        model.components_[0] *= 100
        sf.save(model, "out/model.npz")
        again = run(f"predict out {several[0]} --out new.csv").rows()
        assert [row["topic"] for row in again] == [row["topic"] for row in rows]
        assert float(again[0]["weight"]) == pytest.approx(float(rows[0]["weight"]), rel=1e-3)

    @pytest.mark.slow
    def test_nothing_held_out(self, single: Path) -> None:
        assert set(fit(single, "ts-nmf", "--labels kind --test-size 0").measures) == OF_TERMS


class TestSeveralLabels:
    @pytest.mark.slow
    @pytest.mark.parametrize("model", ["ssnmf", "ts-nmf", "nmf-alpha"])
    def test_lists_as_separated(self, model: str, several: tuple[Path, Path]) -> None:
        table, lines = several
        fit(table, model, "--labels kind --label-separator ';' --out a")
        fit(lines, model, "--labels kind --out b")
        for name in ("predictions.csv", "topic_classes.csv", "representation.npy"):
            assert Path("a", name).read_bytes() == Path("b", name).read_bytes()

    def test_f_scores(self, several: tuple[Path, Path]) -> None:
        fitted = fit(several[1], "nmf-alpha")
        found, own = fitted.measures, {"micro_f", "macro_f"}
        others = {f"logistic_regression_{name}" for name in own}
        assert set(found) == {*own, *others, *OF_TERMS}
        assert found["micro_f"] > 0.8
        assert "micro F on 6 held-out samples: " in fitted.out
        same = "micro F of logistic regression (balanced), trained on the same labels: "
        assert same in fitted.out

    @pytest.mark.slow
    @pytest.mark.parametrize("model", ["ssnmf", "ts-nmf", "nmf-alpha"])
    def test_predicted_names(self, model: str, several: tuple[Path, Path]) -> None:
        fitted = fit(several[0], model, "--labels kind --label-separator '; '")
        rows = run(f"predict out {several[0]} --out new.csv").rows()
        allowed = {"", "money", "pets", "money; pets"}
        assert {row["prediction"] for row in rows} <= allowed
        right = [row["prediction"] == kind for row, kind in zip(rows, TRUTH, strict=False)]
        assert np.mean(right) > 0.7
        assert all(0 <= float(row["probability pets"]) <= 1 for row in rows)
        assert fitted.column("prediction") == [row["prediction"] for row in rows]
        Path("other").mkdir()
        for file in ("model.npz", "vectorizer.json"):  # which are enough
            Path("out", file).rename(Path("other", file))
        assert run(f"predict other {several[0]} --out again.csv").rows() == rows

    @pytest.mark.parametrize("model", ["cnmf", "supervised-vbnmf"])
    def test_refused(self, model: str, several: tuple[Path, Path]) -> None:
        message = fit(several[1], model, code=2).error
        assert "sample 20 has several labels (money, pets)" in message
        assert "ssnmf, ts-nmf, nmf-alpha take several" in message
