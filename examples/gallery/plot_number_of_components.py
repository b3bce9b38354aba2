"""
How many components?
====================

A larger model always explains what it has seen better.  Entries that were hidden tell when it
begins to fit noise.
"""

# %%
# Counts with five components.

import matplotlib.pyplot as plt
import numpy as np

import ssnmf_fast as sf

rng = np.random.default_rng(0)
means = rng.gamma(0.5, 2.0, (150, 5)) @ rng.gamma(0.5, 2.0, (5, 80))
counts = rng.poisson(means).astype(float)

# %%
# One entry in ten is hidden, zeros as well as others; three draws of which.

ranks = range(1, 11)
errors = {"seen": np.zeros(len(ranks)), "hidden": np.zeros(len(ranks))}
for draw in range(3):
    hidden = np.random.default_rng(draw).random(counts.shape) < 0.1
    seen = np.where(hidden, np.nan, counts)
    for place, rank in enumerate(ranks):
        fit = sf.factorize(
            seen, n_components=rank, loss="kullback-leibler", max_iter=500, random_state=draw
        )
        model = fit.S @ fit.A
        ratio = np.where(counts > 0, counts / model, 1.0)
        divergence = counts * np.log(ratio) - counts + model
        errors["seen"][place] += divergence[~hidden].mean() / 3
        errors["hidden"][place] += divergence[hidden].mean() / 3

# %%

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for (name, values), marker in zip(errors.items(), "os", strict=True):
    axes.plot(ranks, values, marker=marker, label=f"{name} entries")
axes.axvline(5, color="gray", linestyle=":", label="the true number")
axes.set(xlabel="components", ylabel="divergence per entry", xticks=ranks)
axes.legend()

# %%
# For counts :func:`ssnmf_fast.choose_rank` does it by the bound of a Bayesian model, without hidden
# entries.

choice = sf.choose_rank(
    sf.BayesianNMF(max_iter=5000, random_state=0), counts, range(2, 9), n_starts=2
)
print(f"the bound is largest for {choice.best_rank} components")

# %%
# :doc:`/start/which_model` tells when to use which.
