"""Files of models with a readout, damaged ones, and those of the first version."""

import io
import json

import numpy as np
import pytest
from helpers.data import small_digits
from helpers.guided_models import QUICK, guided_models
from helpers.refused import refused

import ssnmf_fast as sf

DATA = X, y = small_digits()


NAMES = ["chosen", "several", "refit", "joint", "regressor"]
NAMES += ["topics", "lists", "constrained", "margin", "bayesian"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_files_keep_what_predicts(name, tmp_path):
    model, targets = guided_models(X, y)[name]
    model.fit(X, targets)
    sf.save(model, tmp_path / "model.npz")
    loaded = sf.load(tmp_path / "model.npz")
    assert loaded.get_params() == model.get_params()
    assert set(vars(loaded)) == set(vars(model))
    for part, array in getattr(getattr(model, "readout_", None), "arrays", dict)().items():
        assert loaded.readout_.arrays()[part].dtype == array.dtype
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        if hasattr(model, method):
            assert np.array_equal(getattr(loaded, method)(X), getattr(model, method)(X))
    assert loaded.score(X, targets) == model.score(X, targets)
    for attribute in ("validation_scores_", "class_shares_", "validation_folds_"):
        if hasattr(model, attribute):
            assert np.array_equal(getattr(loaded, attribute), getattr(model, attribute))


def damaged(content, change):
    """Return the bytes of a file in which arrays or the header were changed."""
    with np.load(io.BytesIO(content)) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header = json.loads(arrays["header"].tobytes())
    change(arrays, header["attributes"])
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def _set(name, value):
    def change(arrays, plain):
        arrays[f"array/{name}"] = value(arrays[f"array/{name}"])

    return change


def _plain(name, value):
    return lambda arrays, plain: plain.update({name: value})


def _without(name):
    def change(arrays, plain):
        assert arrays.pop(f"array/{name}", plain.pop(name, None)) is not None

    return change


@pytest.mark.parametrize(
    "change",
    [
        _without("readout_/directions"),
        _without("readout_/intercepts"),
        _without("readout_/slopes"),
        _without("readout_/thresholds"),
        _without("classes_"),
        _without("class_prior_"),
        _without("multilabel_"),
        _set("readout_/coefficients", lambda a: a[:, :-1]),
        _set("readout_/coefficients", lambda a: a[:-1]),
        _set("readout_/coefficients", lambda a: np.where(a == a[0, 0], np.nan, a)),
        _set("readout_/coefficients", lambda a: a.astype(int)),
        _set("readout_/directions", lambda a: a[:-1]),
        _set("readout_/directions", lambda a: np.full_like(a, np.inf)),
        _set("readout_/intercepts", lambda a: a * np.nan),
        _set("readout_/slopes", lambda a: a[:-1]),
        _set("readout_/offsets", lambda a: a + np.inf),
        _set("readout_/thresholds", lambda a: a * np.nan),
        _set("class_prior_", lambda a: a * np.nan),
        _set("readout_/slopes", lambda a: a.astype(str)),
    ],
)
def test_damaged_readouts_are_refused(change, tmp_path):
    model = sf.SSNMFClassifier(n_components=10, supervision_weight=np.inf, **QUICK).fit(*DATA)
    path = tmp_path / "model.npz"
    sf.save(model, path)
    content = path.read_bytes()
    path.write_bytes(damaged(content, lambda arrays, plain: None))
    assert np.array_equal(sf.load(path).predict(DATA[0]), model.predict(DATA[0]))
    path.write_bytes(damaged(content, change))
    refused("is damaged", sf.load, path)


@pytest.mark.parametrize(
    "change",
    [
        _set("alpha_/indices", lambda a: a + 10**6),
        _set("alpha_/indptr", lambda a: a[:-1]),
        _set("alpha_/data", lambda a: -a),
        _plain("alpha_", {"kind": "csr", "values": [3, 4]}),
        _without("alpha_/indices"),
    ],
)
def test_damaged_sparse_attributes_are_refused(change, tmp_path):
    model = sf.papers.MarginNMF(n_components=4, **QUICK).fit(*DATA)
    path = tmp_path / "model.npz"
    sf.save(model, path)
    path.write_bytes(damaged(path.read_bytes(), change))
    refused("is damaged", sf.load, path)
