"""``ssnmf-fast verify``: models and their data, and others."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command import run, write_lines

import ssnmf_fast as sf

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


def verify(out, data, options="", code=0):
    return json.loads(run(f"verify {out} {data} --json {options}", code=code).out)


FITS = {
    "nmf": "--rank 2",
    "ssnmf": "--labels topic --model ssnmf --rank 2 --supervision-weight inf",
    "few-labels": "--labels topic",
    "cnmf": "--labels topic --model cnmf --rank 2",
    "ts-nmf": "--labels topic --model ts-nmf --seed 3",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_models_of_the_command(folder, name):
    data, options = folder / "posts.csv", FITS[name]
    labels = "--labels topic" if "--labels" in options else ""
    fitted = run(f"fit {data} {options} --out out --quiet")
    found = verify("out", data, labels)
    assert found["differences"] == []
    assert found["ok"]
    assert [row[0] for row in found["values"]][:2] == ["X", "objective"]

    found = verify("out", folder / "other.csv", labels, code=1)
    assert "X is not the one of the fit." in found["differences"]
    residual = fitted.json()["residual"]
    assert residual == fitted.model.receipt_.residual
    assert f"{residual:.1e}" in fitted.read()


def test_a_matrix_and_what_cannot_be_verified():
    X = np.random.default_rng(0).random((20, 6))
    np.save("X.npy", X)
    sf.save(sf.NMF(2, random_state=0).fit(X), "model.npz")
    verify("model.npz", "X.npy")
    assert "The result agrees with its receipt." in run("verify . X.npy").out

    sf.save(sf.BayesianNMF(2, random_state=0, max_iter=5, tol=0).fit(X), "model.npz")
    refused = run("verify . X.npy", code=2)
    assert "verify is not available for BayesianNMF" in refused.err
    guided = sf.SSNMFClassifier(2, random_state=0, max_iter=5, tol=0).fit(X, ["a", "b"] * 10)
    sf.save(guided, "model.npz")
    refused = run("verify . X.npy", code=2)
    assert "fitted to labels, too: name their column with --labels" in refused.err
    refused = run("verify . X.npy --labels", write_lines("labels.txt", "a" * 20), code=2)
    assert "metrics.json is missing" in refused.err
    run("verify no X.npy", code=2)
