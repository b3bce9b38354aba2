"""Function :func:`nmf`: gene programs of an AnnData."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._data.border import check_integer
from ..estimators import NMF, SeededTopics
from ._batches import batches_of, names_of_batches, usage_of_profiles
from ._data import Choice, open_data, said, writable, write_programs
from ._read import MEMORY
from ._sets import fit_sets, genes_of, known_sets, names_of_programs
from ._source import require_annotated


def nmf(
    adata: Any,
    n_components: int,
    *,
    layer: str | None = None,
    use_highly_variable: bool = True,
    mask_var: Any = None,
    scale: bool = True,
    batch_key: str | None = None,
    gene_sets: Mapping[str, Any] | None = None,
    key_added: str = "nmf",
    loss: str | float = "frobenius",
    solver: str = "auto",
    init: Any = "auto",
    n_starts: int = 1,
    max_iter: int = 200,
    tol: float = 1e-4,
    random_state: Any = 0,
    n_threads: int | None = None,
    verbose: int = 0,
    memory: int = MEMORY,
    temporary_folder: Any = None,
    copy: bool = False,
) -> Any:
    """Find gene programs in an AnnData, and write them to it.

    Parameters
    ----------
    adata : anndata.AnnData, n cells x m genes
        With nonnegative data, such as counts, in memory or backed by a file.
    n_components : int
        Number r of programs.
    layer : str, optional
        Layer to take in place of X.
    use_highly_variable : bool
        Whether only genes of ``var["highly_variable"]`` are used; without that column all are, with
        a warning.
    mask_var : str or array_like of bool, shape (m,), optional
        Genes to use, or the column of `var` that has them, in place of `use_highly_variable`.
    scale : bool
        Whether genes are divided by ``var["nmf_scale"]``, where :func:`prepare` has written it.
    batch_key : str, optional
        Column of `obs` with the batch of each cell.  Every batch gets a profile of its own, which
        each of its cells has to the extent of its counts; the programs explain the rest.
    gene_sets : dict, optional
        Names of programs, and the genes that each is known by: lists, or dicts with strengths.
        They are the first programs, and the others are free ("free1", "free2", ... as far as no set
        has such a name); see :class:`ssnmf_fast.SeededTopics`
        (`membership` "mixed").  Their genes are used even if they are not highly variable.
    key_added : str
        Name of the results.
    loss, solver, init, n_starts, max_iter, tol, random_state, n_threads, verbose
        As in :func:`ssnmf_fast.factorize`; with `gene_sets`, which give the start, there is no
        `init`, and one start.
    memory : int
        Bytes that the matrix of the chosen genes may take, if `adata` is backed by a file.  A
        larger one is written to a temporary file, which every iteration reads.
    temporary_folder : path, optional
        Where the temporary file is; by default where the system has them.
    copy : bool
        Whether the results are written to a copy, which is returned.

    Returns
    -------
    None or anndata.AnnData
        With

        - ``obsm["X_nmf"]`` (n x r): how much of each cell every program explains,
        - ``varm["nmf"]`` (m x r): the programs, columns of sum 1, 0 for genes that were not used;
          a data frame with `gene_sets`,
        - ``varm["nmf_batches"]`` (m x number of batches): the profiles of batches,
        - ``uns["nmf"]``: names, parameters, objective, number of iterations, version.

    Raises
    ------
    ValueError, TypeError
        For bad input, before anything is written.

    Notes
    -----
    The data that are fitted are ``X[:, used] / scale``: the programs are in these units.  Rows of a
    `.h5ad` or `.zarr` file are read block by block, columns if it stores columns.

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> import ssnmf_fast.anndata as sfa
    >>> counts = np.random.default_rng(0).poisson(1.0, (100, 30)).astype(np.float32)
    >>> adata = anndata.AnnData(counts)
    >>> sfa.nmf(adata, 4, use_highly_variable=False)
    >>> adata.obsm["X_nmf"].shape, adata.varm["nmf"].shape
    ((100, 4), (30, 4))
    """
    require_annotated(adata, "adata")
    rank = check_integer(n_components, "n_components", 1)
    if gene_sets is not None and batch_key is not None:
        raise ValueError("gene_sets and batch_key cannot be given together; leave out one of them.")
    if gene_sets is not None and n_starts != 1:
        raise ValueError(f"n_starts must be 1 with gene_sets, which give it; got {n_starts!r}.")
    batches = batches_of(adata, batch_key)
    of_batches = names_of_batches(batches)
    sets = None if gene_sets is None else known_sets(adata, gene_sets, rank)
    adata = writable(adata, copy)
    given: dict[str, Any] = {"loss": loss, "solver": solver, "max_iter": max_iter, "tol": tol}
    parameters = {"n_components": rank, **given, **said(batch_key=batch_key)}
    given |= {"random_state": random_state, "n_threads": n_threads, "verbose": verbose}
    choice = Choice(layer, use_highly_variable, mask_var, scale, memory, temporary_folder)
    names = None
    with open_data(adata, choice, None if sets is None else genes_of(sets)) as data:
        model: NMF | SeededTopics
        if sets is None:
            known = None if batches is None else usage_of_profiles(data.X, batches)
            model = NMF(rank + len(of_batches), init=init, n_starts=n_starts, **given).fit(
                data.X, S_fixed=known
            )
        else:
            names = names_of_programs(sets, rank)
            model = fit_sets(data, sets, rank, given)
    write_programs(
        adata,
        key_added,
        (model.representation_, model.components_),
        data,
        {**parameters, **said(random_state=random_state)},
        names=names,
        batches=of_batches,
        objective=float(model.objective_[-1][1]),
        n_iter=int(model.n_iter_),
    )
    return adata if copy else None
