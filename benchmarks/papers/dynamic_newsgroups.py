"""Section 4.3.1 of Kassab's thesis: topics over time in 20 Newsgroups of known order.

1040 posts of five groups, 26 in each of 40 slices of time; a slice has posts of one group.  A model
with five topics is right about a slice if its most prevalent topic is that of the group; topics and
groups are matched one to one so that most slices are right.  The thesis shows heat maps (Figure
4.2), no numbers; --pictures draws ours.  Every trial draws its own posts.  The thesis takes the LDA
of gensim, of counts; it is skipped if gensim is not installed, and scikit-learn's stands beside.

    python -m pip install gensim==4.4.0
    python benchmarks/papers/dynamic_newsgroups.py --pictures images
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import (
    Array,
    data_file,
    load_average,
    markdown,
    mean_and_deviation,
    read_posts,
    say,
    strip,
)
from over_time import GENSIM, as_dynamic, gensim_lda, save, sklearn_lda

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
NAMES = {
    "alt.atheism": "atheism",
    "sci.space": "space",
    "rec.sport.baseball": "baseball",
    "misc.forsale": "for sale",
    "comp.windows.x": "X",
}
GROUPS = tuple(dict.fromkeys(group for group, _ in SEGMENTS))
GROUP_OF_SLICE = np.repeat(
    [GROUPS.index(group) for group, _ in SEGMENTS], [count for _, count in SEGMENTS]
)
PER_SLICE, RANK = 26, 5
SLICES = np.repeat(np.arange(len(GROUP_OF_SLICE)), PER_SLICE)
TIMES = np.datetime64("2000-01") + SLICES
D = "kullback-leibler"
STARTS = np.datetime64("2000-01") + np.arange(len(GROUP_OF_SLICE))
SKLEARN_LDA = "LDA of scikit-learn, counts"
GENSIM_LDA = "LDA of gensim, counts (the thesis')"
Fit = Callable[[Any, Any, int], sf.DynamicTopics]


def posts() -> dict[str, list[str]]:
    """Return the posts of the groups without headers, footers and quotes, where any is left."""
    found: dict[str, list[str]] = {group: [] for group in GROUPS}
    for text, group in read_posts():
        if group in found and (rest := strip(text)).strip():
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


def dynamic(of_counts: bool = False, **parameters: Any) -> Fit:
    """Return what fits our model to TF-IDF, or to counts."""

    def fit(tfidf: Any, counts: Any, seed: int) -> sf.DynamicTopics:
        X = counts.astype(np.float64) if of_counts else tfidf
        return sf.DynamicTopics(RANK, random_state=seed, **parameters).fit(X, TIMES)

    return fit


def lda(package: Callable[..., tuple[Array, Array]], **parameters: Any) -> Fit:
    """Return what fits LDA to counts."""

    def fit(tfidf: Any, counts: Any, seed: int) -> sf.DynamicTopics:
        del tfidf
        components, shares = package(counts, RANK, seed, **parameters)
        return as_dynamic(components, shares, SLICES, STARTS)

    return fit


METHODS: dict[str, Fit] = {
    "tied, squared error": dynamic(),
    "tied, divergence": dynamic(loss=D),
    "tied, divergence, counts": dynamic(True, loss=D),
    "tensor, squared error": dynamic(method="tensor"),
    "tensor, divergence": dynamic(method="tensor", loss=D),
    "tensor, divergence, counts": dynamic(True, method="tensor", loss=D),
    "tensor, squared error, svd start (the thesis')": dynamic(method="tensor", init="svd"),
    "tensor, squared error, random start": dynamic(method="tensor", init="random"),
    "tensor, divergence, random start": dynamic(method="tensor", loss=D, init="random"),
    "sums, squared error": dynamic(method="sums"),
    "NMF, squared error": dynamic(method="nmf"),
    "NMF, squared error, nndsvda start (the thesis')": dynamic(method="nmf", init="nndsvda"),
    "NMF, divergence": dynamic(method="nmf", loss=D),
    SKLEARN_LDA: lda(sklearn_lda, max_iter=50),
    GENSIM_LDA: lda(gensim_lda),
}
# Panels of the picture: those of the thesis, and the divergence.
PANELS = {
    "tied, squared error": "Same coefficients in a slice, squared error (default)",
    "tied, divergence": "Same coefficients in a slice, divergence",
    "tensor, squared error": "Tensor, squared error",
    "NMF, squared error": "NMF of all posts, squared error",
    GENSIM_LDA: "LDA of all posts (gensim)",
}


def draw(models: dict[str, sf.DynamicTopics], names: Any, path: Path) -> None:
    """Save heat maps below each other, with lines between the groups, which stand on top."""
    from matplotlib import pyplot
    from matplotlib.dates import date2num

    from ssnmf_fast import plotting

    shown = {name: title for name, title in PANELS.items() if name in models}
    figure, panels = pyplot.subplots(
        len(shown), figsize=(10, 0.5 + 2.1 * len(shown)), squeeze=False, layout="constrained"
    )
    ends = np.cumsum([count for _, count in SEGMENTS])
    # The months are made up: number the slices instead.
    edges = date2num(np.append(STARTS, STARTS[-1] + 1))
    middles = (edges[:-1] + edges[1:]) / 2
    ticks = [0, *range(4, len(middles), 5)]
    for axes, (name, title) in zip(panels.flat, shown.items(), strict=True):
        plotting.topics_over_time(models[name], names, share="slice", ax=axes)
        axes.set_title(title, loc="left", fontsize=11, pad=20)
        axes.set_xticks(middles[ticks], [str(k + 1) for k in ticks])
        axes.set_ylabel("")
        for end in ends[:-1]:
            axes.axvline(edges[end], color="#c0392b", linewidth=1)
        for begin, end, (group, _) in zip([0, *ends], ends, SEGMENTS, strict=False):
            axes.annotate(
                NAMES[group],
                ((edges[begin] + edges[end]) / 2, 1.0),
                (0, 4),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                ha="center",
                fontsize=9,
                color="#c0392b",
            )
    panels[-1, 0].set_xlabel("slice of time")
    save(figure, path)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="one trial on made-up texts")
    parser.add_argument("--out", type=Path, help="file for the numbers (JSON)")
    parser.add_argument("--pictures", type=Path, help="folder for heat maps of the first trial")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # of fits that reach max_iter
    found = made_up_posts() if options.quick else posts()
    trials = 1 if options.quick else options.trials
    methods = dict(METHODS)
    if options.quick:
        del methods[SKLEARN_LDA], methods[GENSIM_LDA]  # they take most of the time
    elif find_spec("gensim") is None:
        del methods[GENSIM_LDA]
        say(f"gensim is skipped; python -m pip install {GENSIM}")
    words = None  # else those of NLTK, which the thesis takes
    if not options.quick:
        words = data_file("english_stopwords.txt").read_text(encoding="utf-8").split()
    scores: dict[str, list[float]] = {name: [] for name in methods}
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    for seed in range(trials):
        texts = drawn(found, seed)
        tfidf = TfidfVectorizer(max_df=0.95, max_features=5000, stop_words=words)
        X = tfidf.fit_transform(texts)
        counts = CountVectorizer(vocabulary=tfidf.vocabulary_).transform(texts)
        models = {}
        for name, fit in methods.items():
            begin = perf_counter()
            models[name] = fit(X, counts, seed)
            seconds[name].append(perf_counter() - begin)
            scores[name].append(right(models[name].prevalence_))
        if options.pictures and seed == 0:
            names = tfidf.get_feature_names_out()
            draw(models, names, options.pictures / "dynamic_newsgroups.png")
    rows = [
        [
            name,
            mean_and_deviation(values, 100, 1),
            f"{100 * min(values):.1f}",
            f"{np.median(seconds[name]):.2f}",
        ]
        for name, values in scores.items()
    ]
    print(f"{trials} trials, load {load_average()}\n")
    print(markdown(["method", "slices right, %", "least", "seconds"], rows))
    if options.out is not None:
        options.out.write_text(json.dumps({"right": scores, "seconds": seconds}, indent=1))


if __name__ == "__main__":
    main()
