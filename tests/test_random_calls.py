"""Random calls, and every form of every argument: whatever enters passes one check.

They run in processes of their own, since a missing check would end the process; `python -m
random_calls` makes more of them.
"""

import subprocess
import sys

import pytest
from helpers.random_examples import examples
from random_calls import doors, driver


def test_every_argument_is_known():
    """A new argument is entered among SCALARS, if it takes no array, or in WAYS."""
    assert doors.unlisted() == []


def test_an_argument_that_nobody_has_entered_is_found(monkeypatch):
    monkeypatch.delitem(doors.WAYS["factorize"], "S_support")
    monkeypatch.setattr(doors, "SCALARS", doors.SCALARS - {"tol"})
    found = doors.unlisted()
    assert "factorize(S_support=)" in found
    assert "factorize_tensor(tol=)" in found
    assert "NMF(tol=)" in found


@pytest.mark.slow
@pytest.mark.compiled("some thousand fits")
def test_every_form_of_every_argument():
    """Ends in a result that is finite, and the same for every layout, or in a clear error."""
    step = 10 * 200 // examples(200)  # a tenth of the forms of every argument
    counts, failed = driver.run("forms", step, len(doors.chosen(step)))
    assert not failed
    assert min(counts["right"], counts["refused"]) > 1000


@pytest.mark.slow
@pytest.mark.compiled("some hundred fits")
@pytest.mark.parametrize(("way", "number"), [("calls", 400), ("bits", 80)])
def test_random_calls(way, number):
    pytest.importorskip("distributed", reason="needs ssnmf-fast[dask]")
    counts, failed = driver.run(way, 0, examples(number))
    assert not failed
    assert sum(counts.values()) == examples(number)


@pytest.mark.parametrize(
    ("end", "told"), [("os.abort()", "status -6"), ("time.sleep(60)", "took longer than")]
)
def test_a_crash_and_a_case_without_end_are_found(end, told):
    program = f"import os, time; print('case 7\\nright \\ncase 8', flush=True); {end}"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as process:
        counts, failed = driver.finish(process, 3.0)
    assert counts == {"right": 1, "FAILED": 1}
    assert failed[0].startswith("case 8: ")
    assert told in failed[0]


def test_a_wrong_answer_and_a_call_that_is_not_refused_are_found(monkeypatch):
    make = driver.functions.make

    def wrong(seed, case):
        call = make(seed, case, illegal=False)
        call.illegal = "X" if case % 2 else ""
        call.arguments["X"] = 1
        call.compute, call.complaints = lambda given, threads: {}, lambda results: ["not the sum"]
        return call

    monkeypatch.setattr(driver.functions, "make", wrong)
    assert [driver.judge(0, case)[0] for case in (0, 1)] == ["FAILED", "FAILED"]
    assert "not the sum" in driver.judge(0, 0)[1]
    assert "accepted 1" in driver.judge(0, 1)[1]
