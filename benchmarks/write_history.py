"""Write the page of times by commit, docs/evidence/history.md, from results of asv.

    python benchmarks/write_history.py [build/asv/results/MACHINE/COMMIT-ENVIRONMENT.json]

A file that is given replaces benchmarks/asv/results.json, of which the page is made.
"""

from __future__ import annotations

import argparse
import json
import math
from ast import literal_eval
from datetime import datetime, timezone
from itertools import product
from pathlib import Path
from typing import Any

from common import ROOT
from records import tabulate

RESULTS = ROOT / "benchmarks" / "asv" / "results.json"
PAGE = ROOT / "docs" / "evidence" / "history.md"
Values = dict[tuple[Any, ...], float]


def values_of(found: dict[str, Any], name: str, scale: float = 1.0) -> Values:
    """Return the results of a benchmark by its parameters, nothing where it did not run."""
    if name not in found["results"]:
        return {}
    entry = dict(zip(found["result_columns"], found["results"][name], strict=False))
    parameters = [[literal_eval(value) for value in values] for values in entry["params"]]
    pairs = zip(product(*parameters), entry["result"] or [], strict=False)
    return {k: scale * v for k, v in pairs if v is not None and not math.isnan(v)}


def table(values: Values, first: str, places: dict[str, tuple[Any, ...]]) -> str:
    """Return a table whose rows are first parameters, and its columns the others."""
    names = [{"name": name} for name in dict.fromkeys(key[0] for key in values)]
    cells = {t: lambda r, p=p: f"{values[(r['name'], *p)]:.3g}" for t, p in places.items()}
    return tabulate(names, **{first: "{name}"}, **cells)


def kernels(found: dict[str, Any]) -> str:
    values, parts = values_of(found, "kernels.Kernels.time_kernel", 1e3), []
    for threads in (1, 2):
        cases = [(r, d, threads) for d in ("float64", "float32") for r in (8, 32, 96)]
        parts += [table(values, f"threads {threads}", {f"{c[1]}, rank {c[0]}": c for c in cases})]
    return "\n\n".join(parts)


def calls(found: dict[str, Any]) -> str:
    times = values_of(found, "public_calls.Times.time_call", 1e3)
    memory = values_of(found, "public_calls.Memory.track_memory")
    values = {(*key, "ms"): value for key, value in times.items()}
    values |= {(*key, "MB"): value for key, value in memory.items()}
    places = {"ms": (1, "ms"), "ms, 4 times the rows": (4, "ms")}
    return table(values, "call", places | {"MB, 4 times the rows": (4, "MB")})


def page(found: dict[str, Any]) -> str:
    machine = found["params"]
    date = datetime.fromtimestamp(found["date"] / 1000, timezone.utc)
    return f"""# Kernels and calls, by commit

Commit {found["commit_hash"][:10]} of {date:%d %B %Y}, measured by asv on {machine["cpu"]},
{machine["num_cpu"]} cores. `benchmarks/README.md` says how to measure other commits and to compare
two; former tables are in the history of this page.

## Kernels

Milliseconds of a call: passes over 6000 x 4000 with 360,000 nonzeros, a dense 800 x 600 or a tensor
of 100,000 entries, and updates of the rows of a factor (`benchmarks/asv/suite/kernels.py`).

{kernels(found)}

## Public calls

Few iterations each, with one thread, and what the process needs beyond its data
(`benchmarks/calls.py`).

{calls(found)}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="?", type=Path, default=RESULTS)
    given = parser.parse_args().results
    found = json.loads(given.read_text())
    RESULTS.write_text(json.dumps(found) + "\n")
    PAGE.write_text(page(found))


if __name__ == "__main__":
    main()
