"""``ssnmf-fast fit --seeds``: topics from words, without labels and beside them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import Result, rows_of, run, write_lines

SEEDS = {"pets": ["cat", "vet"], "money": {"stock": 2, "bank": 1}}


def fit(data: Path, seeds: object, more: str = "", code: int = 0) -> Result:
    write_lines("seeds.json", [seeds if isinstance(seeds, str) else json.dumps(seeds)])
    given = "--seeds seeds.json --text text --min-df 1 --tol 0 --out out"
    return run(f"fit {data} {given} {more}", code=code)


def test_topics_without_labels(single: Path) -> None:
    found = fit(single, SEEDS, "--free-topics 1")
    assert "pets" in found.out
    assert "accuracy" not in found.out
    assert type(found.model).__name__ == "SeededTopics"
    guesses = found.column("prediction")
    assert {guesses.count(name) for name in SEEDS} == {10}
    assert set(found.column("name", "topics.csv")) == {*SEEDS, "free0"}
    assert found.json()["settings"]["seeds of pets"] == "cat, vet"
    assert run(f"predict out {single} --out new.csv").column("prediction") == guesses


def test_labels_beside_them(single: Path) -> None:
    renamed = {"<i>page</i>": "pets", "money": "money", "": ""}
    names = [renamed[row["kind"]] for row in rows_of(single, marked=False)]
    labels = write_lines("labels.txt", names)
    assert fit(single, SEEDS, f"--labels {labels}").measures["accuracy"] == 1


def test_unknown_words_are_listed(single: Path) -> None:
    found = fit(single, SEEDS | {"pets": ["cat", "hamster"]})
    assert "'hamster'" in found.err
    assert found.json()["settings"]["seeds not found"] == "hamster"


@pytest.mark.parametrize(
    ("seeds", "more", "message"),
    [
        ("{", "", "is not JSON"),
        ("pets: [cat]\n", "", "is not JSON"),
        ('{"pets": ["cat"], "money": ["bank"], "pets": ["dog"]}', "", "has 'pets' twice"),
        ('{"pets": {"cat": 2, "cat": 1}, "money": ["bank"]}', "", "has 'cat' twice"),
        ('{"\u00e9": ["cat"], "e\u0301": ["bank"]}', "", "has '\u00e9' twice"),
        (["cat"], "", "has no seeds"),
        ({"pets": "cat"}, "", "has no seeds"),
        ({"pets": [1], "money": ["bank"]}, "", "has no seeds"),
        ({"pets": {"cat": "2"}}, "", "has no seeds"),
        ({"pets": ["cat"]}, "", "expected two or more"),
        (SEEDS | {"golf": ["putter"]}, "", "No sample has a seed of the topic 'golf'"),
        (SEEDS, "--labels kind", "which is not one of the topics of seeds"),
        (SEEDS, "--rank 1", "the seeds name 2 topics"),
        (SEEDS, "--rank 3 --free-topics 1", "give one"),
        (SEEDS, "--model nmf --rank 2", "--seeds is not used by --model nmf"),
    ],
)
def test_bad_seeds(seeds: object, more: str, message: str, single: Path) -> None:
    refused = fit(single, seeds, more, code=2)
    assert message in refused.err.splitlines()[-1]
    assert not refused.path.exists()


def test_seeds_are_needed(single: Path) -> None:
    refused = run(f"fit {single} --model seeded --out out", code=2)
    assert "--model seeded needs --seeds" in refused.error
    refused = run(f"fit {single} --text text --seeds no.json --out out", code=2)
    assert "no such file" in refused.error
