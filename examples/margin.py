"""NMF-alpha: with ten features for ten digits, keep what separates them."""

import sys

import numpy as np
from sklearn.datasets import load_digits
from sklearn.svm import LinearSVC

import ssnmf_fast as sf
from ssnmf_fast import plotting

X, y = load_digits(return_X_y=True)
X, X_new, y, y_new = X[:1300] / 16, X[1300:] / 16, y[:1300], y[1300:]
labelled = np.random.default_rng(0).random(len(y)) < 0.2
visible = np.where(labelled, y, -1)  # -1: not labelled


def accuracy(model):
    """Train a support vector machine on the features of the labelled digits alone."""
    machine = LinearSVC(C=10, max_iter=10_000).fit(model.transform(X[labelled]), y[labelled])
    return machine.score(model.transform(X_new), y_new)


options = {"n_components": 10, "max_iter": 300, "tol": 0}
models = {
    "NMF": [sf.NMF(reconstruction="kullback-leibler", random_state=k, **options) for k in range(5)],
    "NMF-alpha": [sf.MarginNMF(random_state=k, **options) for k in range(5)],
}
print(f"{labelled.sum()} of {len(X)} labelled; 10 features instead of 64 pixels, five starts")
for name, starts in models.items():
    scores = [accuracy(model.fit(X, visible)) for model in starts]
    print(f"{name}: {np.mean(scores):.1%} of new digits are right (sd {np.std(scores):.1%})")

components = np.vstack([starts[0].components_ for starts in models.values()])
names = [f"{name} {k}" for name in models for k in range(10)]
picture = plotting.image_grid(components, (8, 8), names=names, columns=10)
picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "margin.png", dpi=110)
