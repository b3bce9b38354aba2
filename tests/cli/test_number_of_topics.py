"""``ssnmf-fast choose-rank``: the choice, its files, and what is refused."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Result, run, write_lines, write_table
from planted_ranks import RANK, counts
from test_suggest import texts
from test_words import texts as texts_of_topics

from ssnmf_fast.cli import build_parser


def decoded_images(page: str) -> list[bytes]:
    return [b64decode(one) for one in re.findall(r"data:image/png;base64,([^\"]+)", page)]


QUICK = "--starts 1 --splits 2 --threads 1"
LEFT = r"choose_rank: topic 1/\d+, gain 0, \S+ s, about \d+ s left"


@pytest.fixture
def data() -> str:
    np.save("X.npy", counts())
    return "X.npy"


def choose(given: str, code: int = 0) -> Result:
    return run(f"choose-rank --out ranks {given}", code=code)


def test_a_matrix(data: str) -> None:
    found = choose(f"{data} --ranks 2:4 --loss kullback-leibler {QUICK}")
    assert f"{RANK} topics" in found.out
    assert "ranks/report.html" in found.out
    rows = found.rows("ranks.csv")
    assert [row["rank"] for row in rows] == ["2", "3", "4"]
    assert float(rows[1]["mean"]) < float(rows[0]["mean"])
    assert float(rows[1]["perplexity"]) > 1
    content = found.json()
    assert content["rank"] == RANK
    assert content["settings"]["ranks"] == "2,3,4"
    assert "Number of topics" in found.read()
    assert found.read().count("data:image/png") == 1  # no objective is shown
    expected = {"ranks.csv", "ranks.png", "metrics.json", "page.json", "report.html"}
    assert found.files == expected


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["bound", "stability"])
def test_criteria(criterion: str, data: str) -> None:
    given = f"--criterion {criterion} --ranks 2,3 --max-iter 20 --json --tol 0"
    content = json.loads(choose(f"{data} {given} --threads 1 --starts 2").out)
    assert content["criterion"] == criterion
    assert [row["rank"] for row in content["ranks"]] == [2, 3]


def test_texts() -> None:
    table = write_table("posts.csv", texts("kind"))
    given = "--text body --ranks 2:3 --min-df 1 --criterion held-out"
    run(f"choose-rank {table} {given} {QUICK}")
    assert Path("posts-ranks/ranks.csv").exists()


@pytest.fixture
def planted() -> str:
    """A table of texts of three topics, and the option that names them."""
    X = texts_of_topics(3, n=200).toarray()
    lines = [" ".join(f"word{j}" for j in np.flatnonzero(row)) for row in X]
    write_lines("planted.csv", ["body", *lines])
    return "planted.csv --text body"


def test_words_of_texts(planted: str) -> None:
    found = choose(planted)
    assert re.match(r"3 topics; \d to \d would do\n", found.out)
    assert re.search(LEFT, found.err)
    content = found.json()
    assert (content["criterion"], content["rank"]) == ("words", 3)
    assert content["low"] <= 3 <= content["high"]
    assert content["settings"]["ranks"].startswith("1,2,3,4")
    assert found.column("rank", "ranks.csv")[0] == "1"
    assert "would do" in found.read()
    again = choose(f"{planted} --ranks 2:4 --criterion words --splits 1 --json")
    assert [row["rank"] for row in json.loads(again.out)["ranks"]] == [1, 2, 3, 4]


@pytest.mark.parametrize("model", ["nmf", "vbnmf"])
def test_fit_finds_the_number_of_topics(model: str, planted: str) -> None:
    given = f"fit {planted} --model {model} --out o"
    found = run(given)
    assert re.search(r"(?m)^3 topics, \d to \d would do; --rank sets it$", found.out)
    assert re.search(LEFT, found.err)
    page = found.read()
    assert "any number in the shaded range will do. Larger is better." in page
    assert (found.path / "ranks.png").read_bytes() in decoded_images(page)
    settings = found.json()["settings"]
    assert settings["rank"] == "auto"
    assert settings["rank, set by the fit"].startswith("3 topics; ")
    assert found.model.n_components_ == 3
    first = found.read("topics.csv")
    again = run(f"{given} --rank auto --quiet")
    assert again.read("topics.csv") == first
    assert again.out == again.err == ""
    two = run(f"{given} --rank 2")
    assert "--rank sets it" not in two.out
    assert "ranks.png" not in two.files


@pytest.mark.slow
def test_rank_of_dated_texts(planted: str) -> None:
    write_lines("dates.txt", [f"20{k // 40:02d}" for k in range(200)])
    given = "--model dynamic --rank auto --time dates.txt --freq year"
    found = run(f"fit {planted} {given} --out o")
    assert found.model.n_components_ == 3
    assert found.err.count("more than by chance") == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "--model ssnmf --labels y.txt",
            "--model ssnmf takes no --rank auto: give the number of topics",
        ),
        ("--model ts-nmf --labels y.txt", "give the number of topics, or leave --rank out"),
        ("", r"in a sparse matrix; got ndarray"),
    ],
)
def test_rank_auto_is_refused(given: str, message: str, data: str) -> None:
    write_lines("y.txt", "ab")
    assert message in run(f"fit {data} --rank auto {given} --out o", code=2).error


@pytest.mark.parametrize("given", ["--loss frobenius", "--only-nonzeros", "--starts 1", "--tol 0"])
def test_what_words_do_not_use(given: str, planted: str) -> None:
    option = given.split()[0]
    message = f"{option} is not used by --criterion words; leave it out"
    assert message in choose(f"{planted} {given}", code=2).error


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("--criterion bound --loss frobenius", "--loss is not used by --criterion"),
        ("--criterion stability --splits 3", "--splits is not used by --criterion"),
        ("--criterion bound --validation-fraction 0.2", "not take validation_fraction"),
        ("--criterion stability --ranks 1:3", "ranks and n_starts of at least 2"),
        ("--criterion words", r"choose_rank(X, ranks)"),
    ],
)
def test_bad_options(given: str, message: str, data: str) -> None:
    assert message in choose(f"{data} {given}", code=2).error


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        ("5", (5,)),
        ("2:4", (2, 3, 4)),
        ("2:7:2", (2, 4, 6)),
        ("10,2:3", (2, 3, 10)),
        ("4:2", None),
        ("0:2", None),
        ("1:2:3:4", None),
        ("a", None),
        ("", None),
    ],
)
def test_ranks(text: str, ranks: Any) -> None:
    arguments = ["choose-rank", "X.npy", "--ranks", text]
    if ranks is not None:
        assert build_parser().parse_args(arguments).ranks == ranks
    else:
        assert (
            "must be numbers of topics such as 5,10,20"
            in run(f"choose-rank X.npy --ranks '{text}'", code=2).err
        )


@pytest.mark.parametrize("share", ["0", "1", "x"])
def test_shares(share: str) -> None:
    refused = run(f"choose-rank X.npy --validation-fraction {share}", code=2)
    assert "must be a number above 0 and below 1" in refused.err
