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

import argparse
import json
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from time import perf_counter

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import Array, load_average, markdown, say
from ssnmf_models import MODELS

import ssnmf_fast as sf

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
Errors = dict[str, Array]  # model -> numbers of updates x experiments


def true_factors(size: int, rng: np.random.Generator) -> Factors:
    """Return S (n x r), A (r x m) and B (r x k): A dense, S and B with half of the entries zero."""
    S = rng.random((size, RANK)) * _half(size * RANK, rng).reshape(size, RANK)
    A = rng.random((RANK, size))
    B = rng.random((RANK, size)) * _half(size * RANK, rng).reshape(RANK, size)
    return S, A, B


def _half(count: int, rng: np.random.Generator) -> Array:
    """Return zeros and ones, half of each, in random order."""
    return rng.permutation(np.arange(count) % 2).astype(float)


def noisy(truth: Factors, experiment: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return X and Y of an experiment (0 to 3)."""
    S, A, B = truth
    deviation = 1.0 if experiment == 0 else 1 / (2 * RANK)

    noise: dict[str, Callable[[Array], Array]] = {
        "frobenius": lambda mean: np.abs(mean + deviation * rng.standard_normal(mean.shape)),
        "kullback-leibler": lambda mean: rng.poisson(mean).astype(float),
    }
    suits = list(MODELS.values())[experiment]
    return noise[suits.loss](S @ A), noise[suits.supervision_loss](S @ B)


def fits(X: Array, Y: Array, name: str, start: Factors, updates: list[int]) -> list[Factors]:
    """Return the factors after each number of updates of the papers' rule."""
    found = []
    for before, after in pairwise([0, *updates]):
        result = sf.factorize(
            X,
            Y,
            n_components=RANK,
            loss=MODELS[name].loss,
            supervision_loss=MODELS[name].supervision_loss,
            solver="mu",
            init=start,
            max_iter=after - before,
            tol=0,
            n_threads=1,
        )
        start = (result.S, result.A, result.B)
        found.append(start)
    return found


def distance(X: Array, Y: Array, factors: Factors, experiment: int) -> float:
    """Return the objective of the model that suits an experiment."""
    S, A, B = factors
    suits = list(MODELS.values())[experiment]
    losses = {"loss": suits.loss, "supervision_loss": suits.supervision_loss}
    return float(sf.extend.objective(X, S, A, Y=Y, B=B, n_threads=1, **losses))


def run_trial(
    truth: Factors, data: list[tuple[Array, Array]], seed: int, updates: list[int]
) -> tuple[Errors, Errors]:
    """Return the relative errors of one start: against the truth, and against the noisy data."""
    rng = np.random.default_rng(seed)
    start = (rng.random(truth[0].shape), rng.random(truth[1].shape), rng.random(truth[2].shape))
    clean = (truth[0] @ truth[1], truth[0] @ truth[2])
    to_truth = {name: np.zeros((len(updates), len(data))) for name in MODELS}
    to_data = {name: np.zeros((len(updates), len(data))) for name in MODELS}
    for experiment, seen in enumerate(data):
        for name in MODELS:
            found = fits(*seen, name, start, updates)
            for errors, target in ((to_truth, clean), (to_data, seen)):
                reached = [distance(*target, factors, experiment) for factors in found]
                at_start = distance(*target, start, experiment)
                errors[name][:, experiment] = np.array(reached) / at_start
    return to_truth, to_data


def table(trials: list[Errors], row: int, paper: bool) -> str:
    """Return the mean errors (standard deviations) after one number of updates."""
    values = {name: np.array([errors[name][row] for errors in trials]) for name in MODELS}
    means = np.array([values[name].mean(axis=0) for name in MODELS])
    header = ["model"]
    for experiment in range(4):
        header += [f"paper {experiment + 1}"] * paper + [f"experiment {experiment + 1}"]
    rows = []
    for position, name in enumerate(MODELS):
        cells = [name]
        for experiment in range(4):
            mean = f"{means[position, experiment]:.4f}"
            lowest = means[:, experiment].argmin() == position
            mark = " lowest" if lowest else ""
            mean = f"**{mean}**" if experiment == position else mean
            spread = values[name][:, experiment].std(ddof=len(trials) > 1)
            cells += [f"{PAPER[name][experiment]:.4f}"] * paper + [f"{mean} ({spread:.4f}){mark}"]
        rows.append(cells)
    return markdown(header, rows)


def wins(trials: list[Errors], row: int) -> str:
    """Return in how many trials the matching model has the lowest error of its column."""
    errors = np.array([[trial[name][row] for name in MODELS] for trial in trials])
    counts = (errors.argmin(axis=1) == np.arange(4)).sum(axis=0)
    return f"The matching model is lowest in {', '.join(map(str, counts))} of {len(trials)} trials."


def run(trials: int, size: int, updates: list[int]) -> tuple[list[Errors], list[Errors]]:
    """Return the errors of all trials, which share truth and data and differ in the start."""
    rng = np.random.default_rng(0)
    truth = true_factors(size, rng)
    data = [noisy(truth, experiment, rng) for experiment in range(4)]
    against_truth, against_data = [], []
    begin = perf_counter()
    for trial in range(trials):
        to_truth, to_data = run_trial(truth, data, trial + 1, updates)
        against_truth.append(to_truth)
        against_data.append(to_data)
        say(f"trial {trial + 1} of {trials}, {perf_counter() - begin:.0f} s")
    return against_truth, against_data


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=5, help="starts, as many as in the paper")
    parser.add_argument("--size", type=int, default=500, help="samples, features and labels")
    parser.add_argument("--updates", type=int, nargs="+", default=[100, 200, 1000])
    parser.add_argument("--quick", action="store_true", help="one trial of size 60")
    parser.add_argument("--out", type=Path, help="folder for the numbers (JSON)")
    options = parser.parse_args(arguments)
    if options.quick:
        options.trials, options.size, options.updates = 1, 60, [20, 50]
    updates = sorted(options.updates)
    against_truth, against_data = run(options.trials, options.size, updates)
    print(f"mean (sd) of {options.trials} trials, rank {RANK}, load {load_average()}")
    for row, count in enumerate(updates):
        print(f"\nRelative error against the truth, {count} updates:\n")
        print(table(against_truth, row, paper=True), wins(against_truth, row), sep="\n\n")
    print(f"\nThe same against the noisy data, which the fit sees, {updates[-1]} updates:\n")
    last = len(updates) - 1
    print(table(against_data, last, paper=False), wins(against_data, last), sep="\n\n")
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        truth, data = (
            [{name: errors[name].tolist() for name in MODELS} for errors in trials]
            for trials in (against_truth, against_data)
        )
        content = {"updates": updates, "against the truth": truth, "against the data": data}
        (options.out / "ssnmf_synthetic.json").write_text(json.dumps(content, indent=1))


if __name__ == "__main__":
    main()
