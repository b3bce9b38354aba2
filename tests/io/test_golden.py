"""Models that every released version has written load, and give what they gave."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import ssnmf_fast as sf

GOLDEN = Path(__file__).parents[1] / "golden"
MODELS = sorted(path for path in GOLDEN.glob("*/*.npz") if not path.name.endswith(".answers.npz"))


@pytest.fixture(scope="module")
def make() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_golden", GOLDEN / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", MODELS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_golden_model(path: Path, make: ModuleType) -> None:
    model = sf.load(path)
    assert type(model).__name__ == path.stem
    with np.load(path.with_suffix(".answers.npz"), allow_pickle=False) as golden:
        found = make.answers(model)
        assert found.keys() == set(golden)
        for name in golden:
            if golden[name].dtype.kind == "f":
                np.testing.assert_allclose(found[name], golden[name], rtol=1e-4, atol=1e-6)
            else:
                np.testing.assert_array_equal(found[name], golden[name])


def test_every_class_has_a_golden_model() -> None:
    """A class that `save` takes and no golden model has would be forgotten."""
    with pytest.raises(TypeError, match="expected one of") as refused:
        sf.save(object(), "model.npz")
    listed = str(refused.value).partition("expected one of ")[2].removesuffix(", fitted.")
    newest = max(path.parent.name for path in MODELS)
    assert {path.stem for path in MODELS if path.parent.name == newest} == {*listed.split(", ")}
