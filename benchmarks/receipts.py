"""What does a receipt cost a fit, and how long does it take to verify one?

One table: the time of a fit, what of it the residuals and the rest of the receipt take (mostly the
fingerprint of the data), and the time of `verify`.  Fits have the default stopping rule.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from common import best, zipf_text
from records import Options, markdown

import ssnmf_fast as sf
from ssnmf_fast._models import fits
from ssnmf_fast._solver.loop import Optimality

LOSSES = ("frobenius", "kullback-leibler")


def matrices(quick: bool) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    found = {"20 x 8, dense": rng.random((20, 8)), "2,000 x 1,500, text": zipf_text(2000, 1500, 40)}
    if not quick:
        found["20,000 x 5,000, text"] = zipf_text(20_000, 5000, 60)
        found["5,000 x 500, dense"] = rng.random((5000, 500))
    return found


@contextmanager
def timed(owner: Any, name: str, spent: list[float]) -> Iterator[None]:
    function: Callable[..., Any] = getattr(owner, name)

    def measured(*args: Any, **kwargs: Any) -> Any:
        begin = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            spent.append(time.perf_counter() - begin)

    setattr(owner, name, measured)
    try:
        yield
    finally:
        setattr(owner, name, function)


def row(name: str, X: Any, loss: str) -> list[str]:
    rank = min(10, *X.shape)
    settings = {"n_components": rank, "loss": loss, "random_state": 0, "n_threads": 1}
    residuals: list[float] = []
    of_data: list[float] = []
    receipts: list[float] = []
    with (
        timed(Optimality, "residuals", residuals),
        timed(fits, "data_fingerprint", of_data),
        timed(fits, "with_receipt", receipts),
    ):
        whole = best(lambda: sf.factorize(X, **settings))
    fit = sf.factorize(X, **settings)
    checked = best(lambda: sf.verify(fit, X, n_threads=1))
    spent = min(residuals), min(of_data) + min(receipts)
    shares = [f"{100 * part / whole:.1f}" for part in spent]
    figures = [f"{1e3 * whole:.2f}", *shares, f"{1e3 * checked:.2f}"]
    return [name, loss, str(fit.n_iter), *figures, f"{fit.receipt.residual:.0e}"]


OPTIONS: dict[str, Any] = {}
QUICK: dict[str, Any] = {}


def main(options: Options) -> Any:
    table = [row(name, X, loss) for name, X in matrices(options.quick).items() for loss in LOSSES]
    header = ["data", "loss", "iterations", "fit, ms", "residuals, %", "receipt, %"]
    header += ["verify, ms", "residual"]
    print(f"one thread\n\n{markdown(header, table)}")
