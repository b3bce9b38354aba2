"""
A table with gaps
=================

A fifth of the measurements of 178 wines is missing.  A low-rank model fills
the gaps; the plot compares it with scikit-learn's imputers.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.impute import KNNImputer, SimpleImputer

import ssnmf_fast as sf

table = load_wine().data
imputers = [sf.LowRankImputer(random_state=0), KNNImputer(), SimpleImputer()]
rates = [0.05, 0.1, 0.2, 0.3, 0.4]
errors = np.zeros((len(imputers), len(rates)))
for column, rate in enumerate(rates):
    hidden = np.random.default_rng(column).random(table.shape) < rate
    holes = np.where(hidden, np.nan, table)
    for row, imputer in enumerate(imputers):
        wrong = (imputer.fit_transform(holes) - table) / table.std(axis=0)
        errors[row, column] = np.sqrt(np.mean(wrong[hidden] ** 2))

# %%

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for imputer, line, marker in zip(imputers, errors, "osD", strict=True):
    axes.plot(
        100 * np.array(rates),
        line,
        marker=marker,
        label=type(imputer).__name__,
    )
axes.set(xlabel="missing (%)", ylabel="error (standard deviations)")
axes.legend()

# %%
# The imputer chooses rank and shrinkage automatically, and fills new rows in
# ``transform``.  :doc:`/guide/completion` covers ratings, and entries that are
# missing because of their value.
