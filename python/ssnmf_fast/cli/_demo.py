"""``ssnmf-fast demo``: `fit` on scikit-learn's digits, of which much is hidden."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._fit import Data, fit_data
from ._folder import results_folder
from ._models import MODELS
from ._outputs import FILES
from ._sample_labels import read_labels

_HIDDEN_LABELS = 0.5
_HIDDEN_PIXELS = 0.1
_PARTS_PER_DIGIT = 5


def run(options: Any) -> None:
    """Run the subcommand."""
    from sklearn.datasets import load_digits

    from ._parser import build_parser

    bunch = load_digits()
    rank, shape = _PARTS_PER_DIGIT * len(bunch.target_names), bunch.images.shape[1:]
    given = ["fit", "digits", "--labels", "digits", "--out", options.out]
    given += ["--rank", str(rank), "--test-size", str(_HIDDEN_LABELS)]
    given += ["--image-shape", "{}x{}".format(*shape), "--seed", str(options.seed)]
    settings = build_parser().parse_args(given)
    settings.threads = options.threads
    model = MODELS["ssnmf"]
    model.settle(settings)
    X = bunch.data / bunch.data.max()
    X[np.random.default_rng(options.seed).random(X.shape) < _HIDDEN_PIXELS] = np.nan
    data = Data(X, read_labels(bunch.target.tolist(), None), None)
    print("Semi-supervised NMF of handwritten digits\n")
    print(f"  data    scikit-learn's digits: {len(X)} images of {shape[0]} x {shape[1]} pixels")
    print(f"  hidden  {_HIDDEN_PIXELS:.0%} of the pixels, {_HIDDEN_LABELS:.0%} of the labels\n")
    with results_folder(settings.out, FILES, []) as results:
        fit_data(model, data, results, settings)
    print("\nFor your own data: ssnmf-fast fit --help")
