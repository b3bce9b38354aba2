"""Estimators of data on a cluster."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import dask.array as da
import numpy as np
from distributed import Client
from sklearn.utils.validation import check_is_fitted

from .. import estimators
from .._common.arrays import Array
from .._labels import Indicators, LabelLists, labels_of
from .._solver.weights import as_weights
from .._topics import topic_shares
from ..estimators._bayesian_base import interval_ends
from ..estimators._class_topics import SUPPORTS, FitOptions, fit_class_topics
from ..estimators._classifier_training import Settings, start_of
from ..estimators._conventions import require
from ..estimators._training_labels import check_classes, labels_for_training
from ._bayesian import fit_variational
from ._data import MEMORY
from ._on_cluster import OnCluster, PredictsOnCluster, lazy
from ._samples import LabeledBlocks, Samples, gather

Self = TypeVar("Self", bound="BayesianNMF")


class NMF(OnCluster, estimators.NMF):
    """Nonnegative matrix factorization X ~ S A of data on a Dask cluster.

    The model, its parameters and its attributes are those of :class:`ssnmf_fast.NMF`, but that
    `representation_` is a dask array.  :meth:`transform` of a dask array is a lazy dask array.

    Parameters
    ----------
    **parameters
        Those of :class:`ssnmf_fast.NMF`.  For `solver` and `init` see
        :func:`ssnmf_fast.dask.factorize`; `n_threads` are those of each task, None for one.

    See Also
    --------
    ssnmf_fast.dask.factorize : The function behind it.

    Notes
    -----
    :func:`ssnmf_fast.save` writes the file of :class:`ssnmf_fast.NMF`, without `representation_`,
    and :func:`ssnmf_fast.load` gives that estimator.

    For example::

        import dask.array as da
        from dask.distributed import Client
        import ssnmf_fast.dask as sfd

        client = Client("tcp://scheduler:8786")
        X = da.random.random((10_000, 50), chunks=(2_500, 50))
        model = sfd.NMF(n_components=5, random_state=0).fit(X)
        S = model.transform(X[:100]).compute()
    """

    _kind: ClassVar = estimators.NMF


class TopicSupervisedNMF(PredictsOnCluster, estimators.TopicSupervisedNMF):
    """Topic-supervised NMF (TS-NMF) of data on a Dask cluster.

    The model, its parameters and its attributes are those of
    :class:`ssnmf_fast.TopicSupervisedNMF`, but that `representation_` is a dask array.
    Predictions for a dask array are lazy dask arrays.

    Parameters
    ----------
    **parameters
        Those of :class:`ssnmf_fast.TopicSupervisedNMF`; as in :class:`ssnmf_fast.dask.NMF`.

    Notes
    -----
    The labels of all samples come to the caller.  For the readout, so do the representations of
    the labeled ones, an array (labeled samples, r).  As for data on disk, the readout sees
    samples through their topics only: in memory it also sees their features and singular
    directions, so that its predictions differ from these.  With ``readout=None`` neither is there.
    """

    _kind: ClassVar = estimators.TopicSupervisedNMF

    def _with_rows(self, X_weights: Any, rows: Array) -> Any:
        if isinstance(X_weights, da.Array):
            return X_weights * da.from_array(rows[:, None], chunks=(X_weights.chunks[0], 1))
        weights = as_weights(X_weights, "X_weights")
        if weights.by_vector and isinstance(weights.by_rows, da.Array):
            weights = weights.with_part(gather(None, weights.by_rows))
        elif isinstance(weights.by_rows, (da.Array, list, tuple)):
            kind = type(X_weights).__name__.lower()
            raise ValueError(
                f"X_weights must be one array with labeled_weight={self.labeled_weight!r}; got "
                f"blocks ({kind}). Set labeled_weight=1, or give the weights as one dask array."
            )
        return super()._with_rows(weights, rows)

    def _support(self, X: Any, lists: LabelLists, rank: int) -> Any:
        """Return the support of each block: that of all samples is as large as S."""
        if not isinstance(X, Samples):
            return super()._support(X, lists, rank)
        free, bounds = bool(self.free_in_labeled), np.cumsum([0, *X.rows])
        return [
            X.client.submit(_support_of, lists.part(slice(begin, end)), rank, free, pure=False)
            for begin, end in pairwise(bounds)
        ]

    def _for_readout(self, X: Any, lists: LabelLists) -> tuple[Any, LabelLists]:
        if not isinstance(X, Samples):
            return X, lists
        return X.select(lists.labeled), lists.part(lists.labeled)


def _support_of(lists: LabelLists, rank: int, free_in_labeled: bool) -> Array:
    return lists.support(rank, free_in_labeled)


class SSNMFClassifier(PredictsOnCluster, estimators.SSNMFClassifier):
    """Semi-supervised NMF for classification, X ~ S A and Y ~ S B, of data on a Dask cluster.

    The model is that of :class:`ssnmf_fast.SSNMFClassifier`, but nothing is chosen by validation:
    `n_components` and `supervision_weight` must be given.  Predictions for a dask array are lazy
    dask arrays.

    Parameters
    ----------
    n_components : int
        Rank r, at least 1; "auto" is refused.
    supervision_weight : float or "balanced"
        Weight of the loss of Y, at least 0; infinity for supports.  "auto" is refused.
    readout : {"auto", "refit", "joint"}
        How predictions are made; as in :class:`ssnmf_fast.SSNMFClassifier`, where "logistic" needs
        X in memory.  "auto" is "refit".
    **parameters
        Others are those of :class:`ssnmf_fast.SSNMFClassifier`; `self_training` and `class_weight`
        belong to the logistic readout, and stay at "auto".  For `solver` and `init` see
        :func:`ssnmf_fast.dask.factorize`; `init` may also be "labels".

    Attributes
    ----------
    representation_ : dask.array.Array, shape (n, r)
        Factor S of the fit, cut as X is.
    classes_, class_prior_, n_labeled_, multilabel_, components_, label_components_
        As in memory.
    class_shares_, supervision_weight_, objective_, n_iter_, n_features_in_
        As in memory.

    Notes
    -----
    The labels of all samples come to the caller.  So do the representations of the labeled ones,
    an array (labeled samples, r), and their indicators, (labeled samples, k): B is fitted to
    them, and `class_shares_` are their means.

    :func:`ssnmf_fast.save` writes the file of :class:`ssnmf_fast.SSNMFClassifier`, without
    `representation_`, and :func:`ssnmf_fast.load` gives that estimator.
    """

    _kind: ClassVar = estimators.SSNMFClassifier
    _readouts = ("auto", "refit", "joint")
    _auto_readout = "refit"

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        X_weights: Any = None,
        sample_weight: Any = None,
        client: Client | None = None,
        checkpoint: str | Path | None = None,
        memory: int = MEMORY,
    ) -> SSNMFClassifier:
        """Learn dictionary and classifier from samples and the labels of some of them.

        Parameters
        ----------
        X, X_weights, client, checkpoint, memory
            As in :func:`ssnmf_fast.dask.factorize`.
        y : array_like or dask.array.Array, shape (n,) or (n, k)
            Labels of all samples, as :class:`ssnmf_fast.SSNMFClassifier` describes them; unlabeled
            samples are allowed.
        sample_weight
            As in memory; may be a dask array.

        Returns
        -------
        self
        """
        weights = {"X_weights": X_weights, "sample_weight": gather(client, sample_weight)}
        return self._fitted(X, y, client, checkpoint, memory, **weights)

    def _learn(
        self,
        X: Samples,
        y: Any,
        *,
        X_weights: Any = None,
        sample_weight: Any = None,
    ) -> None:
        require(self, X, y)
        settings = self._settings()
        targets = labels_of(y, self.unlabeled)
        targets.check_fit()
        several = isinstance(targets, Indicators)
        chosen = np.flatnonzero(targets.labeled)
        labels = labels_for_training(targets, sample_weight, chosen)
        check_classes(labels)
        choice = settings.named(targets.classes, several).choices(labels)[0]
        blocks = LabeledBlocks(X, X_weights, chosen, labels, FitOptions.of(self))
        rank, weight = choice.n_components, choice.supervision_weight
        fit = fit_class_topics(blocks, rank, weight, *start_of(self, labels, rank))
        weight = fit.supervision_weight
        self._keep(
            fit,
            supervision_weight_=SUPPORTS if weight is None else weight,
            self_training_=0,
            multilabel_=several,
            classes_=targets.classes,
            class_prior_=labels.prior(),
            n_labeled_=int(labels.known.sum()),
        )
        self._drop_readout()
        S = self._represent(X.select(targets.labeled), X_weights)
        if settings.readout == "refit":
            self._refit_components(S, labels)
        shares = topic_shares(S[labels.known], self.components_)
        self.class_shares_ = labels.class_shares(shares)

    def _settings(self) -> Settings:
        """Check the parameters; raise ValueError for those that ask for a validation."""
        settings = Settings.checked(self)
        for name in ("n_components", "supervision_weight"):
            if getattr(settings, name) is None:
                raise ValueError(
                    f"{name} must be a number for data on a cluster; got 'auto', which is chosen "
                    "by validation in memory. Give, for example, what ssnmf_fast.SSNMFClassifier "
                    "chooses on a part of the samples."
                )
        return settings


class BayesianNMF(OnCluster, estimators.BayesianNMF):
    """Poisson-gamma NMF by variational Bayes of data on a Dask cluster.

    The model, its parameters and its attributes are those of :class:`ssnmf_fast.BayesianNMF`, but
    that `representation_` and `representation_groups_` are dask arrays.  In every iteration each
    worker updates the posteriors of the rows of S that belong to its blocks, and sends their
    sums for A, which are added in a fixed order.  So the result does not depend on the number of
    workers.  :meth:`transform` of a dask array is a lazy dask array.

    Parameters
    ----------
    **parameters
        Those of :class:`ssnmf_fast.BayesianNMF`.  `init` is not "nndsvda"; in a tuple S may be a
        dask array.  `n_threads` are those of each task, None for one.  A callback is shown an S of
        None.

    See Also
    --------
    ssnmf_fast.dask.factorize : Point estimates, also of data on disk.

    Notes
    -----
    When a worker is lost, its blocks are loaded again by another one, and the posteriors of their
    rows are found again, given that of A.

    :func:`ssnmf_fast.save` writes the file of :class:`ssnmf_fast.BayesianNMF`, without
    `representation_` and its groups, and :func:`ssnmf_fast.load` gives that estimator.

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> import ssnmf_fast.dask as sfd
    >>> X = da.random.default_rng(0).poisson(2, (1000, 50), chunks=(250, 50))
    >>> model = sfd.BayesianNMF(n_components=5, max_iter=20, tol=0, random_state=0)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     print(model.fit(X).transform(X[:100]).compute().shape)
    (100, 5)
    """

    _kind: ClassVar = estimators.BayesianNMF
    _left_out: ClassVar[tuple[str, ...]] = ("representation_", "representation_groups_")

    def fit(  # type: ignore[override]
        self: Self, X: Any, y: Any = None, *, client: Client | None = None
    ) -> Self:
        """Learn the posteriors from samples on the cluster.

        Parameters
        ----------
        X : dask.array.Array, shape (n, m), or list of delayed objects or futures
            Nonnegative samples, without NaN, cut by rows; as in :func:`ssnmf_fast.dask.factorize`.
        y : ignored
        client : dask.distributed.Client, optional
            None takes the one in use.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For bad data or parameters; the message names the block and says how to mend them.

        Warns
        -----
        ConvergenceWarning, UserWarning
            As in memory.
        """
        return self._fitted(X, y, client, None, MEMORY)

    def _fit_variational(self, X: Any, groups: Any, **arguments: Any) -> Any:
        del groups  # of rows by labels, which this model has not
        return fit_variational(X.client, X.futures, **arguments)

    transform = lazy(estimators.BayesianNMF.transform)

    def interval_representation(self, level: float = 0.9) -> tuple[Any, Any]:
        """Return credible intervals of the entries of `representation_`, as dask arrays.

        Parameters
        ----------
        level : float
            As in :meth:`interval_components`.

        Returns
        -------
        low, high : dask.array.Array, shape (n, r)
            Quantiles of the gamma posteriors, computed when they are asked for.
        """
        check_is_fitted(self)
        return interval_ends(self.representation_, self.representation_rates_, level)
