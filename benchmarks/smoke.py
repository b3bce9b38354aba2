"""Do the benchmarks run?  Small versions of all; asserts that they print, never how fast.

No need of other packages or downloads; under a minute.  `cluster`, which needs Dask, is left out.
"""

from __future__ import annotations

import io
import tempfile
from contextlib import redirect_stdout
from pathlib import Path

from run import run

# Benchmarks, and what they are given in addition to --quick.
CALLS = {
    "iterations": "--peers sklearn --synthetic 500 --iterations 5",
    "convergence": "--peers scikit-learn --data text signatures --solvers mu hals",
    "count_likelihood": "",
    "signatures": "",
    "tensors": "--patience 90 --rounds 1",
    "few_labels": "--draws 1 --out {folder}",
    "ssnmf_newsgroups": "",
    "ssnmf_synthetic": "",
    "ssnmf_newsgroups_ours": "",
    "ssnmf_search": "",
    "dynamic_newsgroups": "",
    "dynamic_events": "",
    "planted_events": "",
    "topic_supervised": "",
    "nmf_alpha": "",
    "vbnmf": "",
    "completion": "--figure 2.3 --methods sirls structured-sirls --out {folder}",
    "completion_movielens": "",
    "completion_speed": "--parts d",
    "imputers": "",
    "suggest": "--out {folder}",
    "label_designs": "",
    "threads": "",
    "scale": "",
    "tensor_recovery": "",
    "trees": "",
    "seeds": "",
    "programs": "",
    "cells": "",
    "ranks": "--parts matrices tensors",
    "consensus": "",
    "dropin": "",
    "recommend": "",
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, given in CALLS.items():
            output = io.StringIO()
            with redirect_stdout(output):
                run(name, ["--quick", *given.format(folder=folder).split()])
            printed = output.getvalue().splitlines()
            assert any(printed[1:]), f"{name} printed nothing"
            print(f"== {name}", *printed, sep="\n", flush=True)
        assert (Path(folder) / "few_labels-quick.png").exists()
    print("benchmarks: all ran")


if __name__ == "__main__":
    main()
