"""
Dictionaries that separate classes
==================================

Ten components of NMF explain the pixels of digits, but do not separate the
digits well.  NMF-alpha also preserves the directions of a linear classifier,
learned from few labeled images.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.svm import LinearSVC

import ssnmf_fast as sf

X, digit = load_digits(return_X_y=True)
X = X / 16
models = {
    "NMF": sf.NMF(10, loss="kullback-leibler", tol=0),
    "NMF-alpha": sf.papers.MarginNMF(10, tol=0),
}

# %%
# In each of eight draws, 5 % of the training images are labeled.  A linear
# support vector machine uses the ten features.

right = {name: [] for name in models}
for seed in range(8):
    rng = np.random.default_rng(seed)
    train = rng.random(len(digit)) < 0.7
    labeled = train & (rng.random(len(digit)) < 0.05)
    visible = np.where(labeled, digit, -1)
    for name, model in models.items():
        model.set_params(random_state=seed).fit(X[train], visible[train])
        machine = LinearSVC(C=10, max_iter=10_000)
        machine.fit(model.transform(X[labeled]), digit[labeled])
        right[name].append(
            machine.score(model.transform(X[~train]), digit[~train])
        )

# %%

figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
for plain, margin in zip(right["NMF"], right["NMF-alpha"], strict=True):
    axes.plot([0, 1], [100 * plain, 100 * margin], color="gray", marker="o")
axes.set_xticks([0, 1], models)
axes.set(
    xlim=(-0.3, 1.3),
    ylabel="correct on new images (%)",
    title="One line per draw",
)

# %%
# The components of both:

components = np.vstack([model.components_ for model in models.values()])
names = [f"{name} {k}" for name in models for k in range(10)]
picture = sf.plotting.image_grid(components, (8, 8), names=names, columns=10)

# %%
# :doc:`/guide/guided` compares the models guided by labels.
