"""A new loss and a new model, added from outside of the package."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.each import each
from helpers.refused import refused
from problems import data, filled, weighted

import ssnmf_fast as sf
from ssnmf_fast import extend


class Elastic(extend.Loss):
    """d(x, z) = (x - z)^2 / 2 + x log(x / z) - x + z, from the passes of the two other losses."""

    name = "elastic"
    exponents = (1.0, -1.0)  # N t - P / t is a bound for both

    def P(self, entries, F, G, to):
        entries.power(0, F, G, to)
        entries.power(-1, F, G, extend.Target(to.out, to.scale, accumulate=True))

    def N(self, form, F, G, to):
        form.power(1, F, G, to)
        form.power(0, F, G, extend.Target(to.out, to.scale, accumulate=True))

    def constant(self, z, w):
        z, w = np.nan_to_num(z).astype(float), np.ones(z.shape) if w is None else w.astype(float)
        wz = (w * z)[w * z > 0]
        return float(np.sum(w * z**2) / 2 - np.sum(wz * np.log(w[w * z > 0])))

    def value(self, term, F, G):
        P, N, sums = np.empty_like(F), np.empty_like(F), np.empty_like(F)
        term.entries.power(0, F, G, extend.Target(P))
        term.form.power(1, F, G, extend.Target(N))
        term.form.power(0, F, G, extend.Target(sums))
        squares = np.sum(F * N) / 2 - np.sum(F * P)
        return term.constant + squares + term.entries.sum("kl_loss", F, G) + float(np.sum(F * sums))


@pytest.fixture(autouse=True)
def elastic():
    return extend.register_loss(Elastic())


def elastic_value(X, W, S, A):
    z = np.maximum(S @ A, 1e-300)
    logs = np.where(X > 0, X * np.log(np.where(X > 0, X, 1) / z), 0)
    return float(np.sum(W * ((X - z) ** 2 / 2 + logs - X + z)))


@pytest.mark.slow
@each("solver", ["auto", "mm", "hals"])
@each("form", ["none", "outer", "observed", "missing", "dense", "nan"])
@each("storage", ["sparse", "dense"])
def test_a_new_loss_fits_in_every_storage_and_with_all_weights(storage, form, solver):
    rng = np.random.default_rng(0)
    X, W, dense_W = weighted(rng, data(rng, (30, 20), np.float64, storage), form)
    Y, options = (
        np.eye(3)[np.arange(30) % 3],
        {"supervision_weight": 0, "random_state": 0, "tol": 0},
    )
    fit = sf.factorize(X, Y, n_components=4, loss="elastic", X_weights=W, solver=solver, **options)
    values = [value for _, value in fit.objective]
    assert values[-1] == pytest.approx(elastic_value(filled(X), dense_W, fit.S, fit.A), rel=1e-9)
    assert max(np.diff(values)) <= 1e-9 * values[0]
    assert values[-1] < 0.7 * values[0]


def on_cluster(X, **options):
    """Fit three blocks of rows on a cluster within this process."""
    distributed = pytest.importorskip("distributed", reason="needs ssnmf-fast[dask]")
    import dask

    import ssnmf_fast.dask as sfd

    blocks = [dask.delayed(X[begin : begin + 10]) for begin in (0, 10, 20)]
    with distributed.Client(processes=False, n_workers=1, dashboard_address=":0"):
        fit = sfd.factorize(blocks, **options)
        return np.asarray(fit.S) @ fit.A, fit.objective


def from_file(X, folder, **options):
    """Fit a file, of which a few rows are in memory at a time."""
    sp.save_npz(folder / "X.npz", X, compressed=False)
    fit = sf.factorize(sf.io.open_csr(folder / "X.npz", memory=1000), **options)
    return fit.S @ fit.A, fit.objective


def as_tensor(X, **options):
    """Fit a tensor of two slices that are alike."""
    coo = X.tocoo()
    both = [np.tile(index, 2) for index in coo.coords], np.tile(coo.data, 2)
    places = np.vstack([*both[0], np.repeat([0, 1], X.nnz)])
    fit = sf.factorize_tensor((places, both[1], (*X.shape, 2)), **options)
    return fit.to_dense()[..., 0], [(step, value / 2) for step, value in fit.objective]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["matrix", "file", "tensor", "cluster"])
def test_one_class_is_a_loss_for_every_kind_of_data(kind, tmp_path):
    X = data(np.random.default_rng(0), (30, 20), np.float64)
    options = {"n_components": 4, "loss": "elastic", "init": "random", "random_state": 0}
    options |= {"max_iter": 100, "tol": 0}
    if kind == "matrix":
        fit = sf.factorize(X, **options)
        found, objective = fit.S @ fit.A, fit.objective
    elif kind == "file":
        found, objective = from_file(X, tmp_path, **options)
    else:
        found, objective = {"tensor": as_tensor, "cluster": on_cluster}[kind](X, **options)
    values = [value for _, value in objective]
    expected = elastic_value(X.toarray(), 1, found, np.eye(20))
    assert values[-1] == pytest.approx(expected, rel=1e-9)
    assert max(np.diff(values)) <= 1e-9 * values[0]
    assert values[-1] < 0.7 * values[0]


def test_a_new_loss_serves_new_samples_batches_and_estimators():
    rng = np.random.default_rng(1)
    A, S = rng.random((3, 25)) + 0.1, rng.random((40, 3)) + 0.1
    found = sf.represent(S @ A, A, loss="elastic")
    np.testing.assert_allclose(found @ A, S @ A, rtol=0.02)
    model = sf.NMF(n_components=3, loss="elastic", random_state=0)
    assert model.fit(S @ A).transform(S @ A).shape == (40, 3)
    online = sf.NMF(n_components=3, loss="elastic", random_state=0)
    for _ in range(20):
        online.partial_fit(sp.csr_array(S @ A))
    assert online.objective_[-1][1] < online.objective_[0][1]
    with pytest.raises(ValueError, match="'elastic' does not support samples with a common"):
        sf.papers.ConstrainedNMF(loss="elastic").fit(S @ A, np.arange(40) % 2)
    refused(r"must be one of .*'elastic'", sf.factorize, S @ A, n_components=2, loss="plastic")


def graph_model(rng, loss):
    """Documents x terms, and terms x terms: both know the terms."""
    D, T = rng.random((50, 4)), rng.random((30, 4))
    return [
        extend.relation("documents", "terms", D @ T.T, loss=loss),
        extend.relation("terms", "contexts", T @ rng.random((4, 30)), coefficient=0.5),
    ]


@pytest.mark.slow
@each("loss", ["frobenius", "kullback-leibler", "elastic"])
@each("solver", ["auto", "mm", "hals"])
def test_a_new_model_is_a_list_of_relations(loss, solver):
    model = graph_model(np.random.default_rng(2), loss)
    seen = []
    options = {"n_components": 4, "solver": solver, "random_state": 0, "tol": 0, "max_iter": 500}
    fit = extend.fit(model, callback=lambda state: seen.append(state.terms.shape), **options)
    assert {name: F.shape for name, F in fit.factors.items()} == {
        "documents": (50, 4),
        "terms": (30, 4),
        "contexts": (30, 4),
    }
    assert seen[0] == (30, 4)
    values = [value for _, value in fit.objective]
    assert max(np.diff(values)) <= 1e-9 * values[0]
    assert values[-1] < 0.02 * values[0]


def test_a_model_of_one_relation_is_factorize():
    rng = np.random.default_rng(3)
    X, S, A = rng.random((20, 12)), rng.random((20, 3)), rng.random((3, 12))
    there = sf.factorize(X, n_components=3, init=(S, A), max_iter=20, tol=0)
    here = extend.fit(
        [extend.relation("S", "A", X)], n_components=3, init={"S": S, "A": A.T}, max_iter=20, tol=0
    )
    np.testing.assert_array_equal(here.factors["S"], there.S)
    np.testing.assert_array_equal(here.factors["A"].T, there.A)


class Half(extend.Loss):
    """Half the squared errors, which Gram matrices describe."""

    name, powers, exponents, quadratic = "half", (0, 1), (1.0, 0.0), True

    def constant(self, z, w):
        return float(np.sum((1 if w is None else w) * z**2)) / 2

    def value(self, term, F, G):
        P, N = np.empty_like(F), np.empty_like(F)
        term.entries.power(0, F, G, extend.Target(P))
        term.form.power(1, F, G, extend.Target(N))
        return term.constant + float(np.sum(F * N)) / 2 - float(np.sum(F * P))


@each("loss", ["frobenius", "kullback-leibler", 1.5, "elastic", "half"])
@each("solver", ["auto", "mm", "hals"])
def test_a_coefficient_of_the_only_relation_scales_the_objective(loss, solver):
    extend.register_loss(Half())
    X = np.random.default_rng(3).random((20, 12)) + 0.1
    for penalized in (None, dict.fromkeys("SA", sf.penalties.L2(0.1))):
        fits = []
        for size in (1.0, 5.0, 0.01):
            scaled = penalized and {k: one.times(size) for k, one in penalized.items()}
            relation = extend.relation("S", "A", X, loss=loss, coefficient=size)
            options = {"n_components": 3, "solver": solver, "random_state": 0, "max_iter": 30}
            fits.append(extend.fit([relation], penalties=scaled, tol=0, **options))
            history = np.array([value for _, value in fits[-1].objective]) / size
            np.testing.assert_allclose(history, [v for _, v in fits[0].objective], rtol=1e-7)
            np.testing.assert_allclose(fits[-1].factors["S"], fits[0].factors["S"], atol=1e-5)


@each("losses", [("frobenius", "half"), ("half", "frobenius"), ("half", "half")])
@each("solver", ["auto", "hals", "mm"])
@each("dtype", [np.float32, np.float64])
def test_different_quadratic_losses_are_summed(losses, solver, dtype):
    extend.register_loss(Half())
    rng = np.random.default_rng(5)
    tables = {"A": rng.random((30, 12)).astype(dtype), "B": rng.random((30, 8)).astype(dtype)}
    pairs = zip(tables.items(), losses, strict=True)
    model = [extend.relation("S", name, X, loss=loss) for (name, X), loss in pairs]
    fit = extend.fit(model, n_components=3, solver=solver, random_state=0, tol=0, max_iter=60)
    values = [value for _, value in fit.objective]
    assert max(np.diff(values)) <= 1e-5 * values[0]
    sizes = [1 if loss == "frobenius" else 0.5 for loss in losses]
    errors = [((X - fit.factors["S"] @ fit.factors[k].T) ** 2).sum() for k, X in tables.items()]
    assert values[-1] == pytest.approx(np.dot(sizes, errors), rel=1e-5)


def test_a_loss_object_is_known_to_receipts_and_files(tmp_path):
    X = np.random.default_rng(6).random((12, 8)) + 0.1
    for loss in (Elastic(), extend.relation("a", "b", X, loss=0.5).term.loss):
        model = sf.NMF(2, loss=loss, random_state=0).fit(X)
        assert sf.verify(model, X).ok
        sf.save(model, tmp_path / "model.npz")
        again = sf.load(tmp_path / "model.npz")
        np.testing.assert_array_equal(again.transform(X), model.transform(X))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"init": {"s": np.ones((4, 2))}}, r"init has \['s'\]; expected names of factors"),
        ({"penalties": {"s": sf.penalties.L1(1)}}, r"penalties has \['s'\]; expected names"),
        ({"penalties": sf.penalties.L1(1)}, "penalties must be a mapping from names of factors"),
        ({"init": [np.ones((4, 2))]}, "init must be a mapping from names of factors"),
        ({"coefficient": 0}, "the coefficients of all relations are 0"),
    ],
)
def test_what_a_model_does_not_have_is_refused(given, message):
    relation = extend.relation("S", "A", np.ones((4, 3)), coefficient=given.pop("coefficient", 1))
    refused(message, extend.fit, [relation], n_components=2, error=(TypeError, ValueError), **given)


class Unfolded(extend.Term):
    """A tensor, as each of its factors sees it: X_(k) ~ F_k (products of the others)^T."""

    def view(self, position):
        return UNFOLDINGS[position]


UNFOLDINGS: list[extend.Term] = []


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
@pytest.mark.parametrize("solver", ["auto", "mm", "hals"])
def test_a_relation_of_three_factors_is_a_tensor(loss, solver):
    rng = np.random.default_rng(4)
    factors = [rng.random((n, 2)) for n in (6, 5, 4)]
    X = np.einsum("ir,jr,kr->ijk", *factors)
    UNFOLDINGS[:] = []
    for k in range(3):
        unfolded = np.moveaxis(X, k, 0).reshape(X.shape[k], -1)
        UNFOLDINGS.append(extend.relation("rows", "columns", unfolded, loss=loss).term)
    first = UNFOLDINGS[0]
    parts = {field.name: getattr(first, field.name) for field in fields(first) if field.init}
    tensor = Unfolded(**parts)
    options = {"n_components": 2, "random_state": 0, "tol": 0, "max_iter": 2000}
    fit = extend.fit([extend.Relation(("a", "b", "c"), tensor)], solver=solver, **options)
    values = [value for _, value in fit.objective]
    assert max(np.diff(values)) <= 1e-9 * values[0]
    found = np.einsum("ir,jr,kr->ijk", *fit.factors.values())
    np.testing.assert_allclose(found, X, atol=0.02)


def test_data_that_disagree_are_refused():
    with pytest.raises(ValueError, match="factor 'b' has 3 rows in one relation and 4 in another"):
        extend.fit(
            [
                extend.relation("a", "b", np.ones((2, 3))),
                extend.relation("b", "c", np.ones((4, 2))),
            ],
            n_components=1,
        )
