"""What is known of factors, for data on a cluster: the same as in memory."""

import numpy as np
import pytest
from helpers.padding import watched_padding
from helpers.refused import refused

import ssnmf_fast as sf
from ssnmf_fast import penalties

da = pytest.importorskip("dask.array")
pytest.importorskip("distributed")
sfd = pytest.importorskip("ssnmf_fast.dask")

N, M, R = 60, 20, 5
RNG = np.random.default_rng(0)
X = RNG.poisson(3 * RNG.random((N, R)) @ RNG.random((R, M))).astype(float)
Y = (RNG.random((N, 3)) < 0.3) * 1.0
SEEDS = np.full((M, 2), np.nan)
SEEDS[:2], SEEDS[2:4] = [1, 0], [0, 1]
SMALL = penalties.L2(0.01)
KNOWN = {
    "penalties": {"penalties": [penalties.L1(0.01), SMALL]},
    "smooth": {
        "penalties": {
            "S": [SMALL, penalties.Orthogonal(0.01)], "A": [SMALL, penalties.Temporal(1)]
        }
    },
    "fixed": {"fixed_components": 100 * X[:2], "covariates": np.ones((N, 1))},
    "support": {"A_support": RNG.random((R, M)) < 0.7},
    "features": {"feature_labels": SEEDS, "feature_weight": "balanced"},
    "all": {
        "y": Y, "supervision_weight": "balanced", "feature_labels": SEEDS,
        "fixed_components": X[:1], "covariates": np.ones((N, 1)), "penalties": SMALL,
        "supervision_loss": "kullback-leibler",
    },
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
@pytest.mark.parametrize("what", KNOWN)
def test_a_cluster_knows_what_memory_knows(threads, what, loss):
    known = dict(KNOWN[what])
    options = {"n_components": R, "loss": loss, "random_state": 0, "init": "random", "max_iter": 10}
    options |= {"solver": "auto" if loss == "frobenius" else "mm"}
    labels = known.pop("y", None)
    here = sf.factorize(X, labels, **options, **known)
    there = sfd.factorize(da.from_array(X, chunks=(25, M)), labels, **options, **known)
    np.testing.assert_allclose(there.A, here.A, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(there.S.compute(), here.S, rtol=1e-6, atol=1e-8)
    if here.C is not None:
        np.testing.assert_allclose(there.C, here.C, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(there.feature_weight, here.feature_weight)
    np.testing.assert_allclose(there.objective[-1][1], here.objective[-1][1], rtol=1e-9)


def test_an_estimator_of_a_cluster_takes_covariates(client):
    model = sfd.NMF(R, fixed_components=X[:1], penalties=SMALL, init="random", random_state=0)
    model.fit(da.from_array(X, chunks=(25, M)), covariates=np.ones((N, 1)))
    np.testing.assert_array_equal(model.components_[:1], X[:1])
    S = model.in_memory().transform(X, covariates=np.ones((N, 1)))
    np.testing.assert_array_equal(S[:, -1], 1)


def test_differences_between_samples_are_refused(client):
    given = {"S": [SMALL, penalties.Temporal(1.0)], "A": SMALL}
    with pytest.raises(ValueError, match="penalties between samples are not"):
        sfd.factorize(da.from_array(X, chunks=(25, M)), n_components=R, penalties=given)


STARTS = ("random", "random-acol", "least-squares", (RNG.random((N, R)), RNG.random((R, M))))


@pytest.mark.parametrize("init", STARTS, ids=str.split("random acol least-squares given"))
def test_a_fit_begins_where_it_begins_in_memory(threads, init):
    given = {
        "S_support": RNG.random((N, R)) < 0.7,
        "covariates": RNG.random((N, 2)),
        "A_support": RNG.random((R, M)) < 0.7,
        "fixed_components": 100 * RNG.random((1, M)),
    }
    others = {"penalties": SMALL, "feature_labels": SEEDS, "feature_weight": "balanced"}
    settings = (
        ("S_support covariates", np.float64, {"y": Y}),
        ("A_support fixed_components", np.float32, {"supervision_weight": "balanced", "y": Y}),
        ("S_support fixed_components", np.float64, {"X_weights": sf.weights.observed(X > 0)}),
        (" ".join(given), np.float32, others if isinstance(init, str) else {"y": Y}),
    )
    for names, dtype, further in settings[:: 3 if init == "least-squares" else 1]:
        known = {name: given[name] for name in names.split()} | further
        known |= {"n_components": R, "random_state": 0, "max_iter": 0, "init": init}
        Z, labels = X.astype(dtype), known.pop("y", None)
        here = sf.factorize(Z, labels, **known)
        there = sfd.factorize(da.from_array(Z, chunks=(25, M)), labels, **known)
        exact = 1e-9 if dtype == np.float64 else 1e-4
        for name in "SABC":
            if getattr(here, name) is not None:
                wanted = getattr(here, name)
                error = abs(np.asarray(getattr(there, name)) - wanted).max()
                assert error <= exact * wanted.max(), (names, name)
        np.testing.assert_allclose(there.objective, here.objective, rtol=exact, err_msg=names)


@pytest.mark.parametrize("solver", ["auto", "hals", "mm"])
def test_no_step_reaches_the_padding_of_blocks(threads, solver):
    rng = np.random.default_rng(1)
    sparse = (rng.random(X.shape) < 0.2) * X
    given = [penalties.Orthogonal(1.0), penalties.L2(1e-4)]
    options = {"n_components": R, "solver": solver, "random_state": 0, "max_iter": 15, "tol": 0}
    with watched_padding(R):
        blocks = da.from_array(sparse, chunks=(25, M))
        fit = sfd.factorize(blocks, penalties=given, init="random", **options)
    found = sf.extend.objective(sparse, fit.S.compute(), fit.A, penalties=given)
    np.testing.assert_allclose(fit.objective[-1][1], found, rtol=1e-9)


def test_a_cluster_refuses_what_has_no_minimum(client):
    blocks = da.from_array(X, chunks=(25, M))
    labels = {"y": da.from_array(Y, chunks=(25, 3)), "n_components": R, "max_iter": 1}
    for free in (
        {"S": penalties.Orthogonal(1.0), "A": SMALL, "B": SMALL},
        {"S": SMALL, "A": SMALL},
    ):
        name = "S" if "B" in free else "B"
        refused(f"can shrink while {name} grows", sfd.factorize, blocks, penalties=free, **labels)
    given = {"covariates": np.ones((N, R)), "penalties": {"A": penalties.Temporal(1.0)}}
    sfd.factorize(blocks, n_components=R, max_iter=1, **given)
