"""How often does a fit find the components that a sparse tensor is made of, by its start?

Planted factors are sparse, in one of three forms, by the seed: "blocks", where each component has
`SHARE` of the indices of every mode, with gamma weights; "tails", whose factors are gamma variates
of a small shape, so that few indices carry most; "scattered", where each entry is above zero by
chance, and uniform then.  The entries of the tensor are Poisson counts of the model, or the model
with Gaussian noise where it is above zero, cut off at zero; the model is multiplied by what fills
`FILLED` of the places.  A fit recovers the components if the factor match score of its directions
with the planted ones, sizes left out, is above 0.95.

"ssnmf_fast F" and "D" are our defaults for squared errors and for the Kullback-Leibler divergence;
a name behind them is that of a start, "mu" of a solver, "x 5" of five starts.  Others, where they
are installed, run with their defaults, TensorLy from its "svd" start: multiplicative updates (MU)
and HALS for squared errors, on the dense tensor; pyttb's cp_apr for the divergence.

    python -m pip install tensorly==0.10.0 pyttb==1.8.6
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
from common import Array, D, timed
from records import Options, Question, Record, grouped, markdown, say

import ssnmf_fast as sf

SHAPES = {
    "80 x 60 x 40": (80, 60, 40),
    "150 x 80 x 30": (150, 80, 30),
    "120 x 100 x 60": (120, 100, 60),
    "tiny": (30, 20, 10),
}
NOISES = ("poisson", "gaussian")
FORMS = ("blocks", "tails", "scattered")
SHARE = 0.12
TAILS = 0.08  # shape of the gamma variates
CHANCE = 0.15
FILLED = 0.009
NOISE = 0.3  # standard deviation, as a share of the model
RECOVERED = 0.95

Sparse = tuple[Array, Array, tuple[int, ...]]


def form_of(seed: int) -> str:
    return FORMS[seed % len(FORMS)]


def draw(noise: str, shape: tuple[int, ...], rank: int, seed: int) -> tuple[Sparse, list[Array]]:
    rng = np.random.default_rng([seed, rank, *shape])
    factors = [draw_factor(form_of(seed), n, rank, rng) for n in shape]
    model = np.einsum("ir,jr,kr->ijk", *factors, optimize=True)
    level = level_of(model)
    model, factors[0] = level * model, level * factors[0]
    if noise == "poisson":
        X = rng.poisson(model).astype(float)
    else:
        X = np.maximum(model * (1 + NOISE * rng.standard_normal(model.shape)), 0)
        least = np.quantile(X, 1 - FILLED)  # what lies below is too small to be seen
        X[least >= X] = 0
    places = np.array(np.nonzero(X))
    return (places, X[tuple(places)], X.shape), factors


def draw_factor(form: str, n: int, rank: int, rng: np.random.Generator) -> Array:
    if form == "tails":
        F = rng.gamma(TAILS, size=(n, rank))
        return F / F.sum(axis=0)
    if form == "scattered":
        return rng.random((n, rank)) * (rng.random((n, rank)) < CHANCE)
    F = np.zeros((n, rank))
    for q in range(rank):
        chosen = rng.choice(n, max(3, round(SHARE * n)), replace=False)
        F[chosen, q] = rng.gamma(2.0, 0.5, len(chosen))
    return F


def level_of(model: Array) -> float:
    """Return the multiple of a model whose counts fill `FILLED` of the places, if there is one."""
    low, high = 0.0, 10 / float(model[model > 0].mean())
    for _ in range(40):
        level = (low + high) / 2
        if -np.expm1(-level * model).mean() < FILLED:
            low = level
        else:
            high = level
    return high


Method = Callable[[Sparse, int, int], Any]  # of the tensor, the rank and the seed: a CP model


def ours(loss: str, **given: Any) -> Method:
    def run(X: Sparse, rank: int, seed: int) -> Any:
        return sf.factorize_tensor(
            X, n_components=rank, loss=loss, random_state=seed, n_threads=1, **given
        )

    return run


def tensorly(name: str) -> Method:
    def run(X: Sparse, rank: int, seed: int) -> Any:
        from tensorly import decomposition

        places, values, shape = X
        dense = np.zeros(shape)
        dense[tuple(places)] = values
        given = {"random_state": seed} if name == "non_negative_parafac" else {}
        return getattr(decomposition, name)(dense, rank, init="svd", **given)

    return run


def cp_apr(X: Sparse, rank: int, seed: int) -> Any:
    import pyttb as ttb

    places, values, shape = X
    np.random.seed(seed)  # noqa: NPY002 - the package draws from the global generator
    made = ttb.sptensor.from_aggregator(places.T.copy(), values[:, None].copy(), shape)
    found, *_ = ttb.cp_apr(made, rank, printitn=0)
    return found


METHODS: dict[str, Method] = {
    "ssnmf_fast F": ours("frobenius"),
    "ssnmf_fast F, random": ours("frobenius", init="random"),
    "ssnmf_fast F, svd": ours("frobenius", init="svd"),
    "ssnmf_fast F, least-squares": ours("frobenius", init="least-squares"),
    "ssnmf_fast F, mu, svd": ours("frobenius", init="svd", solver="mu"),
    "tensorly MU (F)": tensorly("non_negative_parafac"),
    "tensorly HALS (F)": tensorly("non_negative_parafac_hals"),
    "ssnmf_fast D": ours(D),
    "ssnmf_fast D, random": ours(D, init="random"),
    "ssnmf_fast D, svd": ours(D, init="svd"),
    "ssnmf_fast D, least-squares": ours(D, init="least-squares"),
    "pyttb cp_apr (D)": cp_apr,
}
PEERS = {"tensorly": "tensorly", "pyttb": "pyttb"}


def installed(method: str) -> bool:
    package = PEERS.get(method.split()[0])
    return package is None or importlib.util.find_spec(package) is not None


OPTIONS = {
    "methods": ([str], "some of them", METHODS),
    "shapes": (list(SHAPES)[:3], "", SHAPES),
    "ranks": [5, 8],
    "seeds": list(range(100, 106)),
}
QUICK = {
    "methods": ["ssnmf_fast F", "ssnmf_fast D"],
    "ranks": [3],
    "seeds": [0],
    "shapes": ["tiny"],
}


def cases(options: Options) -> Iterator[tuple[Any, ...]]:
    methods = options.methods or [name for name in METHODS if installed(name)]
    for name in METHODS.keys() - methods:
        if not installed(name):
            say(f"{name}: not installed")
    for noise, shape, rank, seed in product(NOISES, options.shapes, options.ranks, options.seeds):
        for method in methods:
            yield method, noise, shape, rank, seed


def measure(options: Options, method: str, noise: str, shape: str, rank: int, seed: int) -> Record:
    X, truth = draw(noise, SHAPES[shape], rank, seed)
    found, took = timed(METHODS[method], X, rank, seed)
    score = sf.metrics.factor_match_score(found, truth, consider_weights=False)
    filled = len(X[1]) / float(np.prod(X[2]))
    return {"score": score, "seconds": took, "filled": filled, "form": form_of(seed)}


def report(records: list[Record], options: Options) -> str:
    def recovered(own: list[Record]) -> str:
        return f"{np.mean([one['score'] > RECOVERED for one in own]):.0%}" if own else "-"

    records = sorted(records, key=lambda record: [*METHODS].index(record["method"]))
    filled = [record["filled"] for record in records]
    parts = [("noise", NOISES), ("form", FORMS), ("shape", grouped(records, "shape"))]
    names = [(part, value) for part, values in parts for value in values]
    rows = []
    for method, own in grouped(records, "method").items():
        cells = [recovered([r for r in own if r[part] == value]) for part, value in names]
        mean = np.mean([one["seconds"] for one in own])
        rows.append([method, *cells, recovered(own), f"{1e3 * mean:.0f}"])
    title = f"{len(records) // len(rows)} tensors"
    title += f", {min(filled):.2%} to {max(filled):.2%} filled; one thread"
    return f"{title}\n\n{markdown(['', *(value for _, value in names), 'all', 'ms a fit'], rows)}"


QUESTION = Question("method noise shape rank seed", cases, measure, report)
