"""A fit of the classifier reaches its loop by few calls, and checks X once."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from guided_models import small_digits

import ssnmf_fast as sf

PACKAGE = Path(sf.__file__).parent
GIVEN = {"n_components": 10, "supervision_weight": np.inf}


def frames_at(file, function, **settings):
    """Fit, and return the frames above every call of a function, up to `fit`, and the model."""
    found = []

    def note(frame, event, _):
        code = frame.f_code
        if event != "call" or code.co_name != function or code.co_filename != str(PACKAGE / file):
            return
        above = [(code.co_name, frame.f_locals.get("name"))]
        while (frame := frame.f_back) is not None and frame.f_code.co_name != "fit":
            if frame.f_code.co_filename.startswith(str(PACKAGE)):
                above.append((Path(frame.f_code.co_filename).name, frame.f_code.co_name))
        found.append(above)

    model = sf.SSNMFClassifier(random_state=0, max_iter=5, tol=0, **settings)
    sys.setprofile(note)
    try:
        model.fit(*small_digits())
    finally:
        sys.setprofile(None)
    return found, model


@pytest.mark.parametrize("weight", [np.inf, 1.0])
def test_six_calls_from_fit_to_the_loop(weight):
    calls, _ = frames_at("_solver/loop.py", "run", **GIVEN | {"supervision_weight": weight})
    assert len(calls) == 1
    assert len(calls[0]) - 1 <= 6, calls[0]


@pytest.mark.slow
@pytest.mark.parametrize("settings", [GIVEN, {}])
def test_data_are_checked_once(settings):
    calls, model = frames_at("_data/border.py", "check_matrix", **settings)
    assert bool(model.validation_scores_) == (not settings)
    # The singular vectors are those of rows of length 1, another matrix.
    of_X = [c for c in calls if c[0][1] == "X" and ("randomized_svd.py", "randomized_svd") not in c]
    assert len(of_X) == 1, of_X
