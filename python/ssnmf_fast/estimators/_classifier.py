"""Estimator :class:`SSNMFClassifier`: classes or multiple labels."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from .._common.arrays import Array
from .._common.saved import COUNT, Saved
from .._data.checks import require_memory
from .._labels import ClassLabels, Indicators, labels_of
from .._models.factorize import Factorization
from ._base import Self
from ._batches import batch_classes
from ._calibrating import calibrated
from ._class_topics import LabeledSamples
from ._classifier_receipts import ToldByLabels
from ._classifier_training import check_threshold, plan_of, prior_of, refuse_unused, train
from ._conventions import require
from ._docstrings import complete_docstring
from ._readout import ComponentReadout, Readout
from ._samples_seen import in_memory, with_context
from ._side import tables_to_fit
from ._side_predicting import SidePredictions
from ._training_data import TrainingLabels, labels_for_training
from ._validation import validate

_PLAIN = {
    "committee_": dict[str, dict[str, float]],
    "supervision_weight_": float,
    "validation_scores_": dict[str, float],
    "validation_accuracy_": float,
    "validation_interval_": tuple[float, float],
}


@complete_docstring
@dataclass(eq=False, repr=False)
class SSNMFClassifier(ToldByLabels, SidePredictions):
    """Semi-supervised NMF for classification, X ~ S A and Y ~ S B, also with few labels.

    Minimizes ``sum W .* d(X, S A) + supervision_weight * sum L .* d(Y, S B)``, where Y is the
    indicator matrix of the labels and unlabeled samples are zero rows of L [1]_.  With an infinite
    weight, labeled samples may use only the components of their classes [2]_.  Predictions come
    from a readout that is fitted to samples represented without their labels, as new ones are.

    Without arguments there is a component for each class, and several classifiers predict together;
    their weights are found by validation on the labeled samples.

    Parameters
    ----------
    n_components : int or "auto"
        Rank r, at least 1.  "auto" takes one component for each class, or three and no
        self-training where the labels are much more even than the classes are by their neighbors.
    loss, supervision_loss : {"kullback-leibler", "frobenius"}
        Losses of X and of Y: the I-divergence, or squared error.  An infinite weight has no loss
        of Y.
    supervision_weight : float, "balanced" or "auto"
        Weight (lambda) of the loss of Y, at least 0; infinity for supports.  "balanced" takes the
        ratio of the two losses at the start; "auto" takes infinity if there are at least as many
        components as classes, else "balanced".
    init : {"auto", "labels", "random", "nndsvda", "random-acol"} or tuple of arrays
        Start.  "labels" takes the means of the classes for A; so does "auto" if there are at least
        as many components as classes, else "random".  A tuple holds S (n, r), A (r, m) and,
        optionally, B (r, k).  With an infinite weight the start is "labels", or the A of a tuple.
    threshold : float or "auto"
        With multiple labels, a label is predicted where its probability (for the readouts "refit"
        and "joint" its score) lies above this.  "auto" takes the best by validation, else 0.5.
    readout : {"auto", "logistic", "refit", "joint"}
        How predictions are made.  "logistic": logistic regression on the topics of a sample (found
        without labels), its leading singular directions and its features.  "committee": the sum of
        that, of classifiers of features alone, and of neighbors, with weights found by validation.
        "refit": S B with B fitted to such topics of the labeled samples.  "joint", the papers'
        rule: S B with the B of the factorization.  "auto" is "committee" in :meth:`fit`, or
        "logistic" where rank and weight are both given, and "joint" in :meth:`partial_fit`, which
        refuses the others.
    self_training : int or "auto"
        Number of rounds.  In each, the most certain half of the predictions for unlabeled samples
        (four fifths from 4 labels per class on) become labels of weight 0.1; the first round also
        uses their nearest neighbors.  "auto": 2, or 0 where half of the samples are labeled, for
        the readouts "refit" and "joint", and for "logistic" or "auto" with rank and weight both
        given.  Multiple labels: always 0.  A number above 0 is refused for the readouts "refit" and
        "joint".
    class_weight : "auto", None, "balanced" or dict
        Weights of the classes, as in scikit-learn's LogisticRegression; for multiple labels the
        weights of 0 and 1.  The readouts "refit" and "joint" refuse it.  "auto" is None, for
        the committee with multiple labels "balanced".

    Attributes
    ----------
    classes_ : ndarray, shape (k,)
        The classes, sorted; with multiple labels the names of the columns of a data frame, or
        0 ... k - 1.
    self_training_ : int
        Rounds of self-training.
    committee_ : dict of str to dict
        Of every member its "weight", by which its logits are multiplied in the sum that predicts,
        and its validated "score" (NaN without validation).
    validation_scores_ : dict of str to float
        Score of every member and of the "committee": accuracy, for multiple labels the mean of
        micro and macro F, of labels that were hidden from the fit.  Empty without validation: for
        fewer than 3 labeled samples per class on average, for the readouts "refit" and "joint", and
        for "logistic" or "auto" with rank and weight both given.
    validation_accuracy_, validation_interval_ : float, (float, float)
        Expected accuracy on new samples, as :meth:`score` measures it, and its 95 % interval
        (Wilson's, of three quarters of the samples, since the fits of the folds share labels; its
        upper end is raised, since the fit uses the labels that validation hides); NaN without
        validation.
    class_prior_ : ndarray, shape (k,)
        Share of every class (or label) among the labeled samples; among all, as estimated, where
        the labels are much more even than the classes.
    validation_folds_ : ndarray of int, shape (n,)
        Fold of the validation in which the label of a sample was hidden; -1 for none.
    validation_proba_ : ndarray, shape (n, k)
        Calibrated probabilities predicted in that fold; 0 for all other samples.
    validation_predicted_ : ndarray of int, shape (n, k)
        For multiple labels, what was predicted in that fold, with thresholds that were chosen
        without the sample; 0 for all other samples.
    side_ : dict of str to int
        Number of columns of every table of side information.

    See Also
    --------
    TopicSupervisedNMF : Topics named by labels.
    SSNMFRegressor : Real targets.

    Notes
    -----
    `y` in :meth:`fit` is either an array of class labels (integers, strings or objects) or, for
    multiple labels, an indicator matrix (n, k) of 0 and 1, dense or sparse.  A row that is all NaN
    (dense) or all -1 is unlabeled; single NaN entries are missing.

    :meth:`score` leaves unlabeled samples out.  Metrics of scikit-learn take -1 as a class; see
    :func:`ssnmf_fast.metrics.labeled_scorer`.

    Of data on disk, labeled samples and others are read into memory for the committee, at most
    50,000 and no more than fit into their `memory`; its topics are those of all samples.  What is
    missing, or has no weight, is filled in by a plain factorization first.

    Each table of `side` is a member of the committee, by logistic regression on its rows at length
    1; if it predicts hidden labels, it also takes part in self-training.  Topics, and so
    :meth:`transform`, do not depend on it.  :meth:`partial_fit` takes none.

    References
    ----------
    .. [1] J. Haddock et al., "Semi-supervised NMF models for topic modeling in learning tasks",
       2020.
    .. [2] K. MacMillan, J. D. Wilson, "Topic supervised non-negative matrix factorization", 2017.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.array([[3, 1, 0, 0], [2, 1, 0, 0], [0, 0, 1, 3], [0, 0, 1, 2], [4, 1, 0, 0]])
    >>> y = ["sport", "sport", "politics", "politics", None]
    >>> model = sf.SSNMFClassifier(random_state=0).fit(X, y)
    >>> print(model.predict([[1, 0, 0, 0], [0, 0, 0, 1]]))
    ['sport' 'politics']
    """

    n_components: int | str = "auto"
    _: KW_ONLY
    loss: str = "kullback-leibler"
    supervision_loss: str = "kullback-leibler"
    supervision_weight: float | str = "auto"
    solver: str = "auto"
    init: Any = "auto"
    threshold: float | str = "auto"
    readout: str | None = "auto"
    self_training: int | str = "auto"
    class_weight: Any = "auto"
    forget_factor: float = 0.8

    _saved: ClassVar = {
        "refitted_label_components_": Saved("rk", optional=True),
        "n_labeled_": COUNT,
        "self_training_": Saved("", optional=True),
        "validation_folds_": Saved("n", optional=True),
        "validation_proba_": Saved("nk", optional=True),
        "validation_predicted_": Saved("nk", "whole", optional=True),
        **{name: Saved(optional=True, kind=kind) for name, kind in _PLAIN.items()},
    }

    _readouts: ClassVar[tuple[str, ...]] = ("auto", "committee", "logistic", "refit", "joint")
    _auto_readout = "committee"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def _learn(
        self,
        X: Any,
        y: Any,
        *,
        X_weights: Any = None,
        sample_weight: Any = None,
        side: Any = None,
    ) -> None:
        require(self, X, y)
        targets = labels_of(y, self.unlabeled)
        targets.check_fit()
        labels = labels_for_training(targets, sample_weight)
        plan, validates = plan_of(self, labels, targets.classes)
        require_memory(plan.n_components, X.shape, X.dtype)
        given = {"X": X, "X_weights": X_weights, "labels": labels}
        given["side"] = tables_to_fit(side, X.shape[0], plan.readout)
        samples = LabeledSamples.of(self, plan.n_components, **given)
        if plan.predicts:
            samples = with_context(in_memory(samples))
            plan = plan.adapted(samples)
            require_memory(plan.n_components, X.shape, X.dtype)
        prior = prior_of(samples, plan)
        validation = validate(samples, plan, prior, validates)
        used = {name for name, weight in validation.weights.items() if weight > 0}
        trained = train(samples, plan, used if plan.predicts else set())
        self._keep_classes(trained.fit, targets.classes, labels, plan.rounds)
        self._note_inputs(y=labels.members, sample_weight=labels.entry_weights)
        self.side_ = {name: table.shape[1] for name, table in samples.side.items()}
        fitted = None
        if plan.predicts:
            fitted, validation = calibrated(samples, plan, trained, validation)
            self.readout_ = fitted
            if validation.shares is not None:
                self.class_prior_ = validation.shares
        elif plan.readout == "refit":
            self._refit_components(self._represent(X, X_weights), labels)
        for name, value in validation.attributes(fitted, samples).items():
            setattr(self, name, value)
        self.class_shares_ = samples.labels.class_shares(trained.shares)
        validation.warn_if_poor()

    def _keep_classes(
        self, fit: Factorization, classes: Array, labels: TrainingLabels, rounds: int = 0
    ) -> None:
        """Set the attributes of a fit to labels, and drop the readout of an earlier one."""
        self._keep(
            fit,
            supervision_weight_=fit.supervision_weight,
            self_training_=rounds,
            multilabel_=labels.several,
            classes_=classes,
            class_prior_=labels.prior(),
            n_labeled_=int(labels.known.sum()),
        )
        self._drop_readout()

    def _class_shares(self) -> tuple[Array | None, Array | None]:
        shares = getattr(self, "class_shares_", None)
        return self.classes_, self.label_components_ if shares is None else shares

    def _fitted_readout(self) -> Readout:
        return getattr(self, "readout_", None) or ComponentReadout(self._components_in_use())

    def _limits(self, readout: Readout) -> Array | None:
        given = check_threshold(self.threshold) if self.multilabel_ else None
        return super()._limits(readout) if given is None else np.full(len(self.classes_), given)

    def partial_fit(
        self: Self,
        X: Any,
        y: Any,
        classes: Any = None,
        *,
        X_weights: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn from one batch of samples, in addition to earlier batches.

        Parameters
        ----------
        classes : array_like, optional
            All classes that any batch will hold; needed in the first call, unless y is an indicator
            matrix.

        Notes
        -----
        Nothing is chosen by validation: where "auto" is given, `n_components` is the number of
        classes, `supervision_weight` "balanced" and `init` "random".
        """
        refuse_unused(self, "joint")
        self._learn_targets(X, y, X_weights, sample_weight, classes)
        return self

    def _batch_targets(
        self, y: Any, classes: Any
    ) -> tuple[ClassLabels | Indicators, dict[str, Any]]:
        """Read labels; nothing is chosen by validation where parameters are "auto"."""
        several, known = batch_classes(self, y, classes)
        chosen: dict[str, Any] = {}
        if self.n_components == "auto":
            chosen["n_components"] = len(known)
        if self.supervision_weight == "auto":
            chosen["supervision_weight"] = "balanced"
        if isinstance(self.init, str) and self.init in ("auto", "labels"):
            chosen["init"] = "random"
        if several:
            targets = Indicators(y, n_labels=len(known))
            targets.classes = known
            return targets, chosen
        return ClassLabels(y, self.unlabeled, known_classes=known), chosen

    def _keep_targets(self, targets: ClassLabels | Indicators) -> None:
        self.multilabel_, self.classes_ = isinstance(targets, Indicators), targets.classes
        n, before = int(targets.labeled.sum()), getattr(self, "n_labeled_", 0)
        k = len(targets.classes)
        prior = self.class_prior_ if before else np.full(k, 1 / k)
        if n:
            prior = (before * prior + n * targets.prior()) / (before + n)
        self.class_prior_, self.n_labeled_ = prior, before + n
        self._drop_readout()
