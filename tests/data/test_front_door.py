"""Whatever enters passes one check: every public argument takes, or refuses, every form.

The calls run in a child process, since a missing check would end the process.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import front_door
import pytest
from random_examples import examples

PROGRAM = Path(front_door.__file__)
# An index out of range is that of Python: the exception is promised.
PROMISED = {"Completion.predict(rows=)": "IndexError", "Completion.predict(columns=)": "IndexError"}

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


def test_every_argument_is_known():
    """A new argument is entered among SCALARS, if it takes no array, or in WAYS."""
    assert front_door.unlisted() == []


def test_an_argument_that_nobody_has_entered_is_found(monkeypatch):
    monkeypatch.delitem(front_door.WAYS["factorize"], "S_support")
    monkeypatch.setattr(front_door, "SCALARS", front_door.SCALARS - {"tol"})
    found = front_door.unlisted()
    assert "factorize(S_support=)" in found
    assert "factorize_tensor(tol=)" in found
    assert "NMF(tol=)" in found


@pytest.mark.slow
@pytest.mark.compiled("some thousand fits")
def test_every_form_of_every_argument():
    """Ends in a result that is finite, and the same for every layout, or in a clear error."""
    step = 10 * 200 // examples(200)  # a tenth of the forms of every argument
    command = [sys.executable, str(PROGRAM), "0", str(step)]
    quiet = os.environ | {"MPLBACKEND": "Agg"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=1200, check=False, env=quiet
    )
    lines = [line.split("|", 2) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (done.returncode, lines[-1:], done.stderr[-2000:])
    assert len(lines) > 1000
    wrong = [
        (case, kind, text)
        for case, kind, text in lines
        if kind not in ("ok", "refused", PROMISED.get(case.partition(" ")[0]))
    ]
    assert not wrong
    refused = [case for case, kind, _ in lines if case.endswith(" base") and kind == "refused"]
    assert not [case for case in refused if not NOT_TAKEN.match(case)]
