"""A fit of the classifiers reaches its loop by few calls."""

import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.data import small_digits

import ssnmf_fast as sf

PACKAGE = Path(sf.__file__).parent
LOOP = str(PACKAGE / "_solver/loop.py")
MODELS = {
    "few labels": sf.FewLabelsClassifier(random_state=0, max_iter=5, tol=0),
    "supports": sf.SSNMFClassifier(supervision_weight=np.inf, random_state=0, max_iter=5, tol=0),
    "papers": sf.SSNMFClassifier(supervision_weight=1.0, random_state=0, max_iter=5, tol=0),
}


def frames_at_the_loop(model):
    """Fit, and return the frames above every run of the loop, the last of which is `fit`."""
    found = []

    def note(frame, event, _):
        code = frame.f_code
        if event != "call" or (code.co_filename, code.co_name) != (LOOP, "run"):
            return
        above = [code.co_name]
        # `learn` is the wrapper of the estimator's `fit`; a `fit` further down is that of a start.
        while (frame := frame.f_back) is not None and frame.f_code.co_name != "learn":
            if frame.f_code.co_filename.startswith(str(PACKAGE)):
                above.append((Path(frame.f_code.co_filename).name, frame.f_code.co_name))
        found.append(above)

    sys.setprofile(note)
    try:
        model.fit(*small_digits())
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_six_calls_from_fit_to_the_loop(name):
    calls = frames_at_the_loop(MODELS[name])
    assert len(calls) == 1 or name == "few labels"
    # The last fit is the one of all labels; those before, of the validation, are further down.
    assert len(calls[-1]) - 1 <= 6, calls[-1]
