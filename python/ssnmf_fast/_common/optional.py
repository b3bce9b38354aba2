"""What is raised when a package of the extra `plot` is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

PLOT_HINT = "python -m pip install 'ssnmf-fast[plot]'"


class MissingPackageError(Exception):
    """An optional package is not installed."""


@contextmanager
def needed(package: str) -> Iterator[None]:
    """Raise MissingPackageError, which says how to install it, where an import fails."""
    try:
        yield
    except ImportError as error:
        raise MissingPackageError(f"{package} is missing: {PLOT_HINT}") from error
