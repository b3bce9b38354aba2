"""What the scripts of topics over time share: LDA by slices of time, and small pictures."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from common import Array
from sklearn.decomposition import LatentDirichletAllocation

import ssnmf_fast as sf

GENSIM = "gensim==4.4.0"
PASSES = 20  # of gensim, as in the program of Kassab's thesis


def as_dynamic(components: Array, weights: Array, place: Array, starts: Array) -> sf.DynamicTopics:
    """Return topics of others in the form of ours; the prevalence is the mean of a slice."""
    sizes = np.bincount(place, minlength=len(starts))
    sums = np.zeros((len(starts), weights.shape[1]))
    np.add.at(sums, place, weights)
    model = sf.DynamicTopics(weights.shape[1])
    model.components_ = components / components.sum(axis=1, keepdims=True)
    model.prevalence_ = sums / np.maximum(sizes, 1)[:, None]
    model.slices_, model.slice_sizes_ = starts, sizes
    return model


def sklearn_lda(counts: Any, rank: int, seed: int, **parameters: Any) -> tuple[Array, Array]:
    """Return topics, and shares of the topics in the documents, of scikit-learn's LDA."""
    model = LatentDirichletAllocation(rank, random_state=seed, **parameters)
    shares = model.fit_transform(counts)
    return model.components_, shares


def gensim_lda(counts: Any, rank: int, seed: int) -> tuple[Array, Array]:
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaModel

    corpus = Sparse2Corpus(counts.T.tocsc())
    words = {j: str(j) for j in range(counts.shape[1])}
    given: dict[str, Any] = {"num_topics": rank, "id2word": words, "passes": PASSES}
    given |= {"minimum_probability": 0, "random_state": seed}
    model = LdaModel(corpus, **given)
    likely, _ = model.inference(corpus)
    return model.get_topics(), likely / likely.sum(axis=1, keepdims=True)


def save(figure: Any, path: Path) -> None:
    from matplotlib import pyplot
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    made = io.BytesIO()
    figure.savefig(made, dpi=100, bbox_inches="tight")
    pyplot.close(figure)
    picture = Image.open(made).convert("RGB")
    # This method keeps colors of few points, such as those of the bar.
    few = picture.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(path, optimize=True)
