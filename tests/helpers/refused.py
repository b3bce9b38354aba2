"""One line for a call that must fail with a message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

__all__ = ["refused"]


def refused(
    message: str,
    call: Callable[..., Any],
    *args: Any,
    error: type[Exception] | tuple[type[Exception], ...] = ValueError,
    **options: Any,
) -> None:
    """Check that a call, to which all else is given, raises an error whose text a pattern finds."""
    __tracebackhide__ = True
    with pytest.raises(error, match=message):
        call(*args, **options)
