"""Gene programs of annotated matrices of cells and genes; needs the extra `anndata`."""

from .._common.optional import CELLS_HINT, require_package

with require_package("anndata", CELLS_HINT):
    from anndata import AnnData as _AnnData  # noqa: F401

from ._nmf import nmf

__all__ = ["nmf"]
