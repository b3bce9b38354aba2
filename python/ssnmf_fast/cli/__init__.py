"""The command ``ssnmf-fast``."""

from __future__ import annotations

import csv
import errno
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
from ._options import STANDARD, UsageError, for_json
from ._parser import build_parser

__all__ = ["main"]

_DIFFERENT, _BAD_INPUT, _BUG, _INTERRUPTED = 1, 2, 70, 130
_LONGEST = 1200  # characters of a message


class _ReportStream:
    """A stream for reports, which may close or be full: this does not end what is reported."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.errors = stream, "backslashreplace"  # of characters it lacks
        self.encoding = getattr(stream, "encoding", None) or "utf-8"
        self.failure: OSError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        self._try("write", text.encode(self.encoding, self.errors).decode(self.encoding))
        return len(text)

    def flush(self) -> None:
        self._try("flush")

    def _try(self, name: str, *given: str) -> None:
        try:
            if self.failure is None:
                getattr(self.stream, name)(*given)
        except OSError as error:
            ended = sys.platform == "win32" and error.errno == errno.EINVAL  # the reader of a pipe
            self.failure = BrokenPipeError() if ended else error
            self.failure.filename = "standard output"
            with suppress(OSError, ValueError), Path(os.devnull).open("wb") as nowhere:
                os.dup2(nowhere.fileno(), self.stream.fileno())  # for Python's own last flush


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line with arguments, by default those of the process.

    Returns 0, 1 if `verify` finds a difference, 2 for bad input, 70 for a bug, or 130 after Ctrl-C.
    """
    code, debug = 0, False
    with (
        warnings.catch_warnings(),
        Path(os.devnull).open("w", encoding="utf-8", errors="backslashreplace") as nowhere,
        redirect_stdout(cast(Any, _ReportStream(sys.stdout or nowhere))) as output,
        redirect_stderr(cast(Any, _ReportStream(sys.stderr or nowhere))),
    ):
        warnings.simplefilter("default")
        # The command names its options in place of these.
        of_labels = r"(y|labels|truth) has (the class|classes that|\d+ of \d+ classes) "
        warnings.filterwarnings("ignore", message=of_labels)
        warnings.showwarning = lambda message, *_, **__: _print_line("warning", str(message))
        try:
            parser = build_parser()
            if "_ARGCOMPLETE" in os.environ:  # the shell asks for options
                with suppress(ImportError):
                    importlib.import_module("argcomplete").autocomplete(parser)
            try:
                options = parser.parse_args(argv)
            except SystemExit as stop:  # argparse raises this, also after --help and --version
                code = int(stop.code or 0)
            else:
                debug = getattr(options, "debug", False)
                code = _run(options, output, nowhere)
            output.flush()
            if output.failure is not None:
                raise output.failure
        except KeyboardInterrupt:
            print("\nssnmf-fast: stopped", file=sys.stderr)
            return _INTERRUPTED
        except BrokenPipeError:  # the reader of the output, such as `head`, has ended
            return code
        except Exception as error:
            message = _describe(error)
            if debug or message is None:
                traceback.print_exc()
            bug = f"{type(error).__name__}: {error} (a bug of ssnmf-fast; please report it)"
            _print_line("error", message or bug)
            return _BUG if message is None else _BAD_INPUT
        return code


def _run(options: Namespace, output: Any, nowhere: TextIO) -> int:
    quiet, as_json = (getattr(options, name, False) for name in ("quiet", "json"))
    to_output = getattr(options, "out", None) == STANDARD
    if as_json and to_output:
        raise UsageError("--json and --out - both write to standard output; leave out one of them")
    if output.stream is nowhere and (as_json or to_output):
        option = "--json" if as_json else "--out -"
        raise UsageError(f"standard output is closed, and {option} writes to it")
    output.errors = "strict" if to_output else output.errors
    with (
        redirect_stdout(nowhere if (quiet or as_json) and not to_output else output),
        redirect_stderr(nowhere if quiet else sys.stderr),
    ):
        summary = options.run(options)
    if as_json:
        plain = not output.encoding.lower().startswith("utf")
        print(json.dumps(for_json(summary), indent=2, ensure_ascii=plain))
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
