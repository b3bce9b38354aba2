"""Table 2 of the SSNMF paper: which model comes closest to the truth under which noise?

Data X and Y are made of known factors with Gaussian or Poisson noise; each model is fitted with
r = 5 and lambda = 1 from the same starts.  The relative error of a fit is the objective of the
noise's own model, taken between the fit and the noiseless data, over its value at the start.  The
paper expects the model that matches the noise (in bold) to have the lowest error of its column.

Gaussian noise of standard deviation 1 (column 1) or 1/(2r) makes entries negative; like the paper's
own program (github.com/jamiehadd/ssnmf) this one takes absolute values.  The paper names 100,000
updates; the errors are given after several numbers of updates, since they depend on it: under the
divergence a fit goes on to drive entries to zero where the sample is zero but the truth is not, and
the divergence of the truth from such entries has no bound.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise, product

import numpy as np
from common import Array
from records import Options, Question, Record, markdown
from ssnmf_models import MODELS

import ssnmf_fast as sf

OPTIONS = {
    "trials": (5, "starts, as many as in the paper"),
    "size": (500, "samples, features and labels"),
    "updates": [100, 200, 1000],
}
QUICK = {"trials": 1, "size": 60, "updates": [20, 50]}
RANK = 5
# Relative errors of the models (rows) in the four experiments, whose noise suits the models in the
# same order: experiment 1 is Gaussian for X and Y, as (F, F) assumes, and so on.
PAPER = {
    "(F, F)": (0.2917, 0.0081, 0.0078, 0.0204),
    "(F, D)": (0.2927, 0.0065, 0.0109, 0.0199),
    "(D, F)": (0.2930, 0.0093, 0.0071, 0.0210),
    "(D, D)": (0.2922, 0.0076, 0.0075, 0.0172),
}
Factors = tuple[Array, Array, Array]


def true_factors(size: int, rng: np.random.Generator) -> Factors:
    """Return S (n x r), A (r x m) and B (r x k): A dense, S and B with half of the entries zero."""

    def half(*shape: int) -> Array:
        return rng.random(shape) * rng.permutation(np.arange(size * RANK) % 2).reshape(shape)

    return half(size, RANK), rng.random((RANK, size)), half(RANK, size)


def noisy(truth: Factors, experiment: int, rng: np.random.Generator) -> tuple[Array, Array]:
    S, A, B = truth
    deviation = 1.0 if experiment == 0 else 1 / (2 * RANK)

    noise: dict[str, Callable[[Array], Array]] = {
        "frobenius": lambda mean: np.abs(mean + deviation * rng.standard_normal(mean.shape)),
        "kullback-leibler": lambda mean: rng.poisson(mean).astype(float),
    }
    suits = list(MODELS.values())[experiment]
    return noise[suits.loss](S @ A), noise[suits.supervision_loss](S @ B)


def fits(X: Array, Y: Array, name: str, start: Factors, updates: list[int]) -> list[Factors]:
    found = []
    for before, after in pairwise([0, *updates]):
        given = {"loss": MODELS[name].loss, "supervision_loss": MODELS[name].supervision_loss}
        given |= {"solver": "mu", "init": start, "max_iter": after - before}
        result = sf.factorize(X, Y, n_components=RANK, tol=0, n_threads=1, **given)
        start = (result.S, result.A, result.B)
        found.append(start)
    return found


def distance(X: Array, Y: Array, factors: Factors, experiment: int) -> float:
    S, A, B = factors
    suits = list(MODELS.values())[experiment]
    losses = {"loss": suits.loss, "supervision_loss": suits.supervision_loss}
    return float(sf.extend.objective(X, S, A, y=Y, B=B, n_threads=1, **losses))


@cache
def data_of(size: int) -> tuple[Factors, list[tuple[Array, Array]]]:
    rng = np.random.default_rng(0)
    truth = true_factors(size, rng)
    return truth, [noisy(truth, experiment, rng) for experiment in range(4)]


def measure(options: Options, trial: int, size: int, updates: list[int]) -> Record:
    truth, data = data_of(size)
    rng = np.random.default_rng(trial + 1)
    start = (rng.random(truth[0].shape), rng.random(truth[1].shape), rng.random(truth[2].shape))
    clean = (truth[0] @ truth[1], truth[0] @ truth[2])
    errors = {k: {n: np.zeros((len(updates), 4)) for n in MODELS} for k in ("truth", "data")}
    for experiment, seen in enumerate(data):
        for name in MODELS:
            found = fits(*seen, name, start, updates)
            for kind, target in (("truth", clean), ("data", seen)):
                reached = [distance(*target, factors, experiment) for factors in found]
                at_start = distance(*target, start, experiment)
                errors[kind][name][:, experiment] = np.array(reached) / at_start
    return {kind: {n: e.tolist() for n, e in own.items()} for kind, own in errors.items()}


def table(records: list[Record], kind: str, row: int) -> str:
    trials = np.array([[record[kind][name][row] for name in MODELS] for record in records])
    means, spreads = trials.mean(axis=0), trials.std(axis=0, ddof=len(trials) > 1)
    paper, header, rows = kind == "truth", ["model"], []
    for experiment in range(1, 5):
        header += [f"paper {experiment}"] * paper + [f"experiment {experiment}"]
    for position, name in enumerate(MODELS):
        rows.append([name])
        for experiment in range(4):
            mean = f"{means[position, experiment]:.4f}"
            mark = " lowest" if means[:, experiment].argmin() == position else ""
            mean = f"**{mean}**" if experiment == position else mean
            rows[-1] += [f"{PAPER[name][experiment]:.4f}"] * paper
            rows[-1].append(f"{mean} ({spreads[position, experiment]:.4f}){mark}")
    counts = (trials.argmin(axis=1) == np.arange(4)).sum(axis=0)
    lowest = ", ".join(map(str, counts))
    won = f"The matching model is lowest in {lowest} of {len(trials)} trials."
    return f"{markdown(header, rows)}\n\n{won}"


def report(records: list[Record], options: Options) -> str:
    updates = records[0]["updates"]
    parts = [f"mean (sd) of {len(records)} trials, rank {RANK}"]
    for row, count in enumerate(updates):
        parts += [f"Relative error against the truth, {count} updates:"]
        parts += [table(records, "truth", row)]
    parts += [f"The same against the noisy data, which the fit sees, {updates[-1]} updates:"]
    return "\n\n".join([*parts, table(records, "data", len(updates) - 1)])


QUESTION = Question(
    "trial size updates",
    lambda o: product(range(o.trials), [o.size], [sorted(o.updates)]),
    measure,
    report,
)
