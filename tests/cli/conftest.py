"""Folders of several files of tests, made once; every test runs in an empty folder of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import command
import numpy as np
import pytest
from command import Result, run, write_lines, write_table
from labeled_texts import EVIL, MONEY, PAGE, PETS

_USERS = ["=u0", *(f"u{k}" for k in range(1, 12))]
_ANIMALS = [*PETS[:5], "cat mat pet"]
_PRICES = [*MONEY[:4], "stock price", "bank stock"]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def empty_pictures() -> Iterator[None]:
    """Pictures are tested in tests/plotting and tests/test_report.py."""
    with command.empty_pictures():
        yield


def two_classes(
    path: Path, texts: tuple[list[str], list[str]], names: tuple[str, str], n_labeled: int
) -> Path:
    """Write texts of two classes in turn, of which the first have labels."""
    rows = [["text", "kind"]]
    for k, pair in enumerate(zip(*texts, strict=True)):
        rows += [
            [text, name if k < n_labeled else ""] for text, name in zip(pair, names, strict=True)
        ]
    return write_table(path, rows)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="session")
def single(shared: Path) -> Path:
    """Texts of two classes, four of them unlabeled."""
    return two_classes(shared / "single.csv", (PETS, MONEY), (PAGE, "money"), 8)


@pytest.fixture(scope="session")
def posts(shared: Path) -> Path:
    """Texts of two classes, whose names need care in HTML and in CSV."""
    return two_classes(shared / "posts.csv", (_ANIMALS, _PRICES), (EVIL, "money, bonds"), 4)


@pytest.fixture(scope="session")
def of_posts(posts: Path, shared: Path) -> Result:
    """A model with labels, a quarter of which was hidden, and all that was written."""
    given = "--labels kind --model ssnmf --rank 2 --min-df 1 --test-size 0.25"
    with command.empty_pictures():
        return run(f"fit {posts} {given} --out", shared / "deep" / "of posts")


@pytest.fixture(scope="session")
def matrix(shared: Path) -> Path:
    """A matrix of two kinds of samples."""
    X = np.random.default_rng(0).random((12, 6)) * np.kron([[1, 0.05], [0.05, 1]], np.ones((6, 3)))
    np.save(shared / "X.npy", X)
    return shared / "X.npy"


@pytest.fixture(scope="session")
def of_matrix(matrix: Path, shared: Path) -> Result:
    given = "--rank 2 --max-iter 3 --model nmf --quiet --threads 1"
    with command.empty_pictures():
        return run(f"fit {matrix} {given} --out {shared}/of-matrix")


@pytest.fixture
def model(of_matrix: Result) -> Path:
    """A copy of the model of a matrix, which a test may change."""
    return Path(shutil.copytree(of_matrix.path, "model"))


@pytest.fixture(scope="session")
def ratings(shared: Path) -> Path:
    """Ratings of eight items by twelve users, one of whose names is a formula."""
    pairs = [(k, i) for k in range(len(_USERS)) for i in range(8) if (k + i) % 4 != 3]
    lines = [f"{_USERS[k]},i{i},{1 + k * i % 5}" for k, i in pairs]
    return write_lines(shared / "ratings.csv", ["user,item,rating", *lines])
