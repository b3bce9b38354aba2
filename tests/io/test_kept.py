"""What is kept can be used: every public attribute of every result survives files and copies."""

from __future__ import annotations

import copy
import pickle
from dataclasses import fields, is_dataclass, replace

import golden_models
import numpy as np
import pytest
import scipy.sparse as sp
from helpers.refused import refused

import ssnmf_fast as sf
from ssnmf_fast import estimators

X = np.random.default_rng(0).poisson(2.0, (12, 8)) + np.eye(12, 8)
TENSOR = X.reshape(3, 4, 8)
Y = np.eye(2)[np.arange(12) % 2]
TIMES = np.datetime64("2001-01-01") + np.arange(12)
FEW = {"n_components": 2, "max_iter": 3, "tol": 0, "random_state": 0}
STARTS = {**FEW, "init": "random", "n_starts": 3}


def _completed(**given):
    holes = np.where(np.arange(X.size).reshape(X.shape) % 5 == 0, np.nan, X)
    return sf.complete(holes, n_components=1, max_iter=5, random_state=0, **given)


def _dynamic():
    return sf.DynamicTopics(**FEW, freq="day").fit(X, TIMES)


def _state():
    seen = []
    sf.factorize(X, callback=lambda state: seen.append(copy.deepcopy(state)), **FEW)
    return seen[-1]


def _classifier():
    return sf.SSNMFClassifier(**FEW, readout="logistic", supervision_weight=1.0).fit(
        X, Y.argmax(axis=1)
    )


MAKE = {
    "Factorization": lambda: sf.factorize(X, **STARTS),
    "with labels": lambda: sf.factorize(X.astype(np.float32), Y, **FEW),
    "with labels of features": lambda: sf.factorize(X, feature_labels=np.eye(8)[:, :3], **FEW),
    "balanced": lambda: sf.factorize(X, Y, supervision_weight="balanced", **FEW),
    "TensorFactorization": lambda: sf.factorize_tensor(TENSOR, **STARTS),
    "tensor with labels": lambda: sf.factorize_tensor(
        TENSOR, y={np.int64(0): np.eye(3), 2: np.eye(8)}, **FEW
    ),
    "Completion": _completed,
    "with biases": lambda: _completed(biases=True, gamma_min=0.1),
    "with iterate": lambda: _completed(method="structured-irls"),
    "with ids": lambda: replace(
        _completed(), row_ids=np.arange(12).astype(str), column_ids=np.arange(8).astype(str)
    ),
    "Consensus": lambda: sf.consensus(X, 2, n_starts=3, random_state=0, distance_threshold=2),
    "one start": lambda: sf.consensus(X, 1, n_starts=1, random_state=0, distance_threshold=2),
    "RankChoice": lambda: sf.choose_rank(X, [1, 2], n_splits=2, n_starts=1, random_state=0),
    "Verification": lambda: sf.verify(sf.factorize(X, **FEW), X),
    "Receipt": lambda: sf.factorize(X, **FEW).receipt,
    "FitState": _state,
    "Explanation": lambda: _classifier().explain(X[:2]),
    "SampleContributions": lambda: _classifier().explain(X[:2]).top(0),
    "TopicTree": lambda: sf.trees.topic_tree(X, [2, 3], random_state=0),
    "Topics": lambda: sf.NMF(**FEW).fit(X).topics(),
    "Topic": lambda: sf.NMF(**FEW).fit(X).topics()[0],
    "TopicNode": lambda: sf.trees.topic_tree(X, [2, 3], random_state=0).nodes[0],
    "Peak": lambda: _dynamic().peaks()[0],
}


def results() -> dict[str, type]:
    """All public classes of what functions and methods return."""
    modules = (sf, sf.metrics)
    public = {name: getattr(module, name) for module in modules for name in module.__all__}
    return {
        name: one
        for name, one in public.items()
        if isinstance(one, type)
        and (is_dataclass(one) or issubclass(one, tuple))
        and not hasattr(one, "fit")
    }


def record(kind: type):
    """A result without a function of its own here: fields with any values."""
    names = getattr(kind, "_fields", None) or [one.name for one in fields(kind) if one.init]
    return kind(*map(float, range(len(names))))


def alike(a, b) -> bool:
    """Whether two values are of one type and equal, in all their public attributes."""
    if type(a) is not type(b):
        return False
    if sp.issparse(a):
        return a.shape == b.shape and a.dtype == b.dtype and not (a != b).nnz
    if isinstance(a, np.ndarray):
        same = np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        return same and (a.dtype == b.dtype or a.dtype.kind == b.dtype.kind == "U")
    if isinstance(a, (list, tuple)):
        own = (getattr(one, "__dict__", {}) for one in (a, b))
        return len(a) == len(b) and all(map(alike, a, b)) and alike(*own)
    if isinstance(a, dict):
        return [*a] == [*b] and all(alike(a[key], b[key]) for key in a)
    if type(a).__module__.startswith("ssnmf_fast"):
        return not differing(a, b)
    if hasattr(a, "equals"):  # of pandas
        return a.equals(b)
    return bool(a == b or (a != a and b != b))


def differing(a, b) -> list[str]:
    """The public attributes that are not the same: fields, and properties that can be asked."""
    names = [name for name in {**vars(a), **vars(b)} if not name.startswith("_")]
    names += [name for name, one in vars(type(a)).items() if isinstance(one, property)]
    return [name for name in names if not alike(getattr(a, name, None), getattr(b, name, None))]


@pytest.mark.filterwarnings("ignore")
def test_every_attribute_of_every_result_survives(tmp_path):
    made = [make() for make in MAKE.values()]
    here = {type(one).__name__ for one in made}
    made += [record(kind) for name, kind in results().items() if name not in here]
    assert {type(one).__name__ for one in made} >= {*results()}
    saved = set()
    for one in made:
        for copied in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)):
            assert alike(copied, one), type(one)
        try:
            sf.save(one, tmp_path / "one.npz")
        except TypeError as error:
            assert "cannot be saved; expected one of" in str(error)  # noqa: PT017
        else:
            saved.add(type(one).__name__)
            loaded = sf.load(tmp_path / "one.npz")
            assert type(loaded) is type(one)
            assert differing(loaded, one) == []
            sf.save(loaded, tmp_path / "again.npz")
            assert differing(sf.load(tmp_path / "again.npz"), one) == []
    assert saved == {"Factorization", "TensorFactorization", "Completion", "Consensus"}


LOST = {"callback", "init", "random_state", "penalties", "fixed_components", "seeds"}  # parameters
NOT_SAVED = {"classifiers_"}  # as its class describes: what predicts is


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_every_attribute_of_every_estimator_survives(tmp_path):
    counts, kinds = golden_models.counts()
    rows = golden_models.ROWS
    fitted = dict(golden_models.models(counts[:rows], kinds[:rows]))
    assert {type(one).__name__ for one in fitted.values()} >= {
        name for name in estimators.__all__ if hasattr(getattr(estimators, name), "fit")
    }
    for name, model in fitted.items():
        sf.save(model, tmp_path / "model.npz")
        differs = differing(sf.load(tmp_path / "model.npz"), model)
        assert set(differs) <= LOST | NOT_SAVED, name
        for copied in (pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model)):
            assert differing(copied, model) == [], name


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    fit, completion = sf.factorize(X, **FEW), _completed()
    for wrong in (
        replace(fit, n_iter="many"),
        replace(fit, A=fit.A[:1]),
        replace(fit, S=-fit.S),
        replace(fit, start_objectives=5.0),
        replace(completion, lower="none"),
        replace(completion, observed=completion.observed[:3]),
    ):
        refused("cannot be saved, as load would fail: ", sf.save, wrong, tmp_path / "wrong.npz")
        assert not (tmp_path / "wrong.npz").exists()
