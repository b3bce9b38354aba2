"""Do the compiled kernels agree with the NumPy reference on 20 Newsgroups?

All four models, rank 13, 10 updates from one start, every weight form for X, with and without a
mask of the labels; prints the largest relative difference of the factors (target: 1e-8).  Each
engine runs in a process of its own, since the level is chosen at import.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

LOSSES = ("frobenius", "kullback-leibler")
FORMS = ("none", "outer", "observed", "missing", "dense")
WEIGHTS = {  # the papers' lambda for (loss, supervision_loss)
    ("frobenius", "frobenius"): 100.0,
    ("frobenius", "kullback-leibler"): 10.0,
    ("kullback-leibler", "frobenius"): 100.0,
    ("kullback-leibler", "kullback-leibler"): 1000.0,
}


def weight_forms(X: sp.csr_array) -> dict[str, object]:
    import ssnmf_fast as sf

    rng = np.random.default_rng(1)
    n, m = X.shape
    pattern = sp.random_array((n, m), density=0.02, format="csr", rng=rng)
    return {
        "none": None,
        "outer": sf.weights.outer(rng.random(n), rng.random(m)),
        "observed": sf.weights.observed(sp.csr_array(pattern + (X != 0))),
        "missing": sf.weights.missing(pattern),
        "dense": rng.random((n, m)),
    }


def run(out: str) -> None:
    from common import newsgroups

    import ssnmf_fast as sf

    X, Y = newsgroups()
    labeled = (np.arange(X.shape[0]) % 5 < 3).astype(float)
    results = {}
    for form, W in weight_forms(X).items():
        for losses, masked in itertools.product(WEIGHTS, (False, True)):
            fit = sf.factorize(
                X,
                Y,
                n_components=13,
                loss=losses[0],
                supervision_loss=losses[1],
                supervision_weight=WEIGHTS[losses],
                X_weights=W,
                Y_weights=sf.weights.outer(labeled) if masked else None,
                random_state=0,
                max_iter=10,
                tol=0,
            )
            key = f"{form}, {losses[0]}, {losses[1]}, labels {'masked' if masked else 'all'}"
            results[key] = np.concatenate([fit.S.ravel(), fit.A.ravel(), fit.B.ravel()])
            print(f"  {key}", file=sys.stderr, flush=True)
    np.savez(out, **results)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        loaded = {}
        for level in ("", "reference"):
            path = str(Path(folder) / f"{level or 'native'}.npz")
            environment = {**os.environ, "SSNMF_FAST_ISA": level}
            subprocess.run([sys.executable, __file__, path], env=environment, check=True)
            loaded[level] = dict(np.load(path))
        worst = 0.0
        for key, native in loaded[""].items():
            reference = loaded["reference"][key]
            scale = np.maximum(np.abs(reference), 1e-8 * np.abs(reference).max())
            difference = float(np.max(np.abs(native - reference) / scale))
            worst = max(worst, difference)
            print(f"{difference:9.1e}  {key}")
        print(f"{worst:9.1e}  largest")


if __name__ == "__main__":
    run(sys.argv[1]) if len(sys.argv) > 1 else main()
