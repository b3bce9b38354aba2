"""Choice among settings by hidden pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._common.warn import warn_user
from .._data.arrays import drop_entries
from ..metrics import ranking
from . import factors, lists
from .factors import Setting
from .results import Trial
from .split import split_interactions

_HIDDEN, _CUT = 0.1, 10


def best_setting(
    Z: sp.csr_array,
    liked: Array,
    settings: Sequence[Setting],
    larger: int | None,
    passes: int,
    rng: np.random.Generator,
    threads: int,
) -> tuple[Setting, list[Trial]]:
    """Return the setting with the largest nDCG at the `liked` pairs of a hidden tenth.

    A `larger` rank is tried with the best setting.
    """
    hidden = np.zeros(Z.nnz, dtype=bool)
    hidden[split_interactions(Z, test_size=_HIDDEN, random_state=rng)[1]] = True
    seed, trials, relevant = int(rng.integers(2**31)), list[Trial](), drop_entries(Z, ~hidden)
    relevant.data = liked[hidden].astype(np.float32)
    if not relevant.data.any():
        warn_user("Too few pairs to validate: the defaults are used.", UserWarning)
        return settings[0], trials
    kept = drop_entries(Z, hidden)
    popularity = lists.popularity(kept)

    def ndcg(scores: Callable[[slice], Array]) -> float:
        items, _ = lists.best_items(scores, Z.shape, _CUT, kept, None, threads)
        return float(ranking.ndcg(items, relevant, _CUT))

    def score_of(setting: Setting) -> float:
        F, G = factors.factorize_pairs(kept, setting, passes, np.random.default_rng(seed), threads)
        score = ndcg(lists.Scores(F, G, kept, None, popularity, 0.0).block)
        trials.append(Trial("Recommender", score, *setting[:3]))
        return score

    best = max(settings, key=score_of)
    largest = max(trial.ndcg for trial in trials)
    if larger is not None and score_of(wide := best._replace(n_components=larger)) > largest:
        best, largest = wide, trials[-1].ndcg
    of_popular = ndcg(lists.popular_scores(popularity))
    trials.append(Trial("popular items", of_popular))
    if of_popular >= largest:
        warn_user(
            f"Popular items have nDCG@{_CUT} {of_popular:.3f} at hidden pairs, the model only "
            f"{largest:.3f}: too few pairs per user. Recommend popular items.",
            UserWarning,
        )
    return best, trials
