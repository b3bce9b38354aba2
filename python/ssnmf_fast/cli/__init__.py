"""The command ``ssnmf-fast``."""

from __future__ import annotations

import csv
import importlib
import json
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

from .._common.optional import MissingPackageError
from ._parser import build_parser
from ._read import STANDARD, UsageError

__all__ = ["main"]

_DIFFERENT, _BAD_INPUT, _INTERRUPTED = 1, 2, 130
_LONGEST = 1200  # characters of a message


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line with arguments, by default those of the process.

    Returns 0, 1 if `verify` finds a difference, 2 for bad input, or 130 after Ctrl-C.
    """
    parser = build_parser()
    if "_ARGCOMPLETE" in os.environ:  # the shell asks for options
        with suppress(ImportError):
            importlib.import_module("argcomplete").autocomplete(parser)
    try:
        options = parser.parse_args(argv)
    except SystemExit as stop:  # argparse raises this, also after --help and --version
        return int(stop.code or 0)
    quiet, as_json, debug = (getattr(options, name, False) for name in ("quiet", "json", "debug"))
    to_output = getattr(options, "out", None) == STANDARD
    with (
        warnings.catch_warnings(),
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        redirect_stdout(sys.stdout or nowhere),
        redirect_stderr(sys.stderr or nowhere),
    ):
        warnings.simplefilter("default")
        # The command names its options in place of these.
        of_labels = r"(y|labels|truth) has (the class|classes that|\d+ of \d+ classes) "
        warnings.filterwarnings("ignore", message=of_labels)
        warnings.showwarning = lambda message, *_, **__: _print_line("warning", str(message))
        try:
            if as_json and to_output:
                wrong = "--json and --out - both write to standard output; leave one of them out"
                raise UsageError(wrong)
            if sys.stdout is nowhere and (as_json or to_output):
                option = "--json" if as_json else "--out -"
                raise UsageError(f"standard output is closed, and {option} writes to it")
            hidden = (quiet or as_json) and not to_output
            with (
                redirect_stdout(nowhere if hidden else sys.stdout),
                redirect_stderr(nowhere if quiet else sys.stderr),
            ):
                summary = options.run(options)
            if as_json:
                print(json.dumps(summary, indent=2, ensure_ascii=False))
            sys.stdout.flush()
        except KeyboardInterrupt:
            print("\nssnmf-fast: stopped", file=sys.stderr)
            return _INTERRUPTED
        except BrokenPipeError:  # the reader of the output, such as `head`, has ended
            sys.stderr.close()
            return 0
        except Exception as error:
            message = _describe(error)
            if debug:
                traceback.print_exc()
            elif message is None:
                raise
            _print_line("error", message or f"{type(error).__name__}: {error}")
            return _BAD_INPUT
        return 0 if (summary or {}).get("ok", True) else _DIFFERENT


def _describe(error: Exception) -> str | None:
    """Return the message for the user; None if the error must be a bug."""
    if isinstance(error, ModuleNotFoundError):
        return f"the package {error.name} is missing: python -m pip install {error.name}"
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    text = str(error) or type(error).__name__
    if isinstance(error, (UsageError, MissingPackageError, OSError, csv.Error)):
        return text
    if isinstance(error, (ValueError, TypeError)):  # from the library: bad input, or a bug
        return f"{text} (--debug shows where this arises)"
    return None


def _print_line(kind: str, message: str) -> None:
    """Print a message on one line; omit the middle of a very long one."""
    line = " ".join(message.split())
    if len(line) > _LONGEST:
        line = f"{line[: _LONGEST // 2]} ... {line[-_LONGEST // 4 :]}"
    print(f"ssnmf-fast: {kind}: {line}", file=sys.stderr)
