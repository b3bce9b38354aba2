"""``ssnmf-fast fit --seeds``: topics from words, without labels and beside them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from outputs import error_line, measures_of, rows_of

import ssnmf_fast as sf
from ssnmf_fast.cli import main

SEEDS = {"pets": ["cat", "vet"], "money": {"stock": 2, "bank": 1}}


def run(data: Path, seeds: object, out: Path, *more: str) -> int:
    file = out.parent / "seeds.json"
    text = seeds if isinstance(seeds, str) else json.dumps(seeds)
    file.write_text(text, encoding="utf-8")
    given = ["--seeds", str(file), "--out", str(out), "--min-df", "1", "--tol", "0"]
    return main(["fit", str(data), *given, *more])


def test_topics_without_labels(
    single: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run(single, SEEDS, out, "--free-topics", "1", "--text", "text") == 0
    printed = capsys.readouterr().out
    assert "pets" in printed
    assert "accuracy" not in printed
    assert type(sf.load(out / "model.npz")).__name__ == "SeededTopics"
    guesses = [row["prediction"] for row in rows_of(out / "predictions.csv")]
    assert {guesses.count(name) for name in SEEDS} == {10}
    assert {row["name"] for row in rows_of(out / "topics.csv")} == {*SEEDS, "free0"}
    settings = json.loads((out / "metrics.json").read_text(encoding="utf-8"))["settings"]
    assert settings["seeds of pets"] == "cat, vet"
    assert main(["predict", str(out), str(single), "--out", str(tmp_path / "new.csv")]) == 0
    assert [row["prediction"] for row in rows_of(tmp_path / "new.csv")] == guesses


def test_labels_beside_them(single: Path, tmp_path: Path) -> None:
    names = [row["kind"] for row in rows_of(single, marked=False)]
    renamed = {"<i>page</i>": "pets", "money": "money", "": ""}
    labels = tmp_path / "labels.txt"
    labels.write_text("".join(f"{renamed[name]}\n" for name in names), encoding="utf-8")
    out = tmp_path / "out"
    assert run(single, SEEDS, out, "--labels", str(labels), "--text", "text") == 0
    assert measures_of(out)["accuracy"] == 1


def test_unknown_words_are_listed(
    single: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run(single, SEEDS | {"pets": ["cat", "hamster"]}, out, "--text", "text") == 0
    assert "'hamster'" in capsys.readouterr().err
    settings = json.loads((out / "metrics.json").read_text(encoding="utf-8"))["settings"]
    assert settings["seeds not found"] == "hamster"


@pytest.mark.parametrize(
    ("seeds", "more", "message"),
    [
        ("{", (), "is not JSON"),
        ("pets: [cat]\n", (), "is not JSON"),
        ('{"pets": ["cat"], "money": ["bank"], "pets": ["dog"]}', (), "has 'pets' twice"),
        ('{"pets": {"cat": 2, "cat": 1}, "money": ["bank"]}', (), "has 'cat' twice"),
        ('{"\u00e9": ["cat"], "e\u0301": ["bank"]}', (), "has '\u00e9' twice"),
        (["cat"], (), "has no seeds"),
        ({"pets": "cat"}, (), "has no seeds"),
        ({"pets": [1], "money": ["bank"]}, (), "has no seeds"),
        ({"pets": {"cat": "2"}}, (), "has no seeds"),
        ({"pets": ["cat"]}, (), "expected two or more"),
        (SEEDS | {"golf": ["putter"]}, (), "No sample has a seed of the topic 'golf'"),
        (SEEDS, ("--labels", "kind"), "which is not one of the topics of seeds"),
        (SEEDS, ("--rank", "1"), "the seeds name 2 topics"),
        (SEEDS, ("--rank", "3", "--free-topics", "1"), "give one"),
        (SEEDS, ("--model", "nmf", "--rank", "2"), "--seeds is not used by --model nmf"),
    ],
)
def test_bad_seeds(
    seeds: object,
    more: tuple[str, ...],
    message: str,
    single: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(single, seeds, tmp_path / "out", "--text", "text", *more) == 2
    assert message in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "out").exists()


def test_seeds_are_needed(single: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", str(single), "--model", "seeded", "--out", str(tmp_path / "out")]) == 2
    assert "--model seeded needs --seeds" in error_line(capsys)
    missing = ["--seeds", str(tmp_path / "no.json"), "--out", str(tmp_path / "out")]
    assert main(["fit", str(single), "--text", "text", *missing]) == 2
    assert "no such file" in error_line(capsys)
