"""A model of the command, used from Python."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import ssnmf_fast as sf
from ssnmf_fast.cli import main

TEXTS = ["<b>rocket</b> to the moon", "moon orbit", "hockey team", "the TEAM won a game"] * 5


@pytest.fixture(params=[[], ["--keep-markup"]], ids=["strip", "keep"])
def results(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f'"{text}",{"space" if "moon" in text else "sport"}' for text in TEXTS]
    (tmp_path / "posts.csv").write_text("\n".join(["text,topic", *lines]), encoding="utf-8")
    assert main(["fit", "posts.csv", "--labels", "topic", "--quiet", *request.param]) == 0
    return tmp_path / "posts-ssnmf-fast"  # the default of --out


@pytest.mark.slow
def test_vectorizer_gives_what_the_command_has_fitted(results):
    vectorizer, model = sf.io.load_vectorizer(results), sf.load(results)
    shares = model.transform(pickle.loads(pickle.dumps(vectorizer)).transform(TEXTS))
    stored = np.load(results / "representation.npy")
    assert shares.shape == stored.shape
    assert ("b" in vectorizer.get_feature_names_out()) is False
    assert main(["predict", str(results), "posts.csv", "--out", "new.csv", "--quiet"]) == 0
    predicted = (results.parent / "new.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert [line.split(",")[2] for line in predicted] == model.predict(
        vectorizer.transform(TEXTS)
    ).tolist()


def test_other_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        sf.io.load_vectorizer(tmp_path)
    path = tmp_path / "vectorizer.json"
    content = {
        "format": "ssnmf-fast vectorizer", "version": 3, "column": "text", "token_pattern": "a+",
        "ngram_range": [1, 1], "stop_words": [], "markup": "keep", "terms": ["a", "aa"],
        "idf": [1.0, 2.0],
    }  # fmt: skip
    path.write_text(json.dumps(content), encoding="utf-8")
    assert sf.io.load_vectorizer(path).transform(["a aa"]).shape == (1, 2)
    wrong = [{**content, name: other} for name in content for other in (7, "(", None, [7], {})]
    wrong += [{**content, "ngram_range": [2, 1]}, {**content, "idf": [1.0, float("nan")]}]
    for other in ([], *wrong):
        if other == {**content, "column": "("}:
            continue
        path.write_text(json.dumps(other), encoding="utf-8")
        with pytest.raises(ValueError, match=r"vectorizer\.json is not a vectorizer"):
            sf.io.load_vectorizer(tmp_path)
