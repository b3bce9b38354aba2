"""Sparse matrices whose parts do not fit together, and every argument that takes a matrix.

Runs as a program too, so that a crash ends a child process only:

    python broken_matrices.py FOLDER GROUP:FORMATS... [random:SEED,FIRST,LAST]

tries every damage to the arguments of a group in matrices of these formats, and random cases of
these numbers.
"""

from __future__ import annotations

import io
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp

FORMATS = ("csr", "csc", "bsr", "coo", "lil", "dok", "dia")

rng = np.random.default_rng(0)
D = np.where(rng.random((12, 8)) < 0.5, rng.random((12, 8)), 0.0)
D[:, 0] = 0.5  # neither an empty row nor an empty line of blocks
S = rng.random((12, 3))
A = rng.random((3, 8))
y = np.arange(12) % 3
Y = np.eye(3)[y]
HALF = (rng.random((12, 8)) < 0.5).astype(float)
HALF[:, 0] = 1.0


def _put(part, place, value):
    def change(Z):
        array = getattr(Z, part).copy()
        array[place] = value
        setattr(Z, part, array)

    return change


def _cut(part):
    def change(Z):
        setattr(Z, part, getattr(Z, part)[:-2])

    return change


def _converted(part, dtype):
    def change(Z):
        setattr(Z, part, getattr(Z, part).astype(dtype))

    return change


def coordinates(Z):
    return list(Z.coords) if hasattr(Z, "coords") else [Z.row, Z.col]


def set_coordinates(Z, pair):
    if hasattr(Z, "coords"):
        Z.coords = tuple(pair)
    else:  # SciPy before 1.13
        Z.row, Z.col = pair


def _coordinate(side, value):
    def change(Z):
        pair = coordinates(Z)
        pair[side] = pair[side].copy()
        pair[side][1] = value
        set_coordinates(Z, pair)

    return change


def _shape(Z):
    Z._shape = (Z.shape[0] // 2, Z.shape[1] // 2)


def _list(part, values):
    def change(Z):
        getattr(Z, part)[2] = values

    return change


def _key(key):
    def change(Z):
        dict.__setitem__(getattr(Z, "_dict", Z), key, 1.0)

    return change


COMPRESSED = {
    "far": _put("indices", 3, 10**6),
    "near": _put("indices", 3, 12),
    "negative": _put("indices", 3, -1),
    "far below": _put("indices", 3, -(10**6)),
    "end": _put("indptr", -1, 10**6),
    "begin": _put("indptr", 0, 2),
    "below 0": _put("indptr", 0, -5),
    "falls": _put("indptr", 1, 10**6),
    "short indptr": _cut("indptr"),
    "short indices": _cut("indices"),
    "short data": _cut("data"),
    "real": _converted("indices", float),
    "shape": _shape,
}
DAMAGES = {
    "csr": COMPRESSED,
    "csc": COMPRESSED,
    "bsr": COMPRESSED,
    "coo": {
        "far": _coordinate(0, 10**6),
        "near": _coordinate(1, 12),
        "negative": _coordinate(0, -1),
        "short data": _cut("data"),
        "shape": _shape,
    },
    "lil": {
        "far": _list("rows", [10**6]),
        "negative": _list("rows", [-1]),
        "longer": _list("data", [1.0] * 1000),
        "none": _list("rows", None),
    },
    "dok": {"far": _key((10**6, 0)), "negative": _key((0, -3)), "short": _key((1,))},
    "dia": {"short": _cut("offsets"), "short data": _cut("data")},
}


def damaged(base, form, damage, is_array=True):
    """Return a dense matrix in a format, with a damage."""
    kind = getattr(sp, f"{form}_{'array' if is_array else 'matrix'}")
    Z = kind(base)
    DAMAGES[form][damage](Z)
    return Z


# Every argument: its base, the name that an error must hold, and the call.


def functions():
    import ssnmf_fast as sf

    few = {"n_components": 2, "max_iter": 2, "n_threads": 1}
    observed, missing = sf.weights.observed, sf.weights.missing
    masked = [(D, "X_weights", w) for w in (observed, missing, partial(sf.weights.base, 0.5))]
    yield D, "X", lambda Z: sf.factorize(Z, **few)
    yield Y, "y", lambda Z: sf.factorize(D, Z, **few)
    yield HALF, "X_weights", lambda Z: sf.factorize(D, X_weights=Z, **few)
    yield (Y > 0) * 1.0, "S_support", lambda Z: sf.factorize(D, S_support=Z, **few)
    yield S, "init", lambda Z: sf.factorize(D, init=(Z, A), **{**few, "n_components": 3})
    for base, name, form in masked:
        yield base, name, lambda Z, w=form: sf.factorize(D, X_weights=w(Z), **few)
        yield base, name, lambda Z, w=form: sf.factorize(sp.csr_array(D), X_weights=w(Z), **few)
        yield base, name, lambda Z, w=form: sf.represent(D, A, X_weights=w(Z))
        yield Y, "y_weights", lambda Z, w=form: sf.factorize(D, Y, y_weights=w(Z), **few)
    yield D, "X", lambda Z: sf.extend.objective(Z, S, A)
    yield S, "S", lambda Z: sf.extend.objective(D, Z, A)
    yield D, "X", lambda Z: sf.represent(Z, A)
    yield A, "A", lambda Z: sf.represent(D, Z)
    yield S, "init", lambda Z: sf.represent(D, A, init=Z)
    for method in ("irls", "structured-sirls"):
        yield D, "M", lambda Z, m=method: sf.complete(Z, method=m, n_components=1, max_iter=2)
    yield D, "M", lambda Z: sf.complete(Z, method="nnm", max_iter=2)
    yield HALF, "observed", lambda Z: sf.complete(D, observed=Z, n_components=1, max_iter=2)
    yield (
        HALF,
        "observed",
        lambda Z: sf.complete(sp.csr_array(D), observed=Z, n_components=1, max_iter=2),
    )
    yield D, "X", lambda Z: sf.linalg.randomized_svd(Z, 2)
    yield D, "sparse", lambda Z: sf.linalg.LowRankPlusSparse(Z, S, A)
    yield S, "left", lambda Z: sf.linalg.LowRankPlusSparse(sp.csr_array(D), Z, A)
    quick = {"n_starts": 1, "n_splits": 1, "max_iter": 2}
    yield D, "X", lambda Z: sf.choose_rank(Z, [2], **quick)
    yield HALF, "X_weights", lambda Z: sf.choose_rank(D, [2], X_weights=Z, **quick)
    for base, name, form in masked:
        yield base, name, lambda Z, w=form: sf.choose_rank(D, [2], X_weights=w(Z), **quick)


def estimators():
    import ssnmf_fast as sf

    common = {"max_iter": 2, "random_state": 0, "n_threads": 1}
    weights = (sf.weights.observed, sf.weights.missing, partial(sf.weights.base, 0.5))
    rank = {"n_components": 3, **common}
    models = [
        sf.NMF(**rank),
        sf.SSNMFClassifier(**rank),
        sf.SSNMFRegressor(**rank),
        sf.papers.MarginNMF(**rank),
        sf.papers.ConstrainedNMF(**rank),
        sf.TopicSupervisedNMF(**common),
        sf.SeededTopics(**common),
        sf.BayesianNMF(**rank),
        sf.papers.SupervisedBayesianNMF(**rank),
    ]
    targets = (sf.SSNMFClassifier, sf.SSNMFRegressor, sf.papers.MarginNMF, sf.TopicSupervisedNMF)
    for model in models:
        fitted = type(model)(**model.get_params()).fit(D, y)
        yield D, "X", lambda Z, m=model: m.fit(Z, y)
        yield D, "X", lambda Z, m=model: m.fit_transform(Z, y)
        yield D, "X", fitted.transform
        yield S, "", fitted.inverse_transform
        if hasattr(fitted, "predict"):
            yield D, "X", fitted.predict
            yield D, "X", lambda Z, m=fitted: m.score(Z, y)
        if isinstance(model, targets):
            several = type(model)(**model.get_params()).fit(D, Y)
            yield Y, "y", lambda Z, m=model: m.fit(D, Z)
            yield Y, "y", lambda Z, m=several: m.score(D, Z)
        if hasattr(model, "partial_fit"):
            new = type(model)(**model.get_params())
            yield D, "X", lambda Z, m=new: m.partial_fit(Z, Y)
            if not isinstance(model, sf.NMF):
                yield Y, "y", lambda Z, m=new: m.partial_fit(D, Z)
        for form in weights:
            if "Bayesian" in type(model).__name__:
                continue
            yield D, "X_weights", lambda Z, m=model, w=form: m.fit(D, y, X_weights=w(Z))
            yield D, "X_weights", lambda Z, m=fitted, w=form: m.transform(D, X_weights=w(Z))
    yield S, "alpha", lambda Z: sf.papers.MarginNMF(**rank).fit(D, alpha=Z)
    imputer = sf.LowRankImputer(n_components=1, max_iter=2)
    yield D, "", imputer.fit
    yield D, "", sf.LowRankImputer(n_components=1, max_iter=2).fit(D).transform


def reports():
    import ssnmf_fast as sf
    from ssnmf_fast import metrics

    yield D, "X", lambda Z: metrics.topic_coherence(Z, A, n_terms=2)
    yield A, "components", lambda Z: metrics.topic_coherence(D, Z, n_terms=2)
    yield A, "components", metrics.topic_diversity
    yield A, "components", metrics.topic_exclusivity
    for measure in (metrics.clustering_score, metrics.match_topics, metrics.jaccard_similarity):
        yield S, "S", lambda Z, f=measure: f(Z, y)
        yield Y, "truth", lambda Z, f=measure: f(S, Z)
    yield S, "S", lambda Z: metrics.inter_label_sparsity(Z, y)
    yield Y, "labels", lambda Z: metrics.inter_label_sparsity(S, Z)
    yield S, "x", metrics.hoyer_sparsity
    try:
        from ssnmf_fast import plotting
    except ImportError:
        return
    model = sf.NMF(n_components=3, max_iter=2).fit(D)
    yield S, "S", lambda Z: plotting.representation_map(Z, y)
    yield Y, "y", lambda Z: plotting.representation_map(S, Z)
    yield D, "X", lambda Z: plotting.label_map(model.transform(Z), y)
    yield Y, "y", lambda Z: plotting.label_map(S, Z)


def files(folder):
    """The command reads a file; its answer becomes an error again."""
    import ssnmf_fast as sf
    from ssnmf_fast.cli import main

    path, model = folder / "X.npz", folder / "model"

    def command(*arguments):
        output = io.StringIO()
        with redirect_stdout(output), redirect_stderr(output):
            if main([str(argument) for argument in arguments]):
                raise ValueError(output.getvalue())

    np.save(folder / "good.npy", D)
    command("fit", folder / "good.npy", "--out", model, "--rank", 2, "--model", "nmf")

    def write(Z):
        names = {"coo": ("row", "col"), "dia": ("offsets",)}
        parts = {part: getattr(Z, part) for part in names.get(Z.format, ("indptr", "indices"))}
        np.savez(path, data=Z.data, format=Z.format.encode(), shape=Z.shape, **parts)

    def reading(before, after):
        def run(Z):
            write(Z)
            command(*before, path, *after)

        return run

    def open_directory(Z):
        for part in ("indptr", "indices", "data"):
            np.save(folder / f"{part}.npy", getattr(Z, part))
        sf.io.open_csr(folder, n_features=Z.shape[1])

    yield D, "", reading(["fit", "--rank", 2, "--model", "nmf"], ["--out", folder / "out"])
    yield D, "", reading(["complete", "--rank", 1], ["--out", folder / "out.npy"])
    yield D, "", reading(["predict", model], ["--out", folder / "out.csv"])
    yield D, "", open_directory


GROUPS = {"functions": functions, "estimators": estimators, "reports": reports, "files": files}
IN_FILES = ("csr", "csc", "bsr", "coo", "dia")


def arguments_of(group, folder):
    return list(files(folder) if group == "files" else GROUPS[group]())


def applies(group, number, form, damage):
    """Whether a damage can be written to a file, and hurts there."""
    if group != "files":
        return True
    fits = form == "csr" if number == 3 else form in IN_FILES
    # SciPy writes whole numbers of any dtype as integers; a directory has no shape.
    return fits and form != "dia" and damage != "real" and (number, damage) != (3, "shape")


def outcome(call, Z):
    """Return what became of a call: "ok", or the exception's class and text."""
    try:
        call(Z)
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace("\n", " ")
    return "ok"


def systematic(group, arguments, formats):
    for number, (base, name, call) in enumerate(arguments):
        for form in formats:
            for damage in DAMAGES[form]:
                if not applies(group, number, form, damage):
                    continue
                print(f"{group} {number} {form} {damage}|{name}|", end="", flush=True)
                print(outcome(call, damaged(base, form, damage)), flush=True)


def random_cases(arguments, seed, first, last):
    everything = [
        (f"{group} {number}", base, call)
        for group in GROUPS
        for number, (base, _, call) in enumerate(arguments[group])
    ]
    for case in range(first, last):
        chance = np.random.default_rng((seed, case))
        place, base, call = everything[chance.integers(len(everything))]
        form = str(chance.choice(IN_FILES if place.startswith("files") else FORMATS))
        if place == "files 3":
            form = "csr"
        Z = getattr(sp, f"{form}_{chance.choice(['array', 'matrix'])}")(base)
        done = [randomly_damaged(Z, chance) for _ in range(chance.integers(1, 4))]
        print(f"random {case} {place} {form} {', '.join(done)}||", end="", flush=True)
        print(outcome(call, Z), flush=True)


def randomly_damaged(Z, chance):
    """Change a part of a matrix at random; say how."""
    names = ("data", "indptr", "indices", "offsets", "rows")
    part = str(chance.choice([name for name in names if hasattr(Z, name)] or ["_shape"]))
    array = getattr(Z, part)
    how = str(chance.choice(["value", "longer", "shorter", "type", "shape", "order"]))
    extreme = [-1, -(2**31), 2**31 - 1, 10**6, 0, 7, 8, 11, 12, 13, int(chance.integers(-99, 99))]
    value = extreme[chance.integers(len(extreme))]
    try:
        if Z.format == "coo" and how in ("value", "order"):
            _coordinate(int(chance.integers(2)), value)(Z)
        elif Z.format == "dok":
            _key((value, int(chance.integers(-3, 12))))(Z)
        elif Z.format == "lil" and how == "value":
            Z.rows[chance.integers(len(Z.rows))] = [value]
        elif how == "value":
            _put(part, chance.integers(len(array)), value)(Z)
        elif how == "longer":
            setattr(Z, part, np.concatenate([array, array[: chance.integers(1, 4)]]))
        elif how == "shorter":
            setattr(Z, part, array[: chance.integers(0, len(array))])
        elif how == "type":
            kinds = [">i4", ">f8", np.int8, np.uint64, np.float32, np.int64, bool, complex, object]
            setattr(Z, part, array.astype(kinds[chance.integers(len(kinds))]))
        elif how == "shape":
            Z._shape = tuple(int(size) for size in chance.integers(0, 20, 2))
        else:
            setattr(Z, part, array[:: chance.choice([-1, 2])])
    except Exception as error:  # some parts cannot be set so
        return f"{part} {how} refused ({type(error).__name__})"
    return f"{part} {how}"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    everywhere = {group: arguments_of(group, Path(sys.argv[1])) for group in GROUPS}
    for asked in sys.argv[2:]:
        group, _, extent = asked.partition(":")
        if group == "random":
            random_cases(everywhere, *map(int, extent.split(",")))
        else:
            systematic(group, everywhere[group], extent.split(","))
