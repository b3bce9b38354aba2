"""``python -m ssnmf_fast.sklearn script.py``: run a program with scikit-learn's NMF replaced."""

from __future__ import annotations

import argparse
import logging
import runpy
import sys
from pathlib import Path

from . import call_counts, patch


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m ssnmf_fast.sklearn",
        description="Run a Python program with the NMF of scikit-learn on the engine of ssnmf_fast.",
    )
    parser.add_argument("-m", action="store_true", dest="module", help="the program is a module")
    parser.add_argument("-v", "--verbose", action="store_true", help="count the calls at the end")
    parser.add_argument("program", help="a script, or with -m the name of a module")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the program")
    options = parser.parse_args()
    logging.basicConfig(format="%(name)s: %(message)s")
    patch()
    sys.argv = [options.program, *options.arguments]
    try:
        if options.module:
            runpy.run_module(options.program, run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = str(Path(options.program).resolve().parent)
            runpy.run_path(options.program, run_name="__main__")
    finally:
        if options.verbose:
            engine, own = call_counts()
            print(f"ssnmf_fast: {engine} factorizations on the engine, {own} not", file=sys.stderr)


if __name__ == "__main__":
    main()
