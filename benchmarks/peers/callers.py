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
from time import process_time
from typing import Any

import numpy as np

# As in most programs, these names exist before anything else runs.
from sklearn.decomposition import NMF, MiniBatchNMF
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

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


def sound(_: Path) -> Answer:
    """Decompose half a minute of notes of eight pitches with librosa, as its users do."""
    import librosa

    rng = np.random.default_rng(0)
    rate, notes = 22050, 120
    time = np.arange(rate // 4) / rate
    pitches = 220 * 2 ** (np.array([0, 2, 4, 5, 7, 9, 11, 12]) / 12)
    chords = rng.random((notes, 8)) < 0.25
    harmonics = np.sin(2 * np.pi * pitches[:, None, None] * np.arange(1, 6)[:, None] * time)
    tones = np.einsum("phs,h->ps", harmonics, 1 / np.arange(1, 6)) * np.exp(-6 * time)
    wave = (chords @ tones).ravel() + 0.01 * rng.standard_normal(notes * len(time))
    S = np.abs(librosa.stft(wave))
    kl = {"solver": "mu", "beta_loss": "kullback-leibler", "max_iter": 200}
    models = {
        "default": NMF(8, random_state=0),
        "Kullback-Leibler": NMF(8, random_state=0, **kl),
        "batches": MiniBatchNMF(8, random_state=0),
    }
    decompose = librosa.decompose.decompose
    seconds, found = {}, {}
    for name, model in models.items():
        (components, _), seconds[name] = timed(lambda m=model: decompose(S, transformer=m))
        found[name] = components.T
    return seconds, found


def spectra(_: Path) -> Answer:
    """Decompose a map of 64 x 64 spectra, counts of photons from five substances, with hyperspy."""
    import hyperspy.api as hs

    hs.preferences.General.show_progressbar = False
    rng = np.random.default_rng(0)
    energies = np.linspace(0, 1, 1024)
    lines = np.exp(-(((energies - rng.random((5, 6, 1))) / 0.01) ** 2)).sum(axis=1) + 0.02
    shares = rng.dirichlet(np.full(5, 0.3), size=(64, 64))
    seconds, found = {}, {}
    for name, noise in {"NMF": False, "NMF, Poisson noise": True}.items():
        signal = hs.signals.Signal1D(rng.poisson(20 * shares @ lines).astype(float))
        how = {"normalize_poissonian_noise": noise, "random_state": 0, "max_iter": 500}
        _, seconds[name] = timed(
            lambda s=signal, h=how: s.decomposition(algorithm="NMF", output_dimension=5, **h)
        )
        found[name] = signal.learning_results.factors.T
    return seconds, found


def views(folder: Path, features: str) -> Answer:
    """Fit topics, and prepare what pyLDAvis and topic-wizard show of them."""
    import pyLDAvis.lda_model
    from topicwizard.pipeline import make_topic_pipeline

    texts = json.loads((folder / "texts.json").read_text())
    words = CountVectorizer(min_df=2, max_features=int(features), stop_words="english")
    kl = {"solver": "mu", "beta_loss": "kullback-leibler", "init": "nndsvda", "max_iter": 500}
    model = NMF(10, random_state=0, **kl)
    pipeline = make_topic_pipeline(words, model)
    seconds = {"fit": timed(lambda: pipeline.fit(texts))[1]}
    counts = words.transform(texts)
    some = counts.getnnz(axis=1) > 0  # pyLDAvis divides by the sums of rows
    counts, used = counts[some], [text for text, has in zip(texts, some, strict=True) if has]
    prepare = pyLDAvis.lda_model.prepare
    shown, seconds["pyLDAvis"] = timed(lambda: prepare(model, counts, words, n_jobs=1))
    seconds["topic-wizard"] = timed(lambda: pipeline.prepare_topic_data(used))[1]
    assert len(shown.topic_coordinates) == 10
    return seconds, {"fit": model.components_}


def timed(function: Any) -> tuple[Any, float]:
    begin = process_time()
    return function(), process_time() - begin


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
