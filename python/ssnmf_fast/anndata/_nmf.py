"""Function :func:`nmf`: gene programs of an AnnData."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._data.border import check_integer
from .._data.csr_file import CsrFile
from ..estimators import NMF, SeededTopics
from ..selection import Consensus, RankChoice
from ..selection import choose_rank as choose_rank_of
from ..selection import consensus as consensus_of
from ..selection._consensus_result import check_file_name
from ._data import (
    Choice,
    batches_of,
    fit_sets,
    genes_of,
    gigabytes,
    known_sets,
    names_of_batches,
    names_of_programs,
    open_data,
    said,
    usage_of_profiles,
    writable,
    write_programs,
)
from ._source import MEMORY, cells_of_size, factors_of_size, require_annotated


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
                data.X, covariates=known
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


def consensus(
    adata: Any,
    n_components: int,
    *,
    layer: str | None = None,
    use_highly_variable: bool = True,
    mask_var: Any = None,
    scale: bool = True,
    key_added: str = "nmf",
    memory: int = MEMORY,
    temporary_folder: Any = None,
    random_state: Any = 0,
    cnmf_folder: Any = None,
    cnmf_name: str = "cnmf",
    **options: Any,
) -> Consensus:
    """Find the gene programs that many starts agree on, and write them to an AnnData.

    Parameters
    ----------
    adata : anndata.AnnData, n cells x m genes
        With nonnegative data, such as counts, in memory or backed by a file.
    n_components : int
        Number r of programs.
    layer, use_highly_variable, mask_var, scale, key_added, memory, temporary_folder
        As in :func:`nmf`.
    random_state : None, int, Generator or RandomState
        Seed of the starts.
    cnmf_folder : path, optional
        Where tables are written, as cNMF has them; see
        :meth:`ssnmf_fast.results.Consensus.to_cnmf`.  Those of all genes need them in memory: of
        more than `memory` bytes, tables have the genes that were used.
    cnmf_name : str
        The begin of the names of these files, without separators of folders.
    **options
        The other arguments of :func:`ssnmf_fast.consensus`: `n_starts`, `loss`, `folder` and so on.

    Returns
    -------
    Consensus
        Of the genes that were used; for its pictures.  `adata` gets

        - ``obsm["X_nmf"]`` (n x r): how much of each cell every program explains,
        - ``varm["nmf"]`` (m x r): the programs, columns of sum 1, 0 for genes that were not used,
        - ``varm["nmf_scores"]`` (m x r): which of all genes mark a program: coefficients of the
          least squares of genes, in units of their standard deviations in cells that are scaled to
          the same sum, on the usages,
        - ``uns["nmf"]``: names, parameters, stability, error, version.

    Raises
    ------
    ValueError, TypeError
        For bad input, before anything is written.

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> import ssnmf_fast.anndata as sfa
    >>> rng = np.random.default_rng(0)
    >>> counts = rng.poisson(5 * rng.dirichlet([0.3] * 4, 100) @ rng.gamma(0.5, size=(4, 30)))
    >>> adata = anndata.AnnData(counts.astype(np.float32))
    >>> found = sfa.consensus(adata, 4, n_starts=10, use_highly_variable=False)
    >>> adata.obsm["X_nmf"].shape, adata.uns["nmf"]["stability"].shape
    ((100, 4), (4,))
    """
    require_annotated(adata, "adata")
    rank = check_integer(n_components, "n_components", 1)
    choice = Choice(layer, use_highly_variable, mask_var, scale, memory, temporary_folder)
    check_file_name(cnmf_name, "cnmf_name")
    with open_data(adata, choice) as data:
        factors = factors_of_size(data.source)  # which reads all genes, and may refuse them
        found = consensus_of(data.X, rank, random_state=random_state, **options)
    write_programs(
        adata,
        key_added,
        (found.usage, found.components),
        data,
        {
            "n_components": rank,
            "loss": found.loss,
            "n_starts": found.n_starts,
            "density_threshold": found.density_threshold,
            **said(random_state=random_state),
        },
        stability=found.stability,
        error=found.error,
    )
    with cells_of_size(data.source, factors, memory, temporary_folder) as sized:
        scores = found.scores_of(sized)
        if cnmf_folder is not None:
            _write_files(found, adata, data.genes, sized, cnmf_folder, cnmf_name)
    adata.varm[f"{key_added}_scores"] = scores.T.astype(np.float32)
    return found


def _write_files(
    found: Consensus, adata: Any, genes: Array, sized: Any, folder: Any, name: str
) -> None:
    """Write the tables of cNMF, with the names of cells and genes."""
    names = adata.var_names.astype(str)
    given: dict[str, Any] = {"tpm": sized, "tpm_names": names}
    found.to_cnmf(
        folder,
        name,
        feature_names=names[genes],
        sample_names=adata.obs_names.astype(str),
        **({} if isinstance(sized, CsrFile) else given),
    )


def choose_rank(
    adata: Any,
    ranks: Iterable[int],
    *,
    layer: str | None = None,
    use_highly_variable: bool = True,
    mask_var: Any = None,
    scale: bool = True,
    key_added: str = "nmf_rank",
    memory: int = MEMORY,
    temporary_folder: Any = None,
    random_state: Any = 0,
    **options: Any,
) -> RankChoice:
    """Choose the number of gene programs, by what models of several ranks predict.

    Parameters
    ----------
    adata : anndata.AnnData, n cells x m genes
        With nonnegative data, such as counts, in memory or backed by a file.
    ranks : iterable of int
        Ranks to try.
    layer, use_highly_variable, mask_var, scale, memory, temporary_folder
        As in :func:`nmf`.
    key_added : str
        Name of the results in `uns`.
    random_state : None, int, Generator or RandomState
        Seed of what is held out and of the starts.
    **options
        The other arguments of :func:`ssnmf_fast.choose_rank`: `criterion`, `loss`, `n_splits` and
        so on.

    Returns
    -------
    RankChoice
        ``uns["nmf_rank"]`` of `adata` has its rank, the ranks that were tried, the mean of their
        scores and standard errors.

    Raises
    ------
    ValueError, TypeError
        For bad input, and if the matrix of the chosen genes takes more than `memory`, except for
        the criterion "stability".

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> import ssnmf_fast.anndata as sfa
    >>> rng = np.random.default_rng(0)
    >>> counts = rng.poisson(30 * rng.dirichlet([0.3] * 3, 100) @ rng.gamma(0.5, size=(3, 30)))
    >>> adata = anndata.AnnData(counts.astype(np.float32))
    >>> given = {"loss": "kullback-leibler", "use_highly_variable": False}
    >>> sfa.choose_rank(adata, range(1, 6), **given).rank
    3
    """
    require_annotated(adata, "adata")
    choice = Choice(layer, use_highly_variable, mask_var, scale, memory, temporary_folder)
    with open_data(adata, choice) as data:
        if isinstance(data.X, CsrFile) and options.get("criterion") != "stability":
            raise ValueError(
                "choose_rank needs the data in memory, except by the stability, and the chosen "
                f"genes take {gigabytes(data.X)}. Give more memory, or some of the cells, for "
                "example adata[::10].to_memory()."
            )
        found = choose_rank_of(data.X, ranks, random_state=random_state, **options)
    adata.uns[key_added] = {
        "rank": found.rank,
        "ranks": np.array(found.ranks),
        "means": found.means,
        "standard_errors": found.standard_errors,
        "criterion": found.criterion,
    }
    return found
