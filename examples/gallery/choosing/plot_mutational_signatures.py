"""
Mutational signatures: how many do starts agree on?
===================================================

Mutations of a tumor are counted by 96 types.  The counts are sums of a few
signatures, one for each process that has caused mutations.  Here five known
signatures are drawn, and counts from them.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.pairwise import cosine_similarity

import ssnmf_fast as sf

rng = np.random.default_rng(0)
signatures = rng.dirichlet(np.full(96, 0.2), size=5)
activities = rng.gamma(0.4, 1000, size=(100, 5))
counts = rng.poisson(activities @ signatures)

# %%
# Twenty starts for each number, each for counts that are drawn again.  With
# too many signatures, the starts no longer agree.

ranks = range(2, 9)
settings = {"loss": "kullback-leibler", "n_starts": 20, "random_state": 0}
settings["resample"] = "poisson"
found = {rank: sf.consensus(counts, rank, **settings) for rank in ranks}
agreement = [one.silhouette for one in found.values()]

# %%
# Each of the known signatures has one that is nearly the same:

alike = cosine_similarity(signatures, found[5].components)
rows, columns = linear_sum_assignment(alike, maximize=True)
print("cosines:", *(f"{cosine:.3f}" for cosine in alike[rows, columns]))

# %%

figure, (left, right) = plt.subplots(
    1, 2, figsize=(8, 3.2), layout="constrained", width_ratios=(1, 2)
)
left.plot(ranks, agreement, "o-")
left.set(xlabel="number of signatures", ylabel="agreement of the starts")
right.bar(np.arange(96) - 0.2, signatures[0], 0.4, label="known")
right.bar(
    np.arange(96) + 0.2, found[5].components[columns[0]], 0.4, label="found"
)
right.set(xlabel="type of mutation", ylabel="share")
right.legend()

# %%
# :doc:`/guide/choosing` compares the ways to choose the number.
