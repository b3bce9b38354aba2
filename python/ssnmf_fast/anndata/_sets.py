"""Gene sets that programs are known by: seeds of a :class:`ssnmf_fast.SeededTopics`."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from itertools import count, islice
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._data.border import check_real
from .._data.csr_file import CsrFile
from ..estimators import SeededTopics
from ._data import Chosen, gigabytes
from ._genes import gene_numbers

Sets = dict[str, dict[int, float]]  # the strengths of genes, which are numbers of columns


def known_sets(adata: Any, gene_sets: Any, rank: int) -> Sets:
    """Return the genes of each set that adata has, with their strengths; warn of the others."""
    if not isinstance(gene_sets, Mapping):
        raise TypeError(
            "gene_sets must be a dict of programs, such as {'T cells': ['CD3D', 'CD3E']}; got "
            f"{gene_sets!r:.100} ({type(gene_sets).__name__})."
        )
    if not 2 <= len(gene_sets) <= rank:
        raise ValueError(
            f"gene_sets has {len(gene_sets)} programs, and n_components is {rank}; expected two "
            "or more, and not more than n_components."
        )
    sets: Sets = {}
    for name, genes in gene_sets.items():
        where = f"gene_sets[{name!r}]"
        known = gene_numbers(adata, genes, where)
        strengths = genes if isinstance(genes, Mapping) else {}
        for gene, strength in strengths.items():
            if check_real(strength, f"{where}[{gene!r}]") == 0:
                raise ValueError(f"{where}[{gene!r}] is 0; a strength is above 0. Leave it out.")
        names = adata.var_names[known]
        text = unicodedata.normalize("NFC", str(name))
        if text in sets:
            raise ValueError(f"gene_sets names the program {text!r} twice; give distinct names.")
        sets[text] = {int(k): strengths.get(g, 1.0) for k, g in zip(known, names, strict=True)}
    return sets


def genes_of(sets: Sets) -> Array:
    """Return the numbers of all genes of the sets."""
    return np.array([gene for each in sets.values() for gene in each])


def names_of_programs(sets: Sets, rank: int) -> list[str]:
    """Return the names of the sets, and those of free programs, which no set has."""
    free = (name for number in count(1) if (name := f"free{number}") not in sets)
    return [*sets, *islice(free, rank - len(sets))]


def fit_sets(chosen: Chosen, sets: Sets, rank: int, given: dict[str, Any]) -> SeededTopics:
    """Fit programs that begin with the gene sets."""
    if isinstance(chosen.X, CsrFile):
        raise ValueError(
            f"gene_sets need the data in memory, where the chosen genes take {gigabytes(chosen.X)}."
            " Give more memory, fewer genes, or no gene_sets."
        )
    seeds = {
        name: {
            int(np.searchsorted(chosen.genes, gene)): strength for gene, strength in each.items()
        }
        for name, each in sets.items()
    }
    model = SeededTopics(
        seeds, n_free_topics=rank - len(sets), membership="mixed", readout=None, **given
    )
    return model.fit(chosen.X)
