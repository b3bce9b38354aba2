"""Function :func:`consensus`: many starts, optionally kept in a folder, and their consensus."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.cluster.hierarchy import cophenet, linkage
from scipy.spatial.distance import squareform
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_samples
from sklearn.metrics.pairwise import euclidean_distances

from .._backend import dispatch
from .._common.arrays import Array, LossName, Matrix, Seed
from .._common.replacement import Replacement
from .._common.saved import HEADER, NpzReader, header_array
from .._common.warn import warn_user
from .._data import border
from .._data.arrays import DataLike, check_dtype, refuse_on_disk, with_values
from .._data.border import CleanMatrix, check_data
from .._data.csr_file import CsrFile
from .._data.fingerprint import data_fingerprint, digest, input_fingerprint
from .._data.threads import Stop, limited_openmp, resolve_jobs, resolve_threads, run_side_by_side
from .._linalg import unit_rows
from .._models.factorize import factorize
from .._models.fits import draw_seeds, fit_starts
from .._models.represent import objective, represent
from .._solver.loop import verbose_progress
from .._solver.result import Factorization, FitState
from .._solver.weights import WeightsLike
from .._topics import divide_by_sums
from .._version import __version__
from ._consensus_result import DROPPED, Consensus, regression_scores, shares_together

Folder: TypeAlias = str | PathLike[str] | None
_N_INIT = 10  # of k-means, as in cNMF
_DIGITS = 6  # for the comparison of spectra
MOST_SAMPLES = 1000  # of the consensus matrix
STARTS = ("random", "least-squares", "random-acol")  # that depend on the seed
_PARTS = ("components", "assignments")
_SHORT = 16  # digits of hashes of the places of entries and of the ends of blocks
_READABLE = (str, bool, int, float, type(None))


def consensus(
    X: DataLike,
    n_components: int,
    *,
    n_starts: int = 100,
    loss: LossName | float = "frobenius",
    distance_threshold: float = 0.5,
    neighborhood_fraction: float = 0.3,
    X_weights: WeightsLike = None,
    max_iter: int = 1000,
    tol: float = 1e-5,
    init: Literal["random", "least-squares", "random-acol"] = "random",
    resample: Literal["poisson"] | None = None,
    dtype: npt.DTypeLike | None = "float32",
    folder: Folder = None,
    n_jobs: int | None = None,
    n_threads: int | None = None,
    executor: Executor | None = None,
    random_state: Seed = None,
    verbose: int = 0,
) -> Consensus:
    """Factorize X from many random starts and return the components that they agree on.

    The method of cNMF [1]_: components of all starts are scaled to length 1; components far from
    their nearest neighbors are dropped; the others are clustered by k-means.  The medians of the
    clusters are the components of the consensus, to which the usages of samples are fitted.

    Parameters
    ----------
    X : array_like, scipy.sparse or CsrFile, shape (n, m)
        Nonnegative samples by features, as in :func:`factorize`.
    n_components : int
        Rank r, at least 1.
    n_starts : int
        Number of starts, at least 1.  For a `random_state`, a larger number adds starts.
    loss, X_weights, max_iter, tol
        As in :func:`factorize`.
    distance_threshold : float
        Drop components whose mean distance to their nearest neighbors reaches this; 2 drops none.
    neighborhood_fraction : float, above 0, at most 1
        Number of these neighbors, as a share of `n_starts`; below one neighbor, none is dropped.
    init : {"random", "least-squares", "random-acol"}
        Starts, as in :func:`factorize`.
    resample : {"poisson"}, optional
        "poisson" fits each start to counts that are drawn again, with the entries of X as means,
        as for mutational signatures [2]_: components that depend on the noise of counting do not
        agree.  X must hold counts, and be in memory; the usages are those of X itself.
    dtype : {"float32", "float64"}, optional
        Type of the fits of all starts and of `spectra`; None: the type of X.  "float32" finds the
        same components as "float64" in about two thirds of the time.  Components and usages of the
        consensus have the type of X, or float64.
    folder : path, optional
        Folder for the results of all starts: an interrupted call continues from there, with the
        same result.  It may hold several ranks, for the same data in the same form (dense, sparse
        or on disk), settings and level of the kernels.
    n_jobs, n_threads : int, optional
        Number of starts fitted at a time (None: the number of threads), and total number of
        threads.  Neither changes the result.
    executor : concurrent.futures.Executor, optional
        Where the starts are fitted, each by a task with `n_threads` threads (None: one): processes,
        or machines, such as ``client.get_executor()`` of Dask and ``MPIPoolExecutor`` of mpi4py.
        The result stays the same.  An error or Ctrl-C cancels the waiting tasks.
    random_state : None, int, Generator or RandomState
        Seed of the starts and of k-means.
    verbose : int
        1 shows progress on standard error.

    Returns
    -------
    Consensus

    Raises
    ------
    ValueError, TypeError
        For bad input; if too few components have close neighbors; if `folder` has starts of other
        data or settings, or modified files.

    Warns
    -----
    UserWarning
        If all starts together have fewer different components than `n_components`.

    References
    ----------
    .. [1] D. Kotliar et al., "Identifying gene expression programs of cell-type identity and
       cellular activity with single-cell RNA-Seq", eLife, 2019.
    .. [2] L. B. Alexandrov et al., "Deciphering signatures of mutational processes operative in
       human cancer", Cell Reports, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> rng = np.random.default_rng(0)
    >>> usages = 5 * rng.dirichlet([0.3] * 4, 60)
    >>> X = rng.poisson(usages @ rng.gamma(0.5, size=(4, 30)))
    >>> found = sf.consensus(X, 4, n_starts=10, random_state=0)
    >>> found.components.shape, found.usage.shape, found.stability.shape
    ((4, 30), (60, 4), (4,))
    """
    settings = n_components, n_starts, distance_threshold, neighborhood_fraction, init, random_state
    fitting: Any = {"loss": loss, "X_weights": X_weights, "max_iter": max_iter, "tol": tol}
    recipe = Recipe(*settings, dtype, resample, **fitting)
    if executor is None:
        fits: Fitting = partial(_fit_here, n_jobs, n_threads)
    elif not isinstance(executor, Executor):
        kind = type(executor).__name__
        raise TypeError(f"executor must be a concurrent.futures.Executor; got {kind}.")
    elif n_jobs is not None:
        raise ValueError(f"n_jobs must be None with executor, whose workers count; got {n_jobs!r}.")
    else:
        fits = partial(_fit_on, executor, n_threads)
    return _agreement(X, recipe, fits, folder, n_threads, verbose)


def _agreement(
    X: DataLike, recipe: Recipe, fits: Fitting, folder: Folder, n_threads: int | None, verbose: int
) -> Consensus:
    """Return the consensus of the starts that `fits` returns."""
    border.check_observers(None, verbose)
    threads = resolve_threads(n_threads)
    recipe.fitting |= border.by_name(X, X_weights=recipe.fitting["X_weights"])
    clean = CleanMatrix(check_data(X, threads))
    of_starts = CleanMatrix(check_data(clean, threads, recipe.dtype))
    dtype, loss = clean.matrix.dtype, recipe.fitting["loss"]
    of_clusters, samples, seeds = recipe.draw(clean.matrix.shape[0])
    fits = fits if folder is None else partial(_saved_starts, Path(folder), fits, recipe)
    starts: list[Start] = []
    if recipe.resample is not None:
        require_counts(clean.matrix)
    task = StartTask(of_starts.matrix, samples, recipe.fitting, recipe.resample)
    runs = closing(fits(task, seeds))
    bar = verbose_progress(verbose, recipe.n_starts, "consensus", unit="start")
    with runs as results, bar as progress:
        for start in results:
            starts.append(start)
            if progress is not None:
                progress(FitState(len(starts), start.objective))
    spectra = unit_rows(np.concatenate([start.components for start in starts]))
    spectra = spectra.astype(of_starts.matrix.dtype)
    with limited_openmp(1):
        distances, clusters, silhouettes, silhouette = _cluster(spectra, recipe, of_clusters)
        rows = []
        for number in range(clusters.max() + 1):
            members = spectra[clusters == number]
            median = np.median(members, axis=0)
            rows.append(median if median.any() else members.mean(axis=0))
        components = divide_by_sums(np.array(rows, dtype=np.float64))
    weighting = {"X_weights": recipe.fitting["X_weights"], "n_threads": n_threads}
    usage = represent(clean, components.astype(dtype), loss=loss, **weighting)
    order = np.argsort(-divide_by_sums(usage).sum(axis=0), kind="stable")
    usage = np.ascontiguousarray(usage[:, order])
    components = components[order].astype(dtype)
    clusters = np.where(clusters == DROPPED, DROPPED, np.argsort(order)[clusters])
    assignments = np.array([start.assignments for start in starts])
    return Consensus(
        components=components,
        usage=usage,
        stability=np.array([silhouettes[clusters == k].mean() for k in range(len(order))]),
        spectra=spectra,
        clusters=clusters,
        neighbor_distances=distances,
        scores=regression_scores(clean.matrix, usage),
        silhouette=silhouette,
        cophenetic=_cophenetic_correlation(assignments),
        error=objective(clean, usage, components, **weighting),
        samples=samples,
        assignments=assignments,
        n_starts=recipe.n_starts,
        loss=loss,
        distance_threshold=recipe.distance_threshold,
    )


def _cluster(spectra: Array, recipe: Recipe, seed: int) -> tuple[Array, Array, Array, float]:
    """Return neighbor distances, clusters, silhouettes, and the mean silhouette of all spectra."""
    rank, threshold = recipe.fitting["n_components"], recipe.distance_threshold
    distances = np.asarray(euclidean_distances(spectra), dtype=np.float64)
    n_nearest = min(recipe.n_nearest, len(spectra) - 1)
    nearest = np.partition(distances, n_nearest, axis=1)[:, : n_nearest + 1]  # and itself
    used = np.asarray(spectra.any(axis=1))  # components may be zero
    nearness = np.where(used, nearest.sum(axis=1) / max(n_nearest, 1), np.inf)
    kept = np.asarray(nearness < threshold)
    if kept.sum() < rank:
        raise ValueError(
            f"Only {kept.sum()} of {len(spectra)} components have a mean distance to their "
            f"{n_nearest} nearest neighbors below distance_threshold={threshold:g}, fewer than "
            f"n_components={rank}: the starts do not agree. The smallest is {nearness.min():.3g}. "
            "Raise distance_threshold (2 drops none), or reduce n_components or tol."
        )
    masks = [used] if kept.sum() == used.sum() else [used, kept]
    results = [clusters_of(spectra[p], distances[np.ix_(p, p)], rank, seed) for p in masks]
    (_, of_all), (labels, of_kept) = results[0], results[-1]
    if (count := labels.max() + 1) < rank:
        fewer = f"fewer than n_components={rank}: the consensus has {count}. Reduce n_components"
        warn_user(f"All starts have only {count} different components, {fewer}.", UserWarning)
    clusters, silhouettes = np.full(len(spectra), DROPPED), np.full(len(spectra), np.nan)
    clusters[kept], silhouettes[kept] = labels, of_kept
    return nearness, clusters, silhouettes, float(of_all.mean())


def clusters_of(spectra: Array, distances: Array, count: int, seed: int) -> tuple[Array, Array]:
    """Return k-means clusters, at most one per different spectrum, and silhouettes, both (p,).

    Silhouettes are NaN if there is one cluster, or if each cluster has one spectrum.
    """
    count = min(count, len({row.tobytes() for row in spectra.round(_DIGITS)}))
    rng, squares = np.random.default_rng(seed), distances**2
    inits = [spectra[_far_apart(squares, count, rng)] for _ in range(_N_INIT)]
    fits = [KMeans(count, init=init, n_init=1, random_state=0).fit(spectra) for init in inits]
    labels = min(fits, key=lambda fit: fit.inertia_).labels_
    if 1 < count < len(spectra):
        return labels, silhouette_samples(distances, labels, metric="precomputed")
    return labels, np.full(len(spectra), np.nan)


def _far_apart(squares: Array, count: int, rng: np.random.Generator) -> list[int]:
    """Choose a start of k-means as scikit-learn does (greedy k-means++), from known distances."""
    places = [int(rng.integers(len(squares)))]
    nearest = squares[places[0]]
    for _ in range(1, count):
        sums = nearest.cumsum()
        candidates = sums.searchsorted(rng.random(2 + int(np.log(count))) * sums[-1])
        candidates = candidates.clip(max=len(squares) - 1)
        distances = np.minimum(nearest, squares[candidates])
        best = int(distances.sum(axis=1).argmin())
        places.append(int(candidates[best]))
        nearest = distances[best]
    return places


def _cophenetic_correlation(assignments: Array) -> float:
    """Return the cophenetic correlation of the consensus matrix (Brunet 2004); NaN if constant."""
    apart = squareform(1 - shares_together(assignments), checks=False)
    if not apart.size or np.ptp(apart) == 0:
        return float("nan")
    correlation: Any = cophenet(linkage(apart, "average"), apart)
    return float(correlation[0])


class Start(NamedTuple):
    """The kept parts of a start: components (r, m), and the main one of some samples, (s,)."""

    components: Array
    assignments: Array
    objective: float
    level: str  # of the kernels


Starts: TypeAlias = Generator[Start, None, None]
Fitting: TypeAlias = Callable[["StartTask", Sequence[int]], Starts]


class Recipe:
    """The checked settings of a consensus; `fitting` are arguments of :func:`factorize`."""

    def __init__(
        self,
        n_components: int,
        n_starts: int,
        distance_threshold: float,
        neighborhood_fraction: float,
        init: str,
        random_state: Seed,
        dtype: npt.DTypeLike | None,
        resample: str | None,
        **fitting: Any,
    ) -> None:
        rank = border.check_integer(n_components, "n_components", 1)
        init = border.check_option(init, "init", STARTS)
        self.fitting = {"n_components": rank, "init": init, **fitting}
        self.distance_threshold = border.check_real(distance_threshold, "distance_threshold")
        share = border.check_share(neighborhood_fraction, "neighborhood_fraction", below=False)
        self.n_starts = border.check_integer(n_starts, "n_starts", 1)
        self.n_nearest = int(share * self.n_starts)
        self.random_state: Any = random_state
        self.dtype = check_dtype(dtype)
        if resample is not None:
            border.check_option(resample, "resample", ("poisson",))
        self.resample = resample

    def draw(self, n_samples: int) -> tuple[int, Array, list[int]]:
        """Return the seed of the clusters, the samples of `assignments`, and the seeds."""
        rng = border.check_random_state(self.random_state)
        of_clusters = int(rng.integers(2**31 - 1))
        count = min(n_samples, MOST_SAMPLES)
        samples = np.sort(rng.choice(n_samples, count, replace=False, shuffle=False))
        return of_clusters, samples, draw_seeds(rng, self.n_starts)


def require_counts(X: Any) -> None:
    """Raise an error if the entries cannot be the means of counts that are drawn again."""
    refuse_on_disk(X, 'consensus(resample="poisson")')
    values: Array = X.data if sp.issparse(X) else X
    if not np.all((values == np.floor(values)) | np.isnan(values)):
        raise ValueError('resample="poisson" needs counts, but X has entries with fractions.')


@dataclass(frozen=True)
class StartTask:
    """What all starts need; sent as bytes: other parts of messages may be misaligned."""

    matrix: Matrix | CsrFile  # clean
    samples: Array
    arguments: dict[str, Any]  # of `factorize`
    resample: str | None = None

    def run(self, seed: int, threads: int | None = None, stop: Stop | None = None) -> Start:
        given: dict[str, Any] = {} if stop is None else {"n_threads": threads, "callback": stop}
        X = self.X if self.resample is None else self.redrawn(seed)
        return self.start_of(factorize(X, random_state=seed, **self.arguments, **given))

    def redrawn(self, seed: int) -> CleanMatrix:
        """Return counts with the entries of X as means; missing entries stay missing."""
        rng, X = np.random.default_rng([seed, 0]), cast(Any, self.matrix)
        values: Array = X.data if sp.issparse(X) else X
        counts = rng.poisson(np.nan_to_num(values)).astype(values.dtype)
        drawn = np.where(np.isnan(values), values, counts)
        return CleanMatrix(with_values(X, drawn) if sp.issparse(X) else drawn)

    @property
    def X(self) -> CleanMatrix:
        return CleanMatrix(self.matrix)

    def start_of(self, fit: Factorization) -> Start:
        """Return the kept parts of a fit."""
        usage = fit.S[self.samples] * fit.A.sum(axis=1)
        main = np.where(usage.any(axis=1), usage.argmax(axis=1), -1)
        return Start(fit.A, main.astype(np.int32), fit.objective[-1][1], dispatch.level_in_use())

    def __getstate__(self) -> bytes:
        return pickle.dumps(vars(self), protocol=5)

    def __setstate__(self, contents: bytes) -> None:
        vars(self).update(pickle.loads(contents))


def _fit_here(
    n_jobs: int | None, n_threads: int | None, task: StartTask, seeds: Sequence[int]
) -> Starts:
    if task.resample is not None:
        jobs, threads = resolve_jobs(n_jobs, n_threads, len(seeds))
        yield from run_side_by_side((partial(task.run, seed) for seed in seeds), jobs, threads)
        return
    fits = fit_starts(task.X, seeds, n_jobs=n_jobs, n_threads=n_threads, **task.arguments)
    yield from map(task.start_of, fits)


def _fit_on(
    executor: Executor, n_threads: int | None, task: StartTask, seeds: Sequence[int]
) -> Starts:
    task = replace(task, arguments={**task.arguments, "n_threads": n_threads or 1})
    yield from executor.map(StartTask.run, [task] * len(seeds), seeds)


def _saved_starts(
    folder: Path, fits: Fitting, recipe: Recipe, task: StartTask, seeds: Sequence[int]
) -> Starts:
    """Yield the starts in order: read them from the folder, or fit them and save them there."""
    if recipe.random_state is None:
        how = "every call draws other starts. Give a number, for example random_state=0"
        raise ValueError(f"folder needs random_state: without it, {how}.")
    if folder.is_file():
        raise ValueError(f"folder={str(folder)!r} is a file; give a folder for many files.")
    folder.mkdir(parents=True, exist_ok=True)
    rank, key = recipe.fitting["n_components"], _key(task.matrix, recipe)
    keys = [{**key, "seed": seed} for seed in seeds]
    # File names are those of cNMF.
    paths = [folder / f"start.k_{rank}.iter_{number}.npz" for number in range(len(seeds))]
    starts = [_read(path, key) for path, key in zip(paths, keys, strict=True)]
    missing = [seed for seed, start in zip(seeds, starts, strict=True) if start is None]
    with closing(fits(task, missing)) as new_starts:
        for path, key, start in zip(paths, keys, starts, strict=True):
            if start is None:
                start = next(new_starts)
                _write(path, key, start)
            yield start


def _read(path: Path, key: dict[str, Any]) -> Start | None:
    """Return the start in a file, if it exists and its seal is intact."""
    if not path.exists():
        return None
    try:
        with path.open("rb") as file:
            archive = NpzReader(file)
            header = archive.header()
            saved, objective = dict(header["key"]), header["objective"]
            if saved == key:
                arrays = archive.arrays(_PARTS)
                if arrays.keys() != {*_PARTS} or header["seal"] != _seal(saved, objective, arrays):
                    raise ValueError("its contents have been changed")
                return Start(arrays["components"], arrays["assignments"], objective, key["level"])
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        how = "Remove it to fit this start again"
        raise ValueError(f"{path} is not a saved start, or is damaged: {error}. {how}.") from error
    names = [name for name in {**key, **saved} if saved.get(name) != key.get(name)]
    values = ", ".join(f"{name} {saved.get(name)!r:.40}" for name in names)
    now = ", ".join(f"{key.get(name)!r:.40}" for name in names)
    raise ValueError(
        f"folder={str(path.parent)!r} has starts of other data or settings: {path.name} was made "
        f"with {values}; now {now}. Give another folder, or remove its files."
    )


def _write(path: Path, key: dict[str, Any], start: Start) -> None:
    if start.level != key["level"]:
        of = f"folder={str(path.parent)!r} is for starts fitted by the kernels of level"
        levels = f"{key['level']!r}, but a worker has {start.level!r}, which rounds differently"
        how = "Set SSNMF_FAST_ISA to the same level for all workers, or give no folder"
        raise ValueError(f"{of} {levels}. {how}.")
    arrays: dict[str, Any] = {name: getattr(start, name) for name in _PARTS}
    header = {"key": key, "objective": start.objective}
    arrays[HEADER] = header_array({**header, "seal": _seal(key, start.objective, arrays)})
    with Replacement() as files, files.path(path).open("wb") as file:
        np.savez(file, **arrays)


def _key(X: Any, recipe: Recipe) -> dict[str, Any]:
    """Return all that a start depends on, except its seed."""
    form = "dense"  # the form determines the order of sums, and so the last bits
    if isinstance(X, CsrFile):
        form = f"on disk, {digest(repr([rows.stop for rows in X.slices]))[:_SHORT]}"
    elif sp.issparse(X):
        places = [_hash(part.astype(np.int64, copy=False)) for part in (X.indptr, X.indices)]
        form = f"sparse, {digest(repr(places))[:_SHORT]}"
    about = {"format": "ssnmf_fast start", "version": 2, "ssnmf_fast": __version__}
    about["level"] = dispatch.level_in_use()
    of_data = {"shape": list(X.shape), "dtype": str(X.dtype), "form": form}
    settings = {
        name: value if isinstance(value, _READABLE) else input_fingerprint(value, name)
        for name, value in recipe.fitting.items()
    }
    settings |= {"resample": recipe.resample} if recipe.resample else {}
    return {**about, **of_data, "data": data_fingerprint(X), **settings}


def _seal(key: dict[str, Any], objective: float, parts: dict[str, Array]) -> str:
    arrays = [(parts[name].dtype.str, parts[name].shape, _hash(parts[name])) for name in _PARTS]
    return digest(repr([sorted(key.items()), objective, arrays]))


def _hash(array: Array) -> str:
    return sha256(np.ascontiguousarray(array).data).hexdigest()
