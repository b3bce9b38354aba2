"""Do the benchmarks run?  Small versions of all; asserts that they print, never how fast.

No need of other packages or downloads; under a minute.
"""

from __future__ import annotations

import importlib
import io
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path

HERE = Path(__file__).resolve().parent
PARTS = ("peers", "papers", "checks", "solvers")
# Scripts, and what they are given beside --quick.
CALLS = {
    "write_page": "--records {folder}/records --out {folder}/page.md",
    "kl_times": "",
    "starts_together": "",
    "ssnmf_newsgroups": "",
    "ssnmf_synthetic": "",
    "ssnmf_newsgroups_ours": "",
    "dynamic_newsgroups": "",
    "planted_events": "",
    "topic_supervised": "",
    "nmf_alpha": "",
    "vbnmf": "",
    "completion": "--figure 2.3 --methods sirls structured-sirls",
    "completion_speed": "--parts d",
    "imputers": "",
    "family_speed": "--repeats 1 --iterations 2 --threads 1",
    "suggest": "--out {folder}/suggest",
    "dtypes": "",
    "threads": "",
    "thread_simulation": "--rank 5 --iterations 2",
    "contention": "",
    "tensor_recovery": "",
    "tensor_stream": "--forget-factors 0.98",
    "side": "--out {folder}/side",
    "trees": "--out {folder}/trees",
    "seeds": "",
    "programs": "",
    "cells": "",
    "ranks": "--parts matrices tensors",
    "consensus": "--out {folder}/consensus",
    "receipts": "",
}


def main() -> None:
    sys.path[:0] = [str(HERE), *(str(HERE / part) for part in PARTS)]
    with tempfile.TemporaryDirectory() as folder:
        for name, given in CALLS.items():
            output = io.StringIO()
            with redirect_stdout(output):
                script = importlib.import_module(name)
                script.main(["--quick", *given.format(folder=folder).split()])
            assert output.getvalue().strip(), f"{name} printed nothing"
            print(f"== {name}\n{output.getvalue()}", flush=True)
        assert (Path(folder) / "records" / "labels" / "few_labels.png").exists()
    print("benchmarks: all ran")


if __name__ == "__main__":
    main()
