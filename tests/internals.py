"""The private parts that tests reach into, in one place; all other tests use public names."""

from __future__ import annotations

from ssnmf_fast import _labels, _topics
from ssnmf_fast._common import warn
from ssnmf_fast._data import count_scale, entries, tensor_checks, threads, times
from ssnmf_fast._models import (
    cnmf,
    folding,
    nmf_alpha,
    represent_tensor,
    variational,
    variational_priors,
)
from ssnmf_fast._solver import loop, problem, progress
from ssnmf_fast.completion import _irls, _observations, _read, _schedule
from ssnmf_fast.metrics import _matrices

__all__ = [
    "_irls",
    "_labels",
    "_matrices",
    "_observations",
    "_read",
    "_schedule",
    "_topics",
    "cnmf",
    "count_scale",
    "entries",
    "folding",
    "loop",
    "nmf_alpha",
    "problem",
    "progress",
    "represent_tensor",
    "tensor_checks",
    "threads",
    "times",
    "variational",
    "variational_priors",
    "warn",
]
