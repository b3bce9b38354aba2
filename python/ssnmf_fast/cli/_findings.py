"""What is made of a fit: topics, predictions for the held-out samples, measures."""

from __future__ import annotations

from ..report import Confusion, Example, Measure, confusion
from ._examples import examples
from ._fitted import Fitted
from ._judged import MODEL, judged
from ._learning_curve import LearningCurve
from ._measures import coherence_measures
from ._models import Model
from ._quality import not_known, quality_measures, shortfalls
from ._shares import data_topics


class Findings:
    """What is made of a fit: topics, predictions for the held-out samples, measures."""

    def __init__(
        self, model: Model, fitted: Fitted, n_terms: int, curve: LearningCurve | None = None
    ) -> None:
        self.described = data_topics(fitted, n_terms)
        self.topics = self.described.topics
        self.examples: list[list[Example]] = examples(fitted)
        self.judged = judged(fitted)
        self.curve = curve
        self.measures: list[Measure] = []
        self.warnings: list[str] = []
        self.remarks: list[str] = []
        if self.judged is not None:
            self.measures += quality_measures(self.judged)
            self.warnings += shortfalls(self.judged)
            if not self.judged.trained:
                self.remarks.append("no simple classifier stands beside it: the data are too large")
        elif model.targets is not None:
            self.remarks.append(not_known(fitted))
        for measure in (*model.measures, coherence_measures):
            self.measures += measure(fitted)

    def confusion(self) -> Confusion | None:
        """Return the table of true and predicted classes, where there is one label a sample."""
        if self.judged is None or self.judged.several:
            return None
        return confusion(self.judged.truth, self.judged.guesses[MODEL], self.judged.classes)


def facts(fitted: Fitted) -> list[tuple[str, str]]:
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
    return [*pairs, ("iterations", str(model.n_iter_)), ("fit", f"{fitted.seconds:.2f} s")]
