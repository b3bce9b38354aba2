"""
Visits by user, page and hour
=============================

A tensor has three or more modes.  The nonnegative CP decomposition explains it
by a few components, each with one profile per mode.
"""

# %%
# Users have three habits: morning, noon and evening.

import matplotlib.pyplot as plt
import numpy as np

import ssnmf_fast as sf

rng = np.random.default_rng(0)
users, pages = rng.gamma(0.3, size=(200, 3)), rng.gamma(0.3, size=(50, 3))
hours = np.exp(-0.5 * ((np.arange(24)[:, None] - [8, 13, 21]) / 2) ** 2)
visits = rng.poisson(np.einsum("ir,jr,kr->ijk", users, pages, hours))

# %%

fit = sf.factorize_tensor(
    visits, n_components=3, loss="kullback-leibler", random_state=0
)

# %%

figure, axes = plt.subplots(
    3, 3, figsize=(9, 6), layout="constrained", sharex="col"
)
for row, weight in enumerate(fit.weights):
    for mode, name in enumerate(("user", "page", "hour")):
        profile = fit.factors[mode][:, row]
        cell = axes[row, mode]
        if name == "hour":
            cell.plot(profile)
        else:
            cell.vlines(np.arange(len(profile)), 0, np.sort(profile)[::-1])
        cell.set_yticks([])
        cell.spines[["top", "right", "left"]].set_visible(False)
        if row == 2:
            cell.set_xlabel(name if name == "hour" else f"{name}s, by weight")
    axes[row, 0].set_ylabel(f"{weight:.0f} visits")

# %%
# Pass sparse tensors as coordinates and values: :doc:`/guide/tensors`.
