"""Section 4.3.2 of Kassab's thesis: topics over time in 20 Newsgroups of known order.

1040 posts of five groups, 26 in each of 40 slices of time; a slice has posts of one group.  A model
with five topics is right about a slice if its most prevalent topic is that of the group; topics and
groups are matched one to one so that most slices are right.  The thesis shows heat maps (Figure
4.2), no numbers; with --out and --pictures ours are drawn.  Every trial draws its own posts.  The
thesis takes the tensor decomposition of TensorLy and the LDA of gensim, of counts; they are skipped
if these are not installed, and scikit-learn's LDA is taken too.

    python -m pip install gensim==4.4.0 tensorly==0.10.0
    python benchmarks/run.py dynamic_newsgroups --pictures --out images
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from common import Array, D, data_file, read_posts, strip, timed
from over_time import as_dynamic, gensim_lda, save, sklearn_lda
from records import Options, Question, Record, grouped, mean_of, say, tabulate
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import NMF
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

import ssnmf_fast as sf

OPTIONS = {
    "trials": 10,
    "methods": ([str], "all by default"),
    "pictures": (False, "heat maps of the first trial, in the folder of --out"),
}
QUICK = {"trials": 1}
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
GROUP_OF_SLICE = np.array([GROUPS.index(group) for group, count in SEGMENTS for _ in range(count)])
PER_SLICE, RANK = 26, 5
SLICES = np.repeat(np.arange(len(GROUP_OF_SLICE)), PER_SLICE)
TIMES = np.datetime64("2000-01") + SLICES
STARTS = np.datetime64("2000-01") + np.arange(len(GROUP_OF_SLICE))
SKLEARN_LDA = "LDA of scikit-learn, counts"
GENSIM_LDA = "LDA of gensim, counts (the thesis')"
TENSORLY = "tensor, TensorLy (the thesis')"
Fit = Callable[[Any, Any, int], Any]  # a model, or what has its `prevalence_`


@cache
def posts() -> dict[str, list[str]]:
    """Return the posts of the groups without headers, footers and quotes, where any is left."""
    found: dict[str, list[str]] = {group: [] for group in GROUPS}
    for text, group in read_posts():
        if group in found and (rest := strip(text)).strip():
            found[group].append(rest)
    return found


@cache
def made_up_posts() -> dict[str, list[str]]:
    """Return posts whose words are mostly those of their group, for quick runs."""
    rng = np.random.default_rng(0)
    words = np.array([f"{group[:3]}{k}" for group in ("any", *GROUPS) for k in range(20)])

    def post(number: int) -> str:
        first = np.where(rng.random(30) < 0.5, 0, 20 * number)
        return " ".join(words[first + rng.integers(0, 20, 30)])

    return {g: [post(k) for _ in range(PER_SLICE * 20)] for k, g in enumerate(GROUPS, start=1)}


@cache
def draw_texts(quick: bool, seed: int) -> tuple[Any, Any, Array]:
    """Return TF-IDF and counts of the posts of all slices, none of them twice, and the terms."""
    found = made_up_posts() if quick else posts()
    rng = np.random.default_rng(seed)
    rest = {group: iter(rng.permutation(len(found[group]))) for group in GROUPS}
    texts = [found[GROUPS[k]][next(rest[GROUPS[k]])] for k in GROUP_OF_SLICE[SLICES]]
    words = None  # else those of NLTK, which the thesis takes
    if not quick:
        words = data_file("english_stopwords.txt").read_text(encoding="utf-8").split()
    tfidf = TfidfVectorizer(max_df=0.95, max_features=5000, stop_words=words)
    X = tfidf.fit_transform(texts)
    counts = CountVectorizer(vocabulary=tfidf.vocabulary_).transform(texts)
    return X, counts, tfidf.get_feature_names_out()


def right(prevalence: Array) -> float:
    """Return the share of slices whose most prevalent topic is matched to their group."""
    counts = np.zeros((len(GROUPS), prevalence.shape[1]))
    np.add.at(counts, (GROUP_OF_SLICE, prevalence.argmax(axis=1)), 1)
    return float(counts[linear_sum_assignment(-counts)].sum() / len(prevalence))


def dynamic(of_counts: bool = False, **parameters: Any) -> Fit:
    def fit(tfidf: Any, counts: Any, seed: int) -> sf.DynamicTopics:
        X = counts.astype(np.float64) if of_counts else tfidf
        return sf.DynamicTopics(RANK, random_state=seed, **parameters).fit(X, TIMES)

    return fit


def lda(package: Callable[..., tuple[Array, Array]], **parameters: Any) -> Fit:
    def fit(tfidf: Any, counts: Any, seed: int) -> sf.DynamicTopics:
        del tfidf
        return as_dynamic(*package(counts, RANK, seed, **parameters), SLICES, STARTS)

    return fit


def tensorly_parafac(tfidf: Any, counts: Any, seed: int) -> Any:
    """Return what TensorLy finds, as the thesis uses it: svd start, multiplicative updates."""
    from tensorly.decomposition import non_negative_parafac

    slices = tfidf.toarray().reshape(len(STARTS), PER_SLICE, -1)  # months x posts x terms
    tensor = np.ascontiguousarray(slices.transpose(2, 1, 0))
    weights, factors = non_negative_parafac(tensor, RANK, init="svd", n_iter_max=100)
    return SimpleNamespace(prevalence_=factors[2] * weights * factors[0].sum(axis=0))


def sklearn_nmf(tfidf: Any, counts: Any, seed: int) -> Any:
    """Return the mean of S in slices, for NMF as the thesis uses it."""
    model = NMF(RANK, init="nndsvd", max_iter=400)
    S = model.fit_transform(tfidf)
    fit = SimpleNamespace(components_=model.components_, transform=lambda X: S)
    over_time = sf.topics_over_time(fit, tfidf, TIMES, measure="loading")
    return SimpleNamespace(prevalence_=over_time.prevalence)


METHODS: dict[str, Fit] = {
    "tied, squared error": dynamic(method="tied"),
    "tied, divergence": dynamic(method="tied", loss=D),
    "tied, divergence, counts": dynamic(True, method="tied", loss=D),
    "tensor, squared error": dynamic(method="tensor"),
    "tensor, divergence": dynamic(method="tensor", loss=D),
    "tensor, divergence, counts": dynamic(True, method="tensor", loss=D),
    "tensor, the thesis' (svd start, mu, 100 iterations)": dynamic(
        method="tensor", init="svd", solver="mu", tol=0, max_iter=100
    ),
    TENSORLY: tensorly_parafac,
    "tensor, squared error, svd start": dynamic(method="tensor", init="svd"),
    "tensor, squared error, random start": dynamic(method="tensor", init="random"),
    "tensor, divergence, random start": dynamic(method="tensor", loss=D, init="random"),
    "NMF, squared error": dynamic(method="nmf"),
    "NMF, squared error, nndsvda start": dynamic(method="nmf", init="nndsvda"),
    "NMF of scikit-learn, nndsvd start, means of S (the thesis')": sklearn_nmf,
    "NMF, divergence": dynamic(method="nmf", loss=D),
    SKLEARN_LDA: lda(sklearn_lda, max_iter=50),
    GENSIM_LDA: lda(gensim_lda),
}
# Panels of the picture: those of the thesis, and the divergence.
PANELS = {
    "tied, squared error": "Same coefficients in a slice, squared error",
    "tied, divergence": "Same coefficients in a slice, divergence",
    "tensor, squared error": "Tensor, squared error",
    "NMF, squared error": "NMF of all posts, squared error",
    GENSIM_LDA: "LDA of all posts (gensim)",
}


def draw(models: dict[str, sf.DynamicTopics], names: Any, path: Path) -> None:
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


def cases(options: Options) -> Iterator[tuple[str, int]]:
    methods = options.methods or list(METHODS)
    if options.quick:
        methods = [name for name in methods if "LDA" not in name]  # it takes most of the time
    for name, package in ((GENSIM_LDA, "gensim"), (TENSORLY, "tensorly")):
        if name in methods and find_spec(package) is None:
            methods.remove(name)
            say(f"{package} is skipped; see the top of this script")
    yield from ((method, trial) for trial in range(options.trials) for method in methods)


def measure(options: Options, method: str, trial: int) -> Record:
    X, counts, _ = draw_texts(options.quick, trial)
    model, took = timed(METHODS[method], X, counts, trial)
    return {"right": right(model.prevalence_), "seconds": took}


def report(records: list[Record], options: Options) -> str:
    if options.pictures and options.out:
        X, counts, names = draw_texts(options.quick, 0)
        shown = [name for name in grouped(records, "method") if name in PANELS]
        models = {name: METHODS[name](X, counts, 0) for name in shown}
        draw(models, names, options.out / "dynamic_newsgroups.png")
    rows = [{"method": method, "own": own} for method, own in grouped(records, "method").items()]
    table = tabulate(
        rows,
        method="{method}",
        **{"slices right, %": lambda row: mean_of(row["own"], "right", 100, 1)},
        least=lambda row: f"{100 * min(r['right'] for r in row['own']):.1f}",
        seconds=lambda row: f"{np.median([r['seconds'] for r in row['own']]):.2f}",
    )
    return f"{options.trials} trials\n\n{table}"


QUESTION = Question("method trial", cases, measure, report, threads=None)
