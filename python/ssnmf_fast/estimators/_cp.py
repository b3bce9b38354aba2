"""Estimator :class:`NonnegativeCP`: nonnegative CP decomposition of a tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._common.arrays import Array, LossName, Solver, VectorLike
from .._common.saved import LOSS, Saved
from .._common.text import short
from .._data.border import check_factor, check_matrix, check_real
from .._data.tensors import SparseTensor, Tensor, TensorLike, check_mode, check_tensor
from .._data.threads import resolve_threads
from .._models.factorize import TensorStart, factorize_tensor
from .._models.online import Stream, refuse_changes
from .._models.receipts import Check, tensor_check
from .._models.represent import explained_deviance, represent_tensor
from .._solver.losses import loss_named
from .._solver.result import TensorFactorization, dense_model, sizes_of
from .._solver.starts import given_factors
from .._solver.weights import WeightsLike
from .._topics import Topics, make_topics
from ._base import IterativeEstimator
from ._docstrings import complete_docstring
from ._nmf import BatchLearner, refuse_to_continue


@complete_docstring
@dataclass(eq=False, repr=False)
class NonnegativeCP(BatchLearner, IterativeEstimator):
    r"""Nonnegative CP decomposition of a tensor, also from a stream of slices.

    Minimizes :math:`\sum W \odot d(X, M)` over :math:`M_{ij..} = \sum_q F_{0,iq} F_{1,jq} \cdots`
    with a nonnegative factor for each mode [1]_; see :func:`ssnmf_fast.factorize_tensor`.

    Parameters
    ----------
    loss, supervision_loss : {"frobenius", "kullback-leibler", "itakura-saito"} or float
        Loss of X, and of labels, as in :func:`ssnmf_fast.factorize_tensor`.
    supervision_weight : float
        Weight of the losses of labels, at least 0.
    init : {"auto", "random", "least-squares", "svd"}, TensorFactorization or sequence of arrays
        Start, as in :func:`ssnmf_fast.factorize_tensor`.
    callback : callable, optional
        Called with a state (``iteration``, ``objective``, read-only ``F0``, ``F1``, ..) after every
        check of the objective; returning True stops the fit.
    stream_mode : int
        The mode of the slices of :meth:`partial_fit`, such as time; may be negative.
    forget_factor : float
        In :meth:`partial_fit`, the fraction of their weight that earlier slices keep per new slice,
        between 0 and 1, at most 1 - 1/n for the n-th slice.  1 assumes that the components are
        constant; smaller values follow changes.

    Attributes
    ----------
    factors_ : list of ndarray, shapes (n_k, r)
        A factor for each mode.  Columns have norm 1 for the Frobenius loss, sum 1 for others, or
        are zero.
    weights_ : ndarray, shape (r,)
        Weights of the components, in decreasing order after :meth:`fit`; :meth:`partial_fit` keeps
        the order of the components.
    components_ : list of ndarray, shapes (n_k, r)
        The factors of all modes but the first.
    stream_representation_ : ndarray, shape (number of slices, r)
        The factor of `stream_mode` times `weights_`.
    label_components_ : dict of int to ndarray, shapes (r, number of labels)
        For each mode k with labels, which are approximated by ``factors_[k]`` times this.
    objective_ : list of (int, float)
        Iterations at which the objective was evaluated, and its values.  After :meth:`partial_fit`:
        numbers of calls, and estimates of the objective per slice.
    n_iter_ : int
        Number of iterations, or of calls of :meth:`partial_fit`.
    shape_ : tuple of int
        Lengths of the modes.
    n_features_in_ : int
        Length of the second mode.

    See Also
    --------
    ssnmf_fast.factorize_tensor : The function behind :meth:`fit`.
    NMF : For matrices.

    References
    ----------
    .. [1] L. Kassab, "Iterative matrix completion and topic modeling using matrix and tensor
       factorizations", PhD thesis, 2021, eq. 4.1.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> rng = np.random.default_rng(0)
    >>> X = np.einsum("ir,jr,kr->ijk", rng.random((8, 2)), rng.random((5, 2)),
    ...               rng.random((4, 2)))
    >>> model = sf.NonnegativeCP(2, random_state=0).fit(X)
    >>> [F.shape for F in model.components_]
    [(5, 2), (4, 2)]
    >>> model.transform(X[:3]).shape
    (3, 2)
    >>> stream = sf.NonnegativeCP(2, random_state=0).partial_fit(X[..., :3])
    >>> stream.partial_fit(X[..., 3]).stream_representation_.shape
    (4, 2)
    """

    n_components: int = 10
    _: KW_ONLY
    loss: LossName | float = "frobenius"
    supervision_loss: LossName | float = "frobenius"
    supervision_weight: float = 1.0
    solver: Solver = "auto"
    init: TensorStart = "auto"
    n_starts: int = 1
    stream_mode: int = -1
    forget_factor: float = 0.98

    _of_methods: ClassVar = """
    Parameters
    ----------
    X : array_like, or sparse
        Nonnegative tensor, as in :meth:`fit`; lengths other than in `mode` are those of the fit.
    X_weights : optional
        Nonnegative weights of the loss of each entry, as in :func:`ssnmf_fast.factorize_tensor`.
    """
    _tags: ClassVar = {"input_tags": "three_d_array"}
    _saved: ClassVar[dict[str, Saved]] = {
        "factors_": Saved("?r", container=list, part="factors"),
        "weights_": Saved("r", "nonnegative", part="weights"),
        "label_components_": Saved("r?", container=dict, optional=True, part="label_components"),
        "loss_": LOSS,
        "stream_mode_": Saved("", optional=True),
    }

    @property
    def stream_representation_(self) -> Array:
        mode = int(getattr(self, "stream_mode_", self.stream_mode))
        return np.asarray(self.factors_[mode] * self.weights_)

    shape_ = property(lambda self: tuple(len(F) for F in self.factors_))
    components_ = property(lambda self: self.factors_[1:])
    n_features_in_ = property(lambda self: self.shape_[1])
    _n_features_out = property(lambda self: len(self.weights_))

    def fit(
        self, X: TensorLike, y: Mapping[int, Any] | None = None, *, X_weights: WeightsLike = None
    ) -> NonnegativeCP:
        """Decompose a tensor.

        Parameters
        ----------
        X : array_like, or sparse
            Nonnegative tensor with two or more modes: an array, in which NaN means missing, a tuple
            ``(coords, values, shape)``, or an object with `coords`, `data` and `shape`.
        y : mapping of int to array_like, optional
            For some modes k, a nonnegative label matrix (n_k x number of labels), which the factor
            of the mode predicts; NaN means unlabeled.  A vector, as pipelines pass it, is ignored.
        """
        arguments = self._arguments(factorize_tensor)
        if not isinstance(y, Mapping) and np.asarray(y).ndim < 2:
            y = None
        result = factorize_tensor(X, X_weights=X_weights, y=y, **arguments)
        check_mode(self.stream_mode, "stream_mode", len(result.factors))
        self._keep(result, loss_=self.loss)
        return self

    @property
    def factorization_(self) -> TensorFactorization:
        """Result of the last :meth:`fit` with its receipt; it shares the arrays of attributes."""
        return self._result(TensorFactorization)

    def _check_of(self, X: Any, y: Any, given: Mapping[str, Any], threads: int) -> Check:
        inputs = given if y is None else {"y": y, **given}
        return tensor_check(self.factorization_, X, inputs, threads)

    def partial_fit(
        self, X: TensorLike, y: VectorLike = None, *, one_slice: bool | None = None
    ) -> NonnegativeCP:
        """Learn from new slices along `stream_mode`, in addition to earlier slices.

        Parameters
        ----------
        X : array_like, or sparse
            Nonnegative tensor of new slices, or a single slice without `stream_mode`; lengths of
            the other modes must not change.  The first call is a :meth:`fit`: pass some tens of
            slices, since a single slice does not determine the components.
        one_slice : bool, optional
            Whether X is a single slice.  None infers it from the modes of earlier calls.  In the
            first call it is required if X has two modes; otherwise X has `stream_mode`.

        Returns
        -------
        self
            The factor of `stream_mode` has a new row for each new slice.

        Notes
        -----
        Each step represents the new slices with the other factors fixed, a convex problem, and then
        updates these to minimize a weighted sum over all slices, and is repeated a few times.
        Of earlier slices only sums are kept, (sum n_k) r numbers, computed with the factors of that
        time (Mairal et al. 2010).  Their rows do not change; :meth:`transform` with
        ``mode=stream_mode`` computes them for the present factors.

        After :meth:`fit` without labels and weights, learning continues from its factors.  Only the
        first call uses `solver`, `init`, `max_iter`, `tol`, `callback` and `verbose`.
        """
        if isinstance(y, Mapping):
            raise ValueError("y holds labels of modes, which slices do not take; leave it out.")
        of_fit = getattr(getattr(self, "receipt_", None), "inputs", ())
        for name in {"y", "X_weights"}.intersection(of_fit):
            refuse_to_continue(name, "slices")
        keep = check_real(self.forget_factor, "forget_factor", maximum=1)
        shape = self.shape_ if hasattr(self, "factors_") else None
        X, mode = slices_first(check_tensor(X, "X", self.dtype), self.stream_mode, shape, one_slice)
        if shape is None:
            self._fit_slices(X, mode)
        else:
            settings = {"n_components": self.n_components, "loss": self.loss, "stream_mode": mode}
            learned = len(self.weights_), self.loss_, getattr(self, "stream_mode_", mode)
            refuse_changes(settings, dict(zip(settings, learned, strict=True)))
        self.stream_mode_ = mode
        stream, rows = self._resumed(), self.stream_representation_
        if shape is not None:
            X = X.astype(rows.dtype, copy=False)
            new = stream.learn(X, keep, resolve_threads(self.n_threads))
            rows = np.concatenate([rows, new])
        size = sizes_of(rows, loss_named(self.loss, "loss")).astype(rows.dtype)
        factors = [np.ascontiguousarray(stream.factor(name)) for name in stream.factors]
        factors.insert(mode, rows / np.where(size > 0, size, 1).astype(rows.dtype))
        vars(self).update(factors_=factors, weights_=size)
        self._keep_learned(stream)
        self.__dict__.pop("label_components_", None)
        return self

    def _fit_slices(self, X: Tensor, mode: int) -> None:
        """Fit the first slices, along the first mode of X."""
        parameters, start = self._arguments(factorize_tensor), given_factors(self.init)
        if start is not None and len(start[1]) == len(X.shape):
            start[1].insert(0, start[1].pop(mode))
            parameters["init"] = start
        parts = (X.at.places, X.values, X.shape) if isinstance(X, SparseTensor) else X
        result = factorize_tensor(parts, **parameters)
        rows, *others = result.factors
        self.factors_, self.weights_ = [*others[:mode], rows, *others[mode:]], result.weights
        self.objective_, self.loss_ = result.objective, self.loss

    def _check_loaded(self) -> None:
        check_mode(getattr(self, "stream_mode_", 0), "stream_mode_", len(self.factors_))
        super()._check_loaded()

    def _resumed(self) -> Stream:
        others = self._others(getattr(self, "stream_mode_", 0))
        stream = Stream.resume(others, self.loss_, getattr(self, "stream_statistics_", {}))
        if not stream.sums:
            rows, threads = self.stream_representation_, resolve_threads(self.n_threads)
            keep, total = float(self.forget_factor), self.objective_[-1][1]
            stream.take_fit(rows, threads, keep=keep, total=total)
        return stream

    def _others(self, mode: int) -> list[Array]:
        return [F for k, F in enumerate(self.factors_) if k != mode]

    def fit_transform(
        self, X: TensorLike, y: Mapping[int, Any] | None = None, **given: Any
    ) -> Array:
        """Fit, then transform the same tensor: equivalent to ``fit(X, y).transform(X)``.

        This differs from the last iterate, ``factors_[0] * weights_``, which depends on labels.

        Returns
        -------
        ndarray, shape (n_0, r)
        """
        self.fit(X, y, **given)
        return self.transform(X, X_weights=given.get("X_weights"))

    def transform(self, X: TensorLike, *, mode: int = 0, X_weights: WeightsLike = None) -> Array:
        """Represent seen or new rows of a mode by the factors of the other modes.

        Rows meet the Karush-Kuhn-Tucker conditions; see :func:`ssnmf_fast.represent`.

        Returns
        -------
        ndarray, shape (length of X in the mode, r)
            Nonnegative, of the dtype of X; with the other factors it approximates X.
        """
        check_is_fitted(self)
        X = check_tensor(X, "X", self.dtype)
        mode = check_mode(mode, "mode", len(self.factors_))
        expected = self.shape_[:mode] + X.shape[mode : mode + 1] + self.shape_[mode + 1 :]
        if X.shape != expected:
            raise other_lengths(X, self.shape_, mode, "the mode of the rows")
        dtype = (X.values if isinstance(X, SparseTensor) else X).dtype
        others = [F.astype(dtype, copy=False) for F in self._others(mode)]
        return represent_tensor(
            X, others, mode, loss=self.loss_, X_weights=X_weights, n_threads=self.n_threads
        )

    def inverse_transform(self, X: TensorLike, *, mode: int = 0) -> Array:
        """Map a representation of a mode back to a tensor.

        Parameters
        ----------
        X : array_like, shape (n, r)
            Nonnegative representation, as returned by :meth:`transform` with the same `mode`.

        Returns
        -------
        ndarray
            The model, with length n in the mode and the fitted lengths in all others.

        Raises
        ------
        ValueError
            If X has another number of columns, or the result more than 2^27 entries (1 GB).
        """
        check_is_fitted(self)
        mode = check_mode(mode, "mode", len(self.factors_))
        S = check_matrix(X, "X", allow_nan=False, limited=False)
        rank = self.factors_[0].shape[1]
        S = check_factor(S, "X", (len(S), rank), S.dtype, "rows x components", limited=False)
        factors = self._with_rows(S, mode)
        return dense_model(np.ones(rank, S.dtype), factors, "give fewer rows at a time")

    def score(
        self, X: TensorLike, y: VectorLike = None, *, mode: int = 0, X_weights: WeightsLike = None
    ) -> float:
        """Return the share of the deviance of X that the model explains.

        As :meth:`NMF.score`, with ``transform(X, mode=mode)`` as the factor of `mode`.
        """
        del y
        S = self.transform(X, mode=mode, X_weights=X_weights)
        mode = check_mode(mode, "mode", len(self.factors_))
        X, factors = check_tensor(X, "X", self.dtype), self._with_rows(S, mode)
        settings: Any = {"loss": self.loss_, "n_threads": self.n_threads, "tensor": True}
        return explained_deviance(X, factors, X_weights=X_weights, **settings)

    def _with_rows(self, S: Array, mode: int) -> list[Array]:
        return [S if k == mode else F for k, F in enumerate(self.factors_)]

    def topics(self, feature_names: VectorLike = None, n_terms: int = 10, mode: int = 1) -> Topics:
        """Return the entries of a mode with the largest weights in each component.

        Parameters
        ----------
        feature_names : array_like of str, shape (n_mode,), optional
            Names of the indices of the mode, for example words.  None: "x0", "x1", ...
        mode : int
            The mode, for example that of words; may be negative.

        Returns
        -------
        Topics
            Sizes are shares of the model; print it, or see its ``to_rows`` and ``to_frame``.
        """
        check_is_fitted(self)
        mode = check_mode(mode, "mode", len(self.factors_))
        sums = np.prod([F.sum(axis=0, dtype=np.float64) for F in self.factors_], axis=0)
        topics = make_topics(np.ascontiguousarray(self.factors_[mode].T), feature_names, n_terms)
        return topics.with_sizes(self.weights_ * sums)


def other_lengths(X: Tensor, shape: tuple[int, ...], mode: int, rest: str) -> ValueError:
    lengths = ", ".join("any" if k == mode else str(n) for k, n in enumerate(shape))
    of_fit = f"those of the fit in all modes but {mode}, {rest}"
    return ValueError(f"X has shape {X.shape}; expected lengths ({lengths}), {of_fit}.")


def slices_first(
    X: Tensor, mode: int, shape: tuple[int, ...] | None, one_slice: bool | None
) -> tuple[Tensor, int]:
    """Return new slices as the first mode of a tensor, and the mode of slices counted from 0."""
    n_modes = len(X.shape)
    if one_slice is not None and not isinstance(one_slice, (bool, np.bool_)):
        raise TypeError(f"one_slice must be True, False or None; got {short(one_slice)}.")
    if one_slice is None:
        if shape is None and n_modes == 2:
            hint = "pass one_slice=True for one slice of three modes, False for a matrix of slices."
            raise ValueError(f"X has two modes, shape {X.shape}: {hint}")
        one_slice = shape is not None and n_modes == len(shape) - 1
    n_modes += one_slice
    mode = check_mode(mode, "stream_mode", n_modes)
    others = X.shape if one_slice else X.shape[:mode] + X.shape[mode + 1 :]
    if shape is not None and (n_modes != len(shape) or others != shape[:mode] + shape[mode + 1 :]):
        raise other_lengths(X, shape, mode, "or one slice without that mode")
    if isinstance(X, SparseTensor):
        return X.with_leading_mode() if one_slice else X.leading(mode), mode
    return X[None] if one_slice else np.ascontiguousarray(np.moveaxis(X, mode, 0)), mode
