"""What ``verbose=1`` writes to standard error: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import io
import re
import sys

import numpy as np
import pytest
from helpers.absent_packages import hide

import ssnmf_fast as sf
from ssnmf_fast._solver import loop as progress

X = np.random.default_rng(0).random((30, 20))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def written(text: str, label: str, value: str) -> list[tuple[str, float]]:
    """Return iteration and value of every line; every line must have the form.

    A fit begins with a line of its plan, and ends with one of its residual.
    """
    if label == "fit":
        first, _, text = text.partition("\n")
        assert first == "fit: S, A: coordinate descent; conjugate gradients: 1 for A; momentum"
        text, _, last = text.rstrip("\n").rpartition("\n")
        assert re.fullmatch(r"fit: residual of the optimality conditions \d\.\de[-+]\d\d", last)
    form = re.compile(rf"{label}: iteration (\S+), {value} (\S+), \d+\.\d s")
    lines = [form.fullmatch(line) for line in text.splitlines()]
    return [(line[1], float(line[2])) for line in lines]


def fit(**options):
    return sf.factorize(X, n_components=3, max_iter=30, tol=0, random_state=0, **options)


def test_silent_by_default(capsys):
    fit()
    sf.complete(X, observed=X < 0.9, n_components=2, max_iter=3)
    assert capsys.readouterr().err == ""


def test_a_line_for_every_check(monkeypatch, capsys):
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0)
    result = fit(verbose=1)
    lines = written(capsys.readouterr().err, "fit", "objective")
    assert [iteration for iteration, _ in lines] == ["0/30", "10/30", "20/30", "30/30"]
    values = [value for _, value in result.objective]
    np.testing.assert_allclose([value for _, value in lines], values, rtol=1e-5)


def test_the_first_and_the_last_line_of_a_short_fit(monkeypatch, capsys):
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", float("inf"))
    result = fit(verbose=1)
    lines = written(capsys.readouterr().err, "fit", "objective")
    assert [iteration for iteration, _ in lines] == ["0/30", "30/30"]
    assert lines[-1][1] == pytest.approx(result.objective[-1][1], rel=1e-5)


def test_the_last_line_of_a_fit_that_a_callback_stops(monkeypatch, capsys):
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", float("inf"))
    fit(verbose=1, callback=lambda state: state.iteration == 20)
    lines = written(capsys.readouterr().err, "fit", "objective")
    assert [iteration for iteration, _ in lines] == ["0/30", "20/30"]


def test_completion(monkeypatch, capsys):
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0)
    result = sf.complete(X, observed=X < 0.9, n_components=2, max_iter=3, verbose=1)
    lines = written(capsys.readouterr().err, "complete", "change")
    assert [iteration for iteration, _ in lines] == ["1/3", "2/3", "3/3"]
    changes = [state.change for state in result.history]
    np.testing.assert_allclose([value for _, value in lines], changes, rtol=1e-5)


def test_bar_on_a_terminal(monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    fit(verbose=1)
    assert "fit" in sys.stderr.getvalue()
    assert "iteration" not in sys.stderr.getvalue()


def test_lines_on_a_terminal_without_tqdm(monkeypatch):
    hide("tqdm", monkeypatch)
    monkeypatch.setattr(sys, "stderr", Terminal())
    fit(verbose=1)
    lines = written(sys.stderr.getvalue(), "fit", "objective")
    assert lines[-1][0] == "30/30"


def test_the_bar_of_the_command_shows_nothing_without_a_terminal(capsys):
    fit(callback=progress.ProgressBar(30))
    assert capsys.readouterr().err == ""


def test_a_callback_that_asks_for_residuals_changes_nothing():
    seen = []
    for given in ({}, {"loss": "kullback-leibler"}, {"solver": "mm"}, {"y": X[:, :2]}):
        asked = fit(**given, callback=lambda state: seen.append(state.residual))
        plain = fit(**given)
        for one, other in ((asked.S, plain.S), (asked.A, plain.A)):
            np.testing.assert_array_equal(one, other)
        assert asked.objective == plain.objective
        assert asked.receipt == plain.receipt
        assert seen[-1] == asked.receipt.residual < seen[0]


def test_a_state_that_is_kept_does_not_compute_the_residual_of_another_iteration():
    for call in (fit, lambda **given: sf.factorize_tensor(X, n_components=2, **given)):
        kept = []
        call(callback=kept.append)
        for state in kept:
            with pytest.raises(RuntimeError, match=f"moved on from iteration {state.iteration};"):
                state.residual  # noqa: B018
