"""Estimator :class:`SSNMFClassifier` for data on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from distributed import Client

from .. import estimators
from .._common.random import generator
from .._data.checks import check_option
from .._labels import Indicators, labels_of
from ..estimators._base import require
from ..estimators._class_topics import FitOptions
from ..estimators._classifier_training import Wishes
from ..estimators._label_guided import SUPPORTS
from ..estimators._parameters import set_parameters
from ..estimators._predicting import shares_of_classes
from ..estimators._readout import topic_shares
from ..estimators._training_labels import check_classes, labels_for_training
from ._class_starts import ClassTopics
from ._predicting import PredictsOnCluster
from ._samples import MEMORY, Samples, gathered

_READOUTS = ("refit", "joint")


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
    readout : {"refit", "joint"}
        How predictions are made; as in :class:`ssnmf_fast.SSNMFClassifier`, where "logistic" needs
        X in memory.
    **parameters
        Others are those of :class:`ssnmf_fast.SSNMFClassifier`; `self_training` and `class_weight`
        belong to the logistic readout, and stay at "auto".  What `solver` and `init` may be is
        said by :func:`ssnmf_fast.dask.factorize`, but that `init` may also be "labels".

    Attributes
    ----------
    representation_ : dask.array.Array, shape (n, r)
        Factor S of the fit, cut as X is.
    classes_, class_prior_, n_labelled_, multilabel_, components_, label_components_
        As in memory.
    class_shares_, supervision_weight_, objective_, n_iter_, n_features_in_
        As in memory.

    Notes
    -----
    The labels of all samples come to the caller.  So do the representations of the labelled ones,
    an array (labelled samples, r), and their indicators, (labelled samples, k): B is fitted to
    them, and `class_shares_` are their means.

    :func:`ssnmf_fast.save` writes the file of :class:`ssnmf_fast.SSNMFClassifier`, without
    `representation_`, and :func:`ssnmf_fast.load` gives that estimator.
    """

    _kind: ClassVar = estimators.SSNMFClassifier

    def __init__(
        self,
        *,
        n_components: int | str = "auto",
        reconstruction: str = "kullback-leibler",
        supervision: str = "kullback-leibler",
        supervision_weight: float | str = "auto",
        solver: str = "auto",
        init: Any = "auto",
        max_iter: int = 200,
        tol: float = 1e-4,
        random_state: Any = None,
        n_threads: int | None = None,
        callback: Callable[[Any], Any] | None = None,
        verbose: int = 0,
        unlabelled: Any = "auto",
        threshold: float | str = "auto",
        readout: str = "refit",
        self_training: int | str = "auto",
        class_weight: Any = "auto",
        forget_factor: float = 0.8,
    ) -> None:
        set_parameters(self, locals())

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        X_weights: Any = None,
        y_weights: Any = None,
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
            Labels of all samples, as :class:`ssnmf_fast.SSNMFClassifier` describes them; unlabelled
            samples are allowed.
        y_weights, sample_weight
            As in memory; they may be dask arrays.

        Returns
        -------
        self
        """
        weights = {"y_weights": gathered(client, y_weights)}
        weights["sample_weight"] = gathered(client, sample_weight)
        return self._fitted(X, y, client, checkpoint, memory, X_weights=X_weights, **weights)

    def _learn(
        self,
        X: Samples,
        y: Any,
        *,
        X_weights: Any = None,
        y_weights: Any = None,
        sample_weight: Any = None,
    ) -> None:
        require(self, X, y)
        wishes = self._wishes()
        targets = labels_of(y, self.unlabelled)
        targets.check_fit()
        several = isinstance(targets, Indicators)
        chosen = np.flatnonzero(targets.labelled)
        labels = labels_for_training(targets, y_weights, sample_weight, chosen)
        check_classes(labels)
        choice = wishes.named(targets.classes, several).choices(labels)[0]
        topics = ClassTopics(X, X_weights, chosen, labels, choice, FitOptions.of(self))
        init, state = self.init, self.random_state
        if isinstance(init, str) and init == "auto":
            init = "labels" if choice.n_components >= labels.members.shape[1] else "random"
        seed = int(generator(state).integers(2**31))
        fit = topics.fit(init, seed, int(state) if isinstance(state, (int, np.integer)) else None)
        weight = fit.supervision_weight
        self._keep(
            fit,
            supervision_weight_=SUPPORTS if weight is None else weight,
            self_training_=0,
            multilabel_=several,
            classes_=targets.classes,
            class_prior_=labels.prior(),
            n_labelled_=int(labels.known.sum()),
        )
        self._drop_readout()
        S = self._represent(X.only(targets.labelled), X_weights)
        if self.readout == "refit":
            self._refit_components(S, labels)
        shares = topic_shares(S[labels.known], self.components_)
        self.class_shares_ = shares_of_classes(shares, labels)

    def _wishes(self) -> Wishes:
        """Check the parameters; raise ValueError for those that ask for a validation."""
        wishes = Wishes.checked(self)
        if self.readout not in _READOUTS:
            check_option(self.readout, "readout on a cluster", _READOUTS)
        for name in ("n_components", "supervision_weight"):
            if getattr(wishes, name) is None:
                raise ValueError(
                    f"{name}='auto' is chosen by validation, which needs the data in memory. Give "
                    f"a number for data on a cluster, for example what ssnmf_fast.SSNMFClassifier "
                    "chooses on a part of the samples."
                )
        return wishes
