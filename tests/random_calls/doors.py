"""Every public argument that takes an array, and what becomes of every form of it.

Each takes or refuses a form: by a result that is finite, and the same for every layout, or by an
error that says why.  A sparse matrix whose parts do not fit together is always refused.
"""

from __future__ import annotations

import inspect
import io
import re
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import fields, is_dataclass
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

import ssnmf_fast as sf
from random_calls import forms
from random_calls.arguments import (
    FILES,
    FOLDER,
    MORE,
    REQUIRED,
    RESULTS,
    SCALARS,
    TIMES,
    WAYS,
    D,
    S,
    T,
    Way,
    y,
)
from random_calls.problems import Call
from ssnmf_fast import estimators as models
from ssnmf_fast import linalg, metrics, plotting, weights
from ssnmf_fast.cli import main

# What may not be finite: a weight that binds labels, no lower bound, what was not measured.
INFINITE = {"supervision_weight_", "supervision_weight", "lower", "upper", "scores", "committee_"}
INFINITE |= {"validation_accuracy_", "validation_interval_", "history", "gamma"}
# An index out of range is that of Python: the exception is promised.
PROMISED = {"Completion.predict(rows=)": IndexError, "Completion.predict(columns=)": IndexError}
# Ways that say by an error that they are not taken: of the others the base is a legal argument.
NOT_TAKEN = re.compile(
    r"((Supervised)?BayesianNMF|DynamicTopics|SeededTopics)\.\w+\(X_weights=\)"
    r"|ConstrainedNMF\.fit\w*\(X_weights=\) 2|LowRankPlusSparse\(sparse=\)"
    r"|Recommender\.evaluate\(users=\) 0"
    r"|(split_topic|topic_tree)\(X_weights=\) 2"
    r"|NMF\.(topic_proportions|transform|score)\(covariates=\)"
    r"|metrics\.inter_label_sparsity\(labels=\) 1|plotting\.representation_map\(y=\) 1"
    r"|(\w+NMF|SeededTopics|Hierarchical\w+)\.\w+\(y=\) 1|\w+\.score\(y=\) 1"  # several labels
)

# A y that is there for pipelines alone.
UNREAD = re.compile(r"(BayesianNMF|DynamicTopics|LowRankImputer|NMF|Recommender)\.\w+\(y=\)")
# Of a damaged matrix an error says which argument it is, of a few by another name.
RENAMED = re.compile(
    r".*\(penalties=\)|Consensus\.to_cnmf|Recommender\.|topics_over_time\(by=\)|verify\(y=\)"
    r"|metrics\.factor_match_score|file of "
)


@cache
def estimators():
    """Return the estimators by name."""
    found = {name: getattr(models, name) for name in models.__all__}
    return {k: one for k, one in found.items() if inspect.isclass(one) and hasattr(one, "fit")}


def public():
    """Give every public function and method: its name, itself, and its parameters."""
    yield "objective", sf.extend.objective
    modules = [("", each) for each in (sf, sf.io, sf.papers, sf.results, sf.trees)]
    for module in (linalg, metrics, plotting, weights):
        modules.append((f"{module.__name__.rpartition('.')[2]}.", module))
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
    yield from ((f"file of {what}", partial(read_file, what)) for what in FILES)


def parameters(function):
    names = [name for name in inspect.signature(function).parameters if name != "self"]
    return [name for name in names if name not in SCALARS]


def ways_of(label, name):
    """Return the ways to an argument; None if nobody has said what it takes."""
    owner, _, method = label.rpartition(".")
    of_estimator = owner in estimators() or label in estimators()
    places = [label, owner or label, method, "*"] if of_estimator else [label]
    return next((WAYS[place][name] for place in places if name in WAYS.get(place, {})), None)


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


def new(name):
    one = estimators()[name]
    known = inspect.signature(one).parameters
    given = {"freq": "quarter", "supervision_weight": 1.0, **MORE}
    if name in ("SSNMFClassifier", "SSNMFRegressor"):
        given["readout"] = "refit"  # others are slow
    if name == "HierarchicalClassifier":
        given["estimator"] = new("FewLabelsClassifier")
    return one(**{key: value for key, value in given.items() if key in known})


def data(name):
    alone = {"NonnegativeCP": (T,), "Recommender": (D,), "DynamicTopics": (D, TIMES)}
    return alone.get(name, (D, y))


@cache
def fitted(name):
    return new(name).fit(*data(name))


def method_of_estimator(label, argument, further):
    """Return a function of the argument, of a method or, without one, of the constructor."""
    name, _, method = label.rpartition(".")
    if not name:
        return lambda Z: new(label).set_params(**{argument: Z}).fit(*data(label))
    X, *others = data(name)
    known = inspect.signature(getattr(estimators()[name], method)).parameters
    given = {"X": S if method == "inverse_transform" else X, "n_fits": 2, "classes": np.arange(3)}
    if others:
        given["times" if name == "DynamicTopics" else "y"] = others[0]
    given = {key: value for key, value in (given | further).items() if key in known}

    def run(Z):
        fresh = method in ("fit", "fit_transform", "partial_fit")
        model = new(name) if fresh else fitted(name)
        if method == "partial_fit" and "readout" in model.get_params():
            model.set_params(readout="joint")
        return getattr(model, method)(**(given | {argument: Z}))

    return run


# What has methods, and how it is made.
OWNERS = {
    "LowRankPlusSparse": lambda: linalg.LowRankPlusSparse(**REQUIRED["LowRankPlusSparse"]),
    "TensorFactorization": lambda: sf.factorize_tensor(T, **MORE),
    "TopicTree": lambda: sf.trees.topic_tree(**REQUIRED["topic_tree"]),
    "Consensus": lambda: sf.consensus(**REQUIRED["consensus"]),
    "Completion": lambda: sf.complete(**REQUIRED["complete"]),
}
owner_of = cache(lambda name: OWNERS[name]())


def run_command(*arguments):
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        if main([str(argument) for argument in arguments]):
            raise ValueError(output.getvalue())


@cache
def saved_model():
    np.save(Path(FOLDER) / "good.npy", D)
    model = Path(FOLDER) / "model"
    run_command("fit", Path(FOLDER) / "good.npy", "--out", model, "--rank", 2, "--model", "nmf")
    return model


def read_file(what, X):
    """Write a matrix to a file, and read it; an answer of the command becomes an error again."""
    folder = Path(FOLDER)
    names = {"coo": ("row", "col"), "dia": ("offsets",)}.get(X.format, ("indptr", "indices"))
    parts = {part: getattr(X, part) for part in ("data", *names)}
    if what == "open_csr":
        for part, array in parts.items():
            np.save(folder / f"{part}.npy", array)
        return sf.io.open_csr(folder, n_features=X.shape[1])
    path = folder / "X.npz"
    np.savez(path, format=X.format.encode(), shape=X.shape, **parts)
    orders = {
        "fit": ["fit", path, "--rank", 2, "--model", "nmf", "--out", folder / "out"],
        "complete": ["complete", path, "--rank", 1, "--out", folder / "out.npy"],
        "predict": ["predict", saved_model(), path, "--out", folder / "out.csv"],
    }
    return run_command(*orders[what])


class Door(NamedTuple):
    """A way to an argument."""

    label: str
    function: object
    argument: str
    number: int
    way: Way

    @property
    def name(self):
        return f"{self.label}({self.argument}=) {self.number}"

    def forms(self):
        """Return the names of forms that can come this way, and mean something there."""
        names = forms.names(self.way.base.ndim)
        if not self.label.startswith("file "):
            return names
        # SciPy writes whole numbers of any dtype as integers; a folder holds csr without a shape.
        formats = ("csr ",) if self.label.endswith("open_csr") else ("csr ", "csc ", "bsr ", "coo ")
        lost = ("real", "shape") if self.label.endswith("open_csr") else ("real",)
        kept = [name for name in names if name in forms.BROKEN and name.startswith(formats)]
        return [name for name in kept if not name.endswith(lost)]

    def call(self, Z):
        """Return what becomes of an argument."""
        owner = self.label.rpartition(".")[0]
        further, Z = self.way.further, self.way.wrap(Z)
        if owner in estimators() or self.label in estimators():
            return method_of_estimator(self.label, self.argument, further)(Z)
        given = REQUIRED.get(self.label, {}) | further | {self.argument: Z}
        if owner in OWNERS:
            return self.function(owner_of(owner), **given)
        if self.label == "plotting.class_map":
            given = {"model": fitted("SSNMFClassifier"), "X": D, "y": y} | {self.argument: Z}
        if self.label == "split_topic":
            given["model"] = fitted("NMF")
        return self.function(**given)


@cache
def doors():
    return [
        Door(label, function, argument, number, way)
        for label, function in public()
        for argument in parameters(function)
        for number, way in enumerate(ways_of(label, argument) or [])
    ]


ALWAYS = ("csr falls", "csc far", "coo far")  # what ended processes before


@cache
def chosen(step):
    """Return of all forms every `step`-th, other ones for every argument, and "base" for each."""
    return [
        (door, form)
        for number, door in enumerate(doors())
        for place, form in enumerate(["base", *door.forms()])
        if (number + place) % step == 0 or form == "base" or form in ALWAYS
        if form != "base" or not door.label.startswith("file ")
    ]


def numbers(result):
    """Give the arrays of numbers that a result has."""
    if isinstance(result, (np.ndarray, int, float, np.generic)):
        array = np.asarray(result)
        yield from [array] if array.dtype.kind in "fiub" else []
    elif sp.issparse(result):
        yield result.toarray()
    elif isinstance(result, (list, tuple)):
        for part in result:
            yield from numbers(part)
    elif isinstance(result, dict):
        yield from numbers([result[key] for key in sorted(result, key=str)])
    elif hasattr(result, "get_params"):
        names = {name for name in vars(result) if name.endswith("_") and "_names" not in name}
        yield from numbers({name: getattr(result, name) for name in names - INFINITE})
    elif is_dataclass(result) and type(result).__module__.startswith("ssnmf_fast"):
        names = {field.name for field in fields(result)} - INFINITE
        yield from numbers({name: getattr(result, name) for name in names})


def outcome(door, Z):
    """Return the numbers of a result, or the error that came in its place."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return list(numbers(door.call(Z)))
    except Exception as error:
        return error
    finally:
        if "matplotlib.pyplot" in sys.modules:
            sys.modules["matplotlib.pyplot"].close("all")


@cache
def of_base(name):
    door = next(door for door in doors() if door.name == name)
    return outcome(door, door.way.base.copy())


def complaint(door, form):
    """Return what is wrong with the outcome of a form, and whether it was refused."""
    base = door.way.base
    Z = (base.copy(),) if form == "base" else forms.made(form, base)
    if Z is None:
        return "", False
    found = outcome(door, Z[0])
    if isinstance(found, Exception):
        text = f"{type(found).__name__}: {' '.join(str(found).split())}"
        kinds = (ValueError, TypeError, PROMISED.get(door.name.rpartition(" ")[0], ValueError))
        good = isinstance(found, kinds) and (form != "base" or NOT_TAKEN.match(door.name))
        if form in forms.BROKEN and not RENAMED.match(door.name):
            good = good and (door.argument in text or "inconsistent numbers of samples" in text)
        return ("" if good else text), True
    if form in forms.BROKEN and not UNREAD.match(door.name):
        return "accepted", False
    if not all(np.isfinite(part).all() for part in found):
        return "not finite", False
    if form in forms.ALIKE and not (form == "list" and door.argument == "y"):  # labels of each
        expected = of_base(door.name)
        if isinstance(expected, Exception) or not alike(found, expected):
            return "another result", False
    return "", False


def alike(found, expected):
    return len(found) == len(expected) and all(
        a.shape == b.shape and np.allclose(a, b, rtol=1e-5, atol=1e-7)
        for a, b in zip(found, expected, strict=True)
    )


def judge(step, case):
    """Judge case number `case` of those that are chosen with a step."""
    door, form = chosen(step)[case]
    text, refused = complaint(door, form)
    if text:
        return "FAILED", f"{door.name} {form}: {text}"
    return ("refused" if refused else "right"), ""


def randomly_damaged(rng):
    """Return a call with a matrix that is damaged at random: it may be taken, or refused."""
    matrices = [door for door in doors() if door.way.base.ndim == 2]
    door = matrices[rng.integers(len(matrices))]
    formats = ("csr",) if door.label == "file of open_csr" else forms.FORMATS
    if door.label.startswith("file ") and len(formats) > 1:
        formats = ("csr", "csc", "bsr", "coo", "dia")
    Z = getattr(sp, f"{rng.choice(formats)}_{rng.choice(['array', 'matrix'])}")(door.way.base)
    done = [forms.randomly_damaged(Z, rng) for _ in range(rng.integers(1, 4))]

    def compute(given, n_threads):
        found = outcome(door, given["Z"])
        known = (ValueError, TypeError, MemoryError, PROMISED.get(door.name[:-2], ValueError))
        wrong = isinstance(found, Exception) and not isinstance(found, known)
        return {"differences": [f"{Z.format}, {', '.join(done)}: {found!r}"] if wrong else []}

    return Call(f"damaged {door.name}", {"Z": Z}, compute, lambda found: found["differences"])
