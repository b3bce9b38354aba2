"""save and load: every model comes back as it was."""

import numpy as np
import pytest
from helpers.each import each
from helpers.refused import refused
from quick_fits import parameters

import ssnmf_fast as sf

NAMES_OF_CLASSES = np.array(["drei", "eins", "zwei ☃"])
MIXED = np.array(["a", "b", "c"], dtype=object)

# Each fits one model to X and y.
FITS = {
    "NMF": lambda X, y: sf.NMF(**parameters()).fit(X),
    "int": lambda X, y: sf.SSNMFClassifier(**parameters(supervision_weight="balanced")).fit(X, y),
    "text": lambda X, y: sf.SSNMFClassifier(**parameters()).fit(X, NAMES_OF_CLASSES[y]),
    "object": lambda X, y: sf.SSNMFClassifier(**parameters()).fit(X, MIXED[y]),
    "bool": lambda X, y: sf.SSNMFClassifier(**parameters()).fit(X, y > 0),
    "several": lambda X, y: sf.SSNMFClassifier(**parameters()).fit(
        X, np.column_stack([y == 0, y > 0]).astype(int)
    ),
    "few labels": lambda X, y: sf.FewLabelsClassifier(random_state=0, max_iter=10, tol=0).fit(
        X, NAMES_OF_CLASSES[y]
    ),
    "topics": lambda X, y: sf.TopicSupervisedNMF(random_state=0).fit(
        X, [[NAMES_OF_CLASSES[k]] for k in y]
    ),
    "seeds": lambda X, y: sf.SeededTopics(random_state=0).fit(X, NAMES_OF_CLASSES[y]),
    "margin": lambda X, y: sf.papers.MarginNMF(**parameters()).fit(X, y),
    "constrained": lambda X, y: sf.papers.ConstrainedNMF(**parameters()).fit(
        X, NAMES_OF_CLASSES[y]
    ),
    "real": lambda X, y: sf.SSNMFRegressor(**parameters(max_iter=np.int64(10))).fit(X, y),
    "dynamic": lambda X, y: sf.DynamicTopics(**parameters(freq="week")).fit(X, _days(X)),
    "dynamic parts": lambda X, y: sf.DynamicTopics(**parameters(freq=4)).fit(X, _days(X)),
    "dynamic stream": lambda X, y: (
        sf.DynamicTopics(**parameters(freq="6 hours"), method="tied")
        .fit(X[:60], _days(X)[:60])
        .partial_fit(X[60:], _days(X)[60:])
    ),
    "dynamic months": lambda X, y: sf.DynamicTopics(**parameters(), loss="kullback-leibler").fit(
        X, _days(X)
    ),
    "bayesian": lambda X, y: sf.BayesianNMF(**parameters(S_shape="auto")).fit(X),
    "bayesian text": lambda X, y: sf.papers.SupervisedBayesianNMF(**parameters(rate_shape=2)).fit(
        X, NAMES_OF_CLASSES[y]
    ),
    "bayesian some": lambda X, y: sf.papers.SupervisedBayesianNMF(**parameters()).fit(X, y - 1.0),
}


def _days(X):
    return np.datetime64("2001-12-30") + np.arange(len(X))


def _intervals(model):
    if not hasattr(model, "interval_components"):
        return ()
    return (*model.interval_components(), *model.interval_representation())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Of the .* topics, .* resemble others:UserWarning")
@each("name", FITS)
def test_estimators_come_back(name, data, path):
    X, _ = data
    model = FITS[name](*data)
    sf.save(model, path)
    loaded = sf.load(str(path))
    assert type(loaded) is type(model)
    assert loaded.get_params() == model.get_params()
    assert set(vars(loaded)) == set(vars(model))
    assert loaded.objective_ == model.objective_
    assert np.array_equal(loaded.transform(X), model.transform(X))
    if hasattr(model, "slices_"):
        assert loaded.slices_.dtype == model.slices_.dtype
        assert np.array_equal(loaded.slices_, model.slices_)
        assert repr(loaded.peaks()) == repr(model.peaks())
    for low, high in zip(_intervals(loaded), _intervals(model), strict=True):
        assert np.array_equal(low, high)
    if hasattr(model, "predict"):
        assert np.array_equal(loaded.predict(X), model.predict(X))
        assert loaded.predict(X).dtype == model.predict(X).dtype


def test_feature_names_come_back(data, path):
    pd = pytest.importorskip("pandas")
    X, _ = data
    frame = pd.DataFrame(X, columns=[f"pixel {i}" for i in range(64)])
    model = sf.NMF(**parameters()).fit(frame)
    sf.save(model, path)
    loaded = sf.load(path)
    assert list(loaded.feature_names_in_) == list(frame.columns)
    assert np.array_equal(loaded.transform(frame), model.transform(frame))


@pytest.mark.parametrize("supervised", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factorizations_come_back(supervised, dtype, data, path):
    X, y = data
    Y = np.eye(3)[y] if supervised else None
    result = sf.factorize(X.astype(dtype), Y, **parameters())
    sf.save(result, path)
    loaded = sf.load(path)
    assert np.array_equal(loaded.S, result.S)
    assert loaded.A.dtype == dtype
    assert (loaded.B is not None) == supervised
    assert loaded.objective == result.objective
    assert (loaded.n_iter, loaded.converged) == (result.n_iter, result.converged)


def test_what_cannot_be_text_is_left_at_its_default(data, path):
    X, _ = data
    rng = np.random.default_rng(0)
    start = (rng.random((90, 4)), rng.random((4, 64)))
    model = sf.NMF(**parameters(init=start, random_state=rng, callback=lambda state: None))
    sf.save(model.fit(X), path)
    loaded = sf.load(path)
    assert (loaded.init, loaded.random_state, loaded.callback) == ("auto", None, None)
    assert np.array_equal(loaded.components_, model.components_)


def test_saving_replaces_and_leaves_nothing_behind(data, tmp_path):
    path = tmp_path / "name without ending"
    model = sf.NMF(**parameters()).fit(data[0])
    sf.save(model, path)
    sf.save(model, path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_bad_models_are_refused(data, path):
    refused("not fitted", sf.save, sf.NMF(), path)
    refused("A dict cannot be saved", sf.save, {}, path, error=TypeError)
    assert not path.exists()
