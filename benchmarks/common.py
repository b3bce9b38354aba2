"""What the benchmarks share: the matrices, the start, the clock."""

from __future__ import annotations

import gc
import gzip
import json
import os
import platform
from collections.abc import Callable
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

ROOT = Path(__file__).resolve().parent.parent
os.environ.setdefault("SSNMF_FAST_DATA", str(ROOT.parent / "shared" / "data"))

Array = np.ndarray[Any, Any]
Factors = tuple[Array, Array]
F, D = "frobenius", "kullback-leibler"

NEWSGROUPS = "20newsgroups.jsonl.gz"
# The subset that the papers use: 5 classes of 1796 documents.
CLASSES = {
    "Computers": ("comp.graphics", "comp.sys.mac.hardware", "comp.windows.x"),
    "Sciences": ("sci.crypt", "sci.electronics", "sci.space"),
    "Politics": ("talk.politics.guns", "talk.politics.mideast"),
    "Religion": ("alt.atheism", "soc.religion.christian"),
    "Recreation": ("rec.autos", "rec.sport.baseball", "rec.sport.hockey"),
}
PER_CLASS = 1796

# What glibc does with freed memory, by its environment variables; others ignore them.
FREED_MEMORY = {
    "kept": {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**40)},
    "returned": {},
}


def data_file(name: str) -> Path:
    """Return the path of a file in $SSNMF_FAST_DATA."""
    return Path(os.environ["SSNMF_FAST_DATA"]) / name


def read_lines(name: str) -> list[dict[str, Any]]:
    """Return the records of a compressed file of JSON lines in $SSNMF_FAST_DATA."""
    with gzip.open(data_file(name), "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def stop_words() -> list[str] | str:
    """Return NLTK's list, which the papers take, from $SSNMF_FAST_DATA; else scikit-learn's."""
    path = data_file("english_stopwords.txt")
    if not path.is_file():
        return "english"
    return sorted(set(path.read_text(encoding="utf-8").replace("'", " ").split()))


def tfidf(texts: list[str]) -> tuple[Any, Array]:
    """Return the TF-IDF matrix (csr) of the papers, at most 5000 terms, and its terms."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(
        token_pattern="[a-zA-Z]+", min_df=5, max_df=0.7, max_features=5000, stop_words="english"
    )
    X = vectorizer.fit_transform(texts)
    return X, vectorizer.get_feature_names_out()


def read_posts() -> list[tuple[str, str]]:
    """Return all posts and the group of each, without a file by scikit-learn's fetcher."""
    if data_file(NEWSGROUPS).is_file():
        return [(record["text"], record["label"]) for record in read_lines(NEWSGROUPS)]
    from sklearn.datasets import fetch_20newsgroups

    bunch = fetch_20newsgroups(subset="all", shuffle=False)
    return [(text, bunch.target_names[k]) for text, k in zip(bunch.data, bunch.target, strict=True)]


def strip(text: str) -> str:
    from sklearn.datasets._twenty_newsgroups import (
        strip_newsgroup_footer,
        strip_newsgroup_header,
        strip_newsgroup_quoting,
    )

    stripped: str = strip_newsgroup_quoting(strip_newsgroup_footer(strip_newsgroup_header(text)))
    return stripped


def load_subset(seed: int = 0) -> tuple[list[str], Array]:
    """Return the 8980 texts, without headers, footers and quotes, and their classes."""
    posts = read_posts()
    class_of = {group: name for name, groups in CLASSES.items() for group in groups}
    kept = [(text, class_of[group]) for text, group in posts if group in class_of]
    labels = np.array([name for _, name in kept])
    rng = np.random.default_rng(seed)
    classes = [np.flatnonzero(labels == name) for name in CLASSES]
    chosen = [rng.choice(one, min(PER_CLASS, len(one)), replace=False) for one in classes]
    order = rng.permutation(np.concatenate(chosen))
    return [strip(kept[i][0]) for i in order], labels[order]


@cache
def newsgroups(dtype: Any = np.float64) -> tuple[Any, Array]:
    """Return the 20 Newsgroups subset: TF-IDF (csr, 8980 x 5000), one-hot labels (8980 x 5)."""
    texts, names = load_subset()
    X, _ = tfidf(texts)
    Y = (names[:, None] == np.array(list(CLASSES))[None, :]).astype(dtype)
    return sp.csr_matrix(X, dtype=dtype), Y


def newsgroup_counts() -> Any:
    """Return the counts of fastTopics' experiments, 18,774 posts x 55,911 words (csr)."""
    with np.load(data_file("fasttopics_newsgroups.npz")) as file:
        parts = (file["data"].astype(float), file["indices"].astype(np.int32), file["indptr"])
        return sp.csr_matrix(parts, shape=tuple(file["shape"]))


@cache
def reuters() -> Any:
    """Return Reuters-21578: TF-IDF of title and body (csr, about 21,000 x 5000)."""
    stories = read_lines("reuters21578.jsonl.gz")
    X, _ = tfidf([f"{story['title']} {story['body']}" for story in stories])
    return sp.csr_matrix(X)


@cache
def mnist() -> Any:
    images = np.load(data_file("mnist_t10k.npz"))["images"]
    return sp.csr_matrix(images.reshape(len(images), -1) / 255.0)


@cache
def dense() -> Array:
    rng = np.random.default_rng(0)
    signal = rng.random((2000, 20)) @ rng.random((20, 2000))
    noisy: Array = signal + 0.1 * rng.random((2000, 2000))
    return noisy


# Name -> the matrix; the files come from $SSNMF_FAST_DATA.
DATA_SETS: dict[str, Callable[[], Any]] = {
    "20 Newsgroups": lambda: newsgroups()[0],
    "Reuters": reuters,
    "MNIST": mnist,
    "dense": dense,
}


def zipf_text(
    n: int = 11_000, m: int = 10_000, per_row: int = 80, dtype: Any = np.float64, seed: int = 0
) -> Any:
    """Return a csr matrix like text: `per_row` distinct terms a row, term k drawn ~ 1/(k + 1)."""
    rng = np.random.default_rng(seed)
    cumulative = np.cumsum(1.0 / np.arange(1, m + 1))
    draws = 8 * per_row
    uniform = rng.random((n, draws)) * cumulative[-1]
    terms = np.minimum(np.searchsorted(cumulative, uniform), m - 1)
    order = np.argsort(terms, axis=1, kind="stable")
    ordered = np.take_along_axis(terms, order, axis=1)
    first = np.ones((n, draws), dtype=bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    kept = np.empty_like(first)
    np.put_along_axis(kept, order, first, axis=1)
    kept &= np.cumsum(kept, axis=1) <= per_row
    rows, places = np.nonzero(kept)
    columns = rng.permutation(m)[terms[rows, places]]
    X = sp.csr_matrix((rng.random(len(rows)) + 0.01, (rows, columns)), shape=(n, m), dtype=dtype)
    X.sort_indices()
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


def one_hot(n: int, k: int = 5, dtype: Any = np.float64, seed: int = 0) -> Array:
    return np.eye(k, dtype=dtype)[np.random.default_rng(seed).integers(k, size=n)]


def start(X: Any, k: int, rank: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """Return S (n x r), A (r x m) and B (r x k), positive, scaled to the mean of X."""
    rng = np.random.default_rng(seed)
    scale = 2 * np.sqrt(X.mean() / rank)
    S, A = (scale * (rng.random(s) + 1e-3) for s in ((X.shape[0], rank), (rank, X.shape[1])))
    B = (rng.random((rank, k)) + 1e-3) / (k * rank * S.mean())
    return S.astype(X.dtype), A.astype(X.dtype), B.astype(X.dtype)


def timed(
    function: Callable[..., Any],
    *arguments: Any,
    clock: Callable[[], float] = perf_counter,
    **more: Any,
) -> tuple[Any, float]:
    """Return the result of one call and its seconds, with the garbage collector off."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        begin = clock()
        return function(*arguments, **more), clock() - begin
    finally:
        if collecting:
            gc.enable()


def seconds(function: Callable[[], Any], clock: Callable[[], float] = perf_counter) -> float:
    return timed(function, clock=clock)[1]


def panels(width: float, height: float, rows: int = 1, columns: int = 1) -> tuple[Any, Any]:
    """Return a figure of that size in inches, and its axes as an array."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def best(
    function: Callable[[], Any],
    budget: float = 0.3,
    at_least: int = 3,
    clock: Callable[[], float] = perf_counter,
) -> float:
    """Return the least seconds of several calls: `at_least`, then until `budget` seconds pass."""
    function()
    times = [seconds(function, clock) for _ in range(at_least)]
    while sum(times) < budget:
        times.append(seconds(function, clock))
    return min(times)


class Timing(NamedTuple):
    """A function that fits k iterations, and the numbers k of a short and a long fit."""

    run: Callable[[int], Any]
    few: int
    many: int


def iteration_seconds(sides: dict[str, Timing], rounds: int) -> dict[str, float]:
    """Return the seconds of an iteration by side: a long fit less a short one."""
    least = {(name, k): np.inf for name, fits in sides.items() for k in (fits.few, fits.many)}
    for _ in range(rounds):
        for name, k in least:
            least[name, k] = min(least[name, k], seconds(lambda name=name, k=k: sides[name].run(k)))
    return {
        name: (least[name, many] - least[name, few]) / (many - few)
        for name, (_, few, many) in sides.items()
    }


def resident(field: str) -> float:
    """Return VmRSS (now) or VmHWM (peak) of this process in MB (Linux)."""
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    raise KeyError(field)


class Clock:
    """Seconds and peak of memory (MB) of a block, and what was resident before it."""

    def __enter__(self) -> Clock:
        Path("/proc/self/clear_refs").write_text("5", "ascii")  # the peak starts again from here
        self.before = resident("VmRSS")
        self._begin = perf_counter()
        return self

    def __exit__(self, *_: Any) -> None:
        self.seconds = perf_counter() - self._begin
        self.peak = resident("VmHWM")


def our_runner(
    X: Any, init: Factors, loss: str, solver: str, threads: int, X_weights: Any = None
) -> Callable[[int], Factors]:
    import ssnmf_fast as sf

    def run(k: int) -> Factors:
        given: dict[str, Any] = {"n_components": init[0].shape[1], "init": init, "loss": loss}
        given |= {"X_weights": X_weights, "solver": solver, "tol": 0, "max_iter": k}
        given |= {"n_threads": threads}
        fit = sf.factorize(X, **given)
        return fit.S, fit.A

    return run


def sklearn_runner(X: Any, init: Factors, loss: str, solver: str) -> Callable[[int], Factors]:
    """Return a function that fits k iterations of scikit-learn's solver from a start."""
    from sklearn.decomposition import NMF

    def run(k: int) -> Factors:
        rank = init[0].shape[1]
        model = NMF(rank, solver=solver, beta_loss=loss, init="custom", tol=0, max_iter=k)
        S = model.fit_transform(X, W=init[0].copy(), H=init[1].copy())
        return S, model.components_

    return run


def blas_threads(n: int | None) -> Any:
    """Let BLAS use n threads, as many as it likes for None."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(n, user_api="blas")


def load_average() -> str:
    return f"{os.getloadavg()[0]:.2f}"


def processor() -> str:
    """Return the name of the processor, by Linux if it tells."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
