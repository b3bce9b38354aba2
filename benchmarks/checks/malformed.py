"""Does any matrix argument let a malformed sparse matrix end the process?

Damages sparse matrices of all formats at random and passes them to random arguments of the public
functions, estimators, metrics and commands, in child processes of some hundred cases each.  Prints
how the calls ended; a signal or a hang is named with its case and makes the exit status 1.

    python benchmarks/run.py malformed --cases 5000 --seed 0
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from records import Options, say

PROGRAM = Path(__file__).resolve().parents[2] / "tests" / "data" / "broken_matrices.py"
PER_CHILD = 500
SECONDS = 600  # that a child may take


def run(folder: str, seed: int, first: int, last: int) -> tuple[list[str], str]:
    """Return the lines of a child, and how it ended where that was not by itself."""
    command = [sys.executable, str(PROGRAM), folder, f"random:{seed},{first},{last}"]
    with tempfile.TemporaryFile("w+") as output:
        try:
            code = subprocess.run(command, stdout=output, timeout=SECONDS, check=False).returncode
            ended = "" if code == 0 else f"signal {-code}" if code < 0 else f"status {code}"
        except subprocess.TimeoutExpired:
            ended = "hang"
        output.seek(0)
        return output.read().splitlines(), ended


OPTIONS = {"cases": 5000, "seed": 0}


def main(options: Options) -> int:
    outcomes: Counter[str] = Counter()
    first = 0
    with tempfile.TemporaryDirectory() as folder:
        while first < options.cases:
            last = min(first + PER_CHILD, options.cases)
            lines, ended = run(folder, options.seed, first, last)
            outcomes.update(line.split("|")[2].partition(":")[0] for line in lines)
            if ended:
                say(f"{ended}: {lines[-1] if lines else 'before the first case'}")
                outcomes[ended] += 1
            first = first + max(1, len(lines)) if ended else last
    say(", ".join(f"{count} {name or 'not ended'}" for name, count in outcomes.most_common()))
    kinds = {"ok", "ValueError", "TypeError", "MemoryError"}
    return 0 if set(outcomes) <= kinds else 1
