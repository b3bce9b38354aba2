"""Defaults of the estimators and what they pass on, as in the table constructors.txt."""

from inspect import isclass, signature
from pathlib import Path

import ssnmf_fast as sf
from ssnmf_fast import estimators, papers

TABLE = Path(__file__).with_name("constructors.txt")


def lines():
    """Yield the defaults of each estimator, and which of its parameters a function takes."""
    every = {**vars(estimators), **vars(papers)}
    for name in sorted({*estimators.__all__, *papers.__all__}):
        if isclass(every[name]) and hasattr(every[name], "get_params"):
            given = every[name]().get_params(deep=False)
            yield name
            yield from (f"    {key} = {value!r}" for key, value in given.items())
            if "loss" in given:
                function = sf.factorize_tensor if "stream_mode" in given else sf.factorize
                taken = [key for key in given if key in signature(function).parameters]
                yield f"    {function.__name__} takes {', '.join(taken)}"


def test_defaults():
    # A base class that is a dataclass resets the defaults of the bases before it, and a parameter
    # with another name than that of a function would silently not be passed on.
    assert [*lines()] == TABLE.read_text().splitlines()
