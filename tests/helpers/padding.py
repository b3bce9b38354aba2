"""A look at the padding of stored factors, after every step of every fit."""

from __future__ import annotations

import contextlib
import itertools
from unittest import mock

import numpy as np

from ssnmf_fast._solver import problem


def revived(name, F, rank):
    return f"padding of {name}: {np.abs(F[:, rank:]).max()}" if F[:, rank:].any() else ""


@contextlib.contextmanager
def watched_padding(rank):
    """Look at all factors after every step of every fit; the components beyond `rank` stay 0."""
    found, steps = [], []

    def watched(step):
        def look(self, *args, **kwargs):
            out = step(self, *args, **kwargs)
            steps.append(step.__name__)
            found.extend(revived(name, F, rank) for name, F in self.factors.items())
            return out

        return look

    with contextlib.ExitStack() as stack:
        names = "apply", "update_rows", "extrapolate", "balance", "restore"
        for kind, name in itertools.product((problem.Problem, problem.BlockProblem), names):
            if step := vars(kind).get(name):
                stack.enter_context(mock.patch.object(kind, name, watched(step)))
        yield steps
    assert {"apply", "update_rows"} <= set(steps)
    assert not any(found), next(filter(None, found))
