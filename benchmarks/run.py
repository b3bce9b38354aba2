"""Run a benchmark, which answers one question.

    python benchmarks/run.py NAME [--quick] [--out DIR] [options of NAME]

`--help` behind NAME explains the question and lists its options; without NAME all are listed.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import sys
import warnings
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).resolve().parent
FOLDERS = ("", "papers", "peers")
sys.path[:0] = [str(HERE / folder) for folder in FOLDERS]

from common import load_average  # noqa: E402
from records import Options  # noqa: E402


def names() -> list[str]:
    """Return the names of all benchmarks: the files that have options, in every folder."""
    files = (path for folder in FOLDERS for path in sorted((HERE / folder).glob("*.py")))
    return [path.stem for path in files if "\nOPTIONS" in path.read_text(encoding="utf-8")]


def command(name: str, *arguments: Any) -> list[str]:
    return [sys.executable, str(HERE / "run.py"), name, *map(str, arguments)]


def parse(name: str, module: ModuleType, arguments: list[str]) -> Options:
    """Return the options: of all benchmarks, and those of the module.

    `OPTIONS` has a default by name, or a tuple of default, help and choices.  A list takes several
    values, a type has no default, and help that is None hides an option.  `QUICK` has the defaults
    of `--quick`.
    """
    parser = argparse.ArgumentParser(
        f"run.py {name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="small data: does it run?")
    parser.add_argument("--out", type=Path, help="folder for results, tables and pictures")
    if hasattr(module, "QUESTION"):
        parser.add_argument("--only-report", action="store_true", help="measure nothing more")
    for option, value in module.OPTIONS.items():
        given = value if isinstance(value, tuple) else (value,)
        default, text, choices = (*given, *("", None)[len(given) - 1 :])
        how: dict[str, Any] = {"help": argparse.SUPPRESS if text is None else text}
        several = isinstance(default, list)
        first = (default[0] if default else str) if several else default
        if first is False:
            how["action"] = "store_true"
        else:
            how |= {"type": first if callable(first) else type(first), "choices": choices}
            how["default"] = None if callable(first) and default != [] else default
        if several:
            how |= {"nargs": "*", "action": "store" if default else "extend"}
        parser.add_argument(f"--{option.replace('_', '-')}", dest=option, **how)
    if "--quick" in arguments:
        if not hasattr(module, "QUICK"):
            parser.error("this benchmark has no quick form")
        parser.set_defaults(**module.QUICK)
    return parser.parse_args(arguments)


class Tee(io.StringIO):
    """Prints, and keeps what is printed."""

    def __init__(self) -> None:
        super().__init__()
        self.stdout = sys.stdout

    def write(self, text: str) -> int:
        self.stdout.write(text)
        return super().write(text)

    def flush(self) -> None:
        self.stdout.flush()


def run(name: str, arguments: list[str]) -> Any:
    """Run a benchmark; with --out its results and what it prints become files of that folder."""
    module = importlib.import_module(name)
    options = parse(name, module, arguments)
    warnings.simplefilter("ignore")  # of fits that reach max_iter, above all
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
    stem = options.out and options.out / (name + "-quick" * options.quick)
    with redirect_stdout(Tee()) as printed:
        print(f"{name}: load of the last minute {load_average()}\n", flush=True)
        if hasattr(module, "QUESTION"):
            result = None
            records = module.QUESTION.ask(options, stem and stem.with_suffix(".jsonl"))
            print(module.QUESTION.report(records, options), flush=True)
            if stem and module.QUESTION.draw:
                module.QUESTION.draw(records, stem)
        else:
            result = module.main(options)
    if stem:
        stem.with_suffix(".md").write_text(printed.getvalue(), encoding="utf-8")
        if isinstance(result, (dict, list)):
            stem.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    return result


if __name__ == "__main__":
    if sys.argv[1:2] in ([], ["--help"], ["--list"]):
        print(__doc__, *names(), sep="\n")
    else:
        status = run(sys.argv[1], sys.argv[2:])
        sys.exit(status if isinstance(status, int) else 0)
