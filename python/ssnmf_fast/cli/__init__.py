"""The command ``ssnmf-fast``."""

from __future__ import annotations

import csv
import importlib
import json
import os
import sys
import traceback
import warnings
from argparse import Namespace
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, TextIO, cast

from .._common.optional import MissingPackageError
from ._parser import build_parser
from ._read import STANDARD, UsageError

__all__ = ["main"]

_DIFFERENT, _BAD_INPUT, _BUG, _INTERRUPTED = 1, 2, 70, 130
_LONGEST = 1200  # characters of a message


class _Printed:
    """A stream for reports. It may be closed (None) or close, as by `head`: this stops no fit."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self.failure: Exception | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        self._try("write", text.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def flush(self) -> None:
        self._try("flush")

    def isatty(self) -> bool:
        return self._stream is not None and self._stream.isatty()

    def _try(self, name: str, *given: str) -> None:
        if self._stream is not None and self.failure is None:
            try:
                getattr(self._stream, name)(*given)
            except (OSError, ValueError) as error:  # also a stream closed by a program
                self.failure = error


_NOWHERE = _Printed(None)


def _settle(stream: TextIO | None) -> None:
    """Drop what a stream cannot write, so that Python does not fail with it at the end."""
    if stream is None:
        return
    try:
        stream.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError), Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line with arguments, by default those of the process.

    Returns 0, 1 if `verify` finds a difference, 2 for bad input, 70 for a bug, or 130 after Ctrl-C.
    """
    output, printed, debug = sys.stdout, _Printed(sys.stdout), False
    code = 0
    with (
        warnings.catch_warnings(),
        redirect_stdout(cast(TextIO, printed)),
        redirect_stderr(cast(TextIO, _Printed(sys.stderr))),
    ):
        warnings.simplefilter("default")
        warnings.showwarning = lambda message, *_, **__: _print_line("warning", str(message))
        try:
            parser = build_parser()
            if "_ARGCOMPLETE" in os.environ:  # the shell asks for options
                with suppress(ImportError):
                    importlib.import_module("argcomplete").autocomplete(parser)
            try:
                options = parser.parse_args(argv)
            except SystemExit as stop:  # argparse raises this, also after --help and --version
                return int(stop.code or 0)
            debug = getattr(options, "debug", False)
            code = _run(options, output)
            printed.flush()
            if printed.failure is not None:
                raise printed.failure
            return code
        except KeyboardInterrupt:
            print("\nssnmf-fast: stopped", file=sys.stderr)
            return _INTERRUPTED
        except BrokenPipeError:  # the reader, such as `head`, has ended
            return code
        except Exception as error:
            message = _describe(error)
            if debug or message is None:
                traceback.print_exc()
            wrong = f"{type(error).__name__}: {error}; this is a bug, please report it"
            _print_line("error", message or wrong)
            return _BUG if message is None else _BAD_INPUT
        finally:
            _settle(output)


def _run(options: Namespace, output: TextIO | None) -> int:
    """Run a subcommand; a table goes directly to the standard output of the process."""
    quiet, as_json = (getattr(options, name, False) for name in ("quiet", "json"))
    to_output = getattr(options, "out", None) == STANDARD
    if as_json and to_output:
        wrong = "--json and --out - both write to standard output; leave one of them out"
        raise UsageError(wrong)
    if output is None and (as_json or to_output):
        option = "--json" if as_json else "--out -"
        raise UsageError(f"standard output is closed, and {option} writes to it")
    shown: Any = _NOWHERE if quiet or as_json else sys.stdout
    with (
        redirect_stdout(output if to_output else shown),
        redirect_stderr(cast(TextIO, _NOWHERE) if quiet else sys.stderr),
    ):
        summary = options.run(options)
        sys.stdout.flush()
    if as_json:
        plain = not (getattr(output, "encoding", None) or "utf-8").lower().startswith("utf")
        print(json.dumps(summary, indent=2, ensure_ascii=plain))
    return 0 if (summary or {}).get("ok", True) else _DIFFERENT


def _describe(error: Exception) -> str | None:
    """Return the message for the user; None if the error must be a bug."""
    if isinstance(error, ModuleNotFoundError):
        return f"the package {error.name} is missing: python -m pip install {error.name}"
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, UnicodeEncodeError):  # files are UTF-8
        wrong = f"standard output is {error.encoding}, which has no {error.object[error.start]!a}"
        return f"{wrong}; set PYTHONIOENCODING=utf-8, or name a file with --out"
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
