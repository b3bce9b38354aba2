"""What is raised when a package of the extra `plot` is not installed."""

from __future__ import annotations

PLOT_HINT = "python -m pip install 'ssnmf-fast[plot]'"


class MissingPackageError(Exception):
    """An optional package is not installed."""
