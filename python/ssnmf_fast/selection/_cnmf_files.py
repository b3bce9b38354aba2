"""Tables of a consensus in files that users of cNMF know."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Any

from .._common.arrays import Array
from .._common.replacement import Replacement
from .._topics import names_of
from ..plotting._style import check_names

if TYPE_CHECKING:
    from ._consensus_result import Consensus

Names = Sequence[Any]
Tables = dict[str, tuple[Names, Names, Array]]  # names of rows and of columns, and the values


def check_file_name(name: Any, argument: str) -> str:
    """Return the begin of the names of files, or raise an error if it leads elsewhere."""
    if not isinstance(name, str):
        raise TypeError(f"{argument} must be text; got {name!r:.100} ({type(name).__name__}).")
    if PureWindowsPath(f"{name}.txt").name != f"{name}.txt" or "\0" in name:  # has "/" as well
        raise ValueError(
            f"{argument} is the begin of the names of files, without separators of folders; got "
            f"{name!r:.100}. Name the folder by its own argument."
        )
    return name


def tables_of(
    consensus: Consensus, *, feature_names: Any, sample_names: Any, tpm: Any, tpm_names: Any
) -> Tables:
    """Return what cNMF writes, by the kinds of its files; components have numbers from 1."""
    (r, m), n = consensus.components.shape, len(consensus.usage)
    features, numbers = names_of(feature_names, m), range(1, r + 1)
    samples: Names = range(n)
    if sample_names is not None:
        samples = check_names(sample_names, "sample_names", n, "sample")
    tables: Tables = {
        "usages": (samples, numbers, consensus.usage),
        "spectra": (numbers, features, consensus.components),
    }
    if tpm is None:
        return tables | {"gene_spectra_score": (numbers, features, consensus.scores)}
    scores, spectra = consensus.scores_of(tpm), consensus.components_of(tpm)
    genes = names_of(None, scores.shape[1])
    if tpm_names is not None:
        genes = check_names(tpm_names, "tpm_names", len(genes), "feature of tpm")
    of_genes = {"gene_spectra_score": scores, "gene_spectra_tpm": spectra}
    return tables | {kind: (numbers, genes, values) for kind, values in of_genes.items()}


def write_tables(folder: Path, name: str, threshold: float, tables: Tables) -> list[Path]:
    """Write tables with the names of their rows and columns; return their files.

    All appear together or not at all.
    """
    rank = len(tables["spectra"][0])
    of_all = f"k_{rank}.dt_{str(float(threshold)).replace('.', '_')}"
    ends = {"spectra": ".consensus", "usages": ".consensus"}
    paths = []
    folder.mkdir(parents=True, exist_ok=True)
    with Replacement() as files:
        for kind, (rows, columns, values) in tables.items():
            path = folder / f"{name}.{kind}.{of_all}{ends.get(kind, '')}.txt"
            _write(files.path(path), rows, columns, values)
            paths.append(path)
    return paths


def _write(path: Path, rows: Names, columns: Names, values: Iterable[Array]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, delimiter="\t", lineterminator="\n")
        lines.writerow(["", *columns])
        lines.writerows([row, *line.tolist()] for row, line in zip(rows, values, strict=True))
