"""TS-NMF: a fifth of the digits are labeled; the labels name the topics."""

import sys

import numpy as np
from sklearn.datasets import load_digits

import ssnmf_fast as sf
from ssnmf_fast import plotting

X, y = load_digits(return_X_y=True)
X, X_new, y, y_new = X[:1300] / 16, X[1300:] / 16, y[:1300], y[1300:]
rng = np.random.default_rng(0)
# []: unlabeled
topics = [[f"digit {label}"] if rng.random() < 0.2 else [] for label in y]

model = sf.TopicSupervisedNMF(n_free_topics=2, random_state=0).fit(X, topics)
shares = model.topic_proportions(X_new)
names = model.get_feature_names_out()
found = names[shares[:, :10].argmax(axis=1)]
print(f"{model.n_labeled_} of {len(X)} labeled; topics: {', '.join(names)}")
right = np.mean(found == [f"digit {label}" for label in y_new])
print(f"correct for {right:.1%} of new digits")
matching = sf.metrics.match_topics(shares[:, :10], y_new)
print(
    f"similarity to the true digits {matching.score:.2f}, "
    f"{matching.n_resolved} of 10 resolved"
)

picture = plotting.image_grid(
    model.components_, (8, 8), names=names, columns=4
)
picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "topic_supervised.png")
