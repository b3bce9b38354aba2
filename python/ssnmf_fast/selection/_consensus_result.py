"""Result of :func:`consensus`, and its tables in the files of cNMF."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils import gen_batches

from .._common.arrays import Array, Matrix, MatrixLike, VectorLike
from .._common.replacement import Replacement
from .._common.saved import COUNT, Saved, Table
from .._data.arrays import DataLike, refuse_on_disk
from .._data.border import check_matrix
from .._data.csr_file import CsrFile
from .._data.threads import one_blas_thread, resolve_threads
from .._models.represent import represent
from .._solver.weights import WeightsLike
from .._topics import Topics, divide_by_sums, make_topics, names_of
from ..plotting import clustergram
from ..plotting._style import check_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DROPPED = -1  # the cluster of spectra that were dropped


def check_file_name(name: object, argument: str) -> str:
    """Return a prefix of file names, or raise an error if it contains a folder."""
    if not isinstance(name, str):
        raise TypeError(f"{argument} must be text; got {name!r:.100} ({type(name).__name__}).")
    if PureWindowsPath(f"{name}.txt").name != f"{name}.txt" or "\0" in name:  # has "/" as well
        got = f"got {name!r:.100}. Pass the folder as a separate argument"
        raise ValueError(f"{argument} is a prefix of file names, without folders; {got}.")
    return name


_LEAST_VARIANCE = 1e-12  # as in cNMF: constant features have scores of 0
_BLOCK_ENTRIES = 1 << 21  # of a dense block of rows


def _blocks(X: Matrix | CsrFile) -> Iterator[tuple[slice, Any]]:
    """Yield blocks of rows of a clean matrix."""
    if isinstance(X, CsrFile):
        yield from X.blocks()
    elif sp.issparse(X):
        yield slice(0, X.shape[0]), X
    else:
        for rows in gen_batches(len(X), max(1, _BLOCK_ENTRIES // X.shape[1])):
            yield rows, X[rows]


@one_blas_thread()
def regression_scores(X: Matrix | CsrFile, usage: Array) -> Array:
    """Return the coefficients of a regression of z-scored features on usages, (r, m).

    Missing entries have the z-score 0.
    """
    usage = np.asarray(usage, dtype=np.float64)
    m = X.shape[1]
    counts, sums, squares, products = *np.zeros((3, m)), np.zeros((usage.shape[1], m))
    for _, block in _blocks(X):
        if sp.issparse(block):
            counts += block.shape[0]
            sums += np.bincount(block.indices, block.data, m)
        else:
            counts += np.isfinite(block).sum(axis=0)
            sums += np.nansum(block, axis=0, dtype=np.float64)
    counts = np.maximum(counts, 1)
    means = sums / counts
    for rows, block in _blocks(X):
        part = usage[rows]
        if sp.issparse(block):
            zeros = block.shape[0] - np.bincount(block.indices, minlength=m)
            values = np.square(block.data - means[block.indices])
            squares += np.bincount(block.indices, values, m) + zeros * means**2
            products += (block.T @ part).T - part.sum(axis=0)[:, None] * means
        else:
            apart = block - means
            squares += np.nansum(np.square(apart), axis=0)
            products += part.T @ np.nan_to_num(apart)
    products /= np.sqrt(np.maximum(squares / counts, _LEAST_VARIANCE))
    return np.asarray(np.linalg.lstsq(usage.T @ usage, products, rcond=None)[0])


def shares_together(assignments: Array) -> Array:
    """Return the share of starts in which two samples have the same main component, (s, s)."""
    together = np.zeros((assignments.shape[1],) * 2)
    for row in assignments:
        together += row[:, None] == row
    return np.asarray(together / len(assignments))


@dataclass(frozen=True, eq=False)
class Consensus:
    """Components that many starts agree on; the result of :func:`consensus`.

    Components are numbered from 0, the most used first.

    Attributes
    ----------
    components : ndarray, shape (r, m)
        Medians of the clusters of spectra; each sums to 1.
    usage : ndarray, shape (n, r)
        Amount of each component in each sample, fitted to the components.
    stability : ndarray of float64, shape (r,)
        Mean silhouette of the spectra of each cluster, -1 to 1.  Near 1, all starts find this
        component, and it differs from all others.  NaN for one component, or one start.
    spectra : ndarray, shape (p, m)
        Components of all starts, of Euclidean length 1, in the order of the starts.
    clusters : ndarray of int, shape (p,)
        Component that each spectrum belongs to; -1 if it was dropped.
    neighbor_distances : ndarray of float64, shape (p,)
        Mean distance of each spectrum to its nearest neighbors.
    scores : ndarray of float64, shape (r, m)
        How strongly each feature marks a component: coefficients of a least-squares regression of
        the standardized features on the usages.
    silhouette : float
        Mean silhouette of all spectra, including dropped ones; for the comparison of ranks.
    cophenetic : float
        Cophenetic correlation of the consensus matrix of `samples`, at most 1.
    error : float
        Sum of squared errors of ``usage @ components``, with the weights of the fits, for any loss.
    samples : ndarray of int, shape (s,)
        Samples of the consensus matrix: all, or 1000 of them.
    assignments : ndarray of int, shape (n_starts, s)
        Component that adds most to each of these samples in each start, -1 for none.
    n_starts : int
        Number of starts.
    loss : str or float
        Loss of the fits and of the usages.
    distance_threshold : float
        Spectra with at least this mean distance to their nearest neighbors were dropped.
    """

    _saved: ClassVar[Table] = {
        "components": Saved("rm"),
        "usage": Saved("nr"),
        "stability": Saved("r", "real"),
        "spectra": Saved("pm"),
        "clusters": Saved("p", "-1<r"),
        "neighbor_distances": Saved("p", "nonnegative"),
        "scores": Saved("rm", "finite"),
        "samples": Saved("s", "<n"),
        "assignments": Saved("ts", "-1<"),
        "n_starts": COUNT,
    }

    components: Array
    usage: Array
    stability: Array
    spectra: Array
    clusters: Array
    neighbor_distances: Array
    scores: Array
    silhouette: float
    cophenetic: float
    error: float
    samples: Array
    assignments: Array
    n_starts: int
    loss: str | float
    distance_threshold: float

    @property
    def kept(self) -> float:
        """Share of the spectra that were kept."""
        return float(np.mean(self.clusters != DROPPED))

    @property
    def shares(self) -> Array:
        """Usages divided by the sum of their sample, (n, r)."""
        return divide_by_sums(self.usage)

    def __repr__(self) -> str:
        (r, m), n = self.components.shape, len(self.usage)
        spectra = f"{self.kept:.0%} of {len(self.spectra)} spectra kept"
        stable = "stability not defined"
        if not np.isnan(self.stability).all():
            least = int(np.nanargmin(self.stability))
            mean, of_least = np.nanmean(self.stability), self.stability[least]
            stable = f"stability {mean:.2f} (least {of_least:.2f}, component {least})"
        return (
            f"Consensus({_counted(r, 'component')} of {_counted(self.n_starts, 'start')}, "
            f"{_counted(n, 'sample')} x {_counted(m, 'feature')}: "
            f"{stable}, {spectra}, error {self.error:.6g})"
        )

    def topics(self, feature_names: VectorLike = None, n_terms: int = 10) -> Topics:
        """Return the features with the largest `scores` for each component.

        Parameters
        ----------
        feature_names : array_like of str, shape (m,), optional
            Names of the features.
        n_terms : int
            Number of features for each component.

        Returns
        -------
        Topics
        """
        return make_topics(self.scores, feature_names, n_terms)

    def transform(
        self, X: MatrixLike, *, X_weights: WeightsLike = None, n_threads: int | None = None
    ) -> Array:
        """Return the usages of new samples, fitted to the components by :func:`represent`.

        Parameters
        ----------
        X : array_like or scipy.sparse, shape (n_new, m)
            Samples with the same features.
        X_weights, n_threads
            As in :func:`represent`.

        Returns
        -------
        ndarray, shape (n_new, r)
        """
        loss: Any = self.loss
        return represent(X, self.components, loss=loss, X_weights=X_weights, n_threads=n_threads)

    def scores_of(self, Y: DataLike, *, n_threads: int | None = None) -> Array:
        """Return `scores` for other features of the same samples, such as all genes.

        Parameters
        ----------
        Y : array_like, scipy.sparse or CsrFile, shape (n, m_other)
            Nonnegative; NaN in a dense Y counts as the mean of its feature.
        n_threads : int, optional
            Number of threads; it does not change the result.

        Returns
        -------
        ndarray of float64, shape (r, m_other)
            cNMF's "gene_spectra_score" if Y holds transcripts per million.
        """
        return regression_scores(self._of_samples(Y, n_threads), self.usage)

    def components_of(self, Y: DataLike, *, n_threads: int | None = None) -> Array:
        """Return the components in units of other features of the same samples, such as all genes.

        They are nonnegative and minimize the loss of the fits, given `shares`.

        Parameters
        ----------
        Y : array_like or scipy.sparse, shape (n, m_other)
            Nonnegative; NaN in a dense Y means missing.
        n_threads : int, optional
            Number of threads; it does not change the result.

        Returns
        -------
        ndarray, shape (r, m_other)
            cNMF's "gene_spectra_tpm" if Y holds transcripts per million.
        """
        refuse_on_disk(Y, "components_of", "Y")
        clean = self._of_samples(Y, n_threads)
        shares = self.shares.T.astype(clean.dtype)
        loss: Any = self.loss
        profiles = represent(clean.T, shares, loss=loss, n_threads=n_threads)
        return np.ascontiguousarray(profiles.T)

    def to_cnmf(
        self,
        folder: str | PathLike[str],
        name: str = "consensus",
        *,
        feature_names: VectorLike = None,
        sample_names: VectorLike = None,
        tpm: MatrixLike | None = None,
        tpm_names: VectorLike = None,
    ) -> list[Path]:
        """Write tab-separated tables with the file names of cNMF.

        They are ``<name>.usages.k_<r>.dt_0_5.consensus.txt``, ``<name>.spectra...consensus.txt``
        and ``<name>.gene_spectra_score...txt``; with `tpm` also ``<name>.gene_spectra_tpm...txt``.
        Components are numbered from 1.

        Parameters
        ----------
        folder : path
            Folder for the files; it is created if it does not exist.
        name : str
            Prefix of the file names, without folders.
        feature_names, sample_names : array_like of str, shapes (m,) and (n,), optional
            Names of the features and of the samples.
        tpm : array_like or scipy.sparse, shape (n, m_tpm), optional
            Data for the scores and spectra, such as transcripts per million of all genes, if the
            fits used only some genes.
        tpm_names : array_like of str, shape (m_tpm,), optional
            Names of the features of `tpm`.

        Returns
        -------
        list of Path
        """
        name = check_file_name(name, "name")
        (r, m), n = self.components.shape, len(self.usage)
        features, numbers = names_of(feature_names, m), range(1, r + 1)
        samples: Sequence[Any] = range(n)
        if sample_names is not None:
            samples = check_names(sample_names, "sample_names", n, "sample")
        tables = {
            "usages": (samples, numbers, self.usage),
            "spectra": (numbers, features, self.components),
            "gene_spectra_score": (numbers, features, self.scores),
        }
        if tpm is not None:
            scores, spectra = self.scores_of(tpm), self.components_of(tpm)
            genes = names_of(None, scores.shape[1])
            if tpm_names is not None:
                genes = check_names(tpm_names, "tpm_names", len(genes), "feature of tpm")
            tables["gene_spectra_score"] = numbers, genes, scores
            tables["gene_spectra_tpm"] = numbers, genes, spectra
        of_all = f"k_{r}.dt_{str(float(self.distance_threshold)).replace('.', '_')}"
        paths, parent = [], Path(folder)
        parent.mkdir(parents=True, exist_ok=True)
        with Replacement() as files:  # all files appear together, or none
            for kind, (rows, columns, values) in tables.items():
                end = "" if kind.startswith("gene") else ".consensus"
                paths.append(parent / f"{name}.{kind}.{of_all}{end}.txt")
                with files.path(paths[-1]).open("w", encoding="utf-8", newline="") as file:
                    lines = csv.writer(file, delimiter="\t", lineterminator="\n")
                    lines.writerow(["", *columns])
                    by_row = zip(rows, values, strict=True)
                    lines.writerows([row, *of.tolist()] for row, of in by_row)
        return paths

    def _of_samples(self, Y: DataLike, n_threads: int | None) -> Any:
        threads = resolve_threads(n_threads)
        clean = Y if isinstance(Y, CsrFile) else check_matrix(Y, "Y", n_threads=threads)
        if clean.shape[0] != len(self.usage):
            expected = f"expected the {len(self.usage)} samples of the fits"
            raise ValueError(f"Y has {clean.shape[0]} rows; {expected}.")
        return clean

    def plot(self, *, title: str | None = None) -> Figure:
        """Draw the clusters with :func:`ssnmf_fast.plotting.clustergram`; save by its `savefig`."""
        return clustergram(self, title=title)

    def consensus_matrix(self) -> Array:
        """Return the share of starts in which two `samples` have the same main component, (s, s).

        See J.-P. Brunet et al., "Metagenes and molecular pattern discovery", PNAS, 2004.
        """
        return shares_together(self.assignments)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
