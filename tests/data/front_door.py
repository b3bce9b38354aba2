"""Every public argument that takes an array, and what becomes of every form of it.

Runs as a program, so that a crash ends a child process only:

    python front_door.py FIRST STEP   of all forms every STEP-th, other ones for every argument
"""

from __future__ import annotations

import inspect
import sys
import warnings
from dataclasses import fields, is_dataclass

import numpy as np
import scipy.sparse as sp
from argument_ways import MORE, REQUIRED, RESULTS, SCALARS, TIMES, WAYS, D, S, T, y
from malformed_forms import LEGAL, forms, made

import ssnmf_fast as sf
from ssnmf_fast import estimators as models
from ssnmf_fast import linalg, metrics, plotting, weights

# What may not be finite: a weight that binds labels, no lower bound, what was not measured.
INFINITE = {"supervision_weight_", "supervision_weight", "lower", "upper"}
INFINITE |= {
    "scores",
    "committee_",
    "validation_accuracy_",
    "validation_interval_",
    "history",
    "gamma",
}


def estimators():
    """Return the estimators by name."""
    found = {}
    for name in models.__all__:
        one = getattr(models, name)
        if inspect.isclass(one) and hasattr(one, "fit"):
            found[name] = one
    return found


def public():
    """Give every public function and method: its name, itself, and its parameters."""
    yield "objective", sf.extend.objective
    modules = [
        ("", sf),
        ("", sf.io),
        ("", sf.papers),
        ("", sf.results),
        ("", sf.trees),
        ("linalg.", linalg),
        ("metrics.", metrics),
        ("plotting.", plotting),
        ("weights.", weights),
    ]
    for prefix, module in modules:
        for name in module.__all__:
            one = getattr(module, name)
            if inspect.isfunction(one):
                yield prefix + name, one
            elif inspect.isclass(one) and (hasattr(one, "fit") or name in RESULTS):
                yield name, one
                for method in dir(one):
                    if not method.startswith(("_", "get_", "set_")) and inspect.isfunction(
                        getattr(one, method)
                    ):
                        yield f"{name}.{method}", getattr(one, method)


def parameters(function):
    names = [name for name in inspect.signature(function).parameters if name != "self"]
    return [name for name in names if name not in SCALARS]


def ways_of(label, name):
    """Return the ways to an argument; None if nobody has said what it takes."""
    owner, _, method = label.rpartition(".")
    if owner in estimators() or label in estimators():
        places = [label, owner or label, method, "*"]
    else:
        places = [label]
    for place in places:
        if name in WAYS.get(place, {}):
            return WAYS[place][name]
    return None


def unlisted():
    """Return arguments that are in no table."""
    classes = {name for name in RESULTS if name not in WAYS}
    return [
        f"{label}({name}=)"
        for label, function in public()
        if label not in classes
        for name in parameters(function)
        if ways_of(label, name) is None
    ]


class Fits:
    """Estimators, new and fitted."""

    def __init__(self):
        self._fitted = {}

    def new(self, name):
        one = estimators()[name]
        known = inspect.signature(one).parameters
        given = {"freq": "quarter", "supervision_weight": 1.0, **MORE}
        if name in ("SSNMFClassifier", "SSNMFRegressor"):
            given["readout"] = "refit"  # others are slow
        if name == "HierarchicalClassifier":
            given["estimator"] = self.new("FewLabelsClassifier")
        return one(**{key: value for key, value in given.items() if key in known})

    def fitted(self, name):
        if name not in self._fitted:
            model = self.new(name)
            self._fitted[name] = model.fit(*self.data(name))
        return self._fitted[name]

    def data(self, name):
        if name in ("NonnegativeCP", "Recommender"):
            return (T,) if name == "NonnegativeCP" else (D,)
        return (D, TIMES) if name == "DynamicTopics" else (D, y)

    def call(self, label, argument, beside):
        """Return a function of the argument."""
        name, _, method = label.rpartition(".")
        if not name:  # a parameter of the constructor

            def build(Z):
                return self.new(label).set_params(**{argument: Z}).fit(*self.data(label))

            return build
        X, *others = self.data(name)
        known = inspect.signature(getattr(estimators()[name], method)).parameters
        given = {"X": S if method == "inverse_transform" else X, "n_fits": 2}
        if others:
            given["times" if name == "DynamicTopics" else "y"] = others[0]
        if "classes" in known:
            given["classes"] = np.arange(3)
        given = {key: value for key, value in (given | beside).items() if key in known}

        def run(Z):
            fresh = method in ("fit", "fit_transform", "partial_fit")
            model = self.new(name) if fresh else self.fitted(name)
            if method == "partial_fit" and "readout" in model.get_params():
                model.set_params(readout="joint")
            return getattr(model, method)(**(given | {argument: Z}))

        return run


FITS = Fits()
ALWAYS = ("csr falls", "csc far", "coo far")  # what ended processes before


def caller(label, function, argument, beside):
    owner, _, method = label.rpartition(".")
    if owner in estimators() or label in estimators():
        return FITS.call(label, argument, beside)
    given = REQUIRED.get(label, {}) | beside
    if owner == "LowRankPlusSparse":
        one = linalg.LowRankPlusSparse(**REQUIRED["LowRankPlusSparse"])
    elif owner == "TensorFactorization":
        one = sf.factorize_tensor(T, **MORE)
    elif owner == "TopicTree":
        one = sf.trees.topic_tree(**REQUIRED["topic_tree"])
    elif owner == "Consensus":
        one = sf.consensus(**REQUIRED["consensus"])
    elif owner == "Completion":
        one = sf.complete(**REQUIRED["complete"])
    else:
        if label == "plotting.class_map":
            given = {"model": FITS.fitted("SSNMFClassifier"), "X": D, "y": y}
        if label == "split_topic":
            given |= {"model": FITS.fitted("NMF")}
        return lambda Z: function(**(given | {argument: Z}))
    return lambda Z: getattr(one, method)(**(given | {argument: Z}))


def cases():
    """Give every argument: its name, the base, the wrapping, and the call."""
    for label, function in public():
        for argument in parameters(function):
            for number, way in enumerate(ways_of(label, argument) or []):
                yield f"{label}({argument}=) {number}", argument, way, (label, function)


def numbers(result):
    """Give the arrays of numbers that a result has."""
    if isinstance(result, np.ndarray):
        if result.dtype.kind in "fiub":
            yield result
    elif isinstance(result, (int, float, np.generic)):
        if isinstance(result, (int, float)) or result.dtype.kind in "fiub":
            yield np.asarray(result)
    elif sp.issparse(result):
        yield result.toarray()
    elif isinstance(result, dict):
        for key in sorted(result, key=str):
            yield from numbers(result[key])
    elif isinstance(result, (list, tuple)):
        for part in result:
            yield from numbers(part)
    elif hasattr(result, "get_params"):
        names = {name for name in vars(result) if name.endswith("_") and "_names" not in name}
        names -= INFINITE
        yield from numbers({name: getattr(result, name) for name in names})
    elif is_dataclass(result) and type(result).__module__.startswith("ssnmf_fast"):
        names = {field.name for field in fields(result)} - INFINITE
        yield from numbers({name: getattr(result, name) for name in names})


def outcome(call, Z):
    """Return what became of a call, and the numbers of its result."""
    try:
        result = call(Z)
    except Exception as error:
        text = " ".join(str(error).split())
        kind = "refused" if isinstance(error, (ValueError, TypeError)) else type(error).__name__
        return kind, f"{type(error).__name__}: {text}"
    found = list(numbers(result))
    if not all(np.isfinite(part).all() for part in found):
        return "not finite", ""
    return "ok", found


def alike(found, expected):
    return len(found) == len(expected) and all(
        a.shape == b.shape and np.allclose(a, b, rtol=1e-5, atol=1e-7)
        for a, b in zip(found, expected, strict=True)
    )


def main(first, step):
    for number, (case, argument, way, (label, function)) in enumerate(cases()):
        call = caller(label, function, argument, way.beside)
        kind, expected = outcome(lambda Z, w=way, c=call: c(w.wrap(Z)), way.base.copy())
        print(f"{case} base|{kind}|{expected if kind == 'refused' else ''}", flush=True)
        for place, form in enumerate(forms(way.base)):
            if (number + place) % step != first and form not in ALWAYS:
                continue
            if (Z := made(form, way.base)) is None:
                continue
            print(f"{case} {form}|", end="", flush=True)
            kind, found = outcome(lambda Z, w=way, c=call: c(w.wrap(Z)), Z[0])
            if kind == "ok":
                same = form in LEGAL and not (form == "list" and argument == "y")  # labels of each
                good = not same or alike(found, expected)
                kind, found = ("ok" if good else "another result"), ""
            print(f"{kind}|{found}", flush=True)
        if plotting_used():
            plotting_used().close("all")


def plotting_used():
    return sys.modules.get("matplotlib.pyplot")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    main(*map(int, sys.argv[1:3]))
