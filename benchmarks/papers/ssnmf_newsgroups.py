"""Tables 4, 5 and 7 to 12, and Figures 2 to 4 of the SSNMF paper: 20 Newsgroups.

Every trial draws its own documents, its own split and its own start (the paper keeps one split and
draws starts), fits on train and validation and reports the test.  The paper's settings, in several
readings: the printed rule stops when the objective falls by less than tol times its value F_0 at
the start, the program (github.com/jamiehadd/ssnmf) takes the value F_1 after one update.  For the
divergence the paper represents new documents by updates of S (ten is the program's default); the
columns that say "exact" solve that convex problem.  Keywords and pictures are those of the trial of
median accuracy of each model, as in the paper.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import ssnmf_models as models
from common import Array, D, F, panels
from records import Options, Question, Record, markdown, mean_and_deviation
from sklearn.linear_model import SGDClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import ssnmf_fast as sf

OPTIONS = {"trials": (11, "as many as in the paper")}
QUICK = {"trials": 1}
# Percent correct and its standard deviation: Table 4, and D-NMF from Table 3.3 of Kassab's thesis.
PAPER_ACCURACY = {
    "(F, F)": "79.37 (0.47)",
    "(F, D)": "79.51 (0.38)",
    "(D, F)": "81.88 (0.44)",
    "(D, D)": "81.50 (0.47)",
    "F-NMF + SVM": "70.99 (2.71)",
    "D-NMF + SVM": "74.75 (2.50)",
    "SVM": "80.70 (0.27)",
    "MultinomialNB": "82.28",
}
# Score P, hard and soft: Table 8, and D-NMF from Table A.7 of the thesis.
PAPER_SCORES = {
    "(F, F)": {"hard": "0.3895", "soft": "0.3647"},
    "(F, D)": {"hard": "0.3857", "soft": "0.3703"},
    "(D, F)": {"hard": "0.3874", "soft": "0.3553"},
    "(D, D)": {"hard": "0.3874", "soft": "0.3732"},
    "F-NMF": {"hard": "0.4348", "soft": "0.3080"},
    "D-NMF": {"hard": "0.4879", "soft": "0.3764"},
}
NMF_TOLERANCES = {"F-NMF": (F, 1e-4), "D-NMF": (D, 1e-5)}
KEYWORDS = 10
PROGRAM = next(iter(models.PROTOCOLS))  # the fits of the paper's program, for Table 8 and Figure 2
AS_PROGRAM = "as their program"
READINGS = [AS_PROGRAM, *(f"{name}, exact" for name in models.PROTOCOLS)]


def accuracy(part: models.Part, scores: Array) -> float:
    """Return the share of held-out documents whose largest score is that of their class."""
    return float((scores.argmax(axis=1) == part.classes_held).mean())


def clustering(part: models.Part, S: Array, S_held: Array) -> dict[str, Any]:
    """Return scores P of all documents, the held-out ones by their representation."""
    everything = np.vstack([S, S_held])
    truth = np.concatenate([part.subgroups, part.subgroups_held])
    score = sf.metrics.clustering_score
    return {k: score(everything, truth, assignment=k) for k in ("hard", "soft")}


def described(part: models.Part, A: Array, B: Array, P: dict[str, Any]) -> Record:
    """Return what Tables 5, 7 and 9 to 12 and Figures 2 to 4 show of a fit."""
    words = [" ".join(part.terms[np.argsort(-row)[:KEYWORDS]]) for row in A]
    own = {kind: [models.SUBGROUPS[k] for k in found.classes] for kind, found in P.items()}
    scores = {kind: found.per_topic.tolist() for kind, found in P.items()}
    return {"keywords": words, "B": np.maximum(B, 0).tolist(), "own": own, "scores": scores}


def measure(options: Options, trial: int) -> Record:
    part = models.split(options.quick, trial)[1]
    found: Record = {"accuracy": {reading: {} for reading in READINGS}, "topics": {}}
    found["updates"] = {name: {} for name in models.PROTOCOLS}
    program = found["accuracy"][AS_PROGRAM]
    for protocol_name, protocol in models.PROTOCOLS.items():
        for name, model in models.MODELS.items():
            result, updates = models.fit(part.X, part.Y, model, protocol, trial)
            S = sf.represent(part.X_held, result.A, loss=model.loss, n_threads=1)
            found["accuracy"][f"{protocol_name}, exact"][name] = accuracy(part, S @ result.B)
            found["updates"][protocol_name][name] = updates
            if protocol_name == PROGRAM:
                S = models.represent(part.X_held, result.A, model.loss, trial + 1000)
                program[name] = accuracy(part, S @ result.B)
                P = clustering(part, result.S, S)
                found["topics"][name] = described(part, result.A, result.B, P)
    # NMF without labels, then their SVM on the representation.
    for name, (loss, tolerance) in NMF_TOLERANCES.items():
        # scikit-learn's rule, which they use: the root of the loss, over ten iterations.
        settings: dict[str, Any] = {"max_iter": 400, "tol": 2 * tolerance / 10, "solver": "mu"}
        settings |= {"n_components": models.RANK, "random_state": trial, "n_threads": 1}
        result = sf.factorize(part.X, loss=loss, **settings)
        S = sf.represent(part.X_held, result.A, loss=loss, n_threads=1)
        svm = make_pipeline(StandardScaler(), SGDClassifier(tol=1e-5, random_state=trial))
        svm.fit(result.S, part.classes)
        program[f"{name} + SVM"] = svm.score(S, part.classes_held)
        P = clustering(part, result.S, S)
        found["topics"][f"{name} + SVM"] = described(part, result.A, svm[-1].coef_.T, P)
    for name, method in {"SVM": LinearSVC(), "MultinomialNB": MultinomialNB()}.items():
        method.fit(part.X, part.classes)
        program[name] = method.score(part.X_held, part.classes_held)
    return found


def report(records: list[Record], options: Options) -> str:
    accuracies, updates, scores = [], [], []
    for name, paper in PAPER_ACCURACY.items():
        accuracies.append([name, paper])
        for reading in READINGS:
            own = [r["accuracy"][reading][name] for r in records if name in r["accuracy"][reading]]
            accuracies[-1].append(mean_and_deviation(own, 100) if own else "")
    for name in models.MODELS:
        means = [np.mean([r["updates"][p][name] for r in records]) for p in models.PROTOCOLS]
        updates.append([name, *(f"{mean:.1f}" for mean in means)])
    for name, paper in PAPER_SCORES.items():
        scores.append([name])
        model = name if name in models.MODELS else f"{name} + SVM"
        for kind, published in paper.items():
            own = [float(np.mean(r["topics"][model]["scores"][kind])) for r in records]
            scores[-1] += [published, mean_and_deviation(own, digits=4)]
    parts = [
        f"mean (sd) of {len(records)} trials, rank {models.RANK}",
        markdown(["accuracy, %", "paper", *READINGS], accuracies),
        markdown(["updates", *models.PROTOCOLS], updates),
        markdown(["score P", "paper, hard", "hard", "paper, soft", "soft"], scores),
    ]
    for name in records[0]["topics"]:
        topics, value = median(records, name)
        parts += [f"{name}, trial of median accuracy {value:.2%}:", keywords(topics)]
    return "\n\n".join(parts)


def median(records: list[Record], name: str) -> tuple[Record, float]:
    """Return the topics of a model in its trial of median accuracy, and that accuracy."""
    order = sorted(records, key=lambda record: record["accuracy"][AS_PROGRAM][name])
    record = order[len(order) // 2]
    return record["topics"][name], record["accuracy"][AS_PROGRAM][name]


def keywords(topics: Record) -> str:
    rows = []
    for k, words in enumerate(topics["keywords"]):
        own = [
            f"{topics['own'][kind][k]} {topics['scores'][kind][k]:.3f}" for kind in ("hard", "soft")
        ]
        rows.append([str(k + 1), words, *own])
    return markdown(["topic", "keywords", "hard: subgroup, P", "soft"], rows)


def draw(records: list[Record], stem: Path) -> None:
    """Draw the classes of every topic, Figures 2 to 4; the last from the coefficients of SVMs."""
    names = ["(D, F)", "(F, F)", "(F, D)", "(D, D)", "F-NMF + SVM"]
    figure, axes = panels(8, 2.4 * len(names), len(names), 1)
    for place, name in zip(axes[:, 0], names, strict=True):
        topics, value = median(records, name)
        B = np.array(topics["B"]).T
        shares = B / np.maximum(B.sum(axis=0), 1e-30)
        image = place.imshow(shares, aspect="auto", cmap="viridis", vmin=0)
        place.set_xticks(range(models.RANK), [str(topic + 1) for topic in range(models.RANK)])
        place.set_yticks(range(len(models.CLASSES)), list(models.CLASSES))
        place.set(xlabel="topic", title=f"{name}: classes of every topic; accuracy {value:.2%}")
        figure.colorbar(image)
    figure.savefig(stem.with_name(f"{stem.name}-figures-2-to-4.png"), dpi=110)


QUESTION = Question("trial", "trials", measure, report, draw)
