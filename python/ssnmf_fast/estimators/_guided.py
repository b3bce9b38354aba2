"""What the models share that labels guide, and that predict by a readout."""

from __future__ import annotations

from typing import ClassVar

from ._base import FactorizationBase
from ._predicting import READOUT_ATTRIBUTES, ReadoutPredictions


class GuidedBase(ReadoutPredictions, FactorizationBase):
    """A dictionary whose learning labels guide; samples are represented over it without labels."""

    _saved: ClassVar = {**FactorizationBase._saved, **READOUT_ATTRIBUTES}
