"""``python -m ssnmf_fast.sklearn script.py``: run a script with scikit-learn's NMF replaced."""

import argparse
import runpy
import sys
from pathlib import Path

from . import call_counts, patch

parser = argparse.ArgumentParser(
    prog="python -m ssnmf_fast.sklearn",
    description="Run a Python script with scikit-learn's NMF on the engine of ssnmf_fast.",
)
parser.add_argument("-v", "--verbose", action="store_true", help="count the calls at the end")
parser.add_argument("script", help="a Python script")
parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the arguments of the script")
options = parser.parse_args()
sys.argv = [options.script, *options.arguments]
sys.path[0] = str(Path(options.script).resolve().parent)
patch()
try:
    runpy.run_path(options.script, run_name="__main__")
finally:
    if options.verbose:
        engine, own = call_counts().values()
        print(f"ssnmf_fast: {engine} factorizations on the engine, {own} not", file=sys.stderr)
