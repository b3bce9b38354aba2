"""How long do fits of many cells take, and how much memory, from files and in memory?

Two cases, each in a process of its own, whose peak of memory is that of the whole process with
Python and its packages:

- "backed": an .h5ad of 200,000 x 20,000 with 5 % nonzero (1.6 GB in memory, as float32), fitted
  from the file by `ssnmf_fast.anndata.nmf`, all genes and the 2000 that `prepare` chooses.
- "million": 1,000,000 x 2,000, 5 % nonzero, Kullback-Leibler, rank 20, one start; 100,000 cells of
  it in memory, and all from the file, in memory and by temporary files.

Counts are those of programs that are mixed, in a sparse background; files are written block by
block, and deleted at the end.  It needs ``python -m pip install 'ssnmf-fast[anndata]'``.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import D, F, load_average, resident
from records import Options, markdown, say
from run import command

BLOCK = 5000  # cells that are drawn at a time
PROGRAMS = 20
SHARE = 0.05  # of the entries are not zero


class Case(NamedTuple):
    """A file, and how it is fitted: `genes` are chosen by `prepare`, None takes all."""

    name: str
    cells: int
    of_file: int
    n_genes: int
    genes: int | None
    loss: str
    memory: int  # MB of the matrix
    in_memory: bool = False


CASES = [
    Case("backed, all genes", 200_000, 200_000, 20_000, None, F, 512),
    Case("backed, all genes", 200_000, 200_000, 20_000, None, D, 512),
    Case("backed, 2000 chosen", 200_000, 200_000, 20_000, 2000, F, 512),
    Case("in memory", 100_000, 1_000_000, 2000, None, D, 8192, True),
    Case("file, read into memory", 1_000_000, 1_000_000, 2000, None, D, 2048),
    Case("file, from disk", 1_000_000, 1_000_000, 2000, None, D, 512),
]


def draw(rng: np.random.Generator, cells: int, programs: Any) -> Any:
    import scipy.sparse as sp

    n_genes = programs.shape[1]
    usage = rng.dirichlet(np.full(len(programs), 0.2), cells)
    cumulative = np.cumsum(programs, axis=1)
    cumulative = (cumulative / cumulative[:, -1:]).astype(np.float32)
    totals = rng.poisson(SHARE * n_genes * 1.3 * rng.lognormal(0, 0.3, cells))
    parts = rng.multinomial(totals, usage)  # of the counts of each cell, those of each program
    rows = np.concatenate([np.repeat(np.arange(cells, dtype=np.int32), part) for part in parts.T])
    uniform = [rng.random(part.sum(), dtype=np.float32) for part in parts.T]
    drawn = [np.searchsorted(edges, u) for edges, u in zip(cumulative, uniform, strict=True)]
    columns = np.minimum(np.concatenate(drawn), n_genes - 1).astype(np.int32)
    return sp.coo_array((np.ones(len(rows), np.float32), (rows, columns)), (cells, n_genes)).tocsr()


def write(path: Path, cells: int, n_genes: int) -> int:
    import anndata
    import h5py
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    programs = rng.lognormal(0, 1, n_genes) * (1 + 4 * rng.gamma(0.1, 10, (PROGRAMS, n_genes)))
    empty = anndata.AnnData(sp.csr_matrix((cells, n_genes), dtype=np.float32))
    empty.write_h5ad(path)
    indptr = [np.zeros(1, np.int64)]
    with h5py.File(path, "r+") as file:
        group = file["X"]
        for name, dtype in {"data": np.float32, "indices": np.int32}.items():
            del group[name]
            group.create_dataset(name, (0,), dtype, maxshape=(None,), chunks=(1 << 18,))
        for begin in range(0, cells, BLOCK):
            block = draw(rng, min(BLOCK, cells - begin), programs)
            first = int(indptr[-1][-1])
            indptr.append(first + block.indptr[1:].astype(np.int64))
            for name in ("data", "indices"):
                group[name].resize((first + block.nnz,))
                group[name][first:] = getattr(block, name)
        del group["indptr"]
        group["indptr"] = np.concatenate(indptr)
    return int(indptr[-1][-1])


def fit(path: Path, case: Case, iterations: int, folder: Path) -> dict[str, float]:
    import anndata

    import ssnmf_fast.anndata as sfa

    begin = time.perf_counter()
    adata = anndata.read_h5ad(path, backed="r")
    if case.in_memory:
        adata = adata[: case.cells].to_memory()
    if case.genes is not None:
        sfa.prepare(adata, case.genes, empty_cells="keep")
    prepared = time.perf_counter()
    given = {"loss": case.loss, "max_iter": iterations, "memory": case.memory << 20}
    given["random_state"] = 0
    chosen = case.genes is not None
    sfa.nmf(adata, PROGRAMS, use_highly_variable=chosen, temporary_folder=folder, **given)
    done = time.perf_counter()
    about = {"opened": prepared - begin, "fitted": done - prepared, "peak": resident("VmHWM")}
    return {**about, "iterations": int(adata.uns["nmf"]["n_iter"])}


OPTIONS = {
    "folder": (Path, "for the files, 5 GB; else a temporary one"),
    "iterations": (200, "at most, of each fit"),
    "scale": (1, "divides the numbers of cells"),
    "cases": list(range(len(CASES))),
    "one": (Path, None),
    "case": (str, None),
}
QUICK = {"scale": 500, "iterations": 5}


def main(options: Options) -> Any:
    if importlib.util.find_spec("anndata") is None:
        print("skipped: python -m pip install 'ssnmf-fast[anndata]'")
        return
    if options.one:
        case = Case(*json.loads(options.case))
        print(json.dumps(fit(options.one, case, options.iterations, options.folder)))
        return
    rows, written = [], {}
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        folder = Path(place)
        for number in options.cases:
            case, scale = CASES[number], options.scale
            case = case._replace(cells=case.cells // scale, of_file=case.of_file // scale)
            path = folder / f"{case.of_file}x{case.n_genes}.h5ad"
            if path not in written:
                for old in written:
                    old.unlink(missing_ok=True)
                written[path] = write(path, case.of_file, case.n_genes)
                say(f"{path.name}: {written[path]} entries, {path.stat().st_size / 1e9:.2f} GB")
            # In a new process, for the sake of its peak.
            order = command("cells", "--one", path, "--case", json.dumps(case))
            order += ["--iterations", str(options.iterations), "--folder", str(folder)]
            done = subprocess.run(order, check=True, stdout=subprocess.PIPE, text=True)
            found = json.loads(done.stdout.splitlines()[-1])
            rows.append([case.name, f"{case.cells:,} x {case.n_genes:,}", case.loss])
            rows[-1] += [f"{case.memory} MB", f"{found['opened']:.1f}", f"{found['fitted']:.1f}"]
            rows[-1] += [f"{found['iterations']}", f"{found['peak'] / 1000:.2f}", load_average()]
            say(" | ".join(rows[-1]))
    header = ["case", "cells x genes", "loss", "memory=", "open, prepare (s)", "fit (s)"]
    print(markdown([*header, "iterations", "peak (GB)", "load"], rows))
