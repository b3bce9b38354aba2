"""Estimator :class:`FewLabelsClassifier`: topics of the classes and a committee that predicts."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from .._common.arrays import Array, LabelsLike, LossName, Matrix, TablesLike, VectorLike
from .._common.saved import COUNT, Saved
from .._data.arrays import DataLike
from .._data.border import require_memory
from .._solver.weights import WeightsLike
from . import _classifier_training as training
from ._base import Self
from ._class_topics import LabeledSamples, in_memory, inputs_of_labels, with_view
from ._docstrings import complete_docstring
from ._predicting import ReadoutPredictions
from ._readout import ClassWeight
from ._training_data import labels_for_training
from ._views import View, check_tables, names_of_columns

_MOST_VOTERS = 5000  # for texts, where neighbors have little weight


@complete_docstring
@dataclass(eq=False, repr=False)
class FewLabelsClassifier(ReadoutPredictions):
    """Classifier for few labels: topics of the classes and a committee that predicts.

    The topics are those of semi-supervised NMF with infinite supervision weight: each class has a
    component, and labeled samples use only those of their classes [1]_.  The members of the
    committee are logistic regressions on topics (computed without labels) with leading singular
    directions and features, on features alone, and on coordinates in singular directions; naive
    Bayes (mostly zero X); and, with one label per sample, linear support vector machines and
    nearest neighbors (above 50,000 samples with faiss: ``pip install 'ssnmf-fast[neighbors]'``).
    Their logits are added with weights fitted to predictions of labels hidden from the fit.

    Parameters
    ----------
    threshold : float or "auto"
        With multiple labels, a label is predicted if its probability exceeds this.  "auto" is the
        best value in validation, or 0.5 without validation.
    self_training : int or "auto"
        Number of rounds, 0 for multiple labels.  In each, the most certain half of the predictions
        for unlabeled samples (four fifths with 4 labels per class) become labels of weight 0.1; the
        first also uses nearest neighbors.  "auto" is 2, or 0 if half of the samples are labeled.
    class_weight : None, "balanced" or dict
        Weights of the classes, as in scikit-learn's LogisticRegression; for multiple labels the
        weights of 0 and 1, where None means "balanced".
    class_prior : None, "labels", array_like of shape (k,) or dict
        Shares (or counts) of the classes among the samples to predict, in the order of `classes_`;
        "labels": as among the labels, for random samples; None: estimated by validation.

    Attributes
    ----------
    self_training_ : int
        Number of rounds of self-training.
    committee_ : dict of str to dict
        For each member its "weight", the factor of its logits, and its validation "score" or NaN.
    validation_scores_ : dict of str to float
        Score of each member and of the "committee" on labels hidden from the fit: accuracy or, for
        multiple labels, the mean of micro and macro F.  Empty without validation, with fewer than 3
        labeled samples per class on average (2 from 16 labeled samples).
    validation_accuracy_, validation_interval_ : float, (float, float)
        Expected accuracy on new samples, as defined by :meth:`score`, see Notes, and its 95 %
        interval (Wilson's, for three quarters of the hidden labels because folds share labels, and
        with a larger upper end because the fit uses all labels); NaN without validation.
    class_prior_ : ndarray, shape (k,)
        Share of each class that predictions assume, see `class_prior`; with multiple labels, the
        share of each label among the labeled samples.
    validation_folds_ : ndarray of int, shape (n,)
        Fold in which the label of a sample was hidden; -1 for none.
    validation_proba_ : ndarray, shape (n, k)
        Calibrated probabilities predicted in that fold, not tempered; 0 for all other samples.
    validation_predicted_ : ndarray of int, shape (n, k)
        For multiple labels, the predictions in that fold; thresholds are chosen without the sample.
    side_ : dict of str to int
        Numbers of columns of the tables of `side`.
    side_names_ : dict of str to list of str
        Names of the columns of DataFrames in `side`, by which predictions match them.

    See Also
    --------
    SSNMFClassifier : The model of the papers, with more settings to choose.
    TopicSupervisedNMF : Topics named by labels.

    Notes
    -----
    `y` in :meth:`fit` is an array of class labels (integers, strings or objects) or, for multiple
    labels, an indicator matrix (n, k) of 0 and 1, dense or sparse.  A row that is all NaN (dense)
    or all -1 is unlabeled; single NaN entries are missing.

    Labels may not have the shares of the classes, for example the same number of each class.  The
    shares are estimated by comparing predictions of hidden labeled and of unlabeled samples [2]_,
    shift predictions and weigh the validation.  Without validation, if half of the samples are
    labeled, with multiple labels or `class_weight`, they are those of the labels.

    With estimated shares, the expected accuracy is the mean probability of predictions for
    unlabeled samples left out of the fits, corrected by the errors at hidden labels; otherwise, the
    share of hidden labels predicted correctly.  A fit is too sure of samples it has seen: its
    probabilities are tempered so that their mean for unlabeled samples is about that accuracy; for
    new samples they can be too low.  Without validation, logits of single labels are halved.

    :meth:`score` ignores unlabeled samples.  Metrics of scikit-learn treat -1 as a class; see
    :func:`ssnmf_fast.metrics.labeled_scorer`.

    For data on disk, the committee sees at most 50,000 samples, labeled samples first, and no more
    than fit into their `memory`; the topics use all samples.  Entries that are missing or have
    weight 0 are first filled in by a plain factorization.  The committee has only topics and tables
    if the memory holds no labeled sample of a class, or with weights (except ``weights.missing``)
    of more than 67 million entries.

    Each table of `side` adds a member to the committee, logistic regression on its rows scaled to
    length 1.  It takes part in self-training, on which the topics depend, if it predicts hidden
    labels.  Sample weights apply to all losses and to the validation, not to folds and neighbors.

    References
    ----------
    .. [1] K. MacMillan, J. D. Wilson, "Topic supervised non-negative matrix factorization", 2017,
       eq. 2.
    .. [2] K. Azizzadenesheli, A. Liu, F. Yang, A. Anandkumar, "Regularized learning for domain
       adaptation under label shifts", 2019.

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
    class_prior: Literal["labels"] | npt.ArrayLike | dict[Any, float] | None = None

    _multi_label: ClassVar = True
    _saved: ClassVar = {
        "side_names_": Saved(optional=True, kind=dict[str, list[str]]),
        "label_components_": Saved("rk", part="B"),
        "n_labeled_": COUNT,
        "self_training_": COUNT,
        "side_": Saved("", optional=True, container=dict),
        "validation_folds_": Saved("n", "-1<n", optional=True),
        "validation_proba_": Saved("nk", optional=True),
        "validation_predicted_": Saved("nk", "counts", optional=True),
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

        Warns
        -----
        UserWarning
            If the interval of the expected accuracy is below the share of the largest class, or if
            members are left out for lack of faiss or memory.
        """
        weights = {"sample_weight": sample_weight, "label_weight": label_weight}
        self._learn(self._checked(X, reset=True), y, X_weights=X_weights, side=side, **weights)
        return self

    def _learn(
        self, X: Matrix, y: LabelsLike, *, X_weights: Any = None, side: Any = None, **weights: Any
    ) -> None:
        targets = self._labels_of_fit(X, y)
        labels = labels_for_training(targets, **weights)
        labels.require_two_classes()
        training.check_threshold(self.threshold)
        view = View(check_tables(side, X.shape[0]))
        samples = LabeledSamples.of(self, X, labels, X_weights=X_weights, view=view)
        samples = with_view(in_memory(samples))
        settings = training.settings_of(self, samples, labels, targets.classes)
        require_memory(labels.shape[1], X.shape, X.dtype)
        validation = training.validate(samples, settings, training.prior_of(samples))
        names = {name for name, weight in validation.weights.items() if weight > 0}
        texts = samples.view.rows is not None and samples.view.like_counts
        trained = training.train(samples, settings, names, _MOST_VOTERS if texts else None)
        readout = training.calibrated(samples, trained, validation)
        self._keep(
            trained.fit,
            self_training_=settings.rounds,
            n_labeled_=len(labels.rows),
            multilabel_=labels.several,
            classes_=targets.classes,
            class_prior_=validation.shares,
            class_shares_=samples.labels.truth.class_shares(trained.shares),
            readout_=readout,
            side_names_=names_of_columns(side),
            side_={name: table.shape[1] for name, table in samples.view.tables.items()},
            **validation.attributes(samples),
            inputs=labels.inputs(),
        )
        validation.warn_if_poor()

    _fit_inputs = inputs_of_labels

    def _limits(self) -> Array | None:
        threshold = training.check_threshold(self.threshold) if self.multilabel_ else None
        return super()._limits() if threshold is None else np.full(len(self.classes_), threshold)
