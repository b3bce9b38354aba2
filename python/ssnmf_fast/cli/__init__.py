"""The command ``ssnmf-fast``."""

from __future__ import annotations

import csv
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..report._missing import MissingPackageError
from ._errors import UsageError
from ._parser import build_parser

__all__ = ["main"]

_BAD_INPUT = 2
_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; None takes those of the process.

    Returns
    -------
    int
        Exit code: 0, 2 for bad input, or 130 after Ctrl-C.
    """
    try:
        arguments = build_parser().parse_args(argv)
    except SystemExit as stop:  # argparse leaves this way, also after --help and --version
        return int(stop.code or 0)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = _show_warning
        return _guarded(arguments.run, arguments)


def _guarded(run: Callable[[Any], None], arguments: Any) -> int:
    """Run a subcommand; errors that the user can mend become one line."""
    try:
        run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("\nssnmf-fast: stopped", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:  # the reader of our output, such as `head`, has gone
        sys.stderr.close()
        return 0
    except ModuleNotFoundError as error:
        return _fail(f"the package {error.name} is missing: python -m pip install {error.name}")
    except MemoryError as error:
        return _fail(f"not enough memory: {error}")
    except (UsageError, MissingPackageError, ValueError, TypeError, OSError, csv.Error) as error:
        return _fail(_message(error))
    return 0


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error) or type(error).__name__


def _fail(message: str) -> int:
    print(f"ssnmf-fast: error: {' '.join(message.split())}", file=sys.stderr)
    return _BAD_INPUT


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"ssnmf-fast: warning: {' '.join(str(message).split())}", file=sys.stderr)
