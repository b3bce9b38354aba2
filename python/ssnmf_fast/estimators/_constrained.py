"""Estimator :class:`ConstrainedNMF`: labeled samples of a class share one representation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from .._common.arrays import Array
from .._common.saved import COUNT, Saved
from .._data.csr_file import CsrFile
from .._labels import ClassLabels
from .._models.factorize import factorize
from .._solver.beta_divergences import loss_named
from .._solver.weights import collapse
from ._conventions import documented, require, set_parameters
from ._predicting import GuidedBase


@documented
class ConstrainedNMF(GuidedBase):
    """Constrained NMF (CNMF) of Liu and Wu: all labeled samples of a class share one row of S.

    Minimizes ``sum W .* d(X, S A)`` with S = G P, where G (n x (k + number of unlabeled samples))
    sends every labeled sample to the row of its class in P, and every unlabeled one to a row of
    its own [1]_.  There is no weight to choose: labels are hard constraints.

    Parameters
    ----------
    loss : {"frobenius", "kullback-leibler"}
        Loss of X: squared error (the paper's), or the I-divergence.
    init : {"random", "nndsvda", "random-acol"} or tuple of arrays
        Start; a tuple holds S (n, r), whose rows are averaged by class, and A (r, m).
    callback : callable, optional
        Called with a state (``iteration``, ``objective``, read-only ``S`` and ``A``) after every
        check of the objective, S having a row for each class, then one for each unlabeled sample;
        returning True stops the fit.

    Attributes
    ----------
    class_representation_ : ndarray, shape (k, r)
        The row of S that the labeled samples of each class share.

    See Also
    --------
    SSNMFClassifier : Labels as a second matrix to approximate (Lee, Yoo and Choi).
    MarginNMF : Labels through support vector machines.

    Notes
    -----
    `y` in :meth:`fit` holds a class label for each sample, or -1, None or NaN for an unlabeled
    one.  Samples that share a row count as one, their weighted mean: a fit with many labels is
    faster than one without, and has the paper's updates.

    References
    ----------
    .. [1] H. Liu, Z. Wu, "Non-negative matrix factorization with constraints", AAAI 2010.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.array([[3, 1, 0, 0], [2, 1, 0, 0], [0, 0, 1, 3], [0, 0, 1, 2], [4, 1, 0, 0]])
    >>> y = [0, 0, 1, 1, -1]
    >>> model = sf.ConstrainedNMF(n_components=2, unlabeled=-1, random_state=0).fit(X, y)
    >>> bool(np.allclose(model.representation_[0], model.representation_[1]))
    True
    """

    _saved: ClassVar = {
        **GuidedBase._saved,
        "class_representation_": Saved("kr"),
        "n_labeled_": COUNT,
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        loss: str = "frobenius",
        solver: str = "auto",
        init: Any = "random",
        max_iter: int = 200,
        tol: float = 1e-4,
        random_state: Any = None,
        n_threads: int | None = None,
        callback: Callable[[Any], Any] | None = None,
        verbose: int = 0,
        unlabeled: Any = "auto",
        readout: str | None = "logistic",
    ) -> None:
        set_parameters(self, locals())

    def _learn(self, X: Any, y: Any, *, X_weights: Any = None) -> None:
        require(self, X, y)
        if isinstance(X, CsrFile):
            raise ValueError("X is on disk, and ConstrainedNMF needs it in memory: it averages it.")
        loss = loss_named(self.loss, "loss")
        self._check_readout()
        labels = ClassLabels(y, self.unlabeled)
        labels.check_fit()
        groups, n_groups = _groups(labels)
        means, weights, constant = collapse(X, X_weights, groups, n_groups, loss)
        arguments = self._arguments(self._model_parameters + self._loop_parameters)
        arguments["init"] = _averaged(self.init, groups, n_groups)
        result = factorize(means, X_weights=weights, **arguments)
        k = len(labels.classes)
        objective = [(step, value + constant) for step, value in result.objective]
        self._keep(
            replace(result, S=result.S[groups], objective=objective),
            class_representation_=result.S[:k].copy(),
            n_labeled_=int(labels.labeled.sum()),
        )
        self._keep_predictions(X, X_weights, labels)


def _groups(labels: ClassLabels) -> tuple[Array, int]:
    """Return the row of P for every sample: its class, or a row of its own after the classes."""
    groups = np.empty(len(labels.labeled), dtype=np.int64)
    groups[labels.labeled] = labels.codes
    free = np.flatnonzero(~labels.labeled)
    k = len(labels.classes)
    groups[free] = k + np.arange(len(free))
    return groups, k + len(free)


def _averaged(init: Any, groups: Array, n_groups: int) -> Any:
    """Average the rows of a given S over the groups."""
    if not isinstance(init, (tuple, list)) or not init:
        return init
    S = np.asarray(init[0])
    if S.ndim != 2 or len(S) != len(groups):
        raise ValueError(
            f"init[0] (S) has shape {S.shape}; expected a row for each of {len(groups)} samples."
        )
    sums = np.zeros((n_groups, S.shape[1]), dtype=np.result_type(S.dtype, np.float32))
    np.add.at(sums, groups, S)
    return (sums / np.bincount(groups)[:, None], *init[1:])
