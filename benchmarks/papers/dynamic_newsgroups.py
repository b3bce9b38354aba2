"""Section 4.3.1 of Kassab's thesis: topics over time in 20 Newsgroups of known order.

1040 posts of five groups, 26 in each of 40 slices of time; a slice has posts of one group.  A model
with five topics is right about a slice if its most prevalent topic is that of the group; topics and
groups are matched one to one so that most slices are right.  The thesis shows heat maps (Figure
4.2), no numbers.  Every trial draws its own posts.  The thesis takes the LDA of Gensim; this is
scikit-learn's, of counts.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import Array, load_average, markdown, mean_and_deviation, newsgroup_posts, say

import ssnmf_fast as sf

# Groups and their numbers of slices, in the order of time; the thesis lets windows.x (36-37) and
# baseball (37-40) overlap.
SEGMENTS = (
    ("alt.atheism", 2),
    ("sci.space", 18),
    ("rec.sport.baseball", 3),
    ("misc.forsale", 12),
    ("comp.windows.x", 2),
    ("rec.sport.baseball", 3),
)
GROUPS = tuple(dict.fromkeys(group for group, _ in SEGMENTS))
GROUP_OF_SLICE = np.repeat(
    [GROUPS.index(group) for group, _ in SEGMENTS], [count for _, count in SEGMENTS]
)
PER_SLICE, RANK = 26, 5
SLICES = np.repeat(np.arange(len(GROUP_OF_SLICE)), PER_SLICE)
TIMES = np.datetime64("2000-01") + SLICES
D = "kullback-leibler"
LDA = "LDA of scikit-learn, counts"


def stop_words() -> list[str]:
    """Return the NLTK list, which the thesis takes."""
    path = Path(os.environ["SSNMF_FAST_DATA"]) / "english_stopwords.txt"
    return path.read_text(encoding="utf-8").split()


def posts() -> dict[str, list[str]]:
    """Return the posts of the groups without headers, footers and quotes, where any is left."""
    module = newsgroup_posts()
    found: dict[str, list[str]] = {group: [] for group in GROUPS}
    for text, group in module._read_posts():
        if group in found and (rest := module._strip(text)).strip():
            found[group].append(rest)
    return found


def made_up_posts() -> dict[str, list[str]]:
    """Return posts whose words are mostly those of their group, for quick runs."""
    rng = np.random.default_rng(0)
    words = [f"{group[:3]}{k}" for group in ("any", *GROUPS) for k in range(20)]
    return {
        group: [
            " ".join(
                words[i]
                for i in np.where(rng.random(30) < 0.5, 0, 20 * number) + rng.integers(0, 20, 30)
            )
            for _ in range(PER_SLICE * 20)
        ]
        for number, group in enumerate(GROUPS, start=1)
    }


def drawn(found: dict[str, list[str]], seed: int) -> list[str]:
    """Return the posts of all slices in their order; none occurs twice."""
    rng = np.random.default_rng(seed)
    rest = {group: iter(rng.permutation(len(found[group]))) for group in GROUPS}
    return [found[GROUPS[k]][next(rest[GROUPS[k]])] for k in GROUP_OF_SLICE[SLICES]]


def right(prevalence: Array) -> float:
    """Return the share of slices whose most prevalent topic is matched to their group."""
    counts = np.zeros((len(GROUPS), prevalence.shape[1]))
    np.add.at(counts, (GROUP_OF_SLICE, prevalence.argmax(axis=1)), 1)
    return float(counts[linear_sum_assignment(-counts)].sum() / len(prevalence))


def dynamic(**parameters: Any) -> Callable[[Any, Any, int], Array]:
    """Return what fits our model to TF-IDF."""

    def fit(tfidf: Any, counts: Any, seed: int) -> Array:
        del counts
        model = sf.DynamicTopics(RANK, random_state=seed, **parameters)
        return model.fit(tfidf, TIMES).prevalence_

    return fit


def lda(tfidf: Any, counts: Any, seed: int) -> Array:
    """Return the mean weights of the topics of LDA in every slice."""
    del tfidf
    model = LatentDirichletAllocation(RANK, max_iter=50, random_state=seed)
    weights = model.fit_transform(counts)
    return np.array([weights[k == SLICES].mean(axis=0) for k in range(len(GROUP_OF_SLICE))])


METHODS: dict[str, Callable[[Any, Any, int], Array]] = {
    "tensor, squared error": dynamic(),
    "tensor, divergence": dynamic(loss=D),
    "tensor, squared error, svd start (the thesis')": dynamic(init="svd"),
    "tensor, squared error, random start": dynamic(init="random"),
    "tensor, divergence, random start": dynamic(loss=D, init="random"),
    "NMF, squared error": dynamic(method="nmf"),
    "NMF, squared error, nndsvda start (the thesis')": dynamic(method="nmf", init="nndsvda"),
    "NMF, divergence": dynamic(method="nmf", loss=D),
    LDA: lda,
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="one trial on made-up texts")
    parser.add_argument("--out", type=Path, help="file for the numbers (JSON)")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # of fits that reach max_iter
    found = made_up_posts() if options.quick else posts()
    trials = 1 if options.quick else options.trials
    methods = dict(METHODS)
    if options.quick:
        del methods[LDA]  # takes most of the time
    words = None if options.quick else stop_words()
    scores: dict[str, list[float]] = {name: [] for name in methods}
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    for seed in range(trials):
        texts = drawn(found, seed)
        tfidf = TfidfVectorizer(max_df=0.95, max_features=5000, stop_words=words)
        X = tfidf.fit_transform(texts)
        counts = CountVectorizer(vocabulary=tfidf.vocabulary_).transform(texts)
        for name, fit in methods.items():
            begin = perf_counter()
            scores[name].append(right(fit(X, counts, seed)))
            seconds[name].append(perf_counter() - begin)
    rows = [
        [
            name,
            mean_and_deviation(values, 100, 1),
            f"{100 * min(values):.1f}",
            f"{np.median(seconds[name]):.2f}",
        ]
        for name, values in scores.items()
    ]
    say(f"{trials} trials, load {load_average()}\n")
    say(markdown(["method", "slices right, %", "least", "seconds"], rows))
    if options.out is not None:
        options.out.write_text(json.dumps({"right": scores, "seconds": seconds}, indent=1))


if __name__ == "__main__":
    main()
