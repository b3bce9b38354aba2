"""
Learn from batches
==================

``partial_fit`` learns from one batch at a time and does not keep it.  After
one pass, the error is within a tenth of the error of a fit to all data.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import ssnmf_fast as sf

X = load_digits().data
X = X[np.random.default_rng(0).permutation(len(X))]
whole = sf.NMF(16, random_state=0).fit(X)

# %%
# The error of the model on all data after each batch of 100 images.

stream = sf.NMF(16, random_state=0)
errors = []
for first in range(0, len(X), 100):
    stream.partial_fit(X[first : first + 100])
    errors.append(np.linalg.norm(X - stream.transform(X) @ stream.components_))

# %%

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.plot(
    100 * np.arange(1, len(errors) + 1),
    errors,
    marker="o",
    label="partial_fit",
)
axes.axhline(
    whole.reconstruction_err_,
    color="gray",
    linestyle="--",
    label="fit of all images",
)
axes.set(xlabel="images seen", ylabel="error on all images")
axes.legend()

# %%
# :doc:`/guide/large` continues with files and clusters.
