"""Learning from mini-batches: partial_fit of the estimators."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.data import digits
from helpers.each import each
from helpers.refused import refused
from sklearn.base import clone

import ssnmf_fast as sf

F, D = "frobenius", "kullback-leibler"
BATCH = 200


X, y = digits()


def passes(model, X, y=None, epochs=4, **first):
    """Feed the batches in random orders."""
    rng = np.random.default_rng(0)
    for _ in range(epochs):
        for rows in np.array_split(rng.permutation(X.shape[0]), X.shape[0] // BATCH):
            targets = () if y is None else (y[rows],)
            model.partial_fit(X[rows], *targets, **first)
    return model


def loss_of(model, X):
    S = model.transform(X)
    return sf.extend.objective(X, S, model.components_, loss=model.loss)


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "epochs"), [(F, 16), (D, 40)])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_loss_comes_near_to_that_of_a_fit(loss, epochs, storage):
    X = storage(digits(600)[0])
    model = sf.NMF(n_components=12, loss=loss, random_state=0)
    batches = passes(model, X, epochs=epochs)
    estimate = batches.objective_[-1][1] * X.shape[0]
    online = loss_of(batches, X)
    full = loss_of(sf.NMF(n_components=12, loss=loss, random_state=0).fit(X), X)
    assert online < 1.1 * full
    assert estimate == pytest.approx(online, rel=0.05)
    assert batches.n_iter_ == len(batches.objective_) == epochs * (600 // BATCH)


@pytest.mark.parametrize("losses", [(x, y) for x in (F, D) for y in (F, D)])
def test_classifier_learns(losses):
    hidden = np.where(np.arange(len(y)) % 2, y, -1)
    options = {"n_components": 15, "supervision_weight": "balanced", "random_state": 0}
    model = sf.SSNMFClassifier(loss=losses[0], supervision_loss=losses[1], **options)
    passes(model, X[:1400], hidden[:1400], classes=range(10))
    assert model.score(X[1400:], y[1400:]) > 0.6
    assert model.label_components_.shape == (15, 10)
    seen = hidden[:1400][hidden[:1400] >= 0]
    np.testing.assert_allclose(model.class_prior_, np.bincount(seen) / len(seen))


def test_regressor_and_several_labels_learn():
    rng = np.random.default_rng(0)
    S, A = rng.random((800, 4)) ** 3, rng.random((4, 20))
    X = S @ A
    targets = S @ rng.random((4, 2))
    regressor = passes(sf.SSNMFRegressor(n_components=4, random_state=0), X, targets, epochs=10)
    assert regressor.n_targets_ == 2
    assert regressor.score(X, targets) > 0.9
    Y = (S > 0.3).astype(int)
    classifier = passes(sf.SSNMFClassifier(n_components=6, random_state=0), X, Y, epochs=10)
    assert classifier.multilabel_
    assert classifier.predict(X).shape == Y.shape
    np.testing.assert_allclose(classifier.class_prior_, Y.mean(axis=0))


@pytest.mark.parametrize("loss", [F, D])
def test_features_that_come_late_are_learned(loss):
    rng = np.random.default_rng(0)
    late = rng.random((300, 3)) @ rng.random((3, 10))
    early = late.copy()
    early[:, 6:] = 0
    model = sf.NMF(n_components=3, loss=loss, random_state=0)
    model.partial_fit(early)
    assert model.components_[:, 6:].max() < 1e-10
    for _ in range(30):
        model.partial_fit(late)
    error = np.abs(model.inverse_transform(model.transform(late)) - late).mean()
    assert error < 0.1 * late.mean()


def test_goes_on_with_a_fit_and_through_a_pickle():
    model = sf.NMF(n_components=8, random_state=0).fit(X[:500])
    before = loss_of(model, X)
    model.partial_fit(X[500:1000])
    assert not hasattr(model, "representation_")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        model.partial_fit(X[1000:]).components_, again.partial_fit(X[1000:]).components_
    )
    assert loss_of(model, X) < 1.02 * before
    assert len(model.fit(X[:500]).objective_) > 1
    assert model.representation_.shape == (500, 8)


def streams():
    """Return name -> a model, and batches as arguments of its partial_fit."""
    rng, rank = np.random.default_rng(0), {"n_components": 3, "random_state": 0}
    X, T = rng.random((120, 12)), rng.random((6, 5, 12))
    y, parts, month = np.arange(120) % 3, np.split(np.arange(120), 4), np.datetime64("2020-01")
    batches = [(X[rows],) for rows in parts]
    labeled = [(X[rows], np.where(rows % 4 == 1, -1, y[rows])) for rows in parts]
    targets = [
        (X[rows], np.column_stack([y[rows] - k, X[rows, 0]])) for k, rows in enumerate(parts)
    ]
    targets[0][1][:, 0] = np.nan  # a target that comes later
    dated = [(X[rows], month + np.sort(rows) // 10) for rows in parts]
    found = {f"NMF {loss}": (sf.NMF(loss=loss, **rank), batches) for loss in (F, D, 0.5)}
    found["float32"] = sf.NMF(dtype="float32", A_support=np.tri(3, 12, 8), **rank), batches
    for losses in ((F, F), (D, F), (F, D), (D, D)):
        two = dict(zip(("loss", "supervision_loss"), losses, strict=True)) | rank
        balanced = sf.SSNMFClassifier(supervision_weight="balanced", **two)
        found[f"classifier {losses}"] = balanced, [(*labeled[0], range(3)), *labeled[1:]]
        found[f"regressor {losses}"] = sf.SSNMFRegressor(**two), targets
    found["tensor"] = sf.NonnegativeCP(**rank), [(part,) for part in np.split(T, 4, axis=2)]
    for method in ("auto", "neighbors", "tied", "nmf", "tensor"):
        found[f"dated {method}"] = sf.DynamicTopics(method=method, **rank), dated
    return found


@pytest.mark.filterwarnings("ignore")  # of so small data
@each(("name", "case"), streams().items())
def test_saved_models_go_on_with_the_same_bits(name, case, tmp_path):
    model, batches = case
    for fitted in (False, True):
        one, path = clone(model).set_params(max_iter=10), tmp_path / "model.npz"
        if fitted:
            one.fit(*batches[0][:2])
        for batch in batches[: 0 if fitted else 2]:
            one.partial_fit(*batch)
        sf.save(one, path)
        other = sf.load(path)
        arrays = {n: p for n, p in model.get_params().items() if isinstance(p, np.ndarray)}
        other.set_params(**arrays)  # which files do not keep
        for batch in batches[2:]:
            one.partial_fit(*batch)
            sf.save(other.partial_fit(*batch), path)
            other = sf.load(path).set_params(**arrays)
        for key, value in vars(one).items():
            if key.endswith("_") and key not in ("stream_statistics_", "factors_"):
                np.testing.assert_array_equal(getattr(other, key), value, err_msg=f"{name}: {key}")
        for key, value in one.stream_statistics_.items():
            np.testing.assert_array_equal(other.stream_statistics_[key], value, err_msg=name)
        assert one.stream_statistics_.keys() == other.stream_statistics_.keys()


ONES = np.ones((60, 1))
PENALTY = sf.penalties.L1(0.1)
TENSOR, FEW = np.random.default_rng(0).random((12, 6, 5)), {"random_state": 0, "max_iter": 5}
LABELED = {0: np.ones((12, 2))}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:The readout of the fit cannot be updated")
@each(
    ("model", "of_fit", "changed", "name"),
    [
        (sf.NMF(3, **FEW), {"covariates": ONES}, {}, "covariates"),
        (sf.NMF(3, penalties=PENALTY, **FEW), {}, {}, "penalties"),
        (sf.NMF(3, penalties=PENALTY, **FEW), {}, {"penalties": None}, "penalties"),
        (sf.NMF(3, **FEW), {}, {"penalties": PENALTY}, "penalties"),
        (sf.NMF(3, **FEW), {}, {"loss": D}, "loss must stay"),
        (sf.NMF(3, **FEW), {}, {"n_components": 4}, "n_components must stay"),
        (sf.SSNMFRegressor(3, penalties=PENALTY, **FEW), {}, {}, "penalties"),
        (sf.SSNMFRegressor(3, penalties=PENALTY, **FEW), {}, {"penalties": None}, "penalties"),
        (sf.SSNMFClassifier(3, **FEW), {}, {"loss": F}, "loss must stay"),
        (sf.SSNMFClassifier(3, supervision_weight=np.inf, **FEW), {}, {}, "supervision_weight"),
        (sf.NonnegativeCP(3, **FEW), {"X_weights": TENSOR}, {}, "X_weights"),
        (sf.NonnegativeCP(3, **FEW), {"y": LABELED}, {}, "with y"),
        (sf.NonnegativeCP(3, **FEW), {}, {"loss": D}, "loss must stay"),
        (sf.DynamicTopics(3, **FEW), {}, {"loss": D}, "loss must stay"),
        (sf.DynamicTopics(3, freq=5, **FEW), {}, {}, "freq=5"),
    ],
)
def test_what_batches_do_not_take_is_refused_after_a_fit(model, of_fit, changed, name, tmp_path):
    X = TENSOR if isinstance(model, sf.NonnegativeCP) else np.tile(TENSOR[..., 0], (5, 1))
    more = {"SSNMFClassifier": np.arange(60) % 3, "SSNMFRegressor": np.arange(60.0)}
    more["DynamicTopics"] = np.datetime64("2020-01") + np.arange(60) % 8
    targets = [more[type(model).__name__]] if type(model).__name__ in more else []
    model = clone(model).fit(X, *targets, **of_fit)
    sf.save(model, tmp_path / "model.npz")
    for one in (model, sf.load(tmp_path / "model.npz")):
        one.set_params(**changed)
        refused(name, one.partial_fit, X, *targets)
    if isinstance(model, sf.NonnegativeCP):
        refused("labels of modes", sf.NonnegativeCP(3).partial_fit, X, LABELED)


def test_threads_give_the_same_bits():
    models = [
        passes(
            sf.SSNMFClassifier(n_components=6, random_state=0, n_threads=n),
            X,
            y,
            epochs=1,
            classes=range(10),
        )
        for n in (1, 2, 3)
    ]
    assert len({model.components_.tobytes() for model in models}) == 1


def test_batches_are_never_modified_and_may_change_dtype():
    X = digits()[0].astype(np.float32)
    X.flags.writeable = False
    copy = X.copy()
    model = sf.NMF(n_components=5, random_state=0).partial_fit(X[:600])
    model.partial_fit(X[600:].astype(np.float64)).partial_fit((16 * X[:600]).astype(int))
    assert model.components_.dtype == np.float32
    np.testing.assert_array_equal(X, copy)


@pytest.mark.parametrize(
    ("first", "second", "error", "message"),
    [
        ({}, None, ValueError, "classes must be passed on the first call"),
        ({"classes": [1]}, None, ValueError, "expected two classes or more"),
        ({"classes": [0, 1]}, {"y": [0, 5]}, ValueError, r"5, which is not a class of the first"),
        ({"classes": [0, 1]}, {"y": ["a", "b"]}, ValueError, "not a class of the first call"),
        ({"classes": [0, 1]}, {"classes": [0, 2]}, ValueError, "differ from those of the first"),
        ({"classes": [0, 1]}, {"X": np.ones((2, 3))}, ValueError, "features"),
        ({"classes": [0, 1]}, {"X": -np.ones((2, 4))}, ValueError, "Negative values"),
    ],
)
def test_errors_change_nothing(first, second, error, message):
    model = sf.SSNMFClassifier(n_components=2, random_state=0)
    X, y = np.ones((2, 4)), [0, 1]
    if second is None:
        refused(message, model.partial_fit, X, y, **first, error=error)
        assert not hasattr(model, "components_")
        return
    model.partial_fit(X, y, **first)
    before = model.components_.copy()
    refused(message, model.partial_fit, **{"X": X, "y": y, **second}, error=error)
    np.testing.assert_array_equal(model.components_, before)
    assert model.n_iter_ == 1


@pytest.mark.parametrize(("value", "message"), [(1.5, "at most 1"), (-1, "finite and at least 0")])
def test_bad_forget_factors(value, message):
    model = sf.NMF(n_components=2, forget_factor=value)
    refused(f"forget_factor must be {message}", model.partial_fit, np.ones((2, 4)))


@each(
    ("name", "old", "new"),
    [
        ("n_components", 4, 5),
        ("loss", F, D),
        ("supervision_loss", D, F),
        ("supervision_weight", 2.0, 3.0),
        ("supervision_weight", "balanced", 3.0),
        ("supervision_weight", 2.0, "balanced"),
    ],
)
@each("kind", [sf.NMF, sf.SSNMFClassifier, sf.SSNMFRegressor])
def test_changed_settings_are_refused(kind, name, old, new):
    targets = () if kind is sf.NMF else (y[:50],)
    first = {"classes": range(10)} if kind is sf.SSNMFClassifier else {}
    model = kind(random_state=0)
    if name not in model.get_params():
        pytest.skip(f"without {name}")
    model.set_params(n_components=4).set_params(**{name: old}).partial_fit(
        X[:50], *targets, **first
    )
    before = model.components_
    model.set_params(**{name: new})
    refused(f"{name} must stay {old!r}.*got {new!r}.*clone", model.partial_fit, X[:50], *targets)
    assert model.components_ is before
    model.set_params(**{name: old}).partial_fit(X[:50], *targets)
    assert model.n_iter_ == 2


def test_other_settings_may_change():
    model = sf.SSNMFClassifier(random_state=0).partial_fit(X[:50], y[:50], range(10))
    # The number that "auto" stands for is no change.
    model.set_params(n_threads=2, verbose=0, tol=0, solver="mm", random_state=1, n_components=10)
    assert model.partial_fit(X[:50], y[:50]).n_iter_ == 2
    model.set_params(supervision_weight=7.0, readout="joint")
    assert model.fit(X[:50], y[:50]).partial_fit(X[:50], y[:50]).n_iter_ == 1


def test_batches_without_labels_or_without_anything():
    model = sf.SSNMFClassifier(n_components=5, random_state=0)
    model.partial_fit(X[:300], np.full(300, -1), classes=range(10))
    np.testing.assert_allclose(model.class_prior_, 0.1)
    model.partial_fit(np.zeros((5, 64)), y[:5]).partial_fit(X[:1], y[:1])
    assert np.isfinite(model.components_).all()
    assert np.isfinite(model.label_components_).all()


def test_a_matrix_on_disk_is_for_fit(tmp_path):
    path = tmp_path / "X.npz"
    sp.save_npz(path, sp.csr_array(np.eye(4)), compressed=False)
    with pytest.raises(TypeError, match="X is on disk, and partial_fit needs it in memory"):
        sf.NMF(n_components=2).partial_fit(sf.io.open_csr(path))


@pytest.mark.parametrize("loss", [F, D])
def test_batches_may_have_weights_and_missing_entries_or_not(loss):
    """Also with as many features as components: curvature and majorizer have the same shape."""
    rng = np.random.default_rng(0)
    for m in (12, 8):
        X = rng.random((900, 3)) @ rng.random((3, m))
        holes = np.where(rng.random(X.shape) < 0.3, np.nan, X)
        model = sf.NMF(n_components=8, loss=loss, random_state=0)
        for begin in range(0, 3600, 100):
            rows = slice(begin % 900, begin % 900 + 100)
            kind = begin // 100 % 4
            batch = holes[rows] if kind == 1 else X[rows]
            weights = [None, None, sf.weights.outer(None, rng.random(m)), rng.random((100, m))]
            model.partial_fit(batch, X_weights=weights[kind])
        error = np.abs(model.inverse_transform(model.transform(X)) - X).mean()
        assert error < 0.05 * X.mean()


@each("dtype", [np.float32, np.float64])
def test_components_that_vanish_come_back(dtype):
    """The second batch has no data where the component may be, and no past is kept."""
    model = sf.SSNMFRegressor(
        1, A_support=[[True, False, False]], forget_factor=0.0, random_state=0
    )
    X = np.zeros((9, 3), dtype)
    X[[1, 5, 6, 7], 0] = 6.56e-5, 3.94e-4, 4.41e-5, 8.32e-4
    X[[2, 8], 1] = 5.11e-4, 2.96e-5
    X[[3, 5], 2] = 3.57e-4, 8.26e-4
    first = [0.47, 0.25, 1.08, 0.88, 1.02, 0.58, 0.56, 0.26, 0.98]
    y = np.array([first, [0.19, 1.07, 0.5, 0.81, 0.43, 0.44, 0.52, 0.65, 0.91]]).T
    for batch in (slice(0, 3), slice(3, 4), slice(4, 9)):
        model.partial_fit(X[batch], y[batch])
    assert 1e-3 < model.components_[0, 0] < 1
