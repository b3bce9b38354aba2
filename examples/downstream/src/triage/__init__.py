"""Sort support tickets into queues from a few labels."""

from __future__ import annotations

from ._careful import CarefulClassifier
from ._novelty import Novelty
from ._triage import Ticket, Triage

__all__ = ["CarefulClassifier", "Novelty", "Ticket", "Triage"]
