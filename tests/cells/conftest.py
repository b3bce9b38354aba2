"""Counts of cells in which a few gene programs are mixed."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.optional_packages import need_anndata

anndata = need_anndata()

CELLS, GENES, PROGRAMS = 300, 80, 4


@pytest.fixture
def truth():
    """Programs, (4, 80); each sums to 1."""
    weights = np.random.default_rng(0).gamma(0.3, size=(PROGRAMS, GENES))
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.fixture
def usage():
    """Counts of each program in each cell, (300, 4)."""
    rng = np.random.default_rng(1)
    sizes = rng.lognormal(6.0, 0.4, (CELLS, 1))
    return rng.dirichlet(np.full(PROGRAMS, 0.3), CELLS) * sizes


@pytest.fixture
def cells(truth, usage):
    """Return an AnnData of counts with two batches, and genes of which most are used."""
    rng = np.random.default_rng(2)
    counts = sp.csr_matrix(rng.poisson(usage @ truth).astype(np.float32))
    adata = anndata.AnnData(
        counts,
        obs=pd.DataFrame(index=[f"cell{number}" for number in range(CELLS)]),
        var=pd.DataFrame(index=[f"gene{number}" for number in range(GENES)]),
    )
    adata.obs["batch"] = pd.Categorical(np.where(rng.random(CELLS) < 0.5, "old", "new"))
    adata.var["highly_variable"] = rng.random(GENES) < 0.8
    return adata
