"""Gene programs of an AnnData: functions that fit them and write them to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count, islice
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp
from anndata import AnnData

from .._common.arrays import Array, LossName, Seed, Solver
from .._common.text import nfc
from .._common.warn import warn_user
from .._data.arrays import scale_rows
from .._data.border import check_integer
from .._data.csr_file import CsrFile, bytes_of
from .._topics import divide_by_sums
from ..estimators import NMF, SeededTopics
from ..selection import Consensus, RankChoice
from ..selection import choose_rank as choose_rank_of
from ..selection import consensus as consensus_of
from ..selection._consensus_result import check_file_name
from . import _source
from ._source import MEMORY, Folder, documented, plain_parameters, selected_data

Genes: TypeAlias = "Sequence[str] | Mapping[str, float]"


@documented
def nmf(
    adata: AnnData,
    n_components: int,
    *,
    layer: str | None = None,
    use_highly_variable: bool = True,
    mask_var: str | npt.ArrayLike | None = None,
    scale: bool = True,
    batch_key: str | None = None,
    gene_sets: Mapping[str, Genes] | None = None,
    key_added: str = "nmf",
    loss: LossName | float = "frobenius",
    solver: Solver = "auto",
    init: str | tuple[Array, Array] = "auto",
    n_starts: int = 1,
    max_iter: int = 200,
    tol: float = 1e-4,
    random_state: Seed = None,
    n_threads: int | None = None,
    verbose: int = 0,
    memory: int = MEMORY,
    temporary_folder: Folder = None,
    copy: bool = False,
) -> AnnData | None:
    """Find gene programs in an AnnData and write them to it.

    Parameters
    ----------
    batch_key : str, optional
        Column of `obs` with the batch of each cell.  Each batch gets a profile, which its cells
        have in proportion to their counts; the programs explain the rest.
    gene_sets : dict, optional
        Names of programs and their known genes: lists, or dicts with strengths.  These programs
        come first; the others are called "free1", "free2", ..., unless a set has this name.  See
        :class:`ssnmf_fast.SeededTopics` (`membership` "mixed").  Genes of sets are used even if
        they are not highly variable.
    loss, solver, init, n_starts, max_iter, tol, random_state, n_threads, verbose
        As in :func:`ssnmf_fast.factorize`; `gene_sets` determine the start, without `init` and with
        `n_starts` 1.

    Returns
    -------
    None or anndata.AnnData
        With

        - ``obsm["X_nmf"]`` (n x r): the amount of each cell that each program explains,
        - ``varm["nmf"]`` (m x r): the programs, with columns of sum 1, 0 for unused genes; a data
          frame with `gene_sets`,
        - ``varm["nmf_batches"]`` (m x number of batches): the batch profiles,
        - ``uns["nmf"]``: names, parameters, objective, number of iterations, version.

    Notes
    -----
    The fit is to ``X[:, used] / scale``, and the programs are in these units.  A `.h5ad` or `.zarr`
    file is read in blocks of rows, or of columns if it stores columns.

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> import ssnmf_fast.anndata as sfa
    >>> counts = np.random.default_rng(0).poisson(1.0, (100, 30))
    >>> adata = anndata.AnnData(counts.astype(np.float32))
    >>> sfa.nmf(adata, 4, use_highly_variable=False)
    >>> adata.obsm["X_nmf"].shape, adata.varm["nmf"].shape
    ((100, 4), (30, 4))
    """
    _source.require_own(adata, key_added)
    rank = check_integer(n_components, "n_components", 1)
    if gene_sets is not None and batch_key is not None:
        raise ValueError("gene_sets and batch_key cannot be given together; leave out one of them.")
    if gene_sets is not None and n_starts != 1:
        raise ValueError(f"n_starts must be 1 with gene_sets; got {n_starts!r}.")
    batches = None if batch_key is None else _batches_of(adata, batch_key)
    of_batches = [] if batches is None else [str(name) for name in batches.categories]
    sets = None if gene_sets is None else _known_sets(adata, gene_sets, rank)
    adata = _source.writable(adata, copy)
    options: dict[str, Any] = {"loss": loss, "solver": solver, "max_iter": max_iter, "tol": tol}
    plain = plain_parameters(batch_key=batch_key, random_state=random_state)
    parameters = {"n_components": rank, **options, **plain}
    options |= {"random_state": random_state, "n_threads": n_threads, "verbose": verbose}
    selection = layer, use_highly_variable, mask_var, scale, memory, temporary_folder
    also = [gene for genes in (sets or {}).values() for gene in genes]
    names = None
    with selected_data(adata, *selection, also) as data:
        model: NMF | SeededTopics
        if sets is None:
            usage = None if batches is None else _usage_of_profiles(data.X, batches)
            model = NMF(rank + len(of_batches), init=init, n_starts=n_starts, **options)
            model.fit(data.X, covariates=usage)
        else:
            if isinstance(data.X, CsrFile):
                size = f"{bytes_of(data.X.nnz, data.X.dtype) / 2**30:.1f} GiB"
                remedy = "Give more memory, fewer genes, or no gene_sets."
                raise ValueError(f"gene_sets need the data in memory ({size}). {remedy}")
            free = (name for number in count(1) if (name := f"free{number}") not in sets)
            names = [*sets, *islice(free, rank - len(sets))]
            options |= {"membership": "mixed", "feature_names": adata.var_names[data.genes]}
            model = SeededTopics(sets, n_free_topics=rank - len(sets), **options).fit(data.X)
    factors = model.representation_, model.components_
    facts = {"objective": float(model.objective_[-1][1]), "n_iter": int(model.n_iter_)}
    _write_programs(adata, key_added, factors, data, parameters, names, of_batches, **facts)
    return adata if copy else None


def _write_programs(
    adata: AnnData,
    key: str,
    factors: tuple[Array, Array],
    data: _source.SelectedData,
    parameters: Mapping[str, Any],
    names: Sequence[str] | None = None,
    batches: Sequence[str] = (),
    **facts: Array | float,
) -> None:
    """Write the result of a fit to obsm, varm and uns; the last rows of A are batch profiles."""
    S, A = factors
    rank = len(A) - len(batches)
    sums = A[:rank].sum(axis=1, dtype=np.float64)
    sums = np.where(sums > 0, sums, 1)
    columns = np.zeros((adata.n_vars, len(A)), A.dtype)  # 0 for unused genes
    columns[data.genes, :rank] = (A[:rank] / sums[:, None]).T
    columns[data.genes, rank:] = A[rank:].T
    for earlier in (f"{key}_batches", f"{key}_scores"):
        if earlier in adata.varm:
            del adata.varm[earlier]
    adata.obsm[f"X_{key}"] = (S[:, :rank] * sums).astype(S.dtype)
    programs = np.ascontiguousarray(columns[:, :rank])
    of_names = list(names or (f"{key}{number}" for number in range(rank)))
    frame = {"index": adata.var_names, "columns": of_names}
    adata.varm[key] = pd.DataFrame(programs, **frame) if names else programs
    params = {"layer": data.source.layer, **parameters}
    params |= {"scale": _source.SCALE} if data.scaled else {}
    about: dict[str, Any] = {"params": params, "names": np.array(of_names, dtype=object)}
    if batches:
        adata.varm[f"{key}_batches"] = np.ascontiguousarray(columns[:, rank:])
        about["batches"] = np.array(batches, dtype=object)
    _source.write_about(adata, key, **about, **facts)


def usages_to_obs(
    adata: AnnData, key: str | None = None, *, prefix: str | None = None, shares: bool = True
) -> list[str]:
    """Write the usages of programs as columns of `obs`, named by the programs.

    Parameters
    ----------
    adata : anndata.AnnData
        With results of :func:`nmf`, :func:`consensus` or :func:`map_to`.
    key : str, optional
        Name of the results, their `key_added`; by default that of the only results, or "nmf".
    prefix : str, optional
        Prefix of the column names.
    shares : bool
        Whether to divide usages by their sum in the cell (0 for a cell without any); False writes
        the values of ``obsm["X_nmf"]``.

    Returns
    -------
    list of str
        Names of the columns, for ``scanpy.pl.umap(adata, color=...)`` and others.

    Raises
    ------
    ValueError
        If `adata` does not have these results, or has such a column from elsewhere.

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> import ssnmf_fast.anndata as sfa
    >>> counts = np.random.default_rng(0).poisson(1.0, (100, 30))
    >>> adata = anndata.AnnData(counts.astype(np.float32))
    >>> sfa.nmf(adata, 3, use_highly_variable=False)
    >>> sfa.usages_to_obs(adata)
    ['nmf0', 'nmf1', 'nmf2']
    """
    _source.require_annotated(adata, "adata")
    keys = [one for one in adata.uns if f"X_{one}" in adata.obsm and "names" in adata.uns[one]]
    if (key := _source.key_of(key, keys)) not in keys:
        raise ValueError(f"adata has no programs with key={key!r}; available keys are {keys}.")
    usages = np.asarray(adata.obsm[f"X_{key}"])
    if shares:
        usages = divide_by_sums(usages).astype(usages.dtype)
    names = [f"{prefix or ''}{name}" for name in adata.uns[key]["names"]]
    earlier = list(adata.uns[key].get("obs_columns", ()))
    if others := [name for name in names if name in adata.obs and name not in earlier]:
        raise ValueError(f"adata.obs already has other columns {others}; give a prefix.")
    for name, column in zip(names, usages.T, strict=True):
        adata.obs[name] = column
    adata.uns[key]["obs_columns"] = np.array([*dict.fromkeys(earlier + names)], dtype=object)
    return names


def _batches_of(adata: AnnData, batch_key: str) -> pd.Categorical:
    """Return the batch of each cell."""
    columns, where = list(adata.obs), f"adata.obs[{batch_key!r}]"
    if batch_key not in columns:
        raise ValueError(f"batch_key={batch_key!r} is not among adata.obs, {columns}.")
    batches = pd.Categorical(adata.obs[batch_key]).remove_unused_categories()
    if missing := int((batches.codes < 0).sum()):
        raise ValueError(f"{where} has no value for {missing} cells; expected a batch for each.")
    if len(set(map(str, batches.categories))) < len(batches.categories):
        raise ValueError(f"{where} has values that are equal as text, such as 1 and '1'.")
    if len(batches.categories) < 2:
        raise ValueError(f"{where} has the same value for all cells; leave batch_key out.")
    counts = np.bincount(batches.codes)
    if alone := int(np.count_nonzero(counts == 1)):
        text = f"{where} has one cell in {alone} of {len(counts)} batches"
        if 2 * alone > len(counts):
            raise ValueError(f"{text}; expected groups of cells, such as donors or samples.")
        warn_user(f"{text}: its profile explains that cell alone.", UserWarning)
    return batches


def _usage_of_profiles(X: Any, batches: pd.Categorical) -> Array:
    """Return the known columns of S (n x batches): the size of each cell, in its batch."""
    blocks = (block for _, block in X.blocks()) if isinstance(X, CsrFile) else [X]
    totals = np.concatenate([np.ravel(block.sum(axis=1, dtype=np.float64)) for block in blocks])
    usage = np.zeros((len(totals), len(batches.categories)), X.dtype)
    usage[np.arange(len(totals)), batches.codes] = totals / (totals.mean() or 1.0)
    return usage


def _known_sets(
    adata: AnnData, gene_sets: Mapping[str, Genes], rank: int
) -> dict[str, dict[str, float]]:
    """Return the genes of each set that are in adata, with strengths; warn about the others."""
    if not isinstance(gene_sets, Mapping):
        raise TypeError(
            "gene_sets must be a dict of programs, such as {'T cells': ['CD3D', 'CD3E']}; got "
            f"{gene_sets!r:.100} ({type(gene_sets).__name__})."
        )
    if not 2 <= len(gene_sets) <= rank:
        raise ValueError(
            f"gene_sets has {len(gene_sets)} programs; expected 2 to n_components={rank}."
        )
    sets: dict[str, dict[str, float]] = {}
    for name, genes in gene_sets.items():
        strengths = genes if isinstance(genes, Mapping) else {}
        present = adata.var_names[_source.gene_numbers(adata, genes, f"gene_sets[{name!r}]")]
        if (text := nfc(str(name))) in sets:
            raise ValueError(f"gene_sets has the program {text!r} twice; names must be unique.")
        sets[text] = {gene: strengths.get(gene, 1.0) for gene in present}
    return sets


@documented
def consensus(
    adata: AnnData,
    n_components: int,
    *,
    layer: str | None = None,
    use_highly_variable: bool = True,
    mask_var: str | npt.ArrayLike | None = None,
    scale: bool = True,
    key_added: str = "nmf_consensus",
    memory: int = MEMORY,
    temporary_folder: Folder = None,
    random_state: Seed = None,
    cnmf_folder: Folder = None,
    cnmf_name: str = "cnmf",
    **options: Any,
) -> Consensus:
    """Find the gene programs that many starts agree on and write them to an AnnData.

    Parameters
    ----------
    cnmf_folder : path, optional
        Folder for tables in the format of cNMF; see
        :meth:`ssnmf_fast.results.Consensus.to_cnmf`.  Tables of all genes need these data in
        memory; above `memory` bytes, the tables have only the used genes.
    cnmf_name : str
        Prefix of the names of these files, without folders.
    **options
        Other arguments of :func:`ssnmf_fast.consensus`: `n_starts`, `loss`, `folder` and so on.

    Returns
    -------
    Consensus
        The consensus of the used genes.  `adata` gets

        - ``obsm["X_nmf_consensus"]`` (n x r): the amount of each cell that each program explains,
        - ``varm["nmf_consensus"]`` (m x r): the programs, with columns of sum 1, 0 for unused
          genes,
        - ``varm["nmf_consensus_scores"]`` (m x r): how strongly each gene marks a program:
          coefficients of a least-squares regression of the standardized genes, in cells scaled to
          the same sum, on the usages,
        - ``uns["nmf_consensus"]``: names, parameters, stability, error, version.

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> import ssnmf_fast.anndata as sfa
    >>> rng = np.random.default_rng(0)
    >>> usages = 5 * rng.dirichlet([0.3] * 4, 100)
    >>> counts = rng.poisson(usages @ rng.gamma(0.5, size=(4, 30)))
    >>> adata = anndata.AnnData(counts.astype(np.float32))
    >>> found = sfa.consensus(adata, 4, n_starts=10, random_state=0,
    ...                       use_highly_variable=False)
    >>> stability = adata.uns["nmf_consensus"]["stability"]
    >>> adata.obsm["X_nmf_consensus"].shape, stability.shape
    ((100, 4), (4,))
    """
    if isinstance(n_components, Iterable) and not isinstance(n_components, str):
        raise TypeError(
            f"n_components must be one integer; got {n_components!r:.100}. For several numbers, "
            "call consensus for each of them, with a different key_added such as 'nmf5'; "
            "choose_rank(..., criterion='stability') compares them."
        )
    rank = check_integer(n_components, "n_components", 1)
    selection = layer, use_highly_variable, mask_var, scale, memory, temporary_folder
    check_file_name(cnmf_name, "cnmf_name")
    _source.require_own(adata, key_added)
    with selected_data(adata, *selection) as data:
        factors = _source.factors_of_size(data.source)  # this checks all genes
        result = consensus_of(data.X, rank, random_state=random_state, **options)
    settings = ("loss", "n_starts", "distance_threshold")
    parameters = {"n_components": rank} | {name: getattr(result, name) for name in settings}
    parameters |= plain_parameters(random_state=random_state)
    arguments = (result.usage, result.components), data, parameters
    _write_programs(adata, key_added, *arguments, stability=result.stability, error=result.error)
    genes = np.arange(adata.n_vars)

    def scaled(first: int, block: sp.csr_array) -> sp.csr_array:
        return scale_rows(block, factors[first : first + block.shape[0]])

    with _source.collected(data.source, genes, memory, temporary_folder, scaled) as sized:
        scores = result.scores_of(sized)
        if cnmf_folder is not None:
            names, cells = adata.var_names.astype(str), adata.obs_names.astype(str)
            tables: dict[str, Any] = {"feature_names": names[data.genes], "sample_names": cells}
            whole = {} if isinstance(sized, CsrFile) else {"tpm": sized, "tpm_names": names}
            result.to_cnmf(cnmf_folder, cnmf_name, **tables, **whole)
    adata.varm[f"{key_added}_scores"] = scores.T.astype(np.float32)
    return result


@documented
def choose_rank(
    adata: AnnData,
    ranks: Iterable[int],
    *,
    layer: str | None = None,
    use_highly_variable: bool = True,
    mask_var: str | npt.ArrayLike | None = None,
    scale: bool = True,
    key_added: str = "nmf_rank",
    memory: int = MEMORY,
    temporary_folder: Folder = None,
    random_state: Seed = None,
    **options: Any,
) -> RankChoice:
    """Choose the number of gene programs.

    Parameters
    ----------
    ranks : iterable of int
        Ranks to try.
    random_state : None, int, Generator or RandomState
        Seed of the held-out entries and of the starts.
    **options
        Other arguments of :func:`ssnmf_fast.choose_rank`: `criterion`, `loss`, `n_splits` and so
        on.

    Returns
    -------
    RankChoice
        ``uns["nmf_rank"]`` of `adata` gets the chosen rank, the ranks, their mean scores and
        standard errors.

    Raises
    ------
    ValueError
        If the matrix of the chosen genes is larger than `memory`, except for the criterion
        "stability".

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> import ssnmf_fast.anndata as sfa
    >>> rng = np.random.default_rng(0)
    >>> usages = 30 * rng.dirichlet([0.3] * 3, 100)
    >>> counts = rng.poisson(usages @ rng.gamma(0.5, size=(3, 30)))
    >>> adata = anndata.AnnData(counts.astype(np.float32))
    >>> options = {"loss": "kullback-leibler", "use_highly_variable": False}
    >>> sfa.choose_rank(adata, range(1, 6), random_state=0, **options).rank
    3
    """
    selection = layer, use_highly_variable, mask_var, scale, memory, temporary_folder
    _source.require_own(adata, key_added)
    with selected_data(adata, *selection) as data:
        if isinstance(data.X, CsrFile) and options.get("criterion") != "stability":
            size = f"{bytes_of(data.X.nnz, data.X.dtype) / 2**30:.1f} GiB"
            raise ValueError(
                f"choose_rank needs the data in memory ({size}), except with criterion='stability'."
                " Give more memory, or some of the cells, such as adata[::10].to_memory()."
            )
        choice = choose_rank_of(data.X, ranks, random_state=random_state, **options)
    names = ("rank", "means", "standard_errors", "criterion")
    about = {name: getattr(choice, name) for name in names}
    _source.write_about(adata, key_added, **about, ranks=np.array(choice.ranks))
    return choice
