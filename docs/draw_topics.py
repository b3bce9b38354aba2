"""Draw the picture of the front page: topics of BBC news, learned from two labels of each class.

    python docs/draw_topics.py

The articles are in bbc_news.jsonl.gz of the folder $SSNMF_FAST_DATA.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.feature_extraction.text import TfidfVectorizer

import ssnmf_fast as sf

PICTURE = Path(__file__).parent / "images" / "topics_from_few_labels.png"


def main() -> None:
    """Fit the classifier and draw its topics."""
    with gzip.open(Path(os.environ["SSNMF_FAST_DATA"]) / "bbc_news.jsonl.gz") as file:
        articles = list({a["body"]: a for a in map(json.loads, file)}.values())  # no repeats
    y = np.array([article["label"] for article in articles], dtype=object)
    vectorizer = TfidfVectorizer(stop_words="english", min_df=5, max_df=0.3, sublinear_tf=True)
    X = vectorizer.fit_transform([f"{a['title']} {a['body']}" for a in articles])
    rng = np.random.default_rng(0)
    labels = np.full(len(y), None)
    for name in sorted(set(y)):
        labels[rng.choice(np.flatnonzero(y == name), 2, replace=False)] = name
    model = sf.FewLabelsClassifier(random_state=0).fit(X, labels)

    figure = Figure(figsize=(5.2, 4.4), layout="constrained")
    *places, last = figure.subplots(3, 2).ravel()
    topics = model.topics(vectorizer.get_feature_names_out(), n_terms=6)
    for axes, topic, name in zip(places, topics, model.classes_, strict=True):
        axes.barh(topic.terms, topic.weights, color="#0072B2")
        axes.invert_yaxis()
        axes.set_xticks([])
        axes.set_title(name, fontweight="bold")
        axes.tick_params(left=False)
        axes.spines[:].set_visible(False)
    last.axis("off")
    text = f"{len(y):,} articles,\n{sum(label is not None for label in labels)} of them labeled."
    last.text(-0.2, 0.5, text, va="center", fontsize=11)
    figure.savefig(PICTURE, dpi=150)


if __name__ == "__main__":
    main()
