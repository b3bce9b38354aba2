"""
How many components? The bound of a Bayesian model
==================================================

Variational Bayes gives every entry of the factors a distribution.  Its bound
of the evidence accounts for the number of parameters, so no data have to be
held out.
"""

# %%
# Counts with four components.

import matplotlib.pyplot as plt
import numpy as np

import ssnmf_fast as sf

rng = np.random.default_rng(0)
counts = rng.poisson(
    rng.gamma(0.4, 3.0, (200, 4)) @ rng.gamma(0.4, 3.0, (4, 60))
)
model = sf.BayesianNMF(max_iter=5000, random_state=0)
choice = sf.choose_rank(
    counts, range(1, 9), criterion="bound", estimator=model
)

# %%
# One point per start; the line joins the best start of each rank.

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
drawn = choice.plot(ax=axes)

# %%
# The best model is kept.  Its components, as shares of the counts:

shares = choice.best_model.topic_proportions(counts).mean(axis=0)
print("  ".join(f"{100 * share:.0f} %" for share in np.sort(shares)[::-1]))

# %%
# :doc:`/guide/bayesian` describes the priors, and the model with labels.
