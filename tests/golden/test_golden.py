"""Files that earlier versions wrote are read, and give what they gave."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import golden_models
import numpy as np
import pytest

import ssnmf_fast as sf
from ssnmf_fast import estimators
from ssnmf_fast.cli import main

VERSIONS = sorted(path for path in Path(__file__).parent.glob("[0-9]*") if path.is_dir())
FILES = [path for version in VERSIONS for path in sorted(version.glob("*.npz"))]
MODELS = [path for path in FILES if path.stem != "expected"]
FOLDERS = [path.parent for version in VERSIONS for path in sorted(version.glob("*/new.csv"))]


def in_version(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


def cases() -> list[Any]:
    """Return the models; the Bayesian ones are slow, since intervals import scipy.stats."""
    slow = {True: [pytest.mark.slow], False: []}
    return [
        pytest.param(path, id=in_version(path), marks=slow[path.stem.startswith("bayesian")])
        for path in MODELS
    ]


def assert_near(given: np.ndarray, expected: np.ndarray) -> None:
    """Within rounding, by the largest entry: other processors sum in another order."""
    assert given.shape == expected.shape
    if expected.dtype.kind != "f":
        assert given.astype(str).tolist() == expected.astype(str).tolist()
        return
    assert given.dtype == expected.dtype
    precision = 1e-4 if expected.dtype == np.float32 else 1e-6
    np.testing.assert_allclose(given, expected, atol=precision * np.abs(expected).max())


@pytest.mark.parametrize("path", cases())
def test_a_model_gives_what_it_gave(path: Path) -> None:
    with np.load(path.parent / "expected.npz") as archive:
        kept = {name: archive[name] for name in archive.files}
    mine = f"{path.stem}/"
    expected = {
        name.removeprefix(mine): value for name, value in kept.items() if name.startswith(mine)
    }
    imputer = path.stem == "imputer"
    new = golden_models.missing_rows(kept["new"]) if imputer else kept["new"]
    given = golden_models.given_by(sf.load(path), new)
    assert expected
    assert set(given) >= set(expected)
    for name, value in expected.items():
        assert_near(np.asarray(given[name]), value)


@pytest.mark.parametrize("folder", FOLDERS, ids=in_version)
def test_a_folder_of_the_command_predicts_what_it_predicted(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "predicted.csv"
    assert main(["predict", str(folder), str(folder / "new.csv"), "--out", str(out)]) == 0
    given, expected = (
        list(csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines()))
        for path in (out, folder / "expected.csv")
    )
    assert len(given) == len(expected) > 0
    for row, former in zip(given, expected, strict=True):
        for column, text in former.items():
            try:
                number = float(text)
            except ValueError:
                assert row[column] == text
            else:
                assert float(row[column]) == pytest.approx(number, rel=1e-4, abs=1e-4)


def test_every_class_that_can_be_saved_is_here() -> None:
    newest = VERSIONS[-1]
    kept = {type(sf.load(path)).__name__ for path in MODELS if path.parent == newest}
    results = {"Factorization", "TensorFactorization", "Completion", "Consensus"}
    fitted = {name for name in estimators.__all__ if hasattr(getattr(estimators, name), "fit")}
    assert kept == fitted | results


def test_another_number_would_be_noticed() -> None:
    expected = np.array([1.0, 0.0, 5.0])
    assert_near(expected + 1e-7, expected)
    with pytest.raises(AssertionError):
        assert_near(expected + 1e-4, expected)


@pytest.mark.parametrize("folder", [f for f in FOLDERS if f.name == "texts"], ids=in_version)
def test_a_folder_of_the_command_is_read_in_python(folder: Path) -> None:
    texts = (folder / "new.csv").read_text(encoding="utf-8").splitlines()[1:]
    expected = list(csv.DictReader((folder / "expected.csv").read_text("utf-8-sig").splitlines()))
    X = sf.io.load_vectorizer(folder).transform(texts)
    model = sf.load(folder)
    assert model.predict(X).tolist() == [row["prediction"] for row in expected]
    given = model.predict_proba(X)[:, list(model.classes_).index("pets")]
    assert given == pytest.approx([float(row["probability pets"]) for row in expected], abs=1e-5)


def test_models_of_before_receipts_say_that_they_have_none() -> None:
    X, _ = golden_models.counts()
    model = sf.load(VERSIONS[0] / "nmf.npz")
    vars(model).pop("receipt_", None)
    found = sf.verify(model, X[: golden_models.ROWS])
    assert found.differences == ["This NMF has no receipt of its fit."]
