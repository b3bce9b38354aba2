"""Programs that factorize by scikit-learn, as they are: what `dropin.py` times.

    python callers.py CALLER FOLDER ARGUMENTS
    python -m ssnmf_fast.sklearn callers.py CALLER FOLDER ARGUMENTS

FOLDER has counts.npz or texts.json.  The last line is JSON: the seconds of every step, topics, and
how many calls ran on the engine.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

# As in most programs, these names exist before anything else runs.
from sklearn.decomposition import NMF, MiniBatchNMF
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer

Answer = tuple[dict[str, float], dict[str, Any]]


def cnmf(folder: Path, loss: str, rank: str, starts: str, workers: str) -> Answer:
    import cnmf_worker as worker

    worker.prepare(folder, loss, starts, "14", rank)
    seconds = {"factorize": worker.factorize(folder, workers)}
    seconds["consensus"] = worker.consensus(folder, rank)
    with np.load(folder / f"programs_{rank}.npz") as archive:
        return seconds, {"consensus": archive["consensus_spectra"]}


def keynmf(folder: Path, rank: str, batch: str) -> Answer:
    """Fit all texts, then batches of them to another model; hashed words embed texts and terms."""
    from turftopic import KeyNMF
    from turftopic.encoders import ExternalEncoder

    class HashedWords(ExternalEncoder):  # type: ignore[misc]
        def encode(self, sentences: Any) -> Any:
            words = HashingVectorizer(n_features=512, stop_words="english")
            return words.transform(list(sentences)).toarray()

    texts = json.loads((folder / "texts.json").read_text())
    model = KeyNMF(int(rank), encoder=HashedWords(), random_state=0)
    keywords, extraction = timed(lambda: model.extract_keywords(texts))
    fit = timed(lambda: model.fit_transform(texts, keywords=keywords))[1]
    online = KeyNMF(int(rank), encoder=HashedWords(), random_state=0)

    def learn() -> None:
        for k in range(0, len(texts), int(batch)):
            online.partial_fit(keywords=keywords[k : k + int(batch)])

    seconds = {"keywords": extraction, "fit": fit, "batches": timed(learn)[1]}
    return seconds, {"fit": model.components_, "batches": online.components_}


def topics(folder: Path, features: str) -> Answer:
    """Fit the models of scikit-learn's example of topics."""
    texts = json.loads((folder / "texts.json").read_text())
    words = TfidfVectorizer(
        max_df=0.95, min_df=2, max_features=int(features), stop_words="english"
    ).fit_transform(texts)
    common = {"n_components": 10, "random_state": 1, "init": "nndsvda"}
    common |= {"alpha_W": 0.00005, "alpha_H": 0.00005}
    kl = {"beta_loss": "kullback-leibler", "l1_ratio": 0.5}
    models = {
        "Frobenius": NMF(beta_loss="frobenius", l1_ratio=1, **common),
        "Kullback-Leibler": NMF(solver="mu", max_iter=1000, **kl, **common),
        "batches, Frobenius": MiniBatchNMF(batch_size=128, l1_ratio=0.5, **common),
        "batches, Kullback-Leibler": MiniBatchNMF(batch_size=128, **kl, **common),
    }
    seconds = {name: timed(lambda m=model: m.fit(words))[1] for name, model in models.items()}
    return seconds, {name: model.components_ for name, model in models.items()}


def timed(function: Any) -> tuple[Any, float]:
    begin = perf_counter()
    return function(), perf_counter() - begin


def main() -> None:
    warnings.simplefilter("ignore")
    caller, folder, *given = sys.argv[1:]
    output = os.dup(1)
    os.dup2(2, 1)  # what the callers print, and their workers
    seconds, found = globals()[caller](Path(folder), *given)
    answer: dict[str, Any] = {"seconds": seconds}
    answer["topics"] = {name: np.round(value, 9).tolist() for name, value in found.items()}
    patch = sys.modules.get("ssnmf_fast.sklearn")  # which this script does not import
    answer["calls"] = patch.call_counts() if patch else {}
    os.write(output, (json.dumps(answer) + "\n").encode())


if __name__ == "__main__":
    main()
