"""Pictures of factorizations and of completions.

Every function returns a :class:`matplotlib.figure.Figure`, which ``savefig`` writes to a file and a
notebook shows; no display is needed.  matplotlib (the extra `plot`) is imported only when a picture
is drawn.
"""

from __future__ import annotations

from ._components import image_grid, tensor_components, term_bars, topic_tree
from ._curves import objective_curve, singular_values, topics_over_time
from ._maps import class_map, label_map, representation_map
from ._ranks import clustergram, consensus_matrix, rank_curve, stability_by_rank

__all__ = [
    "class_map",
    "clustergram",
    "consensus_matrix",
    "image_grid",
    "label_map",
    "objective_curve",
    "rank_curve",
    "representation_map",
    "singular_values",
    "stability_by_rank",
    "tensor_components",
    "term_bars",
    "topic_tree",
    "topics_over_time",
]
