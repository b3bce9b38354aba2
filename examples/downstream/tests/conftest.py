"""Generated tickets: three queues, a label for every tenth ticket."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

WORDS = {
    "accounts": "password login reset locked email username verify profile expired session",
    "billing": "invoice charged refund payment card twice receipt price tax subscription",
    "network": "router connection slow drops wifi outage signal cable modem latency",
}
COMMON = ["please", "help", "today", "again", "since", "yesterday", "problem", "urgent", "still"]


@dataclass(frozen=True)
class Tickets:
    """Texts with the queue they belong to."""

    texts: list[str]
    truth: list[str]

    @property
    def queues(self) -> list[str | None]:
        """The queues of every tenth ticket, None for the others."""
        return [queue if i % 10 < 1 else None for i, queue in enumerate(self.truth)]


def drawn(count: int, seed: int) -> Tickets:
    rng = np.random.default_rng(seed)
    truth = [str(queue) for queue in rng.choice(list(WORDS), count)]
    texts = [
        " ".join([*rng.choice(WORDS[queue].split(), 4), *rng.choice(COMMON, 3)]) for queue in truth
    ]
    return Tickets(texts, truth)


@pytest.fixture(scope="session")
def tickets() -> Tickets:
    return drawn(240, 0)


@pytest.fixture(scope="session")
def new() -> Tickets:
    return drawn(60, 1)
