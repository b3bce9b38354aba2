"""cNMF with the solvers of ssnmf_fast: gene programs by consensus.

    python examples/recipes/consensus.py

compares both on generated counts. It needs the package cnmf.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp
from cnmf import cNMF
from sklearn.preprocessing import normalize

import ssnmf_fast as sf
from ssnmf_fast.penalties import L2

Array = npt.NDArray[Any]


class FastCNMF(cNMF):
    """cNMF with the factorizations and fits of ssnmf_fast."""

    def _nmf(self, X: Any, nmf_kwargs: dict[str, Any]) -> tuple[Array, Array]:
        X = X.to_numpy() if isinstance(X, pd.DataFrame) else X
        loss = nmf_kwargs["beta_loss"]
        # scikit-learn also halves squared errors
        half = 1.0 if loss == "frobenius" else 0.5
        given = {
            "S": L2(half * nmf_kwargs["alpha_W"]),
            "A": L2(half * nmf_kwargs["alpha_H"]),
        }
        if not nmf_kwargs.get("update_H", True):
            spectra = np.asarray(nmf_kwargs["H"], dtype=X.dtype)
            return spectra, sf.represent(
                X, spectra, loss=loss, penalties=given
            )
        fit = sf.factorize(
            X,
            n_components=int(nmf_kwargs["n_components"]),
            loss=loss,
            init="random",  # the runs have to differ
            max_iter=nmf_kwargs["max_iter"],
            tol=nmf_kwargs["tol"],
            random_state=int(nmf_kwargs["random_state"]),
            penalties=given,
        )
        return fit.A, fit.S


def draw_counts(
    cells: int, genes: int, programs: int, seed: int = 0
) -> tuple[Any, Array]:
    """Return counts of cells that mix a few programs, and the programs."""
    rng = np.random.default_rng(seed)
    spectra = normalize(rng.gamma(0.2, size=(programs, genes)), "l1")
    usage = rng.dirichlet(np.full(programs, 0.2), size=cells) * rng.integers(
        1500, 4000, (cells, 1)
    )
    counts = anndata.AnnData(
        sp.csr_matrix(rng.poisson(usage @ spectra).astype(float))
    )
    counts.obs_names = [f"cell{i}" for i in range(cells)]
    counts.var_names = [f"gene{j}" for j in range(genes)]
    return counts, spectra


def consensus(
    kind: Any,
    counts: Any,
    folder: Path,
    programs: int,
    runs: int,
    loss: str,
    genes: int,
) -> tuple[pd.DataFrame, float]:
    """Return the consensus spectra (genes x programs) and the seconds of the factorizations."""
    path = folder / "counts.h5ad"
    counts.write(path)
    model = kind(output_dir=str(folder), name=kind.__name__)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pandas and scanpy, about cnmf
        model.prepare(
            str(path),
            [programs],
            n_iter=runs,
            seed=14,
            beta_loss=loss,
            num_highvar_genes=genes,
        )
        start = time.perf_counter()
        model.factorize()
        seconds = time.perf_counter() - start
        model.combine()
        model.consensus(programs, density_threshold=0.5, show_clustering=False)
        found = model.load_results(programs, 0.5)[2]
    return found, seconds


def agreement(found: pd.DataFrame, spectra: Array) -> Array:
    """Return, for every true program, the cosine with its best match."""
    genes = [int(name.removeprefix("gene")) for name in found.index]
    true = normalize(spectra[:, genes], "l2")
    return np.asarray(
        (normalize(found.to_numpy().T, "l2") @ true.T).max(axis=0)
    )


def main() -> None:
    """Compare cNMF with the class above."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=2000)
    parser.add_argument("--genes", type=int, default=3000)
    parser.add_argument("--programs", type=int, default=8)
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    counts, spectra = draw_counts(
        options.cells, options.genes, options.programs
    )
    for loss in ("frobenius", "kullback-leibler"):
        for kind in (cNMF, FastCNMF):
            with tempfile.TemporaryDirectory() as folder:
                found, seconds = consensus(
                    *(
                        kind,
                        counts,
                        Path(folder),
                        options.programs,
                        options.runs,
                        loss,
                        1000,
                    )
                )
            least = agreement(found, spectra).min()
            print(
                f"{loss:16} {kind.__name__:9} {seconds:6.2f} s, least cosine {least:.3f}"
            )


if __name__ == "__main__":
    main()
