"""Variational Bayes with labels: a prior for each component and class."""

import sys

import numpy as np
from matplotlib.figure import Figure
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

# the first image, a 0: weights of its ten largest components, and these
S = plain.representation_[0]
low, high = (side[0] for side in plain.interval_representation(level=0.9))
largest = S.argsort()[:-11:-1]
picture = Figure(figsize=(6, 2.8), layout="constrained")
bars, images = picture.subplots(2, height_ratios=(2, 1))
sides = [(S - low)[largest], (high - S)[largest]]
bars.bar(range(10), S[largest], yerr=sides, capsize=3)
bars.set(xlim=(-0.5, 9.5), xticks=[], ylabel="weight")
A = plain.components_[largest]
plotting.image_grid(A, (8, 8), columns=10, ax=images)
picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "bayesian.png")
