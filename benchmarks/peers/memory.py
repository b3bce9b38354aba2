"""How much memory does a KL-NMF fit take above its input, beside scikit-learn's MU-KL?

Each fit runs in a fresh process that loads the same matrix from files; counted is the peak of the
resident memory during the fit minus what was resident just before (Linux).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common import markdown, newsgroups, zipf_text

PARTS = ("data", "indices", "indptr")


def resident(field: str) -> float:
    """Return VmRSS (now) or VmHWM (peak) in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    raise KeyError(field)


def fit(library: str, X: Any, rank: int, k: int) -> None:
    if library == "ssnmf_fast":
        import ssnmf_fast as sf

        sf.factorize(
            X,
            n_components=rank,
            loss="kullback-leibler",
            random_state=0,
            solver="mu",
            tol=0,
            max_iter=k,
        )
    else:
        from sklearn.decomposition import NMF

        NMF(
            rank,
            solver="mu",
            beta_loss="kullback-leibler",
            init="random",
            random_state=0,
            tol=0,
            max_iter=k,
        ).fit_transform(X)


def child(library: str, folder: Path, rank: int, k: int) -> None:
    """Print the MB of the fit."""
    fit(library, zipf_text(200, 100, 10), rank, 2)  # imports and thread pools
    shape = tuple(json.loads((folder / "shape.json").read_text()))
    X = sp.csr_matrix(tuple(np.load(folder / f"{part}.npy") for part in PARTS), shape=shape)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = resident("VmRSS")
    fit(library, X, rank, k)
    print(json.dumps(resident("VmHWM") - before))


def measure(library: str, folder: Path, rank: int, k: int) -> float:
    command = [sys.executable, __file__, "--child", library, "--folder", str(folder)]
    command += ["--ranks", str(rank), "--iterations", str(k)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", nargs="+", type=int, default=[13, 50])
    parser.add_argument("--iterations", type=int, default=12)
    parser.add_argument("--synthetic", type=int, metavar="N", help="N random texts instead")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        child(options.child, options.folder, options.ranks[0], options.iterations)
        return
    X = zipf_text(options.synthetic, 1000, 40) if options.synthetic else newsgroups()[0]
    size = sum(getattr(X, part).nbytes for part in PARTS) / 2**20
    print(f"{X.shape[0]} x {X.shape[1]}, {X.nnz} nonzeros, {size:.1f} MB\n")
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in PARTS:
            np.save(folder / f"{part}.npy", getattr(X, part))
        (folder / "shape.json").write_text(json.dumps(X.shape))
        for rank in options.ranks:
            ours, peers = (
                min(measure(library, folder, rank, options.iterations) for _ in range(2))
                for library in ("ssnmf_fast", "scikit-learn")
            )
            ratio = peers / max(ours, 1e-3)
            met = "yes" if ratio >= 5 else "NO"
            rows.append([str(rank), f"{ours:.1f}", f"{peers:.1f}", f"{ratio:.1f}", "5", met])
    header = ["rank", "ours, MB", "scikit-learn MU-KL, MB", "ratio", "target", "met"]
    print(markdown(header, rows))


if __name__ == "__main__":
    main()
