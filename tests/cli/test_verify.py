"""``ssnmf-fast verify``: models and their data, and others."""

from __future__ import annotations

import json

import numpy as np
import pytest

import ssnmf_fast as sf
from ssnmf_fast.cli import main

PETS = ["cat", "dog", "pet", "vet", "mat", "paw"]
MONEY = ["bank", "stock", "price", "market", "fund", "loan"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with posts, of which a third has no label, and others with a word changed."""
    folder = tmp_path_factory.mktemp("posts")
    rng = np.random.default_rng(0)
    lines = ["text,topic"]
    for i in range(60):
        words = rng.choice((PETS, MONEY)[i % 2], 8)
        lines.append(f"{' '.join(words)},{('pets', 'money')[i % 2] if i % 3 else ''}")
    text = "\n".join(lines) + "\n"
    (folder / "posts.csv").write_text(text)
    (folder / "other.csv").write_text(text.replace("cat", "dog", 1))
    return folder


def verify(capsys, out, data, *options):
    code = main(["verify", str(out), str(data), "--json", *options])
    return code, json.loads(capsys.readouterr().out)


FITS = {
    "nmf": ("--rank", "2"),
    "ssnmf": (
        "--labels",
        "topic",
        "--model",
        "ssnmf",
        "--rank",
        "2",
        "--supervision-weight",
        "inf",
    ),
    "few-labels": ("--labels", "topic"),
    "cnmf": ("--labels", "topic", "--model", "cnmf", "--rank", "2"),
    "ts-nmf": ("--labels", "topic", "--model", "ts-nmf", "--seed", "3"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_models_of_the_command(folder, tmp_path, capsys, name):
    data, out, options = folder / "posts.csv", tmp_path / "out", FITS[name]
    labels = options[:2] if "--labels" in options else ()
    assert main(["fit", str(data), *options, "--out", str(out), "--quiet"]) == 0
    capsys.readouterr()
    code, found = verify(capsys, out, data, *labels)
    assert (code, found["differences"]) == (0, [])
    assert found["ok"]
    assert [row[0] for row in found["values"]][:2] == ["X", "objective"]

    code, found = verify(capsys, out, folder / "other.csv", *labels)
    assert code == 1
    assert "X is not the one of the fit." in found["differences"]
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["residual"] == sf.load(out).receipt_.residual
    assert f"{metrics['residual']:.1e}" in (out / "report.html").read_text()


def test_a_matrix_and_what_cannot_be_verified(tmp_path, capsys):
    X = np.random.default_rng(0).random((20, 6))
    np.save(tmp_path / "X.npy", X)
    sf.save(sf.NMF(2, random_state=0).fit(X), tmp_path / "model.npz")
    assert verify(capsys, tmp_path / "model.npz", tmp_path / "X.npy")[0] == 0
    assert main(["verify", str(tmp_path), str(tmp_path / "X.npy")]) == 0
    assert "The result agrees with its receipt." in capsys.readouterr().out

    sf.save(sf.BayesianNMF(2, random_state=0, max_iter=5, tol=0).fit(X), tmp_path / "model.npz")
    assert main(["verify", str(tmp_path), str(tmp_path / "X.npy")]) == 2
    assert "verify is not available for BayesianNMF" in capsys.readouterr().err
    guided = sf.SSNMFClassifier(2, random_state=0, max_iter=5, tol=0).fit(X, ["a", "b"] * 10)
    sf.save(guided, tmp_path / "model.npz")
    assert main(["verify", str(tmp_path), str(tmp_path / "X.npy")]) == 2
    assert "fitted to labels, too: name their column with --labels" in capsys.readouterr().err
    labels = tmp_path / "labels.txt"
    labels.write_text("a\n" * 20)
    assert main(["verify", str(tmp_path), str(tmp_path / "X.npy"), "--labels", str(labels)]) == 2
    assert "metrics.json is missing" in capsys.readouterr().err
    assert main(["verify", str(tmp_path / "no"), str(tmp_path / "X.npy")]) == 2
