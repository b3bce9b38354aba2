"""The demo on scikit-learn's digits: half of the labels and a tenth of the pixels hidden."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._common.arrays import Array
from ._demo import (
    PARTS,
    Outcome,
    finish,
    fit,
    linear_svc,
    print_outcome,
)
from ._folder import Results

_HIDDEN_PIXELS = 0.1
_HIDDEN_LABELS = 0.5
# Parts, weight and iterations were chosen by their accuracy on these data, over several seeds.
_PARTS_PER_DIGIT = 5
_IMAGES_PER_START = 3  # a part starts as the mean of a few labelled images of its digit
_START_FLOOR = 0.01  # so that no entry of a start is zero, and stays so
_SUPERVISION_WEIGHT = 50.0
_ITERATIONS = 200
_UNLABELLED = -1
_NAMES = (
    "SSNMF: all images, the labels where known; skips the hidden pixels",
    "LinearSVC: labelled images only; hidden pixels filled by column means",
)


def demo(out: Results, options: Any) -> None:
    """Fit, compare, draw, and write everything."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    truth, side = bunch.target, bunch.images.shape[1]
    rng = np.random.default_rng(options.seed)
    ink = bunch.data / bunch.data.max()
    ink[rng.random(ink.shape) < _HIDDEN_PIXELS] = np.nan
    hidden = np.zeros(len(truth), dtype=bool)
    hidden[rng.permutation(len(truth))[: round(_HIDDEN_LABELS * len(truth))]] = True
    share = f"{np.isnan(ink).mean():.0%} of the pixels, {hidden.sum()} of the labels"
    print("Semi-supervised NMF of handwritten digits\n")
    print(f"  data    scikit-learn's digits: {len(truth)} images of {side} x {side} pixels")
    print(f"  hidden  {share}")

    outcome = _fit(ink, truth, hidden, rng, options)
    print_outcome(outcome, "parts", "images")
    _write(out, outcome, side, [("hidden", share)])


def _fit(
    ink: Array, truth: Array, hidden: Array, rng: np.random.Generator, options: Any
) -> Outcome:
    labels = np.where(hidden, _UNLABELLED, truth)
    # Ink and blank (1 - ink): a part then also says where its digit has no ink.
    X = np.hstack([ink, 1 - ink])
    start = start_from_labelled(X, labels, rng)
    model, seconds = fit(
        X,
        labels,
        options,
        n_components=len(start[1]),
        reconstruction="kullback-leibler",
        supervision="kullback-leibler",
        supervision_weight=_SUPERVISION_WEIGHT,
        init=start,
        max_iter=_ITERATIONS,
    )
    filled = np.where(np.isnan(ink), np.nanmean(ink, axis=0), ink)
    rival = linear_svc(filled, truth, hidden)
    return Outcome(model, seconds, truth[hidden], model.predict(X[hidden]), rival, _NAMES)


def start_from_labelled(
    X: Array, labels: Array, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Return S, A and B to start from, where every part belongs to one digit.

    Zeros of a given start stay zero, so each row of B keeps its one class.
    """
    classes = np.unique(labels[labels != _UNLABELLED])
    fill = np.nanmean(X, axis=0)
    parts = []
    for digit in np.repeat(classes, _PARTS_PER_DIGIT):
        chosen = rng.choice(np.flatnonzero(labels == digit), _IMAGES_PER_START)
        images = np.where(np.isnan(X[chosen]), fill, X[chosen])
        parts.append(images.mean(axis=0) + _START_FLOOR)
    A = np.array(parts)
    S = rng.random((len(X), len(A))) * 2 / len(A)
    return S, A, np.repeat(np.eye(len(classes)), _PARTS_PER_DIGIT, axis=0)


def _write(out: Results, outcome: Outcome, side: int, settings: list[tuple[str, str]]) -> None:
    from ..report import Picture, parts_picture

    model = outcome.model
    images = model.components_[:, : side * side].reshape(-1, side, side)
    # The grid is filled by rows: one column for each digit.
    order = np.arange(len(images)).reshape(-1, _PARTS_PER_DIGIT).T.ravel()
    digits = model.classes_[model.label_components_.argmax(axis=1)]
    in_first_row = len(model.classes_)
    names = [f"digit {digits[k]}" if n < in_first_row else "" for n, k in enumerate(order)]
    png = out.written(PARTS, lambda: parts_picture(images[order], names, in_first_row))
    caption = "Each belongs to one digit; an image is approximated by a weighted sum of them."
    finish(
        out,
        outcome,
        settings,
        title="Handwritten digits",
        lead="Half of the labels and a tenth of the pixels of scikit-learn's digits are hidden; "
        "the model learns parts from all images and labels from those that have one.",
        pictures=[Picture("Learned parts", caption, png)] if png else [],
    )
