"""The border of the data: a matrix is checked once, on a short way to the kernels."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.each import each
from helpers.levels import IS_REFERENCE
from helpers.levels import kernels_in_use as kernels
from helpers.refused import refused
from sklearn.base import clone

import ssnmf_fast as sf

PACKAGE = str(Path(sf.__file__).parent)
X = np.random.default_rng(0).random((30, 12))
LABELS = np.eye(3)[np.arange(30) % 3]
FORMS = {"dense": lambda: X.copy(), "sparse": lambda: sp.csr_array(X * (X > 0.5))}


@pytest.fixture
def passes(monkeypatch):
    """The functions of the package on the stack of every pass over the data."""
    stacks = []

    def watch(name):
        kernel = getattr(kernels, name)

        def watched(*arguments):
            frame, stack = sys._getframe(1), []
            while frame is not None:
                if frame.f_code.co_filename.startswith(PACKAGE):
                    stack.append(frame.f_code.co_name)
                frame = frame.f_back
            stacks.append(stack[::-1])
            return kernel(*arguments)

        monkeypatch.setattr(kernels, name, watched)

    iterations = () if IS_REFERENCE else ("dense_iterations", "sparse_iterations")
    for name in ("dense_pass", "sparse_pass", *iterations):
        watch(name)
    return stacks


def checks_of(call, *arguments, **options):
    """Return how often a call checks a matrix of the shape of X."""
    found = []

    def watch(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_name == "check_matrix":
            assert code.co_filename.startswith(PACKAGE)
            found.append(np.shape(frame.f_locals["X"]) == X.shape)

    sys.setprofile(watch)
    try:
        call(*arguments, **options)
    finally:
        sys.setprofile(None)
    return sum(found)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler", 1.5])
def test_six_calls_from_factorize_to_a_pass(passes, form, loss):
    options = {"loss": loss, "init": "random", "random_state": 0, "max_iter": 3}
    sf.factorize(FORMS[form](), LABELS, n_components=3, solver="mm", **options)
    stack = next(stack for stack in passes if "iterate" in stack)
    assert stack == ["factorize", "fit", "run", "advance", "iterate", "majorizer", "power"]


@pytest.mark.compiled("the reference has no such kernel")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_one_call_of_a_kernel_for_all_iterations_between_two_checks(passes, form, loss):
    options = {"loss": loss, "init": "random", "random_state": 0, "tol": 0, "max_iter": 25}
    sf.factorize(FORMS[form](), n_components=3, solver="mm", **options)
    found = [stack for stack in passes if "leap" in stack]
    assert found == 3 * [["factorize", "fit", "run", "advance", "leap", *2 * ["iterations"]]]


@pytest.mark.slow
@each("form", FORMS)
@each("init", ["random", "least-squares", "nndsvda", "random-acol"])
def test_data_are_checked_once(form, init):
    Z, options = FORMS[form](), {"init": init, "random_state": 0, "max_iter": 2}
    assert checks_of(sf.factorize, Z, n_components=3, **options) == 1
    assert checks_of(sf.represent, Z, X[:3]) == 1
    if init != "nndsvda":
        assert checks_of(sf.factorize, Z, n_components=3, n_starts=3, **options) == 1


MODELS = {
    "NMF": sf.NMF(n_components=3, max_iter=2, tol=0, random_state=0),
    "FewLabelsClassifier": sf.FewLabelsClassifier(max_iter=2, tol=0, random_state=0),
    "SSNMFClassifier": sf.SSNMFClassifier(n_components=3, max_iter=2, tol=0, random_state=0),
    "supports": sf.SSNMFClassifier(3, supervision_weight=np.inf, max_iter=2, tol=0, random_state=0),
    "papers": sf.SSNMFClassifier(3, supervision_weight=1.0, max_iter=2, tol=0, random_state=0),
    "SSNMFRegressor": sf.SSNMFRegressor(n_components=3, max_iter=2, tol=0, random_state=0),
    "TopicSupervisedNMF": sf.TopicSupervisedNMF(max_iter=2, tol=0, random_state=0),
    "MarginNMF": sf.papers.MarginNMF(n_components=3, max_iter=2, tol=0, random_state=0),
    "ConstrainedNMF": sf.papers.ConstrainedNMF(n_components=3, max_iter=2, tol=0, random_state=0),
}


@pytest.mark.slow
@each("form", FORMS)
@each("name", ["NMF", "SSNMFClassifier", "supports", "papers", "FewLabelsClassifier"])
def test_fits_check_their_data_once(name, form):
    """Also where many trials are fitted to them."""
    y = np.where(np.arange(30) % 3, np.arange(30) % 2, -1)
    assert checks_of(clone(MODELS[name]).fit, FORMS[form](), y) == 1


@pytest.mark.slow
@each("form", FORMS)
@each("name", MODELS)
def test_methods_check_their_data_once(name, form):
    Z, y, model = FORMS[form](), np.arange(30) % 2, clone(MODELS[name])
    assert checks_of(model.fit, Z, y) == 1
    assert checks_of(model.fit_transform, Z, y) == 1
    assert checks_of(model.transform, Z) == 1
    if hasattr(model, "predict"):
        assert checks_of(model.predict, Z) == 1


def _holes(form):
    """A matrix with a missing entry, in a form in which programs hand it over."""
    pd = pytest.importorskip("pandas")
    Z = X.copy()
    Z[3, 2] = np.nan
    objects = Z.astype(object)
    objects[3, 2] = pd.NA if form == "NA" else None
    table = pd.DataFrame(Z)
    return {
        "NaN": lambda: Z,
        "NA": lambda: objects,
        "None": lambda: objects.tolist(),
        "masked": lambda: np.ma.masked_invalid(Z),
        "masked objects": lambda: np.ma.array(objects, mask=np.isnan(Z)),
        "frame of objects": lambda: pd.DataFrame(objects),
        "nullable": lambda: table.convert_dtypes(),
        "mixed": lambda: table.astype({0: object, 1: "Float64", 2: "category"}),
        "sparse": lambda: table.astype(pd.SparseDtype(float)),
    }[form]()


FORMS_OF_HOLES = ["NA", "None", "masked", "masked objects", "frame of objects", "nullable", "mixed"]
TAKING_NAN = {
    "factorize": lambda Z: sf.factorize(Z, n_components=2, **QUICK).A,
    "labels": lambda Z: sf.factorize(X, Z, n_components=2, **QUICK).B,
    "objective": lambda Z: sf.extend.objective(Z, np.ones((30, 2)), np.ones((2, 12))),
    "represent": lambda Z: sf.represent(Z, np.ones((1, 12))),
    "tensor": lambda Z: sf.factorize_tensor(Z, n_components=2, **QUICK).factors[0],
    "complete": lambda Z: sf.complete(Z, n_components=1, random_state=0).to_dense(),
    "imputer": lambda Z: sf.LowRankImputer(n_components=1, random_state=0).fit_transform(Z),
    "NMF": lambda Z: sf.NMF(2, **QUICK).fit(Z).components_,
    "targets": lambda Z: sf.SSNMFRegressor(2, **QUICK).fit(X, Z).components_,
}
QUICK = {"random_state": 0, "max_iter": 3, "tol": 0}


@pytest.mark.slow
@each("name", TAKING_NAN)
def test_missing_entries_are_taken_in_every_form(name):
    expected = TAKING_NAN[name](_holes("NaN"))
    for form in (*FORMS_OF_HOLES, "sparse"):
        np.testing.assert_allclose(TAKING_NAN[name](_holes(form)), expected, rtol=1e-12)


def test_frames_of_numbers_keep_names_and_sparsity():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(np.round(3 * X), columns=list("abcdefghijkl"))
    expected = sf.NMF(2, **QUICK).fit(table)
    for frame in (
        table.convert_dtypes(),
        table.astype({"a": bool, "b": "category"}).assign(a=table["a"]),
        table.astype(pd.SparseDtype(float, 0)),
        table.astype(pd.SparseDtype(float)),
    ):
        model = sf.NMF(2, **QUICK).fit(frame)
        assert model.feature_names_in_.tolist() == list("abcdefghijkl")
        np.testing.assert_allclose(model.components_, expected.components_, rtol=1e-9)
    text = table.astype({"c": str})
    for call in (lambda: sf.factorize(text, n_components=2), lambda: sf.NMF(2).fit(text)):
        refused(r"not numbers: 'c' \(X\[0, 2\] is '\d.0'\)", call, error=TypeError)


@pytest.mark.parametrize("text", ["4.0", "-1", "2,5", b"1e3"])
def test_numbers_in_texts_are_to_be_converted(text):
    pandas, X = pytest.importorskip("pandas"), np.full((3, 2), text, dtype=object)
    ratings = pandas.DataFrame({"user": [0, 1, 2], "item": [1, 2, 0], "rating": [text] * 3})
    pairs = {"columns": ("user", "item", "rating"), "n_components": 1, "gamma_min": 0.1}
    for call in (
        lambda: sf.NMF(1).fit(X),
        lambda: sf.LowRankImputer().fit(X),
        lambda: sf.factorize(pandas.DataFrame(X), n_components=1),
        lambda: sf.SSNMFRegressor(1).fit(np.eye(3), X[:, 0]),
        lambda: sf.complete(ratings, **pairs),
    ):
        with pytest.raises(TypeError, match=r"to_numeric or astype\(float\)") as error:
            call()
        assert "Tfidf" not in str(error.value)


def test_columns_that_are_no_numbers_are_named():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"size": [1.0, 2.0], "city": ["a", "b"], "height": [3, 4]})
    table["day"] = pandas.date_range("2020-01-01", periods=2)
    table["kind"] = pandas.Categorical(["x", "y"])
    way = r"'city', 'day', 'kind' \(X\[0, 1\] is 'a'\).*OneHotEncoder.*select_dtypes"
    for estimator in (sf.NMF(1), sf.LowRankImputer()):
        refused(way, estimator.fit, table, error=TypeError)
    with pytest.raises(TypeError, match=r"X has columns that are not numbers: 'day' "):
        sf.factorize(table[["day"]], n_components=1)
    mixed = table[["size", "height"]].astype(object)  # but numbers
    np.testing.assert_array_equal(sf.LowRankImputer().fit_transform(mixed), mixed)


NAMES = [f"gene{k}" for k in range(12)]
FRAME = pd.DataFrame(X + 0.1, [f"cell{k:02d}" for k in range(30)], NAMES)
PARTS = pd.DataFrame(np.random.default_rng(1).random((2, 12)), columns=NAMES)
MASK = pd.DataFrame(PARTS.to_numpy() > 0.3, columns=NAMES)
WEIGHTS, SEEN = FRAME.copy(), FRAME > 0.5
BATCH = pd.DataFrame({"batch": np.arange(30) % 2.0}, FRAME.index)
START = pd.DataFrame(np.random.default_rng(2).random((30, 2)), FRAME.index)
SETTINGS = {"n_components": 3, "max_iter": 5, "random_state": 0, "tol": 0}
ACROSS, DOWN, BOTH = (1,), (0,), (0, 1)


def fitted(table, kind=sf.NMF, **given):
    return kind(**SETTINGS, **given).fit(FRAME)


def fit(**tables):
    return sf.factorize(FRAME, **SETTINGS, **tables).A


# Calls with weights of the entries of X.
WEIGHTED = {
    "weights": lambda t: fit(X_weights=t),
    "relation": lambda t: (
        sf.extend.fit(
            [sf.extend.relation("a", "b", FRAME, weights=t)], n_components=2, random_state=0
        ).objective
    ),
    "NMF, weights": lambda t: sf.NMF(**SETTINGS).fit(FRAME, X_weights=t).components_,
    "transform": lambda t: fitted(0).transform(FRAME, X_weights=t),
    "fit_transform": lambda t: sf.NMF(**SETTINGS).fit_transform(FRAME, X_weights=t),
    "predict": lambda t: (
        sf.SSNMFClassifier(**SETTINGS)
        .fit(FRAME, np.arange(30) % 2)
        .predict_proba(FRAME, X_weights=t)
    ),
    "score": lambda t: fitted(0).score(FRAME, X_weights=t),
    "split_topic": lambda t: sf.trees.split_topic(fitted(0), 0, 2, FRAME, X_weights=t).components_,
    "choose_rank": lambda t: (
        sf.choose_rank(FRAME, [2, 3], X_weights=t, random_state=0, max_iter=5).scores
    ),
    "consensus": lambda t: (
        sf.consensus(FRAME, 2, n_starts=4, X_weights=t, random_state=0).components
    ),
}
# Calls with a second table, and the axes of it that have the names of X.
MATCHED = {
    "represent": (lambda t: sf.represent(FRAME, t), PARTS, ACROSS),
    "represent, covariates": (lambda t: sf.represent(FRAME, PARTS, covariates=t), BATCH, DOWN),
    "represent, init": (
        lambda t: sf.represent(FRAME, PARTS, init=t, loss=0.5, tol=0.1),
        START,
        DOWN,
    ),
    "fixed": (lambda t: fit(fixed_components=t), PARTS, ACROSS),
    "A_support": (lambda t: fit(A_support=pd.concat([t, t[:1]])), MASK, ACROSS),
    "S_support": (lambda t: fit(S_support=t), FRAME[NAMES[:3]] > 0.2, DOWN),
    "covariates": (lambda t: fit(covariates=t), BATCH, DOWN),
    "feature_labels": (
        lambda t: fit(feature_labels=t, supervision_weight=1.0),
        (PARTS > 0.5).T.astype(float),
        DOWN,
    ),
    "init": (lambda t: fit(init=(FRAME.to_numpy()[:, :3], pd.concat([t, t[:1]]))), PARTS, ACROSS),
    "observed": (lambda t: fit(X_weights=sf.weights.observed(t)), SEEN, BOTH),
    "missing": (lambda t: fit(X_weights=sf.weights.missing(t)), SEEN, BOTH),
    "base": (lambda t: fit(X_weights=sf.weights.base(0.1, t)), SEEN, BOTH),
    "outer, columns": (lambda t: fit(X_weights=sf.weights.outer(columns=t)), PARTS.loc[0], DOWN),
    "outer, rows": (lambda t: fit(X_weights=sf.weights.outer(rows=t)), BATCH["batch"] + 1, DOWN),
    "objective": (lambda t: sf.extend.objective(FRAME, START, t), PARTS, ACROSS),
    "objective, S": (lambda t: sf.extend.objective(FRAME, t, PARTS), START, DOWN),
    "NMF, fixed": (lambda t: fitted(t, fixed_components=t).components_, PARTS, ACROSS),
    "NMF, support": (
        lambda t: fitted(t, A_support=pd.concat([t, t[:1]])).components_,
        MASK,
        ACROSS,
    ),
    "NMF, batches": (
        lambda t: sf.NMF(**SETTINGS, fixed_components=t).partial_fit(FRAME).components_,
        PARTS,
        ACROSS,
    ),
    "choose_rank, estimator": (
        lambda t: (
            sf.choose_rank(
                FRAME, [2, 3], estimator=sf.NMF(fixed_components=t, max_iter=5), random_state=0
            ).scores
        ),
        PARTS,
        ACROSS,
    ),
    "complete": (lambda t: sf.complete(FRAME, observed=t, random_state=0).to_dense(), SEEN, BOTH),
    "coherence": (
        lambda t: sf.metrics.topic_coherence(FRAME > 0.5, t, n_terms=4).per_topic,
        PARTS,
        ACROSS,
    ),
    **{name: (call, WEIGHTS, BOTH) for name, call in WEIGHTED.items()},
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@each("name", MATCHED)
def test_second_tables_are_matched_by_name(name):
    call, table, axes = MATCHED[name]
    expected = call(table)
    for axis in axes:
        names = list(table.axes[axis])
        np.testing.assert_array_equal(call(table.reindex(names[::-1], axis=axis)), expected)
        strange = table.rename({names[0]: "strange"}, axis=axis)
        for wrong, word in (
            (table.drop(names[:2], axis=axis), f"lacks .*{names[0]}"),
            (pd.concat([table, strange.take([0], axis=axis)], axis=axis), "not have: 'strange'"),
            (pd.concat([table, table.take([3], axis=axis)], axis=axis), f"repeats .*{names[3]}"),
        ):
            refused(word, call, wrong)


def test_columns_of_a_representation_and_nodes_of_a_graph_are_matched():
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(12)])
    model = sf.NMF(3, random_state=0).set_output(transform="pandas").fit(frame)
    S = model.transform(frame)
    expected = S.to_numpy() @ model.components_
    assert_allclose = np.testing.assert_allclose
    assert_allclose(model.inverse_transform(S[S.columns[::-1]]), expected, rtol=1e-6)
    assert_allclose(model.inverse_transform(S.set_axis(list("abc"), axis=1)), expected, rtol=1e-6)
    chain = pd.DataFrame(np.eye(4, k=1) + np.eye(4, k=-1), list("abcd"), list("abcd"))
    same = sf.penalties.Graph(1.0, chain), sf.penalties.Graph(1.0, chain[list("cadb")])
    assert (same[0].weights != same[1].weights).nnz == 0
    with pytest.raises(ValueError, match="graph lacks columns of its rows: 'd'"):
        sf.penalties.Graph(1.0, chain.rename(columns={"d": "e"}))


def test_numbers_are_positions_unless_they_are_those_of_X():
    plain = FRAME.reset_index(drop=True)
    start = sf.represent(plain, PARTS, covariates=BATCH)
    other = BATCH.reset_index(drop=True)
    np.testing.assert_array_equal(sf.represent(plain, PARTS, covariates=other), start)
    with pytest.raises(ValueError, match=r"covariates has the labels .* another order"):
        sf.represent(plain, PARTS, covariates=other[::-1])


def test_a_fit_with_names_is_verified_with_the_table_in_any_order():
    model = fitted(0, fixed_components=PARTS)
    for table in (PARTS, PARTS[NAMES[::-1]]):
        assert sf.verify(model, FRAME, fixed_components=table)
        found = sf.factorize(FRAME, **SETTINGS, fixed_components=table)
        assert sf.verify(found, FRAME, fixed_components=PARTS)


@each(
    "call",
    [
        lambda names: sf.SeededTopics({"a": NAMES[:1], "b": NAMES[1:2]}, feature_names=names).fit(
            FRAME
        ),
        lambda names: fitted(0).topics(names),
        lambda names: sf.trees.TopicTree(fitted(0), names),
    ],
)
def test_names_of_the_fit_in_another_order_are_refused(call):
    refused("feature_names has the names of the fit in another order", call, NAMES[::-1])


TENSOR = np.ones((3, 4, 2))
SWAPPED = {  # calls with the data in the place of the rank
    "tensor": lambda: sf.factorize_tensor(3, n_components=TENSOR),
    "factorize": lambda: sf.factorize(3, n_components=X),
    "NMF": lambda: sf.NMF(X).fit(3),
    "NMF and X": lambda: sf.NMF(X).fit(X),
    "NonnegativeCP": lambda: sf.NonnegativeCP(TENSOR).fit(TENSOR),
    "consensus": lambda: sf.consensus(3, X),
    "complete": lambda: sf.complete(X, n_components=X),
}


@each("name", SWAPPED)
def test_swapped_arguments_are_named(name):
    with pytest.raises((TypeError, ValueError), match=r"in another order\?|in the place of X\?"):
        SWAPPED[name]()
