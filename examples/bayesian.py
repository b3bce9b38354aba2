"""Variational Bayes with labels: a prior for each component and class."""

import sys

import numpy as np
from sklearn.datasets import load_digits

import ssnmf_fast as sf
from ssnmf_fast import plotting

X, y = load_digits(return_X_y=True)
# -1: unlabeled
some = np.where(np.random.default_rng(0).random(len(y)) < 0.5, y, -1)
options = {"n_components": 20, "max_iter": 100, "tol": 0, "random_state": 0}

plain = sf.BayesianNMF(**options).fit(X)
model = sf.papers.SupervisedBayesianNMF(unlabeled=-1, **options).fit(X, some)
for name, fitted in {"without labels": plain, "with labels": model}.items():
    sparsity = sf.metrics.inter_label_sparsity(fitted.representation_, y).score
    print(
        f"{name}: bound {fitted.lower_bound_:.0f}, "
        f"inter-label sparsity {sparsity:.2f}"
    )
low, high = model.interval_components(level=0.9)
widest = np.unravel_index((high - low).argmax(), low.shape)
print(
    f"least certain: pixel {widest[1]} of component {widest[0]}, "
    f"{low[widest]:.1f} to {high[widest]:.1f}"
)
choice = sf.choose_rank(
    X,
    [5, 20, 40],
    criterion="bound",
    estimator=sf.BayesianNMF(max_iter=100, tol=0, random_state=0),
    n_starts=1,
)
print(f"bounds of 5, 20 and 40 components: {choice.means.round()}")

picture = plotting.label_map(
    model.representation_, y, title="Components of the digits"
)
picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "bayesian.png", dpi=90)
