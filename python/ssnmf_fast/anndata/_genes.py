"""Which genes a fit uses, and what they are divided by."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._common.text import listed
from .._common.warn import warn_user
from ._source import Source

HIGHLY_VARIABLE = "highly_variable"
SCALE = "nmf_scale"  # column of var that `prepare` writes
PREPARED = "nmf_prepare"  # in uns


def chosen_genes(adata: Any, use_highly_variable: Any, mask_var: Any) -> Array:
    """Return whether each gene is to be used, (m,)."""
    if mask_var is None:
        if not use_highly_variable:
            return np.ones(adata.n_vars, dtype=bool)
        if HIGHLY_VARIABLE not in adata.var:
            warn_user(
                f"adata.var has no column {HIGHLY_VARIABLE!r}: all {adata.n_vars} genes are used. "
                "Choose genes with ssnmf_fast.anndata.prepare or scanpy.pp.highly_variable_genes, "
                "or say use_highly_variable=False.",
                UserWarning,
            )
            return np.ones(adata.n_vars, dtype=bool)
        mask_var = HIGHLY_VARIABLE
    if isinstance(mask_var, str):
        if mask_var not in adata.var:
            raise ValueError(
                f"mask_var={mask_var!r} is not among the columns of adata.var, {list(adata.var)}."
            )
        mask_var, name = adata.var[mask_var], f"adata.var[{mask_var!r}]"
    else:
        name = "mask_var"
    mask = np.asarray(mask_var)
    if mask.shape != (adata.n_vars,) or mask.dtype != bool:
        raise ValueError(
            f"{name} has shape {mask.shape} and dtype {mask.dtype}; expected a bool for each of "
            f"the {adata.n_vars} genes."
        )
    if not mask.any():
        raise ValueError(f"{name} chooses no gene; expected at least one.")
    return mask


def scales_of(adata: Any, source: Source, scale: bool) -> Array | None:
    """Return what each gene is divided by, (m,), where `prepare` has written it."""
    if not scale or SCALE not in adata.var:
        return None
    prepared = adata.uns.get(PREPARED, {}).get("layer", source.layer)
    if prepared != source.layer:
        raise ValueError(
            f"adata.var[{SCALE!r}] has the scales of adata.{prepared}, and the data are "
            f"{source.name}. Give the layer that was prepared, or scale=False."
        )
    scales = np.asarray(adata.var[SCALE], dtype=np.float64)
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        raise ValueError(
            f"adata.var[{SCALE!r}] must hold finite numbers above 0. Run prepare again, or give "
            "scale=False."
        )
    return scales


def gene_numbers(adata: Any, genes: Iterable[str], where: str) -> Array:
    """Return the numbers of genes by their names, and warn of names that adata does not have."""
    names = [] if isinstance(genes, str) else list(genes)
    if isinstance(genes, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"{where} must have the names of genes; got {genes!r:.100}.")
    require_unique(adata, "adata")
    found = np.asarray(adata.var_names.get_indexer(names))
    unknown = [name for name, place in zip(names, found, strict=True) if place < 0]
    if 0 < len(unknown) < len(names):
        warn_user(
            f"{where} names {len(unknown)} genes that adata.var_names does not have, which are "
            f"left out: {listed(unknown)}.",
            UserWarning,
        )
    if len(unknown) == len(names):
        raise ValueError(f"{where} has no gene that is in adata.var_names; give one or more.")
    return found[found >= 0]


def require_unique(adata: Any, name: str) -> None:
    """Raise ValueError if genes share a name."""
    if not adata.var_names.is_unique:
        raise ValueError(
            f"{name}.var_names has names more than once. Use {name}.var_names_make_unique()."
        )
