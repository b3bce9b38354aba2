"""What does a fit lose beside other load, with one thread and with several?

    python benchmarks/contention.py
    python benchmarks/contention.py --compare /path/of/another/build

One table: median and least milliseconds of a Kullback-Leibler fit (rank 10, 50 iterations, 20
Newsgroups) beside 0, 1, 2... processes that keep a core busy, and of two such fits at once, through
joblib, beside nothing.  Another build (a directory that holds `ssnmf_fast`) is measured in turn.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parent))
from common import load_average, markdown, new_parser, newsgroups, say, seconds, zipf_text

BUSY = "while True: pass"


def fit(X: Any, threads: int, iterations: int) -> None:
    import ssnmf_fast as sf

    sf.factorize(
        X,
        n_components=10,
        loss="kullback-leibler",
        random_state=0,
        max_iter=iterations,
        tol=0,
        n_threads=threads,
    )


def serve(path: str, iterations: int) -> None:
    """For every line "jobs threads" of the input, fit that many times at once; print seconds."""
    from joblib import Parallel, delayed

    X = sp.load_npz(path)
    print("ready", flush=True)
    for line in sys.stdin:
        jobs, threads = map(int, line.split())
        if jobs == 1:
            took = seconds(lambda threads=threads: fit(X, threads, iterations))
        else:
            with Parallel(n_jobs=jobs) as parallel:
                calls = [delayed(fit)(X, threads, iterations) for _ in range(jobs)]
                parallel(calls)  # starts the processes
                took = seconds(lambda parallel=parallel, calls=calls: parallel(calls))
        print(took, flush=True)


class Build:
    """A process that fits with one build of the package."""

    def __init__(self, directory: Path | None, data: str, iterations: int) -> None:
        path = os.environ.get("PYTHONPATH", "")
        if directory is not None:
            path = os.pathsep.join(part for part in (path, str(directory)) if part)
            own = str(Path(__file__).resolve().parent.parent / "python")
            path = os.pathsep.join(part for part in path.split(os.pathsep) if part != own)
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve", data, "--iterations", str(iterations)],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process that fits has ended; its message is above.")
        return line

    def measure(self, jobs: int, threads: int) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{jobs} {threads}\n")
        self._process.stdin.flush()
        return float(self._answer())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Keep `count` cores busy."""
    processes = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def rows(builds: list[Build], options: argparse.Namespace) -> list[list[str]]:
    """Measure every load and number of threads; the builds and the threads in turn."""
    cases = [(f"{load} busy", load, 1) for load in options.loads] + [("a second fit", 0, 2)]
    table = []
    for name, load, jobs in cases:
        times: dict[tuple[int, int], list[float]] = {}
        with busy(load):
            for _ in range(options.repeats):
                for threads in options.threads:
                    for number, build in enumerate(builds):
                        took = build.measure(jobs, threads)
                        times.setdefault((threads, number), []).append(1e3 * took)
        for threads in options.threads:
            figures = [times[threads, number] for number in range(len(builds))]
            cells = [f"{median(figure):.0f} ({min(figure):.0f})" for figure in figures]
            say(f"beside {name}, {threads} threads: {cells}")
            table.append([name, str(threads), *cells])
    return table


def main(arguments: list[str] | None = None) -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--loads", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--iterations", type=int, default=50)
    parser.add_argument("--compare", type=Path, help="directory of another build")
    parser.add_argument("--quick", action="store_true", help="small made-up data, one load")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        serve(options.serve, options.iterations)
        return
    if options.quick:
        options.loads, options.repeats, options.iterations = [0, 1], 1, 2
    with TemporaryDirectory() as folder, ExitStack() as stack:
        data = str(Path(folder) / "X.npz")
        sp.save_npz(data, zipf_text(500, 300, 20) if options.quick else newsgroups()[0])
        directories = [None, *([options.compare] if options.compare else [])]
        builds = [Build(directory, data, options.iterations) for directory in directories]
        for build in builds:
            stack.callback(build.close)
            build.measure(1, options.threads[-1])
        table = rows(builds, options)
    names = ["this build", "the other"][: len(directories)]
    print(markdown(["beside", "threads", *(f"{name}, ms (least)" for name in names)], table))
    print(f"Load of the last minute: {load_average()}")


if __name__ == "__main__":
    main()
