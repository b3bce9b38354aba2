"""
Convergence of completions
==========================

How fast do two methods fill a table?  The plot shows the relative change per
iteration, and the relative error at the observed entries.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np

import ssnmf_fast as sf

rng = np.random.default_rng(0)
M = rng.random((300, 5)) @ rng.random((5, 200))
M[rng.random(M.shape) < 0.7] = np.nan
fits = {
    name: sf.complete(M, n_components=5, method=name)
    for name in ("auto", "sirls")
}

# %%

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
for (name, fit), color in zip(fits.items(), ("C0", "C1"), strict=True):
    iterations = [state.iteration for state in fit.history]
    axes.semilogy(
        iterations,
        [state.change for state in fit.history],
        color=color,
        label=name,
    )
    axes.semilogy(
        iterations,
        [state.residual for state in fit.history],
        "--",
        color=color,
    )
axes.set(xlabel="iteration", ylabel="change (solid), residual (dashed)")
axes.legend()

# %%
# :doc:`/guide/completion` describes the methods.
