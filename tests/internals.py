"""The private parts that tests reach into, in one place; all other tests use public names."""

from __future__ import annotations

from ssnmf_fast import _labels, _topics
from ssnmf_fast._common import warn
from ssnmf_fast._data import border, count_scale, csr_file, entries, threads, times
from ssnmf_fast._data import tensors as tensor_checks
from ssnmf_fast._data import threads as side_by_side
from ssnmf_fast._models import dated as folding
from ssnmf_fast._models import many_starts, nmf_alpha, represent, variational
from ssnmf_fast._models import variational_problem as variational_priors
from ssnmf_fast._solver import loop, problem, relations
from ssnmf_fast._solver import loop as progress
from ssnmf_fast._solver import result as receipt
from ssnmf_fast.cli import (
    _complete,
    _fit,
    _fitted,
    _outputs,
    _parser,
    _predict,
    _predictions,
    _quality,
    _ratings,
    _text,
)
from ssnmf_fast.cli import _labels as _sample_labels
from ssnmf_fast.cli import _outputs as _class_scores
from ssnmf_fast.cli import _outputs as _findings
from ssnmf_fast.cli import _read as _source
from ssnmf_fast.cli import _suggest as _learning
from ssnmf_fast.completion import _irls, _problem
from ssnmf_fast.estimators import _committee, _members, _training_data
from ssnmf_fast.estimators import _predicting as _suggesting
from ssnmf_fast.estimators import _views as _neighbors
from ssnmf_fast.metrics import _coherence as _occurrences
from ssnmf_fast.metrics import _sparsity as _matrices
from ssnmf_fast.metrics import _tensors as _core_consistency
from ssnmf_fast.selection import _held_out as _errors
from ssnmf_fast.selection import _held_out as _hidden
from ssnmf_fast.selection import _held_out as _hidden_labels
from ssnmf_fast.selection import _search

__all__ = [
    "_class_scores",
    "_committee",
    "_complete",
    "_core_consistency",
    "_errors",
    "_findings",
    "_fit",
    "_fitted",
    "_hidden",
    "_hidden_labels",
    "_irls",
    "_labels",
    "_learning",
    "_matrices",
    "_members",
    "_neighbors",
    "_occurrences",
    "_outputs",
    "_parser",
    "_predict",
    "_predictions",
    "_problem",
    "_quality",
    "_ratings",
    "_sample_labels",
    "_search",
    "_source",
    "_suggesting",
    "_text",
    "_topics",
    "_training_data",
    "border",
    "count_scale",
    "csr_file",
    "entries",
    "folding",
    "loop",
    "many_starts",
    "nmf_alpha",
    "problem",
    "progress",
    "receipt",
    "relations",
    "represent",
    "side_by_side",
    "tensor_checks",
    "threads",
    "times",
    "variational",
    "variational_priors",
    "warn",
]
