"""The report of a fit: topics, typical samples, measures, and how good predictions are."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .._common.arrays import Array
from .._common.text import sort_naturally
from .._topics import Topics, class_means
from ..report import Example, Measure, Picture, Report, png
from ._fitted import Fitted
from ._folder import Results
from ._models import Model
from ._quality import features, judge, not_known, term_measures
from ._sample_labels import Mask, SampleLabels

PICTURE = "components.png"


def make_report(model: Model, fitted: Fitted, n_terms: int) -> Report:
    """Return all that is reported of a fit, but its pictures."""
    judged = judge(fitted)
    measures: list[Measure] = []
    remarks: list[str] = []
    if judged is not None:
        measures += judged.measures()
        if not judged.trained:
            remarks.append("no simple classifier stands beside it: the data are too large")
    elif model.targets is not None and fitted.labels is not None:
        remarks.append(not_known(fitted))
    for measure in (*model.measures, term_measures):
        measures += measure(fitted)
    estimator, shape = fitted.model, fitted.image_shape
    topics, note, counts = describe_topics(fitted, n_terms)
    name = type(estimator).__name__
    return Report(
        title="Topics and labels" if fitted.labels is not None else "Topics",
        lead=f"{name}, {len(topics)} topics, fitted to {fitted.settings[0][1]}.",
        facts=_facts(fitted),
        settings=fitted.settings,
        objective=estimator.objective_,
        residual=fitted.residual,
        topics=topics,
        shares_note=note,
        class_counts=counts,
        examples=find_examples(fitted),
        parts=None if shape is None else estimator.components_.reshape(-1, *shape),
        judged=judged,
        measures=measures,
        warnings=[] if judged is None else judged.shortfalls(),
        remarks=remarks,
        tree=_tree(fitted, topics),
    )


def _tree(fitted: Fitted, topics: Topics) -> str:
    """Return the tree of topics whose names have parts, such as "grain/wheat", as text."""
    from ..estimators import TopicTree

    if not any("/" in topic.name for topic in topics):
        return ""
    try:
        return str(TopicTree(fitted.model, fitted.terms))
    except ValueError:  # a topic beside parts of it
        return ""


def draw_components(out: Results, fitted: Fitted, topics: Topics) -> list[Picture]:
    """Draw topics that are images; return the picture, if there is one."""
    if fitted.image_shape is None:
        return []
    from ..plotting import image_grid

    classes = [", ".join(str(name) for name, _ in topic.leading) for topic in topics]
    names = [f"{k} ({one})" if one else str(k) for k, one in enumerate(classes)]
    components, shape = fitted.model.components_, fitted.image_shape
    drawn = out.written(PICTURE, lambda: png(image_grid(components, shape, names=names)))
    brackets = " and, in brackets, the classes that it stands for" if any(classes) else ""
    caption = f"Each with its number{brackets}. An image is approximated by a weighted sum of them."
    return [Picture("Components", caption, drawn)]


def _facts(fitted: Fitted) -> list[tuple[str, str]]:
    """Return the figures at the head of the report."""
    model = fitted.model
    pairs = [("samples", str(fitted.X.shape[0])), ("topics", str(len(model.components_)))]
    if fitted.labels is not None:
        kind = "labels" if fitted.labels.several else "classes"
        pairs += [
            (kind, str(len(fitted.labels.names))),
            ("labeled", str(int(fitted.training.sum()))),
        ]
        if fitted.held_out.any():
            pairs.append(("held out", str(int(fitted.held_out.sum()))))
    if fitted.dated:
        pairs.append(("slices of time", str(len(model.slices_))))
    pairs.append(("iterations", str(model.n_iter_)))
    if fitted.residual is not None:
        pairs.append(("residual", f"{fitted.residual:.1e}"))
    pairs.append(("dtype", str(model.components_.dtype)))
    return [*pairs, ("fit", f"{fitted.seconds:.2f} s")]


_ENOUGH = 10  # held-out samples of every class, for shares that are read from them alone


def describe_topics(fitted: Fitted, n_terms: int) -> tuple[Topics, str, list[int]]:
    """Return topics with sizes and, where there are labels, shares of the classes.

    A note explains the shares, and numbers tell from how many samples of each class they come.  A
    matrix over the classes, where the model has one, tells what the fit made of labels that it saw,
    and soon is 0 or 1 everywhere.  What the samples show that are represented without their labels
    is what the topics are worth.
    """
    topics: Topics = fitted.model.topics(fitted.terms, n_terms)
    topics = topics.with_sizes(fitted.amounts.sum(axis=0))
    labels = fitted.labels
    if labels is None:
        return topics, "", []
    used, note = _samples(fitted, labels)
    names = sort_naturally(labels.names)
    members = labels.indicators(names)[used]
    topics = topics.with_shares(names, class_means(fitted.shares[used], members))
    return topics, note, members.sum(axis=0).astype(int).tolist()


def _samples(fitted: Fitted, labels: SampleLabels) -> tuple[Mask, str]:
    """Return from which samples shares are read, and a note on the shares."""
    used, held_out = labels.known, fitted.held_out
    if not fitted.guided:
        what = f"the {used.sum()} samples that have labels"
    elif (labels.indicators()[held_out].sum(axis=0) >= _ENOUGH).all():
        used, what = held_out, f"the {held_out.sum()} samples whose labels were hidden from the fit"
    else:
        more = ", hidden ones and others" if held_out.any() else ""
        what = f"all {used.sum()} samples with labels{more}"
    note = (
        "Share of every class in a topic, in percent: how much of a sample of the class the topic "
        "explains on average, divided by the sum over the classes. A class of few samples counts "
        f"like one of many. Read from {what}, which are represented without their labels; in "
        "brackets their numbers."
    )
    if fitted.guided and (used & fitted.training).any():
        note += " The fit knew labels of these samples: on new ones the shares are less clear."
    if labels.several:
        note += " A sample of several labels counts for each in equal parts."
    return used, note


_LENGTH = 200  # characters of a text
_LEAST = 0.01  # share of a topic in a sample that is worth showing
_MAIN = 0.5  # of the largest share of a topic: what samples of that topic have


def find_examples(fitted: Fitted, count: int = 3) -> list[list[Example]]:
    """Return for every topic the samples that are typical of it.

    These are, of the samples of which it explains much, those most like the topic by the cosine: a
    text of two words may have a share of 100 %, and shows little.  Of texts that begin alike only
    one is shown.
    """
    from sklearn.metrics.pairwise import cosine_similarity

    shares, alike = fitted.shares, cosine_similarity(features(fitted), fitted.model.components_)
    labels = fitted.labels.text("; ") if fitted.labels is not None else [""] * len(shares)
    ids = None if fitted.ids is None else fitted.ids[1]
    found = []
    for share, cosine in zip(shares.T, alike.T, strict=True):
        chosen: dict[str, Example] = {}
        main = np.flatnonzero(share >= max(_LEAST, _MAIN * share.max()))
        for sample in main[np.lexsort((-share[main], -cosine[main]))]:
            if len(chosen) == count:
                break
            text = "" if fitted.texts is None else excerpt(fitted.texts[sample])
            example = Example(
                int(sample),
                float(share[sample]),
                labels[sample],
                text,
                _image(fitted, sample),
                "" if ids is None else str(ids[sample]),
            )
            chosen.setdefault(text or str(sample), example)
        found.append(list(chosen.values()))
    return found


def _image(fitted: Fitted, sample: int) -> Array | None:
    if fitted.image_shape is None:
        return None
    row = fitted.X[[sample]]
    return np.asarray(row.toarray() if sp.issparse(row) else row).reshape(fitted.image_shape)


def excerpt(text: str, length: int = _LENGTH) -> str:
    """Return the beginning of a text on one line, cut between words where there are any."""
    line = " ".join(text.split())
    if len(line) <= length:
        return line
    cut = line[: length - 1]
    words = cut.rpartition(" ")[0]
    return (words if len(words) > length / 2 else cut).rstrip() + "…"
