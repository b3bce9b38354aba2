"""
Missing entries and weights
===========================

A third of the pixels is missing.  The fit ignores them, and the model predicts
them.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import ssnmf_fast as sf

X = load_digits().data
missing = np.random.default_rng(0).random(X.shape) < 1 / 3
holes = np.where(missing, np.nan, X)

# %%
# NaN in dense data means missing.  Zeros in these places would bias the model
# towards zero.

fit = sf.factorize(holes, n_components=12, random_state=0)
naive = sf.factorize(np.where(missing, 0, X), n_components=12, random_state=0)
for name, model in (("missing", fit), ("zeros", naive)):
    error = np.sqrt(np.mean((model.S @ model.A - X)[missing] ** 2))
    print(f"missing pixels as {name}: error {error:.2f}")

# %%

rows = {
    "image": X,
    "given": holes,
    "predicted": np.where(missing, fit.S @ fit.A, X),
    "holes as zeros": np.where(missing, naive.S @ naive.A, X),
}
figure, axes = plt.subplots(4, 8, figsize=(8, 4.4), layout="constrained")
for line, (name, images) in zip(axes, rows.items(), strict=True):
    for cell, image in zip(line, images, strict=False):
        cell.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        cell.set(xticks=[], yticks=[])
        cell.set_facecolor("tab:orange")
    line[0].set_ylabel(name, rotation=0, ha="right", va="center")

# %%
# Missing pixels are orange.  In sparse data, zeros count as observed unless
# weights mark them as missing: see :doc:`/guide/weights`.
