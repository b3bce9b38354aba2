"""Many small cases in one test: all of them run, and the failures are listed together."""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable, Iterable
from typing import Any

import pytest

__all__ = ["each"]

_FAILURES = (Exception, pytest.fail.Exception)


def _name(value: Any) -> str:
    text = getattr(value, "__name__", None) or repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def each(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[..., Any]:
    """Run a test for each case, as ``pytest.mark.parametrize`` does, but within one test.

    A case takes microseconds here and milliseconds there.  Fixtures of the test are made once for
    all cases, so a test that changes one of them needs ``parametrize``.
    """
    named = names.replace(" ", "").split(",") if isinstance(names, str) else list(names)
    single = isinstance(names, str) and len(named) == 1
    rows = [(case,) if single else tuple(case) for case in cases]
    assert rows, "no cases"
    assert all(len(row) == len(named) for row in rows), f"expected {named} in each case"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run_all(*args: Any, **fixtures: Any) -> None:
            __tracebackhide__ = True
            failed: list[tuple[str, BaseException]] = []
            skipped: list[BaseException] = []
            for number, row in enumerate(rows):
                given = dict(zip(named, row, strict=True))
                try:
                    test(*args, **fixtures, **given)
                except pytest.skip.Exception as error:
                    skipped.append(error)
                except _FAILURES as error:
                    shown = ", ".join(f"{name}={_name(value)}" for name, value in given.items())
                    failed.append((f"{number}: {shown}", error))
            if failed:
                lines = [f"{len(failed)} of {len(rows)} cases failed"]
                for case, error in failed:
                    place = traceback.extract_tb(error.__traceback__)[:2][-1]
                    reason = f"{type(error).__name__}: {error}"
                    lines.append(f"[{case}] line {place.lineno}: {reason}")
                raise AssertionError("\n".join(lines)) from failed[0][1]
            if len(skipped) == len(rows):
                raise skipped[0]

        signature = inspect.signature(test)
        rest = [p for name, p in signature.parameters.items() if name not in named]
        assert len(signature.parameters) == len(rest) + len(named), "names that the test lacks"
        run_all.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return run_all

    return decorate
