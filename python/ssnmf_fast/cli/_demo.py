"""``ssnmf-fast demo``: the main job on real data, beside LinearSVC."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._common.arrays import Array
from .._common.optional import MissingPackageError
from ._folder import Results, results_folder
from ._outputs import MODEL_NAME

PARTS, TOPICS, _REPORT = "parts.png", "topics.csv", "report.html"
FILES = {
    _REPORT: "everything on one page: open this first, in a browser",
    PARTS: "the learned parts, one column for each digit",
    TOPICS: "top terms of every topic",
    MODEL_NAME: "the model, for ssnmf_fast.load",
}


@dataclass(frozen=True)
class Outcome:
    """A fitted classifier, and how it and LinearSVC do on the samples with hidden labels."""

    model: Any
    seconds: float
    truth: Array
    predicted: Array
    rival: Array
    names: tuple[str, str]  # of the model and of its rival

    @property
    def accuracies(self) -> list[tuple[str, float]]:
        """Name and accuracy of the model and of its rival."""
        guesses = (self.predicted, self.rival)
        return [
            (name, float(np.mean(guess == self.truth)))
            for name, guess in zip(self.names, guesses, strict=True)
        ]


def run(options: Any) -> None:
    """Run the subcommand."""
    begin = time.perf_counter()
    if options.data == "digits":
        from ._demo_digits import demo
    else:
        from ._demo_text import demo
    with results_folder(options.out, FILES, []) as results:
        demo(results, options)
    seconds = time.perf_counter() - begin
    print(f"\nDone in {seconds:.1f} s. For your own data: ssnmf-fast fit --help")


def fit(X: Any, labels: Array, options: Any, **parameters: Any) -> tuple[Any, float]:
    """Return the fitted classifier and the seconds that it took; None or -1 is no label."""
    from .. import SSNMFClassifier
    from .._solver.progress import progress_bar

    begin = time.perf_counter()
    with progress_bar(parameters["max_iter"]) as bar:
        model = SSNMFClassifier(
            tol=0,
            random_state=options.seed,
            n_threads=options.threads,
            callback=bar,
            **parameters,
        ).fit(X, labels)
    model.set_params(callback=None)
    return model, time.perf_counter() - begin


def linear_svc(X: Any, labels: Array, hidden: Array) -> Array:
    """Train LinearSVC on the samples that are not hidden and predict the others."""
    from sklearn.svm import LinearSVC

    svc = LinearSVC(random_state=0, max_iter=5000).fit(X[~hidden], labels[~hidden])
    return np.asarray(svc.predict(X[hidden]))


def print_outcome(outcome: Outcome, parts: str, samples: str) -> None:
    """Print time and accuracies."""
    model = outcome.model
    size = f"{len(model.components_)} {parts}, {model.n_iter_} iterations"
    print(f"  fit     {size} in {outcome.seconds:.2f} s")
    print(f"\nAccuracy on the {len(outcome.truth)} {samples} without a label")
    for name, value in outcome.accuracies:
        print(f"  {value:6.1%}  {name}")


def finish(out: Results, outcome: Outcome, settings: Any, **parts: Any) -> None:
    """Save the model, write the report and print where everything is.

    The report shows the `settings`; `parts` are further fields of it.
    """
    from .. import save
    from ..report import Report, confusion, write_report

    model = outcome.model
    save(model, out.path(MODEL_NAME))
    report = Report(
        facts=_facts(outcome),
        settings=[*settings, *_parameters(model)],
        objective=model.objective_,
        confusion=confusion(outcome.truth, outcome.predicted, model.classes_),
        accuracies=outcome.accuracies,
        **parts,
    )
    try:
        write_report(out.path(_REPORT), report)
    except MissingPackageError:
        out.leave_out(_REPORT)
    out.finish()
    out.show()


def _facts(outcome: Outcome) -> list[tuple[str, str]]:
    model = outcome.model
    return [
        ("samples", str(len(model.representation_))),
        ("without a label", str(len(outcome.truth))),
        ("components", str(len(model.components_))),
        ("iterations", str(model.n_iter_)),
        ("fit", f"{outcome.seconds:.2f} s"),
        ("accuracy", f"{outcome.accuracies[0][1]:.1%}"),
    ]


def _parameters(model: Any) -> list[tuple[str, str]]:
    names = ("reconstruction", "supervision", "supervision_weight", "readout", "random_state")
    return [(name.replace("_", " "), str(getattr(model, name))) for name in names]
