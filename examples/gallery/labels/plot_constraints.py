"""
Samples with the same representation
====================================

Constrained NMF gives all labeled samples of a class the same representation.
All other samples are free.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

import ssnmf_fast as sf

X, species = load_iris(return_X_y=True)
names = load_iris().target_names
labels = np.full(len(X), -1)
rng = np.random.default_rng(0)
for label in range(3):
    labels[rng.choice(np.flatnonzero(species == label), 8, replace=False)] = (
        label
    )

# %%
# Two components, with 24 of the 150 flowers labeled.

free = sf.NMF(2, random_state=0).fit(X)
constrained = sf.papers.ConstrainedNMF(2, random_state=0).fit(X, labels)

# %%

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
titles = ["NMF", "ConstrainedNMF: one point per labeled kind"]
for cell, model, title in zip(axes, (free, constrained), titles, strict=True):
    S = model.representation_
    for label, marker in enumerate("osD"):
        mine = species == label
        cell.scatter(*S[mine].T, marker=marker, alpha=0.6, label=names[label])
        marked = S[labels == label]
        cell.scatter(
            *marked.T,
            marker=marker,
            s=90,
            facecolors="none",
            edgecolors="black",
        )
    cell.set(xlabel="component 0", ylabel="component 1", title=title)
axes[0].legend()

# %%
# Samples with black rims are labeled.  The model has no parameter to tune;
# :doc:`/guide/guided` explains when to use it.
