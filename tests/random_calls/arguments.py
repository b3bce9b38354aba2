"""What every public argument takes: nothing that is an array, or a base and how it gets there."""

from __future__ import annotations

import tempfile
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ssnmf_fast import NMF, factorize, penalties, weights

RNG = np.random.default_rng(0)
D = np.where(RNG.random((12, 8)) < 0.5, RNG.random((12, 8)), 0.0)
D[:, 0] = 0.5  # neither an empty row nor an empty line of blocks
S, A = RNG.random((12, 3)), RNG.random((3, 8))
y = np.arange(12) % 3
Y = np.eye(3)[y]
HALF = (RNG.random((12, 8)) < 0.5).astype(float)
HALF[:, 0] = 1.0
T = RNG.random((6, 5, 4))
TIMES = np.arange("2020-01", "2021-01", dtype="datetime64[M]")

# Names of arguments that take no array.
NAMES = """
    A_mean A_shape add_indicator assignment ax backend baselines biases burn_in C callback
    check_every choice class_names class_weight clip columns_ common_scale consensus consensuses
    consider_weights count_scale coverage criterion darkest distance_threshold documents_per_slice
    dtype entry_names estimator executor feature_names feature_weight features fill_value
    fit_parameters fit_params fits folder forbidden foreign forget_factor freq gamma_min given
    history_or_completion input_features inputs interval keep_empty_features keep_observed kind
    kinds label label_names labeled_weight level levels limits log_x loss mask_zeros max_components
    max_iter max_rows measure membership memory method missing_norm missing_values mode mode_names
    model n n_components n_features n_fits n_free_topics n_jobs n_oversamples n_power n_ranges
    n_splits n_starts n_terms n_threads name names neighborhood_fraction nonnegative normalize
    one_slice over p parameters parents path period predicts q random_state rank ranks rate_mean
    rate_shape readout resample result rule S_mean S_shape sample sample_names scoring seeds
    self_training separator shape share solver sort sparsity sparsity_decay stability standardize
    stopping stream_mode style supervision_loss supervision_weight terms threshold title tol topic
    topic_names topics tpm_names tree unlabeled validation_fraction verbose w0 weight window x
    xlabel ylabel
    exclude_seen item k neighbors popularity ridge unseen_weight user
"""
SCALARS = frozenset(NAMES.split())
# Classes that fits return; only their methods are attacked.
RESULTS = {"Completion", "CompletionState", "Consensus", "CsrFile", "Factorization", "RankChoice"}
RESULTS |= {"TensorFactorization", "LowRankPlusSparse", "TopicTree"}
FOLDER = tempfile.mkdtemp()
MORE = {"n_components": 3, "max_iter": 2, "random_state": 0, "n_threads": 1}
ROW, COLUMN = np.linspace(1, 2, 12), np.linspace(1, 2, 8)


class Way(NamedTuple):
    """A base, how it becomes the argument, and what else must be given."""

    base: np.ndarray
    wrap: object = lambda Z: Z
    further: dict = {}  # noqa: RUF012


def weighings(base, name="X_weights"):
    row, column = (np.linspace(1, 2, n) for n in base.shape)
    further = {"y": Y} if name == "y_weights" else {}
    ways = [
        Way(base),
        Way(base, weights.observed),
        Way(base, weights.missing),
        Way(base, lambda Z: weights.base(0.5, Z)),
        Way(row, lambda Z: weights.outer(rows=Z)),
        Way(column, lambda Z: weights.outer(columns=Z)),
    ]
    return [way._replace(further=further) for way in ways]


def tensor_weights(base):
    n = base.shape[0]
    return [
        Way(base),
        Way(base, weights.observed),
        Way((np.arange(base.size).reshape(base.shape) % 2).astype(base.dtype), weights.missing),
        Way(np.linspace(1, 2, n), lambda Z: [Z, *[None] * (base.ndim - 1)]),
    ]


F = [RNG.random((n, 3)) for n in T.shape]
START = [Way(S, lambda Z: (Z, A)), Way(A, lambda Z: (S, Z))]
TENSOR_START = [
    Way(F[1], lambda Z: [F[0], Z, F[2]]),
    Way(F[0], lambda Z: (np.ones(3), [Z, *F[1:]])),
    Way(np.ones(3), lambda Z: (Z, F)),
]
NEIGHBORS = np.diag(np.ones(11), 1) + np.diag(np.ones(11), -1)
BETWEEN_ROWS = np.diag(np.ones(5), 1) + np.diag(np.ones(5), -1)
SMALL = penalties.L2(0.1)
OF_TENSORS = [
    Way(BETWEEN_ROWS, lambda Z: {0: [SMALL, penalties.Graph(0.1, Z)], 1: SMALL, 2: SMALL})
]
GUIDED = [Way(NEIGHBORS, lambda Z: {"S": [SMALL, penalties.Graph(0.1, Z)], "A": SMALL, "B": SMALL})]
PENALTIES = [Way(NEIGHBORS, lambda Z: {"S": [SMALL, penalties.Graph(0.1, Z)], "A": SMALL})]
ANSWERS = [Way(y.astype(float)), Way(Y)]  # classes, and several labels

PAIRS = {"users": np.arange(12) // 3, "items": np.arange(12) % 8}
OF_USERS = Way(np.arange(12) // 3, further={"items": PAIRS["items"]})
TRIPLETS = {
    "items": [Way(PAIRS["items"], further={"users": PAIRS["users"]})],
    "values": [Way(ROW, further=PAIRS)],
    "columns": [],  # names of those of a data frame
}

FILES = ("fit", "complete", "predict", "open_csr")  # what reads one

# Ways to every argument, by function or "*" for methods of estimators.
WAYS = {
    "factorize": {
        "X": [Way(D)],
        "y": [Way(Y)],
        "X_weights": weighings(HALF),
        "y_weights": weighings(Y, "y_weights"),
        "S_support": [Way((Y > 0) * 1.0)],
        "A_support": [Way((A > 0.5) * 1.0)],
        "covariates": [Way(S[:, :1])],
        "fixed_components": [Way(A[:1])],
        "feature_labels": [Way(A.T.copy())],
        "penalties": PENALTIES,
        "init": [*START, Way(S[:, :3].T.copy() @ Y, lambda Z: (S, A, Z), {"y": Y})],
    },
    "objective": {
        "feature_labels": [Way(A.T.copy(), further={"C": np.eye(3)})],
        "penalties": PENALTIES,
        "X": [Way(D)],
        "S": [Way(S)],
        "A": [Way(A)],
        "y": [Way(Y, further={"B": np.eye(3)})],
        "B": [Way(np.eye(3), further={"y": Y})],
        "X_weights": weighings(HALF),
        "y_weights": [
            way._replace(further={"y": Y, "B": np.eye(3)}) for way in weighings(Y, "y_weights")
        ],
    },
    "represent": {
        "X": [Way(D)],
        "A": [Way(A)],
        "X_weights": weighings(HALF),
        "init": [Way(S)],
        "covariates": [Way(S[:, :1])],
        "penalties": PENALTIES,
    },
    "factorize_tensor": {
        "X": [Way(T), Way(D)],
        "X_weights": [way._replace(further={"X": T}) for way in tensor_weights(T)]
        + [way._replace(further={"X": D}) for way in tensor_weights(HALF)],
        "y": [Way(np.eye(6)[:, :2], lambda Z: {0: Z}), Way(np.eye(4), lambda Z: {-1: Z})],
        "init": TENSOR_START,
        "penalties": OF_TENSORS,
    },
    "complete": {
        "columns": [],
        "M": [
            Way(D),
            Way(np.arange(12), lambda Z: (Z, np.arange(12) % 8, np.ones(12))),
            Way(np.arange(1.0, 13), lambda Z: (np.arange(12), np.arange(12) % 8, Z)),
        ],
        "observed": [Way(HALF), Way(HALF, further={"M": sp.csr_array(D)})],
        "init": [Way(S[:, :1], lambda Z: (Z, A[:1])), Way(A[:1], lambda Z: (S[:, :1], Z))],
    },
    "linalg.randomized_svd": {"X": [Way(D)]},
    "verify": {"X": [Way(D)], "y": [Way(Y)]},
    "split_topic": {"X": [Way(D)], "X_weights": weighings(HALF)},
    "topic_tree": {"X": [Way(D)], "X_weights": weighings(HALF)},
    "topics_over_time": {
        "X": [Way(D)],
        "times": [Way(np.arange(20200101.0, 20201301, 100)), Way(TIMES)],
        "by": ANSWERS,
    },
    "Recommender": {"values": []},  # what they are
    "Recommender.fit": {"users": [Way(D), OF_USERS], **TRIPLETS},
    "Recommender.evaluate": {"users": [Way(D), OF_USERS], **TRIPLETS},
    "Recommender.fold_in": {"histories": [Way(D)]},
    "Recommender.recommend": {"users": [Way(D)], "items": [Way(np.arange(4))]},
    "TopicTree.transform": {"X": [Way(D)]},
    "TopicTree.topic_proportions": {"X": [Way(D)]},
    "consensus": {"X": [Way(D)], "X_weights": weighings(HALF), "init": []},  # no start of arrays
    "Consensus.transform": {"X": [Way(D)], "X_weights": weighings(HALF)},
    "Consensus.scores_of": {"Y": [Way(D)]},
    "Consensus.components_of": {"Y": [Way(D)]},
    "Consensus.to_cnmf": {"tpm": [Way(D)]},
    "choose_rank": {
        "X": [Way(D), Way(T)],
        "y": [],  # which needs an estimator
        "X_weights": weighings(HALF)
        + [way._replace(further={"X": T}) for way in tensor_weights(T * (T > 0.5))],
    },
    "weights.base": {"extra": []},
    "weights.observed": {"pattern": []},  # read by the functions that take them
    "weights.missing": {"pattern": []},
    "weights.outer": {"rows": [], "columns": []},
    "LowRankPlusSparse": {"sparse": [Way(D)], "left": [Way(S)], "right": [Way(A)]},
    "LowRankPlusSparse.times": {"V": [Way(A.T.copy())]},
    "LowRankPlusSparse.transposed_times": {"U": [Way(S)]},
    "TensorFactorization.predict": {"coords": [Way(np.array([[0, 1], [2, 3], [1, 2]]))]},
    "Completion.predict": {"rows": [Way(np.arange(3))], "columns": [Way(np.arange(3))]},
    "CsrFile.rows": {"rows": []},  # a slice
    **{f"file of {what}": {"X": [Way(D)]} for what in FILES},
    "metrics.clustering_score": {"S": [Way(S)], "truth": ANSWERS},
    "metrics.core_consistency": {"X": [Way(T)]},
    "metrics.factor_match_score": {"A": TENSOR_START, "B": TENSOR_START},
    "metrics.match_topics": {"S": [Way(S)], "truth": ANSWERS},
    "metrics.jaccard_similarity": {"S": [Way(S)], "truth": ANSWERS},
    "metrics.inter_label_sparsity": {"S": [Way(S)], "labels": ANSWERS},
    "metrics.hoyer_sparsity": {"x": [Way(S), Way(ROW)]},
    "metrics.topic_coherence": {"X": [Way(D)], "components": [Way(A)], "texts": []},  # of words
    "metrics.topic_diversity": {"components": [Way(A)]},
    "metrics.topic_exclusivity": {"components": [Way(A)]},
    "plotting.class_map": {"X": [Way(D)], "y": ANSWERS, "classes": []},
    "plotting.image_grid": {"components": [Way(A)], "weights": [Way(np.ones(3))], "columns": []},
    "plotting.label_map": {"S": [Way(S)], "y": ANSWERS},
    "plotting.representation_map": {"S": [Way(S)], "y": ANSWERS},
    "plotting.singular_values": {"values": [Way(ROW)]},
    "plotting.term_bars": {"columns": []},
    "*": {
        "X": [Way(D)],
        "y": ANSWERS,
        "X_weights": weighings(HALF),
        "sample_weight": [Way(ROW)],
        "label_weight": [Way(ROW)],
        "classes": [Way(np.arange(3.0))],
        "class_prior": [Way(np.arange(1.0, 4.0))],
        "alpha": [Way(S)],
        "times": [Way(np.arange(20200101.0, 20201301, 100)), Way(TIMES)],
        "init": START,
        "covariates": [Way(S[:, :1])],
        "A_support": [Way((A > 0.5) * 1.0)],
        "fixed_components": [Way(A[:1])],
        "penalties": PENALTIES,
        "side": [],  # of the committee, which these models have not: test_side.py
    },
    "SSNMFRegressor": {"penalties": GUIDED},
    "inverse_transform": {"X": [Way(S)]},
    "NonnegativeCP": {
        "X": [Way(T)],
        "X_weights": tensor_weights(T),
        "y": [Way(np.eye(6)[:, :2], lambda Z: {0: Z})],
        "init": TENSOR_START,
    },
    "NonnegativeCP.partial_fit": {"y": []},
    "NonnegativeCP.score": {"y": []},
    "NonnegativeCP.inverse_transform": {"X": [Way(F[0])]},
}
REQUIRED = {
    "objective": {"X": D, "S": S, "A": A},
    "represent": {"X": D, "A": A, "tol": 1e-3, "n_threads": 1},
    "factorize": {"X": D, **MORE},
    "factorize_tensor": {"X": T, **MORE},
    "consensus": {"X": D, **MORE, "n_starts": 2, "tol": 0.0, "distance_threshold": 2.0},
    "Consensus.transform": {"X": D},
    "Consensus.scores_of": {"Y": D},
    "Consensus.components_of": {"Y": D},
    "Consensus.to_cnmf": {"folder": FOLDER, "tpm": D},
    "verify": {"result": factorize(D, Y, **MORE), "X": D, "y": Y},
    "split_topic": {"topic": 0, "n": 2, "X": D},
    "topic_tree": {"X": D, "levels": [2, 3], "max_iter": 2, "random_state": 0, "n_threads": 1},
    "topics_over_time": {"model": NMF(**MORE, tol=0).fit(D), "X": D, "times": TIMES},
    "TopicTree.transform": {"X": D},
    "TopicTree.topic_proportions": {"X": D},
    "choose_rank": {
        "X": D,
        "ranks": [2],
        "n_splits": 1,
        "n_starts": 1,
        **{name: MORE[name] for name in ("max_iter", "random_state", "n_threads")},
    },
    "complete": {"M": D, "n_components": 1, "max_iter": 2, "random_state": 0, "n_threads": 1},
    "linalg.randomized_svd": {"X": D, "rank": 2, "random_state": 0},
    "LowRankPlusSparse": {"sparse": sp.csr_array(D), "left": S, "right": A},
    "Completion.predict": {"rows": np.arange(3), "columns": np.arange(3)},
    "metrics.clustering_score": {"S": S, "truth": y},
    "metrics.core_consistency": {"result": F, "X": T},
    "metrics.factor_match_score": {"A": F, "B": F},
    "metrics.match_topics": {"S": S, "truth": y},
    "metrics.jaccard_similarity": {"S": S, "truth": y},
    "metrics.inter_label_sparsity": {"S": S, "labels": y},
    "metrics.topic_coherence": {"X": D, "components": A, "n_terms": 2},
    "metrics.topic_diversity": {"components": A},
    "metrics.topic_exclusivity": {"components": A},
    "plotting.image_grid": {"components": A, "shape": (2, 4)},
    "plotting.label_map": {"S": S, "y": y},
    "plotting.representation_map": {"S": S, "y": y},
    "plotting.singular_values": {"values": ROW},
    "plotting.tensor_components": {"result": F},
}
