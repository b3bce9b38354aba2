"""Bad input: a clear error that names the argument."""

import warnings
from functools import partial
from inspect import signature

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from helpers.refused import refused

import ssnmf_fast as sf
from ssnmf_fast import estimators

GOOD = np.arange(20.0).reshape(5, 4)


SECRETS = [f"secret{k}" for k in range(300)]


@pytest.mark.parametrize("given", [SECRETS, dict.fromkeys(SECRETS, SECRETS[:9]), "secret " * 999])
def test_messages_never_hold_the_data(given):
    """Whatever is given in place of an argument, a message has a few entries of it at most."""
    ratings = ([0, 1, 2], [0, 1, 2], [1.0, 2.0, 3.0])
    few = sf.FewLabelsClassifier(max_iter=1)
    calls = {
        sf.factorize: {"X": GOOD, "n_components": 2, "max_iter": 1},
        sf.complete: {"M": ratings, "rank": 1, "max_iter": 1},
        sf.represent: {"X": GOOD, "A": np.ones((2, 4))},
        sf.choose_rank: {"X": GOOD, "ranks": [1], "n_splits": 1, "n_starts": 1, "max_iter": 1},
        sf.metrics.clustering_score: {"S": GOOD, "labels": [0, 1, 0, 1, 0]},
        partial(fitted, sf.NMF): {"n_components": 2, "max_iter": 1},
        partial(fitted, sf.SeededTopics): {"seeds": {"a": [0], "b": [1]}, "max_iter": 1},
        partial(fitted, sf.papers.ConstrainedNMF): {"n_components": 2, "max_iter": 1},
        partial(fitted, sf.HierarchicalClassifier): {"estimator": few},
    }
    messages = []
    for call, arguments in calls.items():
        model = call.args[0] if isinstance(call, partial) else None
        names = [*signature(call if model is None else model).parameters]
        for name in [*names, *(("X", "y") if model else ())]:
            if name in ("folder", "self"):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    call(**{**arguments, name: given})
                except (TypeError, ValueError) as error:
                    messages.append((len(str(error)), str(error)[:200]))
    assert len(messages) > 50
    assert max(messages)[0] < 700, max(messages)


def fitted(kind, *, X=GOOD, y=("a", "b", "a", "b", None), **parameters):
    return kind(**parameters).fit(X, None if kind is sf.SeededTopics else y)


@pytest.mark.parametrize(
    ("kind", "first"),
    [
        ("SeededTopics", {"seeds": {"a": [0], "b": [1]}}),
        ("MarginNMF", {}),
        ("BayesianNMF", {}),
        ("SupervisedBayesianNMF", {}),
    ],
)
def test_models_of_complete_data_name_those_that_take_holes(kind, first):
    model, y = getattr(estimators, kind)(**first), [0, 1, 0, 1, -1]
    for form in (np.asarray, sp.csr_array, sp.coo_array):
        with pytest.raises(ValueError, match=rf"X contains NaN, but {kind} does not .* use NMF"):
            model.fit(form(changed((2, 1), np.nan)), y)
    texts = np.array([["a whole document " * 100] * 4] * 5, dtype=object)
    with pytest.raises(
        TypeError, match=r"X\[0, 0\] is 'a whole .*, not a number: .*TfidfVectorizer"
    ):
        model.fit(texts, y)


def changed(position, value):
    X = GOOD.copy()
    X[position] = value
    return X


@each(
    ("arguments", "error", "message"),
    [
        ({"X": changed((2, 1), -3.0)}, ValueError, r"X\[2, 1\] = -3"),
        ({"X": sp.csr_array(changed((2, 1), -3.0))}, ValueError, r"X\[2, 1\] = -3"),
        ({"X": changed((0, 3), np.inf)}, ValueError, r"X contains infinity at \[0, 3\]"),
        ({"X": sp.csr_array(changed((1, 1), np.nan))}, ValueError, r"X contains NaN at \[1, 1\]"),
        ({"X": GOOD[0]}, ValueError, "X must have two dimensions"),
        ({"X": GOOD[:0]}, ValueError, "at least one sample"),
        ({"X": GOOD.astype(complex)}, TypeError, "X has dtype complex128"),
        ({"X": np.full((5, 4), "a", object)}, TypeError, r"X\[0, 0\] is 'a', not a number"),
        ({"X": GOOD.astype(str)}, TypeError, "X has dtype <U"),
        ({"X": 1e200 * GOOD}, ValueError, "multiply X by 1e-201"),
        ({"n_components": 0}, ValueError, "n_components must be at least 1; got 0"),
        ({"n_components": 2.5}, TypeError, "n_components must be an integer"),
        ({"supervision_weight": -1.0}, ValueError, "supervision_weight must be finite"),
        ({"supervision_weight": "equal"}, ValueError, "'balanced'"),
        ({"loss": "l1"}, ValueError, "loss must be one of 'frobenius'"),
        ({"supervision_loss": "l1"}, ValueError, "supervision_loss must be one of"),
        ({"solver": "newton"}, ValueError, "solver must be one of 'auto', 'mm', 'mu', 'hals'"),
        ({"init": "zeros"}, ValueError, "init must be one of 'auto', 'random', 'least-squares'"),
        ({"init": (np.ones((5, 2)),)}, ValueError, r"\(S, A\)"),
        ({"init": (np.ones((5, 2)), np.ones((3, 4)))}, ValueError, r"init\[1\] \(A\) has shape"),
        ({"init": (-np.ones((5, 2)), np.ones((2, 4)))}, ValueError, r"init\[0\] \(S\)"),
        ({"max_iter": -1}, ValueError, "max_iter must be at least 0"),
        ({"tol": -1e-3}, ValueError, "tol must be finite and at least 0"),
        ({"random_state": "seed"}, ValueError, "random_state must be"),
        ({"n_threads": 0}, ValueError, "n_threads must be at least 1"),
        ({"n_threads": "two"}, TypeError, "n_threads must be an integer"),
        ({"y": np.ones((4, 2))}, ValueError, r"y has shape \(4, 2\); expected 5 rows"),
        ({"y": -np.ones((5, 2))}, ValueError, r"y\[0, 0\] = -1"),
        ({"y_weights": np.ones((5, 2))}, ValueError, "y_weights are given without y"),
        ({"X_weights": np.ones((5, 3))}, ValueError, r"X_weights has shape \(5, 3\)"),
        ({"X_weights": -np.ones((5, 4))}, ValueError, r"X_weights\[0, 0\] = -1"),
        ({"X_weights": changed((0, 0), np.nan)}, ValueError, "X_weights contains NaN"),
        ({"X_weights": sp.eye_array(5, 4)}, TypeError, "weights.observed"),
        ({"X_weights": sf.weights.outer([1, 2])}, ValueError, "X_weights.rows has shape"),
        (
            {"X_weights": sf.weights.outer(None, [1, 2, 3, -1])},
            ValueError,
            r"X_weights.columns\[3\] = -1",
        ),
        ({"X_weights": sf.weights.observed(sp.eye_array(3))}, ValueError, "X_weights has shape"),
        ({"X_weights": sf.weights.base(1, sp.eye_array(3))}, ValueError, "X_weights has shape"),
        ({"X_weights": sf.weights.base(1, -np.ones((5, 4)))}, ValueError, r"X_weights\[0, 0\] ="),
        ({"X_weights": sf.weights.base(1, changed((0, 0), np.nan))}, ValueError, "X_weights cont"),
        ({"X_weights": sf.weights.base(1e300, np.ones((5, 4)))}, ValueError, r"X_weights\.w0"),
        (
            {"X": changed((1, 1), np.nan), "X_weights": sf.weights.observed(sp.eye_array(5, 4))},
            ValueError,
            r"entry \[1, 1\] as observed, but it is NaN",
        ),
    ],
)
def test_factorize_refuses(arguments, error, message):
    refused(message, sf.factorize, error=error, **{"X": GOOD, "n_components": 2, **arguments})


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"A": np.ones((2, 3))}, ValueError, r"A has shape \(2, 3\)"),
        ({"A": -np.ones((2, 4))}, ValueError, r"A\[0, 0\] = -1"),
        ({"A": np.ones((0, 4))}, ValueError, "at least one component"),
        ({"loss": "l1"}, ValueError, "loss must be one of"),
        ({"tol": np.nan}, ValueError, "tol must be finite"),
    ],
)
def test_represent_refuses(arguments, error, message):
    refused(message, sf.represent, error=error, **{"X": GOOD, "A": np.ones((2, 4)), **arguments})


def test_objective_needs_both_label_arguments():
    with pytest.raises(ValueError, match="y and B must be given together"):
        sf.extend.objective(GOOD, np.ones((5, 2)), np.ones((2, 4)), y=np.ones((5, 1)))
