"""What is raised when a package that is needed for some things only is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

PLOT_HINT = "python -m pip install 'ssnmf-fast[plot]'"
TABLES_HINT = "python -m pip install 'ssnmf-fast[all]'"  # has pandas too


class MissingPackageError(Exception):
    """An optional package is not installed."""


@contextmanager
def needed(package: str) -> Iterator[None]:
    """Raise MissingPackageError, which says how to install it, where an import fails."""
    try:
        yield
    except ImportError as error:
        raise MissingPackageError(f"{package} is missing: {PLOT_HINT}") from error
