"""How well are held-out ratings of MovieLens 100k predicted, compared with other imputers?

Five random splits, 80 % to train and 20 % to test; the RMSE of predictions as they are, and clipped
to 1..5.  Everything is chosen on the training part: our rank and shrinkage by
`gamma_min="validate"`, the shrinkage of SoftImpute and the rank of IterativeSVD on a tenth of it.
"biases" are means of users and items drawn to zero with a ridge of 5.  Seconds include the choice.

reads movielens100k.npz from $SSNMF_FAST_DATA.  For IterativeSVD: python -m pip install --no-deps
fancyimpute==0.7.0; without it SoftImpute is the same algorithm in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from itertools import product
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from common import Array, data_file
from imputers import Impute, iterative_svd, soft_impute, source
from records import Options, Question, Record, grouped, mean_of, say, tabulate
from sklearn import impute
from sklearn.experimental import enable_iterative_imputer  # noqa: F401

import ssnmf_fast as sf

OPTIONS = {
    "splits": 5,
    "threads": (1, "more stall BLAS on busy cores"),
    "all": (False, "IterativeImputer too: very slow"),
}
QUICK = {"splits": 1}
RIDGE, SWEEPS = 5.0, 20
SHRINKAGES = (30.0, 20.0, 14.0, 10.0, 7.0, 5.0, 3.5, 2.5)
SVD_RANKS = (1, 2, 5, 10, 20)
MAX_RANK = 60  # of SoftImpute's SVD; with shrinkage worth having, fewer values are above it


class Ratings(NamedTuple):
    """Triplets and the shape of the whole matrix."""

    users: Array
    items: Array
    values: Array
    shape: tuple[int, int]

    def part(self, chosen: Array) -> Ratings:
        return Ratings(self.users[chosen], self.items[chosen], self.values[chosen], self.shape)

    def dense(self) -> Array:
        X = np.full(self.shape, np.nan)
        X[self.users, self.items] = self.values
        return X

    def divided(self, share: float, rng: np.random.Generator) -> tuple[Ratings, Ratings]:
        order = rng.permutation(len(self.values))
        count = round(share * len(order))
        return self.part(order[:count]), self.part(order[count:])


Predict = Callable[[Ratings], Array]  # the places of ratings -> predictions


@cache
def movielens() -> Ratings:
    data = np.load(data_file("movielens100k.npz"))
    users, items = data["user"].astype(np.int64), data["item"].astype(np.int64)
    shape = int(users.max()) + 1, int(items.max()) + 1
    return Ratings(users, items, data["rating"].astype(np.float64), shape)


@cache
def made_up() -> Ratings:
    rng = np.random.default_rng(0)
    n, m, count = 120, 150, 4000
    taste = rng.standard_normal((n, 3)) @ rng.standard_normal((3, m)) / 3
    means = 3.5 + 0.4 * rng.standard_normal((n, 1)) + 0.5 * rng.standard_normal((1, m))
    users, items = np.divmod(rng.choice(n * m, count, replace=False), m)
    noisy = (taste + means)[users, items] + 0.7 * rng.standard_normal(count)
    return Ratings(users, items, np.clip(np.round(noisy), 1, 5), (n, m))


def rmse(predicted: Array, truth: Ratings) -> float:
    return float(np.sqrt(np.mean((predicted - truth.values) ** 2)))


def ours(train: Ratings, seed: int, threads: int, biases: bool) -> tuple[Predict, str]:
    """Our completion; without biases the data are centered by their mean."""
    mean = 0.0 if biases else float(train.values.mean())
    given: dict[str, Any] = {"shape": train.shape, "gamma_min": "validate", "biases": biases}
    given |= {"clip": False, "random_state": seed, "n_threads": threads}
    fit = sf.complete((train.users, train.items, train.values - mean), **given)
    chosen = f"rank {fit.n_components}, gamma {fit.gamma:.2g}"
    return (lambda test: mean + fit.predict(test.users, test.items)), chosen


def bias_only(train: Ratings, seed: int = 0, threads: int = 1) -> tuple[Predict, str]:
    n, m = train.shape
    mean = float(train.values.mean())
    rows, columns = np.zeros(n), np.zeros(m)
    for _ in range(SWEEPS):
        columns = _means(train.items, train.values - mean - rows[train.users], m)
        rows = _means(train.users, train.values - mean - columns[train.items], n)
    return (lambda test: mean + rows[test.users] + columns[test.items]), ""


def _means(places: Array, values: Array, length: int) -> Array:
    counts = np.bincount(places, minlength=length) + RIDGE
    means: Array = np.bincount(places, values, minlength=length) / counts
    return means


def center_of(train: Ratings, center: str) -> Predict:
    """Return what is subtracted before a model is fitted: the biases, the mean, or nothing."""
    if center == "biases":
        return bias_only(train)[0]
    mean = float(train.values.mean()) if center == "mean" else 0.0
    return lambda test: np.full(len(test.values), mean)


def imputed(train: Ratings, impute: Impute, center: str) -> Predict:
    base = center_of(train, center)
    whole = impute(train._replace(values=train.values - base(train)).dense())
    return lambda test: base(test) + whole[test.users, test.items]


def tuned(
    train: Ratings,
    seed: int,
    threads: int,
    center: str,
    make: Callable[..., Impute],
    choices: tuple[Any, ...] = (),
) -> tuple[Predict, str]:
    """Choose on a tenth of the training part; stop after two worse choices (equal is not worse)."""
    if not choices:
        return imputed(train, make(), center), ""
    held, rest = train.divided(0.1, np.random.default_rng(seed))
    errors: dict[Any, float] = {}
    for choice in choices:
        errors[choice] = rmse(imputed(rest, make(choice), center)(held), held)
        least = min(errors.values())
        if len(errors) > 2 and min(list(errors.values())[-2:]) > least * (1 + 1e-6):
            break
    best = min(errors, key=lambda choice: errors[choice])
    return imputed(train, make(best), center), f"{best:g}"


def scikit_learn(name: str, **settings: Any) -> Impute:
    """Return an imputer of scikit-learn; columns without any rating become 0."""
    model = getattr(impute, name)(keep_empty_features=True, **settings)
    return lambda X: np.asarray(model.fit_transform(X))


Model = Callable[[Ratings, int, int], tuple[Predict, str]]


def models(everything: bool) -> dict[str, Model]:
    soft = partial(tuned, make=partial(soft_impute, max_rank=MAX_RANK), choices=SHRINKAGES)
    title = f"SoftImpute ({source()})"
    found: dict[str, Model] = {
        "ours, with biases": partial(ours, biases=True),
        "ours, data minus their mean": partial(ours, biases=False),
        "biases only": bias_only,
        f"{title}, tuned, data minus biases": partial(soft, center="biases"),
        f"{title}, tuned, raw data": partial(soft, center="nothing"),
        f"{title}, default, raw data": partial(tuned, center="nothing", make=soft_impute),
    }
    if iterative_svd(1) is not None:
        svd = partial(tuned, make=iterative_svd, choices=SVD_RANKS)
        name = "IterativeSVD (fancyimpute), tuned"
        found[f"{name}, data minus biases"] = partial(svd, center="biases")
        found[f"{name}, raw data"] = partial(svd, center="nothing")
    settings: dict[str, dict[str, Any]] = {"SimpleImputer": {}, "KNNImputer": {}}
    if everything:
        settings["IterativeImputer"] = {"random_state": 0}
    for name, more in settings.items():
        make = partial(scikit_learn, name, **more)
        found[f"{name} (scikit-learn)"] = partial(tuned, center="mean", make=make)
    return found


def measure(options: Options, split: int, model: str) -> Record:
    ratings = made_up() if options.quick else movielens()
    train, test = ratings.divided(0.8, np.random.default_rng(split))
    begin = perf_counter()
    predict, chosen = models(True)[model](train, split, options.threads)
    predicted = predict(test)
    record: Record = {"chosen": chosen, "seconds": perf_counter() - begin}
    record |= {"rmse": rmse(predicted, test), "clipped": rmse(np.clip(predicted, 1, 5), test)}
    say(f"split {split}, {model}: {record}")
    return record


def report(records: list[Record], options: Options) -> str:
    rows = [{"model": model, "own": own} for model, own in grouped(records, "model").items()]
    table = tabulate(
        rows,
        model="{model}",
        **{"test RMSE": lambda row: mean_of(row["own"], "rmse", digits=4)},
        **{"clipped to 1..5": lambda row: mean_of(row["own"], "clipped", digits=4)},
        seconds=lambda row: mean_of(row["own"], "seconds", digits=1),
        chosen=lambda row: "; ".join(grouped(row["own"], "chosen")),
    )
    return f"mean (sd) of {options.splits} splits, {options.threads} threads\n\n{table}"


QUESTION = Question(
    "split model", lambda o: product(range(o.splits), models(o.all)), measure, report
)
