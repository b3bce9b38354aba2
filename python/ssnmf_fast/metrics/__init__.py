"""Measures of topics, representations and tensor models, from the papers of the models.

They accept dense and sparse matrices and never modify them.  Measures of recommendations are in
:mod:`.ranking`.
"""

from . import ranking as ranking
from ._clustering import (
    ClusteringScore,
    TopicMatching,
    clustering_score,
    jaccard_similarity,
    labeled_scorer,
    match_topics,
)
from ._sparsity import InterLabelSparsity, hoyer_sparsity, inter_label_sparsity
from ._tensors import core_consistency, factor_match_score
from ._topics import TopicScore, topic_coherence, topic_diversity, topic_exclusivity

__all__ = [
    "ClusteringScore",
    "InterLabelSparsity",
    "TopicMatching",
    "TopicScore",
    "clustering_score",
    "core_consistency",
    "factor_match_score",
    "hoyer_sparsity",
    "inter_label_sparsity",
    "jaccard_similarity",
    "labeled_scorer",
    "match_topics",
    "topic_coherence",
    "topic_diversity",
    "topic_exclusivity",
]
