"""
Recommend books
===============

600 readers have chosen books from one or two genres each, mostly best
sellers.  How many books of a reader must be known for recommendations to be
better than a list of popular books?
"""

# %%
# The readers choose from 300 books in five genres; few books are famous.

import matplotlib.pyplot as plt
import numpy as np

import ssnmf_fast as sf
from ssnmf_fast.selection import split_interactions

rng = np.random.default_rng(0)
genres = np.repeat(np.arange(5), 60)
fame = rng.pareto(1.5, 300) + 0.2
readers, books = np.repeat(np.arange(600), 25), []
for _ in range(600):
    liked = np.isin(genres, rng.choice(5, rng.integers(1, 3), replace=False))
    chance = fame * np.where(liked, 1, 0.05)
    books.append(rng.choice(300, 25, replace=False, p=chance / chance.sum()))
books = np.concatenate(books)

# %%
# A model learns from half of the readers.  For each of the other readers, a
# fifth of the books is hidden, and the model gets some of the rest.

own = readers < 300
model = sf.Recommender(random_state=0).fit(readers[own], books[own])
known, hidden = split_interactions(readers[~own], books[~own], random_state=0)
relevant = np.zeros((300, 300))
relevant[readers[~own][hidden] - 300, books[~own][hidden]] = 1
popular = np.argsort(-np.bincount(books[own], minlength=300), kind="stable")

# %%

amounts = [1, 2, 3, 5, 10, 15]
lines = {"Recommender": [], "popular books": []}
for amount in amounts:
    histories = {}
    for reader in range(300, 600):
        mine = books[~own][known][readers[~own][known] == reader]
        histories[reader] = mine[:amount].tolist()
    found = model.recommend(histories, n=10).items.astype(int)
    others = [
        [b for b in popular if b not in set(mine)][:10]
        for mine in histories.values()
    ]
    for name, lists in zip(lines, (found, others), strict=True):
        lines[name].append(sf.metrics.ranking.ndcg(np.array(lists), relevant))

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for (name, values), marker in zip(lines.items(), "os", strict=True):
    axes.plot(amounts, values, marker=marker, label=name)
axes.set(xlabel="known books of a reader", ylabel="nDCG@10", ylim=(0, None))
axes.legend()

# %%
# :doc:`/guide/recommendations` covers ratings and counts, validation, and
# explanations for every item.
