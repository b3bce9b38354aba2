"""Gene programs of annotated matrices of cells and genes; needs the extra `anndata`."""

from .._common.optional import CELLS_HINT, require_package

with require_package("anndata", CELLS_HINT):
    from anndata import AnnData as _AnnData  # noqa: F401

from ._map import map_to
from ._nmf import choose_rank, consensus, nmf, usages_to_obs
from ._prepare import prepare

__all__ = ["choose_rank", "consensus", "map_to", "nmf", "prepare", "usages_to_obs"]
