"""Errors for optional packages that are not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PLOT_HINT = "python -m pip install 'ssnmf-fast[plot]'"
DASK_HINT = "python -m pip install 'ssnmf-fast[dask]'"
CELLS_HINT = "python -m pip install 'ssnmf-fast[anndata]'"
WORDS_HINT = "python -m pip install 'ssnmf-fast[languages]'"
COMMAND_HINT = "python -m pip install 'ssnmf-fast[cli]'"  # has pandas too


class MissingPackageError(ImportError):
    """An optional package is not installed."""


@contextmanager
def require_package(package: str, hint: str = PLOT_HINT) -> Iterator[None]:
    """Raise MissingPackageError, with the command that installs the package, if an import fails."""
    try:
        yield
    except MissingPackageError:
        raise
    except ImportError as error:
        raise MissingPackageError(f"{package} is missing: {hint}") from error


def data_frame(rows: Any, other_way: str = "", **options: Any) -> Any:
    """Return a pandas DataFrame; an error also names the other way to read the rows."""
    with require_package("pandas", COMMAND_HINT + other_way):
        import pandas
    return pandas.DataFrame(rows, **options)
