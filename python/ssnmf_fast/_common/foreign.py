"""Arguments of scikit-learn's NMF and of ssnmf, classes of papers, and their names here."""

from __future__ import annotations

from collections.abc import Iterable

_PENALTIES = "penalties here, such as penalties={'S': ssnmf_fast.penalties.L1(0.1)}"
_ANSWERS = {
    "beta_loss": "is called loss here",
    "alpha_W": f"and l1_ratio are {_PENALTIES}",
    "alpha_H": f"and l1_ratio are {_PENALTIES}",
    "l1_ratio": f"and alpha_W are {_PENALTIES}",
    "shuffle": "is not needed: no solver here takes components in a random order",
    "W": "is part of init here: init=(S, A), with S (samples) in place of W; the W of ssnmf, which "
    "marks the observed entries of X, is X_weights",
    "H": "is part of init here: init=(S, A), with A (components) in place of H",
    "update_H": "=False is ssnmf_fast.represent or transform here",
    "sample_weight": "is X_weights here: X_weights=ssnmf_fast.weights.outer(rows=sample_weight)",
    "mask": "is X_weights here: ssnmf_fast.weights.observed(mask) if it marks observed entries, "
    "weights.missing(mask) if it marks missing entries",
    "batch_size": "is not needed: partial_fit takes batches of any size",
    "Y": "is called y here, with a row for each sample: y=Y.T",
    "L": "is y_weights here, with a row for each sample; the L of TS-NMF, the topics that a "
    "document may have, is y of TopicSupervisedNMF or S_support of factorize",
    "lam": "is called supervision_weight here",
    "k": "is called n_components here",
    "numiters": "is called max_iter here",
    "modelNum": "is loss (of X) and supervision_loss (of y) here, such as loss='kullback-leibler'",
}
CLASSES = {  # what they are called here
    "ConstrainedNMF": "papers.ConstrainedNMF",
    "MarginNMF": "papers.MarginNMF",
    "SSNMF": "factorize or ssnmf_fast.SSNMFClassifier",
    "SupervisedBayesianNMF": "papers.SupervisedBayesianNMF",
    "TSNMF": "TopicSupervisedNMF",
}


def refuse_foreign(name: str, arguments: Iterable[str], weights: bool = True) -> None:
    """Raise TypeError for an argument of another package that has another name here."""
    for argument in arguments:
        if argument in _ANSWERS and (weights or argument not in ("mask", "sample_weight")):
            answer = f"{argument} {_ANSWERS[argument]}"
            raise TypeError(f"{name} has no argument {argument!r}: {answer}.")
