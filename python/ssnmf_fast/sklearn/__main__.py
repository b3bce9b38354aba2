"""``python -m ssnmf_fast.sklearn script.py``: run a script with scikit-learn's NMF replaced."""

import argparse
import runpy
import sys
import zipfile
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

from . import call_counts, patch

parser = argparse.ArgumentParser(
    prog="python -m ssnmf_fast.sklearn",
    description="Run a Python script with scikit-learn's NMF on the engine of ssnmf_fast.",
)
parser.add_argument("-v", "--verbose", action="store_true", help="count the calls at the end")
parser.add_argument("script", help="a Python script; its arguments follow")
given = sys.argv[1:]
own = next((k for k, word in enumerate(given, 1) if not word.startswith("-")), len(given))
options = parser.parse_args(given[:own])
path = Path(options.script).absolute()
if not path.exists():
    parser.error(f"can't open file {str(path)!r}: No such file or directory")
sys.argv = [options.script, *given[own:]]
sys.path[0] = str(path.resolve().parent)
patch()
try:
    if path.is_dir() or path.suffix == ".pyc" or zipfile.is_zipfile(path):
        runpy.run_path(str(path), run_name="__main__")
    else:  # run_path would set sys.argv[0] to its path
        loader, main = SourceFileLoader("__main__", str(path)), ModuleType("__main__")
        main.__file__, main.__loader__ = str(path), loader
        sys.modules["__main__"] = main
        exec(loader.source_to_code(path.read_bytes(), str(path)), vars(main))
finally:
    if options.verbose:
        engine, others = call_counts().values()
        print(f"ssnmf_fast: {engine} factorizations on the engine, {others} not", file=sys.stderr)
