"""Random fits of every estimator, and random forms of the same labels, for :mod:`random_calls`.

Whatever the form of labels, the fit is that to whole numbers with -1 for unlabeled samples, and
predictions are the same classes under other names.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

import ssnmf_fast as sf
from random_calls import outside
from random_calls import problems as draw
from ssnmf_fast import estimators


def _fit(
    name: str, rng: Any, options: dict[str, Any], classes: bool, missing: bool = True
) -> draw.Call:
    """Return the call that fits, transforms, predicts, and saves and loads."""
    shape = int(rng.integers(6, 40)), int(rng.integers(2, 25))
    dtype = draw.floats(rng)
    X, _ = draw.matrix(rng, shape, dtype, missing=missing)
    arguments = {"X": X, "max_iter": int(rng.integers(1, 20)), "random_state": 0, **options}
    y = None
    if classes:
        y = rng.integers(0, rng.integers(2, 5), shape[0])
        y[rng.random(shape[0]) < 0.3] = -1
        y[:2] = 0, 1
        if rng.random() < 0.3:
            y = np.where(y < 0, "", np.array(["a", "b", "c", "d"])[y]).astype(object)

    def compute(given: dict[str, Any], n_threads: int) -> draw.Results:
        parameters = {key: value for key, value in given.items() if key != "X"}
        model = getattr(estimators, name)(**parameters, n_threads=n_threads)
        model.fit(given["X"], y) if classes else model.fit(given["X"])
        results: draw.Results = {"A": model.components_}
        if hasattr(model, "transform"):
            results["S"] = model.transform(given["X"])
        if classes and hasattr(model, "predict_proba"):
            results["chance"] = model.predict_proba(given["X"])
            results["predicted"] = np.searchsorted(model.classes_, model.predict(given["X"]))
        with tempfile.TemporaryDirectory() as folder:
            sf.save(model, Path(folder) / "model.npz")
            results["loaded"] = sf.load(Path(folder) / "model.npz").components_
        if hasattr(model, "receipt_"):
            told = {"y": y} if classes else {}
            results["differences"] = draw.differences(model, given["X"], n_threads, **told)
        return results

    def complaints(results: draw.Results) -> list[str]:
        # MarginNMF transforms to inner products with directions of either sign.
        found = outside.factors(results, ("A",) if name == "MarginNMF" else ("A", "S"))
        found += [f"not verified: {sentence}" for sentence in results.pop("differences", [])]
        found += outside.finite(results)
        if "chance" in results:
            chance = results["chance"]
            if not np.isfinite(chance).all() or (chance < 0).any() or (chance > 1).any():
                found.append("probabilities out of range")
            elif np.abs(chance.sum(axis=1) - 1).max() > 1e-5:
                found.append("probabilities do not sum to 1")
            elif not np.array_equal(chance.argmax(axis=1), results["predicted"]):
                found.append("the most probable class is not predicted")
        if not np.array_equal(results["A"], results["loaded"]):
            found.append("the loaded model differs")
        return found

    return draw.Call(name, arguments, compute, complaints)


# How options are drawn.
DRAWN: dict[str, Callable[[Any], Any]] = {
    "n_components": lambda rng: int(rng.integers(1, 6)),
    "n_free_topics": lambda rng: int(rng.integers(0, 3)),
    "loss": lambda rng: str(rng.choice(draw.LOSSES)),
    "membership": lambda rng: str(rng.choice(["single", "mixed"])),
}


def _maker(
    name: str, *options: str, classes: bool = True, missing: bool = True
) -> Callable[[Any], draw.Call]:
    """Return what makes fits with options that are drawn, in this order."""

    def make(rng: Any) -> draw.Call:
        return _fit(name, rng, {option: DRAWN[option](rng) for option in options}, classes, missing)

    return make


def nmf(rng: Any) -> draw.Call:
    """Return a fit of a problem, in half of which something is known, or a part costs something."""
    found = draw.problem(
        rng, files=True, labels=False, among=("A_support", "fixed_components", "covariates")
    )
    arguments = {**found.arguments, "n_components": found.rank, **draw.settings(rng)}
    arguments["max_iter"] += 1
    if rng.random() < 0.1:
        arguments["n_starts"] = 2

    def compute(given: dict[str, Any], n_threads: int) -> draw.Results:
        of_fit = {name: given[name] for name in ("X_weights", "covariates") if name in given}
        parameters = {name: v for name, v in given.items() if name not in of_fit and name != "X"}
        model = sf.NMF(**parameters, n_threads=n_threads).fit(given["X"], **of_fit)
        told = draw.differences(model, given["X"], n_threads, **of_fit)
        results = {"A": model.components_, "S": model.representation_, "differences": told}
        results["objective"] = [value for _, value in model.objective_]
        return results | {"transformed": model.transform(given["X"], **of_fit)}

    def complaints(results: draw.Results) -> list[str]:
        return found.complaints(results, draw.may_rise(arguments)) or outside.factors(
            results, ("transformed",)
        )

    return draw.Call("NMF", arguments, compute, complaints)


def batches(rng: Any) -> draw.Call:
    """Return learning from batches of rows, some of which may be of zeros."""
    found = draw.problem(rng, ordinary=True, labels=False, among=("A_support", "fixed_components"))
    given, supervised = found.arguments, rng.random() < 0.5
    X, n = given["X"], len(found.dense)
    cuts = [0, *sorted(rng.integers(1, n + 1, rng.integers(0, 3)).tolist()), n]
    parts = [slice(a, b) for a, b in itertools.pairwise(cuts) if a < b]
    y = rng.random((n, 2)).astype(found.dtype) + 0.1
    known = {name: given[name] for name in ("A_support", "fixed_components") if name in given}
    arguments = {"X": X, "n_components": found.rank, "loss": given["loss"], **known}
    arguments["forget_factor"] = float(rng.choice([0.0, 0.5, 1.0]))
    arguments["random_state"] = 0

    def compute(given: dict[str, Any], n_threads: int) -> draw.Results:
        parameters = {name: value for name, value in given.items() if name != "X"}
        model = (sf.SSNMFRegressor if supervised else sf.NMF)(**parameters, n_threads=n_threads)
        samples = sp.csr_array(given["X"]) if sp.issparse(given["X"]) else given["X"]
        for part in parts:
            model.partial_fit(samples[part], *([y[part]] if supervised else []))
        S = model.transform(given["X"])
        return {"A": model.components_, "transformed": S}

    def complaints(results: draw.Results) -> list[str]:
        return found.complaints(results) or outside.factors(results, ("transformed",))

    return draw.Call("batches", arguments, compute, complaints)


def classifier(rng: Any) -> draw.Call:
    options: dict[str, Any] = {"loss": str(rng.choice(draw.LOSSES))}
    if rng.random() < 0.7:
        options["n_components"] = int(rng.integers(1, 8))
    if rng.random() < 0.7:
        options["supervision_weight"] = [0.0, 1.0, 10.0, "balanced"][rng.integers(4)]
    options["readout"] = str(rng.choice(["logistic", "refit", "joint"]))
    return _fit("SSNMFClassifier", rng, options, classes=True)


def regressor(rng: Any) -> draw.Call:
    found = draw.problem(rng, labels=False, among=("A_support", "fixed_components"))
    given = {name: value for name, value in found.arguments.items() if name != "X_weights"}
    arguments = {**given, "n_components": found.rank, "max_iter": 15, "random_state": 0}
    if found.penalized and isinstance(given["penalties"], dict):
        arguments["penalties"] = {**given["penalties"], "B": draw.draw_penalties(rng, 2)}
    targets = rng.random((len(found.dense), 2))

    def compute(given: dict[str, Any], n_threads: int) -> draw.Results:
        parameters = {key: value for key, value in given.items() if key != "X"}
        model = sf.SSNMFRegressor(**parameters, n_threads=n_threads).fit(given["X"], targets)
        told = draw.differences(model, given["X"], n_threads, y=targets)
        predicted = model.predict(given["X"])
        return {"A": model.components_, "predicted": predicted, "differences": told}

    def complaints(results: draw.Results) -> list[str]:
        if results["differences"]:
            return list(results["differences"])
        return outside.factors(results, ("A", "predicted"))

    return draw.Call("SSNMFRegressor", arguments, compute, complaints)


MODELS = [
    *[nmf] * 3,
    batches,
    batches,
    classifier,
    _maker("TopicSupervisedNMF", "n_free_topics", "loss"),
    _maker("SeededTopics", "n_free_topics", "loss", "membership", missing=False),
    _maker("ConstrainedNMF", "n_components", "loss"),
    _maker("MarginNMF", "n_components", missing=False),
    _maker("BayesianNMF", "n_components", classes=False, missing=False),
    _maker("SupervisedBayesianNMF", "n_components", missing=False),
    regressor,
]


NAMES = np.array(["ant", "bee", "cat", "dog"])

# From classes 0, 1, ... with -1 where there is none to another form, its classes in the same order,
# and the argument `unlabeled`.
Form = Callable[[draw.Array], tuple[Any, Any, Any]]


def _objects(codes: draw.Array, names: Any, absent: Any) -> list[Any]:
    return [absent if code < 0 else names[code] for code in codes]


def _text(absent: Any, unlabeled: Any = "auto") -> Form:
    names = NAMES.tolist()
    return lambda y: (np.array(_objects(y, names, absent), dtype=object), NAMES, unlabeled)


def _series(dtype: str, names: Any) -> Form:
    return lambda y: (pd.Series(pd.array(_objects(y, names, pd.NA), dtype=dtype)), names, "auto")


def _categorical(codes: draw.Array) -> tuple[Any, Any, Any]:
    # Its categories in an order of their own, and one that no sample has.
    categories = ["zebra", *NAMES.tolist()[::-1]]
    values = pd.Categorical(_objects(codes, NAMES.tolist(), None), categories=categories)
    return pd.Series(values), NAMES, "auto"


def _bool(codes: draw.Array) -> tuple[Any, Any, Any]:
    return np.array(_objects(codes, [False, True], None), dtype=object), np.arange(2) > 0, "auto"


FORMS: list[Form] = [
    _text(None),
    _text(float("nan")),
    _text("", ""),
    _text("-", "-"),
    lambda y: (_objects(y, NAMES.tolist(), None), NAMES, "auto"),
    lambda y: (y.tolist(), np.arange(4), "auto"),
    lambda y: (np.where(y < 0, np.nan, 10.0 * y), 10 * np.arange(4), "auto"),
    lambda y: (np.where(y < 0, 99, y - 1), np.arange(4) - 1, 99),
    lambda y: (np.ma.array(y.clip(0), mask=y < 0), np.arange(4), "auto"),
    lambda y: (np.ma.array(NAMES[y.clip(0)], mask=y < 0), NAMES, "auto"),
    _series("Int64", range(4)),
    _series("string", NAMES.tolist()),
    _categorical,
    _bool,
    lambda y: (y.astype(np.int8), np.arange(4), "auto"),
]


def _several(codes: draw.Array, rng: Any) -> tuple[Any, Any, draw.Array]:
    """Return several labels for each sample in some form, its classes, and the plain matrix."""
    Y = (rng.random((len(codes), 3)) < 0.4).astype(float)
    Y[:2] = [[1, 0, 1], [0, 1, 0]]
    Y[2:][codes[2:] < 0] = np.nan
    known = ~np.isnan(Y).any(axis=1)
    way = rng.integers(3)
    if way == 0:
        return Y.tolist(), np.arange(3), Y
    if way == 1:
        return pd.DataFrame(Y, columns=NAMES[:3]), NAMES[:3], Y
    marked = np.where(known[:, None], Y, -1).astype(int)
    return marked, np.arange(3), Y


OF_LABELS = ("SSNMFClassifier", "TopicSupervisedNMF", "ConstrainedNMF", "MarginNMF")


def label_forms(rng: Any) -> draw.Call:
    """Return a fit to labels in some form, and one to the plain form."""
    shape, dtype = (int(rng.integers(8, 40)), int(rng.integers(2, 15))), draw.floats(rng)
    X, _ = draw.matrix(rng, shape, dtype)
    name = OF_LABELS[max(0, int(rng.integers(-3, 4)))]
    codes = rng.integers(0, 2 if rng.random() < 0.5 else 4, shape[0])
    codes[rng.random(shape[0]) < 0.3] = -1
    codes[:2] = 0, 1
    options: dict[str, Any] = {"max_iter": int(rng.integers(1, 15)), "random_state": 0}
    if name == "SSNMFClassifier":
        readouts = ["joint", "joint", "refit", "logistic"]
        options["readout"] = readouts[rng.integers(len(readouts))]
    if name != "MarginNMF":
        options["loss"] = str(rng.choice(draw.LOSSES))
    several = name == "SSNMFClassifier" and rng.random() < 0.25
    unlabeled: Any = "auto"
    plain: draw.Array
    if several:
        y, classes, plain = _several(codes, rng)
    else:
        form = FORMS[rng.integers(len(FORMS))]
        if form is _bool:
            codes = np.minimum(codes, 1)
        y, classes, unlabeled = form(codes)
        present = np.unique(codes[codes >= 0])
        classes, plain = np.asarray(classes)[present], codes
    arguments = {"X": X, "y": y, **options}

    def fit(X: Any, y: Any, given: dict[str, Any], unlabeled: Any, n_threads: int) -> Any:
        parameters = {key: value for key, value in given.items() if key not in ("X", "y")}
        model = getattr(estimators, name)(**parameters, unlabeled=unlabeled, n_threads=n_threads)
        return model.fit(X, y)

    def compute(given: dict[str, Any], n_threads: int) -> draw.Results:
        model = fit(given["X"], given["y"], given, unlabeled, n_threads)
        chance = model.predict_proba(given["X"])
        results = {"A": model.components_, "chance": chance}
        if several:
            results["predicted"] = model.predict(given["X"])
        else:
            order = {one: k for k, one in enumerate(model.classes_.tolist())}
            results["classes"] = np.array([classes.tolist() == model.classes_.tolist()])
            found = model.predict(given["X"]).tolist()
            results["predicted"] = np.array([order.get(one, -1) for one in found])
        return results

    def complaints(results: draw.Results) -> list[str]:
        found = outside.finite({key: results[key] for key in ("A", "chance")})
        if not several and not results["classes"].all():
            found.append(f"classes are not {classes.tolist()}")
        expected = fit(X, plain, arguments, "auto" if several else -1, 1)
        if not np.array_equal(results["A"], expected.components_):
            found.append("components differ from those of the plain labels")
        if not np.array_equal(results["chance"], expected.predict_proba(X)):
            found.append("probabilities differ from those of the plain labels")
        predicted = expected.predict(X)
        if not several:
            predicted = np.searchsorted(expected.classes_, predicted)
        if not np.array_equal(np.asarray(results["predicted"]), predicted):
            found.append("predictions differ from those of the plain labels")
        return found

    return draw.Call(f"{name} of label forms", arguments, compute, complaints)


def spoiled_labels(y: Any, rng: Any) -> Any:
    n = len(y)
    mixed = [(["ant", 7])[k % 2] for k in range(n)]
    fractions = np.linspace(0.25, 7.6, n)
    infinite = np.where(np.arange(n) % 2, np.inf, 1.0)
    shapes = [np.arange(n + 1) % 2, np.zeros((n, 2, 2)), np.zeros(0), None, 3, "ant"]
    values = [mixed, fractions, infinite, [None] * n, [{}] * n, np.ones(n, complex)]
    ways = [*shapes, *values, np.full(n, np.inf)]
    return ways[rng.integers(len(ways))]


LABEL_FORMS = [label_forms]
