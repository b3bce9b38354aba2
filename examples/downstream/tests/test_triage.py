"""The composed class: predictions, files, pickles, and equal results."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from triage import Triage

import ssnmf_fast as sf


@pytest.fixture(scope="session")
def triage(tickets: Any) -> Triage:
    return Triage().fit(tickets.texts, tickets.queues)


def test_a_tenth_of_the_labels_is_enough(triage: Triage, tickets: Any, new: Any) -> None:
    assert sum(queue is not None for queue in tickets.queues) == 24
    right = [
        ticket.queue == queue
        for ticket, queue in zip(triage.routed(new.texts), new.truth, strict=True)
    ]
    assert np.mean(right) >= 0.95


def test_ranked(triage: Triage, new: Any) -> None:
    ranked = triage.ranked(new.texts, "billing")
    probabilities = [ticket.probability for ticket in ranked]
    assert probabilities == sorted(probabilities, reverse=True)
    assert sorted(ticket.text for ticket in ranked) == sorted(new.texts)
    truth = dict(zip(new.texts, new.truth, strict=True))
    first = ranked[: new.truth.count("billing")]
    assert np.mean([truth[ticket.text] == "billing" for ticket in first]) >= 0.95


def test_topics_have_terms_of_the_tickets(triage: Triage) -> None:
    topics = triage.topics(3)
    assert len(topics) >= 3
    assert {len(terms) for terms in topics} == {3}
    assert "invoice" in triage.vectorizer.vocabulary_


def test_files_come_back(triage: Triage, new: Any, tmp_path: Path) -> None:
    triage.save(tmp_path / "saved")
    loaded = Triage.load(tmp_path / "saved")
    assert loaded.routed(new.texts) == triage.routed(new.texts)
    assert loaded.topics() == triage.topics()
    loaded.save(tmp_path / "again")
    for name in ("model.npz", "terms.json"):
        assert (tmp_path / "again" / name).stat().st_size > 0


def test_another_process_reads_the_files(triage: Triage, new: Any, tmp_path: Path) -> None:
    triage.save(tmp_path)
    code = (
        "import sys; from triage import Triage; "
        "print(Triage.load(sys.argv[1]).routed([sys.argv[2]])[0].queue)"
    )
    command = [sys.executable, "-W", "error", "-c", code, str(tmp_path), new.texts[0]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == triage.routed(new.texts)[0].queue


def test_a_damaged_file_is_a_value_error(triage: Triage, tmp_path: Path) -> None:
    triage.save(tmp_path)
    content = (tmp_path / "model.npz").read_bytes()
    (tmp_path / "model.npz").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="damaged"):
        Triage.load(tmp_path)


def test_pickles_come_back(triage: Triage, new: Any) -> None:
    copied = pickle.loads(pickle.dumps(triage))
    assert copied.routed(new.texts) == triage.routed(new.texts)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_any_number_of_threads_gives_the_same_bits(
    triage: Triage, tickets: Any, new: Any, n_threads: int
) -> None:
    other = Triage(n_threads=n_threads).fit(tickets.texts, tickets.queues)
    assert np.array_equal(other.model.components_, triage.model.components_)
    assert other.routed(new.texts) == triage.routed(new.texts)


def test_a_refused_fit_leaves_the_model_as_it_was(triage: Triage, new: Any) -> None:
    before = triage.routed(new.texts)
    X = triage.vectorizer.transform(new.texts)
    with pytest.raises(ValueError, match="inconsistent"):
        triage.model.fit(X, ["billing"])
    assert triage.routed(new.texts) == before


def test_functions_agree_with_the_estimator(tickets: Any, triage: Triage) -> None:
    X = triage.vectorizer.transform(tickets.texts)
    options: dict[str, Any] = {"n_components": 3, "loss": "kullback-leibler", "random_state": 0}
    with pytest.warns(UserWarning, match="max_iter"):
        fit = sf.NMF(**options, max_iter=2).fit(X)
    assert np.array_equal(fit.components_, sf.factorize(X, **options, max_iter=2).A)
