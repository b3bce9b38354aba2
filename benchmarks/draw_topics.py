"""Draw the picture of the front page: topics of BBC news, learned with two labels a class."""

from __future__ import annotations

from typing import Any

import numpy as np
from common import ROOT, panels, read_lines
from records import Options
from sklearn.feature_extraction.text import TfidfVectorizer

import ssnmf_fast as sf

OPTIONS: dict[str, Any] = {"labels": (2, "of each class"), "seed": 0}


def main(options: Options) -> None:
    articles = list({a["body"]: a for a in read_lines("bbc_news.jsonl.gz")}.values())
    y = np.array([article["label"] for article in articles], dtype=object)
    vectorizer = TfidfVectorizer(stop_words="english", min_df=5, max_df=0.3, sublinear_tf=True)
    X = vectorizer.fit_transform([f"{a['title']} {a['body']}" for a in articles])
    rng = np.random.default_rng(options.seed)
    labels = np.full(len(y), None)
    for name in sorted(set(y)):
        labels[rng.choice(np.flatnonzero(y == name), options.labels, replace=False)] = name
    model = sf.FewLabelsClassifier(random_state=options.seed).fit(X, labels)
    hidden = np.equal(labels, None)
    right = np.mean(model.predict(X[hidden]) == y[hidden])

    figure, axes = panels(5.2, 4.4, 3, 2)
    *places, last = axes.ravel()
    topics = model.topics(vectorizer.get_feature_names_out(), n_terms=6)
    for axis, topic, name in zip(places, topics, model.classes_, strict=True):
        axis.barh(topic.terms, topic.weights, color="#0072B2")
        axis.invert_yaxis()
        axis.set_xticks([])
        axis.set_title(name, fontweight="bold")
        axis.tick_params(left=False)
        axis.spines[:].set_visible(False)
    last.axis("off")
    text = f"{len(y):,} articles,\n{len(y) - hidden.sum()} of them labeled.\n\n"
    text += f"{100 * right:.1f} % of the others\nclassified correctly."
    last.text(-0.2, 0.5, text, va="center", fontsize=11)
    figure.savefig(ROOT / "docs" / "images" / "topics_from_few_labels.png", dpi=150)
    print(f"{right:.1%} of {hidden.sum()} articles are right")
