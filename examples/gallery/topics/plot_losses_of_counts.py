"""
Counts: squared error or divergence?
====================================

Large counts dominate the squared error; the Kullback-Leibler divergence suits
counts of every size.  In these cells, ten genes are expressed a hundred times
as much as the others.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import normalize

import ssnmf_fast as sf

rng = np.random.default_rng(1)
n_cells, n_genes, n_programs = 600, 200, 6
loud = np.arange(n_genes) < 10
programs = rng.gamma(0.3, size=(n_programs, n_genes)) * np.where(
    loud, 100.0, 1.0
)
usage = rng.dirichlet(np.full(n_programs, 0.3), size=n_cells)
expected = 500 * usage @ normalize(programs, "l1")
counts = rng.poisson(expected).astype(float)

# %%
# The counts are Poisson draws from known means.  How close is the model to
# these means?

errors = {}
for loss in ("frobenius", "kullback-leibler"):
    model = sf.NMF(n_programs, loss=loss, max_iter=500, random_state=0).fit(
        counts
    )
    wrong = model.representation_ @ model.components_ - expected
    errors[loss] = [
        np.linalg.norm(wrong[:, genes]) / np.linalg.norm(expected[:, genes])
        for genes in (loud, ~loud)
    ]

# %%

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
for shift, (loss, values) in zip((-0.2, 0.2), errors.items(), strict=True):
    bars = axes.bar(
        np.arange(2) + shift, 100 * np.array(values), width=0.38, label=loss
    )
    axes.bar_label(bars, fmt="%.0f")
axes.set_xticks([0, 1], ["loud genes", "all others"])
axes.set(ylabel="error of the expected counts (%)")
axes.legend(loc="upper left")

# %%
# The divergence takes about the same time here.
# :doc:`/start/coming_from/cnmf` continues with the consensus of many runs.
