"""Measures of topics, representations and predictions, from the papers of the models.

They need NumPy and SciPy only, take dense and sparse matrices, and never modify them.
"""

from ._accuracy import macro_accuracy, micro_accuracy
from ._clustering import ClusteringScore, clustering_score
from ._coherence import TopicCoherence, topic_coherence
from ._matching import TopicMatching, jaccard_similarity, match_topics
from ._sparsity import InterLabelSparsity, hoyer_sparsity, inter_label_sparsity

__all__ = [
    "ClusteringScore",
    "InterLabelSparsity",
    "TopicCoherence",
    "TopicMatching",
    "clustering_score",
    "hoyer_sparsity",
    "inter_label_sparsity",
    "jaccard_similarity",
    "macro_accuracy",
    "match_topics",
    "micro_accuracy",
    "topic_coherence",
]
