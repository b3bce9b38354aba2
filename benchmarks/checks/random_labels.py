"""Random forms of the same labels, for :mod:`random_calls`.

Whatever the form, the fit is that to whole numbers with -1 for unlabeled samples, and predictions
are the same classes under other names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import outside
import pandas as pd
from random_data import LOSSES, Call, Results, floats, matrix

from ssnmf_fast import estimators

Array = npt.NDArray[Any]
NAMES = np.array(["ant", "bee", "cat", "dog"])

# From classes 0, 1, ... with -1 where there is none to another form, its classes in the same order,
# and the argument `unlabeled`.
Form = Callable[[Array], tuple[Any, Any, Any]]


def _objects(codes: Array, names: Any, absent: Any) -> list[Any]:
    return [absent if code < 0 else names[code] for code in codes]


def _text(absent: Any, unlabeled: Any = "auto") -> Form:
    names = NAMES.tolist()
    return lambda y: (np.array(_objects(y, names, absent), dtype=object), NAMES, unlabeled)


def _series(dtype: str, names: Any) -> Form:
    return lambda y: (pd.Series(pd.array(_objects(y, names, pd.NA), dtype=dtype)), names, "auto")


def _categorical(codes: Array) -> tuple[Any, Any, Any]:
    # Its categories in an order of their own, and one that no sample has.
    categories = ["zebra", *NAMES.tolist()[::-1]]
    values = pd.Categorical(_objects(codes, NAMES.tolist(), None), categories=categories)
    return pd.Series(values), NAMES, "auto"


def _bool(codes: Array) -> tuple[Any, Any, Any]:
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


def _several(codes: Array, rng: Any) -> tuple[Any, Any, Array]:
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


MODELS = ("SSNMFClassifier", "TopicSupervisedNMF", "ConstrainedNMF", "MarginNMF")


def label_forms(rng: Any) -> Call:
    """Return a fit to labels in some form, beside one to the plain form."""
    shape, dtype = (int(rng.integers(8, 40)), int(rng.integers(2, 15))), floats(rng)
    X, _ = matrix(rng, shape, dtype)
    name = MODELS[max(0, int(rng.integers(-3, 4)))]
    codes = rng.integers(0, 2 if rng.random() < 0.5 else 4, shape[0])
    codes[rng.random(shape[0]) < 0.3] = -1
    codes[:2] = 0, 1
    options: dict[str, Any] = {"max_iter": int(rng.integers(1, 15)), "random_state": 0}
    if name == "SSNMFClassifier":
        readouts = ["joint", "joint", "refit", "logistic"]
        options["readout"] = readouts[rng.integers(len(readouts))]
    if name != "MarginNMF":
        options["loss"] = str(rng.choice(LOSSES))
    several = name == "SSNMFClassifier" and rng.random() < 0.25
    unlabeled: Any = "auto"
    plain: Array
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

    def compute(given: dict[str, Any], n_threads: int) -> Results:
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

    def complaints(results: Results) -> list[str]:
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

    return Call(f"{name} of label forms", arguments, compute, complaints)


def spoiled_labels(y: Any, rng: Any) -> Any:
    """Return labels that must be refused."""
    n = len(y)
    mixed = [(["ant", 7])[k % 2] for k in range(n)]
    fractions = np.linspace(0.25, 7.6, n)
    infinite = np.where(np.arange(n) % 2, np.inf, 1.0)
    shapes = [np.arange(n + 1) % 2, np.zeros((n, 2, 2)), np.zeros(0), None, 3, "ant"]
    values = [mixed, fractions, infinite, [None] * n, [{}] * n, np.ones(n, complex)]
    ways = [*shapes, *values, np.full(n, np.inf)]
    return ways[rng.integers(len(ways))]


LABEL_FORMS = [label_forms]
