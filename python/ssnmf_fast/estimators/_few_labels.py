"""Estimator :class:`FewLabelsClassifier`: topics of classes, and a committee that predicts."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from .._common.arrays import Array, LabelsLike, LossName, Matrix, TablesLike, VectorLike
from .._common.saved import COUNT, Saved
from .._data.arrays import DataLike
from .._data.border import require_memory
from .._labels import labels_of
from .._solver.weights import WeightsLike
from ._base import Self, require
from ._class_topics import SUPPORTS, LabeledSamples, in_memory, inputs_of_labels, with_view
from ._classifier_training import (
    calibrated,
    check_threshold,
    plan_of,
    prior_of,
    self_trained,
    train,
    validate,
)
from ._docstrings import complete_docstring
from ._members import ClassWeight
from ._predicting import ReadoutPredictions
from ._training_data import labels_for_training
from ._views import View, check_tables

_MOST_VOTERS = 5000  # of texts, where neighbors count little


@complete_docstring
@dataclass(eq=False, repr=False)
class FewLabelsClassifier(ReadoutPredictions):
    """Classifier for few labels and many: topics of the classes, and a committee that sees them.

    The topics are those of semi-supervised NMF with an infinite weight of the labels: each class
    has a component, and labeled samples use only those of their classes [1]_.  A committee
    predicts: logistic regression on topics (computed without labels), leading singular directions
    and features; on features; on coordinates in singular directions; naive Bayes (sparse X), linear
    support vector machines and neighbors.  Their logits are added with weights that are fitted to
    predictions for labels hidden from the fit.

    Parameters
    ----------
    threshold : float or "auto"
        With multiple labels, a label is predicted where its probability lies above this.  "auto"
        takes the best by validation, else 0.5.
    self_training : int or "auto"
        Number of rounds.  In each, the most certain half of the predictions for unlabeled samples
        (four fifths from 4 labels per class on) become labels of weight 0.1; the first also uses
        nearest neighbors.  "auto" is 2, or 0 where half of the samples are labeled or labels are
        much more even than the classes are by their neighbors.  Multiple labels: always 0.
    class_weight : None, "balanced" or dict
        Weights of the classes, as in scikit-learn's LogisticRegression; for multiple labels the
        weights of 0 and 1, where None means "balanced".

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
        Score of every member and of the "committee" for labels hidden from the fit: accuracy, for
        multiple labels the mean of micro and macro F.  Empty without validation: for fewer than 3
        labeled samples per class on average.
    validation_accuracy_, validation_interval_ : float, (float, float)
        Expected accuracy on new samples, as :meth:`score` measures it, and its 95 % interval
        (Wilson's, of three quarters of the samples, as folds share labels, with a raised upper
        end, as the fit uses the hidden labels too); NaN without validation.
    class_prior_ : ndarray, shape (k,)
        Share of every class (or label) among the labeled samples; among all, as estimated, where
        the labels are much more even than the classes.
    validation_folds_ : ndarray of int, shape (n,)
        Fold of the validation in which the label of a sample was hidden; -1 for none.
    validation_proba_ : ndarray, shape (n, k)
        Calibrated probabilities predicted in that fold; 0 for all other samples.
    validation_predicted_ : ndarray of int, shape (n, k)
        For multiple labels, what was predicted then, with thresholds chosen without the sample.
    side_ : dict of str to int
        Number of columns of every table of side information.

    See Also
    --------
    SSNMFClassifier : The model of the papers, with a rank and a weight of the labels to give.
    TopicSupervisedNMF : Topics named by labels.

    Notes
    -----
    `y` in :meth:`fit` is an array of class labels (integers, strings or objects) or, for multiple
    labels, an indicator matrix (n, k) of 0 and 1, dense or sparse.  A row that is all NaN (dense)
    or all -1 is unlabeled; single NaN entries are missing.

    Where labels are much more even than the classes are by their neighbors, each class has three
    components, and the frequencies of the classes are estimated from the unlabeled samples, unless
    `class_weight` is given.

    :meth:`score` leaves unlabeled samples out.  Metrics of scikit-learn take -1 as a class; see
    :func:`ssnmf_fast.metrics.labeled_scorer`.

    Of data on disk the committee sees at most 50,000 samples, labeled ones first, and no more than
    fit into their `memory`; topics are those of all.  What is missing, or has no weight, is filled
    in by a plain factorization first.

    Each table of `side` is a member of the committee, by logistic regression on its rows at length
    1, and takes part in self-training if it predicts hidden labels.  Topics do not depend on it.

    Weights of samples count in all losses and in the validation (0 leaves a sample out), but not in
    which labels are hidden together, or who is a neighbor.

    References
    ----------
    .. [1] K. MacMillan, J. D. Wilson, "Topic supervised non-negative matrix factorization", 2017.

    Examples
    --------
    >>> import numpy as np
    >>> import ssnmf_fast as sf
    >>> X = np.array([[3, 1, 0, 0], [2, 1, 0, 0], [0, 0, 1, 3], [0, 0, 1, 2],
    ...               [4, 1, 0, 0]])
    >>> y = ["sport", "sport", "politics", "politics", None]
    >>> model = sf.FewLabelsClassifier(random_state=0).fit(X, y)
    >>> print(model.predict([[1, 0, 0, 0], [0, 0, 0, 1]]))
    ['sport' 'politics']
    """

    _: KW_ONLY
    loss: LossName = "kullback-leibler"
    threshold: float | Literal["auto"] = "auto"
    self_training: int | Literal["auto"] = "auto"
    class_weight: ClassWeight = None

    _multi_label: ClassVar = True
    _saved: ClassVar = {
        "label_components_": Saved("rk"),
        "n_labeled_": COUNT,
        "self_training_": COUNT,
        "side_": Saved("", optional=True, container=dict),
        "validation_folds_": Saved("n", optional=True),
        "validation_proba_": Saved("nk", optional=True),
        "validation_predicted_": Saved("nk", "whole", optional=True),
        "committee_": Saved(optional=True, kind=dict[str, dict[str, float]]),
        "validation_scores_": Saved(optional=True, kind=dict[str, float]),
        "validation_accuracy_": Saved(optional=True, kind=float),
        "validation_interval_": Saved(optional=True, kind=tuple[float, float]),
    }

    def fit(
        self: Self,
        X: DataLike,
        y: LabelsLike = None,
        *,
        X_weights: WeightsLike = None,
        sample_weight: VectorLike = None,
        label_weight: VectorLike = None,
        side: TablesLike = None,
    ) -> Self:
        """Learn topics and predictions from samples and the labels of some of them.

        Parameters
        ----------
        y : array_like, shape (n,) or (n, k)
            Labels, as the class describes them; unlabeled samples are allowed.

        Warns
        -----
        UserWarning
            If the whole interval of the expected accuracy lies below the accuracy of always
            predicting the largest class.
        """
        weights = {"sample_weight": sample_weight, "label_weight": label_weight}
        self._learn(self._checked(X, reset=True), y, X_weights=X_weights, side=side, **weights)
        return self

    def _learn(
        self,
        X: Matrix,
        y: LabelsLike,
        *,
        X_weights: WeightsLike = None,
        side: TablesLike = None,
        **weights: Any,
    ) -> None:
        require(self, X, y)
        targets = labels_of(y, self.unlabeled)
        targets.check_fit()
        labels = labels_for_training(targets, **weights)
        labels.require_two_classes()
        check_threshold(self.threshold)
        view = View(check_tables(side, X.shape[0]))
        inputs = {"X": X, "X_weights": X_weights, "labels": labels, "view": view}
        inputs["sample_weight"] = labels.sample_weight
        samples = with_view(in_memory(LabeledSamples.of(self, **inputs)))
        plan = plan_of(self, samples, labels, targets.classes)
        require_memory(plan.n_components, X.shape, X.dtype)
        validation = validate(samples, plan, prior_of(samples))
        names = {name for name, weight in validation.weights.items() if weight > 0}
        texts = samples.view.rows is not None and samples.view.like_counts
        taught, spread = self_trained(samples, plan, names)
        fit = taught.joined().fit_topics(plan.n_components, SUPPORTS)
        most = _MOST_VOTERS if texts else None
        trained = train(samples, taught, fit, plan, names, spread, most)
        readout, validation = calibrated(samples, plan, trained, validation)
        self._drop_readout()
        self.__dict__.pop("validation_predicted_", None)
        self._keep(
            fit,
            self_training_=plan.rounds,
            n_labeled_=int(labels.known.sum()),
            multilabel_=labels.several,
            classes_=targets.classes,
            class_prior_=labels.prior() if validation.shares is None else validation.shares,
            class_shares_=samples.labels.class_shares(trained.shares),
            readout_=readout,
            side_={name: table.shape[1] for name, table in samples.view.tables.items()},
            **validation.attributes(readout, samples),
            inputs={"labels": labels.members, "label_weight": labels.entry_weights},
        )
        validation.warn_if_poor()

    _fit_inputs = inputs_of_labels

    def _limits(self) -> Array | None:
        given = check_threshold(self.threshold) if self.multilabel_ else None
        return super()._limits() if given is None else np.full(len(self.classes_), given)
