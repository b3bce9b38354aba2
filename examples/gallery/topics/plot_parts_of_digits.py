"""
Parts of images
===============

NMF explains images as sums of parts.  This example shows 16 parts of
handwritten digits, and one image as a sum of parts.
"""

# %%
# The features are the pixels of 1,797 images, which are nonnegative.

from sklearn.datasets import load_digits

import ssnmf_fast as sf

X, digit = load_digits(return_X_y=True)
model = sf.NMF(16, random_state=0).fit(X)
print(f"{model.n_iter_} iterations, error {model.reconstruction_err_:.0f}")

# %%
# The rows of ``components_`` are the parts.

parts = sf.plotting.image_grid(
    model.components_, (8, 8), columns=8, title="Parts"
)

# %%
# The first image, a zero, is a sum of a few parts.  The plot shows those with
# the largest weights, and their sum.

total = sf.plotting.image_grid(
    model.components_,
    (8, 8),
    weights=model.representation_[0],
    sample=X[0],
    title="An image, and the parts that it needs",
)

# %%
# :doc:`/guide/models` describes losses and solvers, and :doc:`/guide/choosing`
# how to choose the number of parts.
