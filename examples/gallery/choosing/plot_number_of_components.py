"""
How many components?
====================

A larger model always explains the training data better.  Hidden entries show
when it starts to fit noise.
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
# In each of five splits, one entry in ten is hidden, zeros included.

ranks = range(1, 10)
choice = sf.choose_rank(
    counts, ranks, loss="kullback-leibler", n_starts=2, random_state=0
)
print(choice)

# %%
# Each point is a split.  The error is smallest for the true number.

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
drawn = choice.plot(ax=axes)

# %%
# Ranks that were clearly worse after three splits were dropped.

for row in choice.to_rows():
    pruned = ", pruned" if row["pruned"] else ""
    print(f"{row['rank']}: perplexity {row['perplexity']:.1f}{pruned}")

# %%
# Another criterion is whether many starts find the same components.

stable = sf.choose_rank(
    counts,
    ranks[1:],
    criterion="stability",
    loss="kullback-leibler",
    random_state=0,
)
figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
drawn = stable.plot(ax=axes)

# %%
# :doc:`/guide/choosing` explains when to use which criterion.
