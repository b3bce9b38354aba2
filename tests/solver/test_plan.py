"""What updates each factor: the plan of a fit, which its receipt keeps, by data, loss and rule."""

import numpy as np
import pytest
import scipy.sparse as sp

import ssnmf_fast as sf
from ssnmf_fast import penalties, weights
from ssnmf_fast._solver.plan import plan

rng = np.random.default_rng(0)
X = rng.random((12, 9))
SPARSE = sp.csr_array(X * (X > 0.5))
WIDE = rng.random((40, 60))
UNEVEN = np.where(np.arange(60) == 0, np.ones((40, 1)), 1e-3)
Y = np.eye(3)[np.arange(12) % 3]
KL = {"loss": "kullback-leibler"}
SEEN = {"X_weights": weights.observed(SPARSE)}
L1 = {"penalties": penalties.L1(0.1)}
L2 = {"penalties": penalties.L2(0.1)}

DESCENT, ENTRIES = "S, A: coordinate descent", "S, A: coordinate descent by entries"
MM, MU, FAR = (f"S, A: multiplicative steps ({how})" for how in ("mm", "mu", "mm, over-relaxed"))
FILLED = "S, A: coordinate descent, filling in missing entries; momentum"
LATER = f"{FAR}; after the first check {ENTRIES}; momentum"

PLANS = [
    # data, arguments, and the plans of "auto", "hals", "mm" and "mu"
    (X, {}, f"{DESCENT}; momentum", DESCENT, MM, MU),
    (X, {"X_weights": weights.outer(X[:, 0])}, f"{DESCENT}; momentum", DESCENT, MM, MU),
    (X, {"X_weights": X}, FILLED, DESCENT, MM, MU),
    (WIDE, {"X_weights": UNEVEN}, FAR, DESCENT, MM, MU),
    (np.where(X < 0.5, np.nan, X), {}, FILLED, DESCENT, MM, MU),
    (X, L2, f"{DESCENT}; momentum", DESCENT, MM, MU),
    (SPARSE, SEEN, f"{DESCENT}; momentum", DESCENT, MM, MU),
    (SPARSE, {"X_weights": weights.base(0.1, SPARSE)}, f"{DESCENT}; momentum", DESCENT, MM, MU),
    (SPARSE, {"X_weights": weights.missing(SPARSE > 0.9)}, FILLED, DESCENT, MM, MU),
    (X, KL, FAR, MM, MM, MU),
    (SPARSE, KL, FAR, ENTRIES, MM, MU),
    (SPARSE, KL | {"tol": 1e-6}, LATER, ENTRIES, MM, MU),
    (SPARSE, KL | {"tol": 1e-6} | L1, LATER, ENTRIES, MM, MU),
    (SPARSE, KL | {"tol": 1e-6} | L2, FAR, MM, MM, MU),
    (SPARSE, {"loss": 0.5}, FAR, MM, MM, MU),
    (X, {"y": Y}, *(one.replace("A:", "A, B:") for one in (DESCENT, DESCENT, MM, MU))),
    (SPARSE, SEEN | {"y": Y}, *(one.replace("A:", "A, B:") for one in (FAR, DESCENT, MM, MU))),
    (SPARSE, KL | {"y": Y, "supervision_loss": "kullback-leibler", "tol": 1e-6}, *(
        one.replace("A:", "A, B:") for one in (FAR, MM, MM, MU))),
    (X, KL | {"y": Y}, FAR.replace("A:", "A, B:"), f"B: coordinate descent; {MM}",
        *(one.replace("A:", "A, B:") for one in (MM, MU))),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(PLANS)))
def test_plans(case):
    data, arguments, *plans = PLANS[case]
    for solver, expected in zip(("auto", "hals", "mm", "mu"), plans, strict=True):
        given = {"n_components": 9, "solver": solver, "max_iter": 1, "random_state": 0}
        found = sf.factorize(data, **given | arguments).receipt.settings["plan"]
        assert found == expected


def test_long_rows_have_conjugate_gradients_unless_there_are_labels():
    steps = "; conjugate gradients: 2 for S, 1 for A"
    for y in (None, np.eye(2)[np.arange(40) % 2]):
        fit = sf.factorize(WIDE, y, n_components=2, max_iter=0, random_state=0)
        assert (steps in fit.receipt.settings["plan"]) == (y is None)


def test_a_file_and_a_tensor(tmp_path):
    sp.save_npz(tmp_path / "X.npz", sp.csr_matrix(SPARSE), compressed=False)
    file = sf.io.open_csr(tmp_path / "X.npz")
    given = {"n_components": 9, "init": "random", "random_state": 0, "max_iter": 1}
    for loss, expected in (("frobenius", DESCENT), ("kullback-leibler", MM)):
        fit = sf.factorize(file, solver="hals", loss=loss, **given)
        assert fit.receipt.settings["plan"] == expected
    tensor = sf.factorize_tensor(rng.random((4, 3, 2)), n_components=9, random_state=0, max_iter=1)
    assert tensor.receipt.settings["plan"] == "F0, F1, F2: coordinate descent; momentum"


def test_rows_elsewhere_need_one_gram_matrix():
    """On a cluster, neither curvatures of single rows nor steps by entries can be added up."""
    seen = sf.extend.relation("S", "A", SPARSE, weights=weights.observed(SPARSE))
    counts = sf.extend.relation("S", "A", SPARSE, loss="kullback-leibler")
    plain = sf.extend.relation("S", "A", SPARSE)
    for relation, whole, expected in (
        (seen, True, "descent"),
        (seen, False, "multiply"),
        (counts, True, "entries"),
        (counts, False, "multiply"),
        (plain, False, "descent"),
    ):
        found = plan([relation], {}, "hals", whole=whole)
        assert found.by_factor == dict.fromkeys("SA", expected)
