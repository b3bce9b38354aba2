"""cNMF as it is, under an interpreter that has it: the other side of `consensus.py`.

    python cnmf_worker.py prepare FOLDER LOSS STARTS SEED RANK...
    python cnmf_worker.py factorize FOLDER WORKERS
    python cnmf_worker.py consensus FOLDER RANK

FOLDER has counts.npz, a sparse matrix of cells and genes; all features are kept.  Every step prints
its seconds as the last line; "prepare" writes normalized.npz, which is what is factorized, and
"consensus" programs_RANK.npz.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

warnings.simplefilter("ignore")

import anndata  # noqa: E402
import scanpy  # noqa: E402
from cnmf import cNMF  # noqa: E402

DENSITY = 0.5


def prepare(folder: Path, loss: str, starts: str, seed: str, *ranks: str) -> float:
    counts = anndata.AnnData(sp.csr_matrix(sp.load_npz(folder / "counts.npz")).astype(float))
    counts.obs_names = [f"cell{i}" for i in range(counts.n_obs)]
    counts.var_names = [f"gene{j}" for j in range(counts.n_vars)]
    counts.write(folder / "counts.h5ad")
    model = of(folder)
    begin = time.perf_counter()
    model.prepare(
        str(folder / "counts.h5ad"),
        [int(rank) for rank in ranks],
        n_iter=int(starts),
        seed=int(seed),
        beta_loss=loss,
        num_highvar_genes=counts.n_vars,
    )
    seconds = time.perf_counter() - begin
    X = scanpy.read(model.paths["normalized_counts"]).X
    sp.save_npz(folder / "normalized.npz", sp.csr_matrix(X))
    return seconds


def factorize(folder: Path, workers: str) -> float:
    model, begin = of(folder), time.perf_counter()
    if workers == "1":
        model.factorize()
    else:
        model.factorize_multi_process(total_workers=int(workers))
    return time.perf_counter() - begin


def consensus(folder: Path, rank: str) -> float:
    model, k = of(folder), int(rank)
    begin = time.perf_counter()
    model.combine(components=k)
    model.consensus(k, DENSITY, show_clustering=False, close_clustergram_fig=True, build_ref=False)
    seconds = time.perf_counter() - begin
    given = k, str(DENSITY).replace(".", "_")
    parts = {}
    for name in ("consensus_spectra", "consensus_usages"):
        with np.load(model.paths[name] % given, allow_pickle=True) as archive:
            parts[name] = archive["data"].astype(float)
    np.savez(folder / f"programs_{k}.npz", **parts)
    return seconds


def of(folder: Path) -> Any:
    return cNMF(output_dir=str(folder), name="run")


def main() -> None:
    step, folder, *given = sys.argv[1:]
    output = os.dup(1)
    os.dup2(2, 1)  # what cNMF prints, its workers too
    seconds = globals()[step](Path(folder), *given)
    os.write(output, f"{seconds}\n".encode())


if __name__ == "__main__":
    main()
