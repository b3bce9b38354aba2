"""CNMF: all labeled digits of a class share one row of S."""

import sys

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

import ssnmf_fast as sf
from ssnmf_fast import plotting

X, y = load_digits(return_X_y=True)
X = X / 16
labeled = np.random.default_rng(0).random(len(y)) < 0.3
visible = np.where(labeled, y, -1)  # -1: unlabeled

options = {"n_components": 20, "random_state": 0}
plain = sf.NMF(**options).fit(X)
model = sf.papers.ConstrainedNMF(**options).fit(X, visible)
for name, fitted in {"NMF": plain, "CNMF": model}.items():
    S = fitted.transform(X[~labeled])
    clusters = KMeans(10, n_init=10, random_state=0).fit_predict(S)
    index = adjusted_rand_score(y[~labeled], clusters)
    print(f"{name}: adjusted Rand index of {index:.2f}")

picture = plotting.class_map(
    model.class_representation_.T,
    model.classes_,
    title="Components of the classes' shared rows",
)
picture.savefig(
    sys.argv[1] if len(sys.argv) > 1 else "constrained.png", dpi=110
)
