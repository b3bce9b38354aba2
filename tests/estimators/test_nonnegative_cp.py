"""NonnegativeCP: fits, rows of every mode, slices that arrive one by one, files."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.refused import refused
from helpers.tensors import coordinates, far_side, khatri_rao, product, unfolded
from problems import divergence
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import ssnmf_fast as sf

F, D = "frobenius", "kullback-leibler"
LOSSES = (F, D)
SHAPE = (14, 9, 12)


def random_factors(shape, rank, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.gamma(0.5, size=(n, rank)) for n in shape]


def loss_of(X, Z, loss):
    return float(divergence(X, Z, loss).sum())


@pytest.fixture(scope="module")
def counts():
    model = product(random_factors(SHAPE, 3))
    return np.random.default_rng(1).poisson(model * 4 / model.mean()).astype(float)


@pytest.fixture(scope="module", params=LOSSES)
def model(request, counts):
    return sf.NonnegativeCP(3, loss=request.param, random_state=0, max_iter=1000).fit(counts)


class TestFit:
    def test_is_that_of_the_function(self, model, counts):
        settings = {"loss": model.loss, "max_iter": 1000, "random_state": 0}
        result = sf.factorize_tensor(counts, n_components=3, **settings)
        for ours, theirs in zip(model.factors_, result.factors, strict=True):
            assert np.array_equal(ours, theirs)
        assert np.array_equal(model.weights_, result.weights)
        assert model.objective_ == result.objective
        assert (model.n_iter_, model.shape_, model.n_features_in_) == (result.n_iter, SHAPE, 9)
        assert [len(F) for F in model.components_] == [9, 12]

    @pytest.mark.parametrize("loss", LOSSES)
    def test_two_modes_give_the_numbers_of_nmf(self, loss):
        X = np.random.default_rng(0).random((20, 8))
        settings = {"random_state": 0, "tol": 1e-6, "max_iter": 2000}
        nmf = sf.NMF(n_components=3, loss=loss, **settings).fit(X)
        cp = sf.NonnegativeCP(3, loss=loss, **settings).fit(X)
        assert cp.objective_[-1][1] == pytest.approx(nmf.objective_[-1][1], rel=1e-6)
        theirs, ours = nmf.transform(X) @ nmf.components_, cp.transform(X) @ cp.components_[0].T
        np.testing.assert_allclose(ours, theirs, atol=2e-3)
        table = [topic.terms for topic in cp.topics(n_terms=3)]
        assert sorted(table) == sorted(topic.terms for topic in nmf.topics(n_terms=3))

    def test_parameters(self):
        given = sf.NonnegativeCP(4, loss=D, stream_mode=0, forget_factor=0.5)
        copy = clone(given).set_params(tol=0.1)
        assert copy.get_params() == given.get_params() | {"tol": 0.1}
        assert repr(given) == (
            "NonnegativeCP(forget_factor=0.5, loss='kullback-leibler', n_components=4,\n"
            "              stream_mode=0)"
        )

    def test_labels_guide_a_mode(self, counts):
        labels = np.eye(3)[np.arange(14) % 3]
        model = sf.NonnegativeCP(3, random_state=0, supervision_weight=10.0)
        model.fit(counts, {0: labels})
        assert model.label_components_[0].shape == (3, 3)
        plain = clone(model).fit(counts)
        assert plain.label_components_ == {}
        assert not np.allclose(plain.factors_[0], model.factors_[0])

    def test_a_fit_that_stops_early_warns(self, counts):
        with pytest.warns(ConvergenceWarning, match="max_iter=3"):
            sf.NonnegativeCP(3, max_iter=3, random_state=0).fit(counts)

    def test_a_refused_fit_changes_nothing(self, model, counts):
        before = dict(vars(model))
        refused("negative", model.fit, -counts)
        assert vars(model) == before

    def test_pickled_copies_are_equal(self, model, counts):
        copy = pickle.loads(pickle.dumps(model))
        assert np.array_equal(copy.transform(counts), model.transform(counts))


class TestTransform:
    def test_rows_of_every_mode_are_those_of_represent(self, model, counts):
        for mode in range(3):
            dictionary = far_side(model.factors_, mode).T
            expected = sf.represent(unfolded(counts, mode), dictionary, loss=model.loss)
            for X in (counts, coordinates(counts)):
                for axis in (mode, mode - 3):
                    rows = model.transform(X, mode=axis)
                    np.testing.assert_allclose(rows, expected, rtol=1e-4, atol=1e-4)

    def test_new_rows_meet_the_optimality_conditions(self, model):
        new = np.random.default_rng(5).poisson(2.0, (6, *SHAPE[1:])).astype(float)
        S, G = model.transform(new), khatri_rao(model.components_)
        assert S.shape == (6, 3)
        X, Z = unfolded(new, 0), S @ G.T
        if model.loss == F:
            pull, push = X @ G, Z @ G
        else:
            pull, push = (X / Z) @ G, np.broadcast_to(G.sum(axis=0), S.shape)
        slope = (push - pull) / push.max()
        assert slope.min() > -1e-5
        assert np.abs(slope * (1e-6 * S.max() < S)).max() < 1e-5

    def test_fit_transform_is_near_to_the_last_iterate(self, model, counts):
        again = clone(model).fit_transform(counts)
        assert np.array_equal(again, model.transform(counts))
        folded = model.factors_[0] * model.weights_
        np.testing.assert_allclose(again, folded, rtol=0.03, atol=0.03 * folded.max())
        explained = loss_of(counts, product([again, *model.components_]), model.loss)
        assert explained <= model.objective_[-1][1] * (1 + 1e-9)

    @pytest.mark.parametrize("weighted", [0.7, 0.01])
    def test_weights(self, model, counts, weighted):
        """Where next to nothing is present, present entries are listed in place of missing ones."""
        present = np.random.default_rng(2).random(SHAPE) < weighted
        holes = np.where(present, counts, np.nan)
        G = khatri_rao(model.components_)
        expected = sf.represent(unfolded(holes, 0), G.T, loss=model.loss)

        def close(found):
            # What is absent follows from next to nothing in some rows.
            here = unfolded(present, 0)
            ours, theirs = (found @ G.T)[here], (expected @ G.T)[here]
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)

        observed, missing = sf.weights.observed(present), sf.weights.missing(~present)
        for X in (counts, coordinates(counts)):
            for weights in (observed, missing, present.astype(float)):
                found = model.transform(X, X_weights=weights)
                close(found)
        close(model.transform(holes))

    def test_vectors_of_weights_and_single_precision(self, model, counts):
        vectors = [None, np.linspace(0, 1, 9), np.linspace(1, 2, 12)]
        full = np.broadcast_to(np.multiply.outer(*vectors[1:]), SHAPE)
        expected = model.transform(counts, X_weights=full)
        np.testing.assert_allclose(
            model.transform(coordinates(counts), X_weights=vectors), expected, rtol=1e-4, atol=1e-5
        )
        single = model.transform(counts.astype(np.float32))
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, model.transform(counts), rtol=1e-2, atol=1e-2)

    def test_units_do_not_matter(self, model, counts):
        big = model.transform(counts * 2.0**40)
        np.testing.assert_allclose(big * 2.0**-40, model.transform(counts), rtol=1e-6)

    @pytest.mark.compiled("more entries than the reference should solve")
    @pytest.mark.parametrize("loss", LOSSES)
    def test_rows_in_many_blocks(self, loss):
        """Rows of G are made for some rows at a time."""
        factors = random_factors((60, 50, 80), 3)
        X = np.random.default_rng(0).poisson(product(factors)).astype(float)
        model = sf.NonnegativeCP(3, loss=loss, init=factors, max_iter=1, tol=0).fit(X)
        G = khatri_rao(model.components_).T
        expected = sf.represent(unfolded(X, 0), G, loss=loss)
        for given in (X, coordinates(X), np.where(X == 3, np.nan, X)):
            if isinstance(given, np.ndarray) and np.isnan(given).any():
                expected = sf.represent(unfolded(given, 0), G, loss=loss)
            found = model.transform(given)
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * expected.max())

    def test_names_of_the_output(self, model, counts):
        names = [f"nonnegativecp{k}" for k in range(3)]
        assert list(model.get_feature_names_out()) == names
        pytest.importorskip("pandas")
        framed = pickle.loads(pickle.dumps(model)).set_output(transform="pandas")
        assert list(framed.transform(counts).columns) == names

    def test_what_does_not_fit_is_refused(self, model, counts):
        with pytest.raises(ValueError, match=r"shape \(14, 8, 12\); expected lengths \(any, 9, 12"):
            model.transform(counts[:, :8])
        refused("expected lengths", model.transform, counts[0])
        refused("mode must be at most 2", model.transform, counts, mode=3)
        with pytest.raises(NotFittedError):
            sf.NonnegativeCP().transform(counts)


class TestTopics:
    def test_terms_of_a_mode(self, model):
        names = [f"word {i}" for i in range(14)]
        topics = model.topics(names, mode=0, n_terms=4)
        best = np.argsort(-model.factors_[0], axis=0, kind="stable")[:4, 1]
        assert topics[1].terms == tuple(names[i] for i in best)
        assert topics[1].weights == tuple(model.factors_[0][best, 1])
        total = product(model.factors_, model.weights_).sum()
        first = product([factor[:, :1] for factor in model.factors_], model.weights_[:1]).sum()
        assert topics[0].size == pytest.approx(first / total)
        assert len(model.topics(mode=-1)[0].terms) == 10

    def test_what_does_not_fit_is_refused(self, model):
        with pytest.raises(ValueError, match="14 names; expected one for each of the 9"):
            model.topics([f"word {i}" for i in range(14)], mode=1)
        refused("mode must be at least -3", model.topics, mode=-4)


@pytest.fixture(scope="module")
def stream():
    """Counts of a model of rank 4; slices along the last mode."""
    model = product(random_factors((40, 30, 36), 4, seed=3))
    return np.random.default_rng(4).poisson(model * 3 / model.mean()).astype(float)


def fed(model, X, first=12, step=1, form=np.asarray):
    """Feed slices of the last mode: some at first, then some at a time."""
    model.partial_fit(form(X[..., :first]))
    for begin in range(first, X.shape[-1], step):
        model.partial_fit(form(X[..., begin : begin + step]))
    return model


def final_objective(model, X):
    last = model.transform(X, mode=-1)
    return loss_of(X, product([*model.factors_[:-1], last]), model.loss)


class TestSlices:
    @pytest.mark.parametrize("loss", LOSSES)
    @pytest.mark.parametrize(("step", "dtype"), [(1, np.float64), (6, np.float64), (6, np.float32)])
    def test_one_pass_comes_near_to_a_fit(self, stream, loss, step, dtype):
        X = stream.astype(dtype)
        model = fed(sf.NonnegativeCP(4, loss=loss, random_state=0), X, step=step)
        settings = {"loss": loss, "random_state": 0}
        whole = sf.factorize_tensor(X, n_components=4, **settings).objective[-1][1]
        found = final_objective(model, X)
        assert found < 1.03 * whole
        assert model.shape_ == stream.shape
        assert model.n_iter_ == len(model.objective_) == 1 + 24 // step
        assert model.objective_[-1][1] * 36 == pytest.approx(found, rel=0.25)
        assert {F.dtype for F in (*model.factors_, model.weights_)} == {np.dtype(dtype)}

    def test_factors_hold_the_rows_of_all_slices(self, stream):
        model = fed(sf.NonnegativeCP(4, random_state=0), stream[..., :18])
        before = model.stream_representation_
        np.testing.assert_allclose(before, model.factors_[-1] * model.weights_)
        for factor in model.factors_:
            np.testing.assert_allclose(np.linalg.norm(factor, axis=0), 1)
        model.partial_fit(stream[..., 18])
        np.testing.assert_allclose(model.stream_representation_[:18], before)
        coded = model.transform(stream[..., 18:19], mode=2)
        np.testing.assert_allclose(model.stream_representation_[18:], coded, rtol=1e-3, atol=1e-3)

    @pytest.mark.parametrize("loss", LOSSES)
    def test_all_forms_of_slices_are_alike(self, stream, loss):
        X = stream[..., :15]
        plain = fed(sf.NonnegativeCP(4, loss=loss, random_state=0), X)
        listed = fed(sf.NonnegativeCP(4, loss=loss, random_state=0), X, form=coordinates)
        single = sf.NonnegativeCP(4, loss=loss, random_state=0).partial_fit(X[..., :12])
        for t in range(12, 15):
            one = X[..., t]
            single.partial_fit(sp.csr_array(one) if t == 13 else one)
        for other in (listed, single):
            for ours, theirs in zip(other.factors_, plain.factors_, strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)

    def test_slices_along_another_mode(self, stream):
        X = stream[..., :15]
        last = fed(sf.NonnegativeCP(4, random_state=0, init="svd"), X)
        model = sf.NonnegativeCP(4, random_state=0, init="svd", stream_mode=1)
        turned = np.moveaxis(X, -1, 1)
        model.partial_fit(turned[:, :12])
        for t in range(12, 15):
            model.partial_fit(coordinates(turned[:, t]))
        for ours, theirs in zip(model.factors_, (last.factors_[k] for k in (0, 2, 1)), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)

    @pytest.mark.parametrize("loss", LOSSES)
    def test_missing_entries(self, stream, loss):
        holes = np.random.default_rng(0).random(stream.shape) < 0.2
        X = np.where(holes, np.nan, stream)[..., :18]
        # A seed with which the first slices, as well as all, lead to the four components.
        model = fed(sf.NonnegativeCP(4, loss=loss, random_state=1), X, step=3)
        whole = clone(model).set_params(max_iter=1000).fit(X)
        found = final_objective(model, stream[..., :18])
        assert found < 1.1 * final_objective(whole, stream[..., :18])

    @pytest.mark.parametrize("loss", LOSSES)
    def test_learning_goes_on_from_a_fit(self, stream, loss):
        model = sf.NonnegativeCP(4, loss=loss, random_state=0)
        fitted = clone(model).fit(stream[..., :12])
        fitted.partial_fit(stream[..., 12:])
        anew = model.partial_fit(stream[..., :12]).partial_fit(stream[..., 12:])
        assert (fitted.n_iter_, anew.n_iter_) == (1, 2)
        assert not hasattr(fitted, "label_components_")
        assert final_objective(fitted, stream) < 1.02 * final_objective(anew, stream)

    def test_a_small_forget_factor_follows_changes(self):
        old, new = (product(random_factors((20, 15, 20), 3, seed)) for seed in (0, 1))
        X = np.concatenate([old, new], axis=2)
        errors = []
        for factor in (0.5, 1.0):
            model = sf.NonnegativeCP(3, random_state=0, forget_factor=factor)
            fed(model, X, first=20)
            errors.append(final_objective(model, new))
        assert errors[0] < 0.5 * errors[1]

    def test_forgetting_is_by_slices(self, stream):
        """New slices leave to earlier ones a power of the forget factor, or less at first."""
        for factor, left in ((0.5, 0.5**4), (1.0, 12 / 16)):
            model = sf.NonnegativeCP(4, random_state=0, forget_factor=factor)
            model.partial_fit(stream[..., :12])
            before = model.stream_statistics_["counts"][0, 1]
            model.partial_fit(stream[..., 12:16])
            assert model.stream_statistics_["counts"][0, 0] == 16
            assert model.stream_statistics_["counts"][0, 1] == pytest.approx(left * before + 4)

    def test_threads_give_the_same_bits(self, stream):
        found = [
            fed(sf.NonnegativeCP(4, loss=loss, random_state=0, n_threads=n), stream[..., :14])
            for loss in LOSSES
            for n in (1, 3)
        ]
        for one, three in ((found[0], found[1]), (found[2], found[3])):
            for ours, theirs in zip(one.factors_, three.factors_, strict=True):
                assert np.array_equal(ours, theirs)
            assert np.array_equal(
                one.transform(stream[..., :14]), three.transform(stream[..., :14])
            )

    def test_empty_slices_and_unused_components(self, stream):
        model = sf.NonnegativeCP(6, loss=D, random_state=0)
        model.partial_fit(stream[..., :4]).partial_fit(np.zeros(stream.shape[:2]))
        model.partial_fit(stream[..., 4])
        assert model.shape_[-1] == 6
        assert not model.stream_representation_[4].any()
        assert all(np.isfinite(factor).all() for factor in model.factors_)

    @pytest.mark.parametrize("loss", LOSSES)
    def test_components_without_use_so_far_are_used_later(self, stream, loss):
        model = sf.NonnegativeCP(4, loss=loss, random_state=0)
        model.partial_fit(np.zeros((*stream.shape[:2], 2)))
        for begin in range(0, 36, 12):
            model.partial_fit(stream[..., begin : begin + 12])
        settings = {"n_components": 4, "loss": loss, "random_state": 0}
        whole = sf.factorize_tensor(stream, **settings).objective[-1][1]
        single = sf.factorize_tensor(stream, **settings | {"n_components": 1}).objective[-1][1]
        assert single - final_objective(model, stream) > 0.6 * (single - whole)

    @pytest.mark.parametrize("form", [lambda fit: fit, lambda fit: (fit.weights, fit.factors)])
    def test_the_first_call_continues_from_a_result(self, stream, form):
        X = np.moveaxis(stream[..., :12], -1, 1)
        fit = sf.factorize_tensor(X, n_components=3, random_state=0)
        model = sf.NonnegativeCP(3, init=form(fit), max_iter=0, stream_mode=1).partial_fit(X)
        assert model.objective_[0][1] * 12 == pytest.approx(fit.objective[-1][1])

    def test_a_matrix_must_say_what_it_is(self, stream):
        slice_ = stream[..., 0]
        model = sf.NonnegativeCP(2, random_state=0)
        refused("one_slice=True", model.partial_fit, slice_)
        assert not hasattr(model, "factors_")
        assert clone(model).partial_fit(slice_, one_slice=True).shape_ == (40, 30, 1)
        columns = clone(model).partial_fit(slice_, one_slice=False)
        assert columns.partial_fit(slice_[:, :5]).shape_ == (40, 35)

    def test_what_does_not_fit_is_refused(self, stream):
        model = sf.NonnegativeCP(4, random_state=0).partial_fit(stream[..., :12])
        before = dict(vars(model))
        refused(r"expected lengths \(40, 30, any\)", model.partial_fit, stream[:39])
        refused("expected lengths", model.partial_fit, stream[None])
        refused("multiply X by 1e-6", model.partial_fit, stream * 1e60)
        refused("negative", model.partial_fit, -stream)
        with pytest.raises(TypeError, match="one_slice must be True, False or None"):
            model.partial_fit(stream, one_slice="x")
        assert vars(model) == before
        for changes in ({"n_components": 5}, {"loss": D}, {"stream_mode": 0}):
            changed = pickle.loads(pickle.dumps(model)).set_params(**changes)
            square = np.zeros((40, 30, 12)) if "stream_mode" in changes else stream
            refused("must stay", changed.partial_fit, square)
        for factor in (1.5, -0.1):
            with pytest.raises(ValueError, match="forget_factor must be"):
                clone(model).set_params(forget_factor=factor).partial_fit(stream)


class TestFiles:
    def test_fits_come_back(self, model, counts, tmp_path):
        sf.save(model, tmp_path / "model.npz")
        loaded = sf.load(tmp_path / "model.npz")
        assert loaded.get_params() == model.get_params()
        assert set(vars(loaded)) == set(vars(model))
        assert loaded.objective_ == model.objective_
        assert np.array_equal(loaded.transform(counts), model.transform(counts))

    @pytest.mark.parametrize("loss", LOSSES)
    def test_learning_goes_on_where_it_was(self, stream, loss, tmp_path):
        model = fed(sf.NonnegativeCP(4, loss=loss, random_state=0), stream[..., :14])
        sf.save(model, tmp_path / "model.npz")
        loaded = sf.load(tmp_path / "model.npz")
        assert set(vars(loaded)) == set(vars(model))
        for one in (model, loaded):
            one.partial_fit(stream[..., 14])
        for ours, theirs in zip(loaded.factors_, model.factors_, strict=True):
            assert np.array_equal(ours, theirs)

    def test_results_come_back(self, counts, tmp_path):
        labels = {0: np.eye(2)[np.arange(14) % 2], 2: np.ones((12, 3))}
        for given in (None, labels):
            result = sf.factorize_tensor(counts, n_components=3, y=given, random_state=0)
            sf.save(result, tmp_path / "result.npz")
            loaded = sf.load(tmp_path / "result.npz")
            assert repr(loaded) == repr(result)
            assert np.array_equal(loaded.to_dense(), result.to_dense())
            assert loaded.label_components.keys() == result.label_components.keys()
            for mode, B in result.label_components.items():
                assert np.array_equal(loaded.label_components[mode], B)

    @pytest.mark.parametrize(
        ("name", "change"),
        [
            ("array/factors_/1", lambda F: F[:, :2]),
            ("array/factors_/1", lambda F: -F),
            ("array/factors_/1", lambda F: F[:0]),
            ("array/weights_", lambda w: w[:1]),
            ("array/stream_statistics_/b0", lambda b: b[:, 0]),
            ("array/stream_statistics_/b0", lambda b: np.where(b > 1, np.nan, b)),
        ],
    )
    def test_damaged_files_are_refused(self, stream, name, change, tmp_path):
        model = sf.NonnegativeCP(4, random_state=0).partial_fit(stream[..., :6])
        sf.save(model, tmp_path / "model.npz")
        with np.load(tmp_path / "model.npz") as archive:
            arrays = dict(archive)
        arrays[name] = change(arrays[name])
        np.savez(tmp_path / "damaged.npz", **arrays)
        refused("damaged", sf.load, tmp_path / "damaged.npz")


class TestWayBack:
    def test_inverse_transform(self, model, counts):
        S = model.transform(counts)
        np.testing.assert_allclose(
            model.inverse_transform(S), product([S, *model.components_]), rtol=1e-12
        )
        rows = model.transform(counts[..., :3], mode=-1)
        found = model.inverse_transform(rows, mode=-1)
        np.testing.assert_allclose(found, product([*model.factors_[:2], rows]), rtol=1e-12)
        assert model.inverse_transform(S[:0]).shape == (0, *SHAPE[1:])
        assert model.inverse_transform(S.astype(np.float32)[:2]).shape == (2, *SHAPE[1:])

    def test_what_is_refused(self, model, counts):
        refused("X has shape", model.inverse_transform, np.ones((2, 4)))
        refused("mode must be", model.inverse_transform, np.ones((2, 3)), mode=3)
        wide = clone(model).fit(counts)
        wide.factors_[1:] = [np.ones((20_000, 3)), np.ones((20_000, 3))]
        with pytest.raises(ValueError, match="more than 134,217,728; give fewer rows at a time"):
            wide.inverse_transform(np.ones((1, 3)))
        with pytest.raises(NotFittedError):
            clone(model).score(counts)


class TestScore:
    def test_definition(self, model, counts):
        new = counts[:5]
        M = model.inverse_transform(model.transform(new))
        mean = np.full(new.shape, new.mean())
        expected = 1 - loss_of(new, M, model.loss) / loss_of(new, mean, model.loss)
        assert model.score(new) == pytest.approx(expected)
        assert model.score(coordinates(new)) == pytest.approx(expected)
        assert model.score(1e6 * new) == pytest.approx(expected)
        assert 0.3 < model.score(counts, mode=1) < 1
        assert model.score(counts) > clone(model).set_params(n_components=1).fit(counts).score(
            counts
        )

    def test_weights_and_missing_entries(self, model, counts):
        hidden = np.random.default_rng(0).random(SHAPE) < 0.2
        known = np.where(hidden, np.nan, counts)
        wrong = np.where(hidden, 50, counts)
        expected = model.score(known)
        for weights in (~hidden * 1.0, sf.weights.missing(coordinates(hidden * 1.0))):
            assert model.score(wrong, X_weights=weights) == pytest.approx(expected, rel=1e-4)

    def test_constant_and_impossible_data(self, model):
        for value in (0.3, 1e6):
            X = np.full((3, 4, 5), value)
            for dtype in (np.float32, np.float64):
                constant = sf.NonnegativeCP(1, loss=model.loss, tol=0, max_iter=50).fit(
                    X.astype(dtype)
                )
                assert constant.score(X.astype(dtype)) == 0
        lost = sf.NonnegativeCP(1, loss=D, tol=0, max_iter=50).fit(np.ones((3, 4, 5)))
        lost.factors_[1][0] = 0
        X = np.ones((2, 4, 5))
        X[0] = 2
        assert -np.inf < lost.score(X) < -100
