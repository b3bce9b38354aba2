"""save and load: every model comes back as it was, and no file runs code."""

from __future__ import annotations

import io
import json
import os
import warnings
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from sklearn.datasets import load_digits

import ssnmf_fast as sf


@pytest.fixture(scope="module")
def data():
    X, y = load_digits(n_class=3, return_X_y=True)
    return X[:90] / 16, y[:90]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


def _parameters(**more):
    return {"n_components": 4, "tol": 0, "max_iter": 10, "random_state": 0} | more


NAMES_OF_CLASSES = np.array(["null", "eins", "zwei ☃"])
MIXED = np.array(["a", "b", "c"], dtype=object)

# Each fits one model to X and y.
FITS = {
    "NMF": lambda X, y: sf.NMF(**_parameters()).fit(X),
    "int": lambda X, y: sf.SSNMFClassifier(**_parameters(supervision_weight="balanced")).fit(X, y),
    "text": lambda X, y: sf.SSNMFClassifier(**_parameters()).fit(X, NAMES_OF_CLASSES[y]),
    "object": lambda X, y: sf.SSNMFClassifier(**_parameters()).fit(X, MIXED[y]),
    "bool": lambda X, y: sf.SSNMFClassifier(**_parameters()).fit(X, y > 0),
    "several": lambda X, y: sf.SSNMFClassifier(**_parameters()).fit(
        X, np.column_stack([y == 0, y > 0]).astype(int)
    ),
    "topics": lambda X, y: sf.TopicSupervisedNMF(random_state=0).fit(
        X, [[NAMES_OF_CLASSES[k]] for k in y]
    ),
    "margin": lambda X, y: sf.MarginNMF(**_parameters()).fit(X, y),
    "constrained": lambda X, y: sf.ConstrainedNMF(**_parameters()).fit(X, NAMES_OF_CLASSES[y]),
    "real": lambda X, y: sf.SSNMFRegressor(**_parameters(max_iter=np.int64(10))).fit(X, y),
    "bayesian": lambda X, y: sf.BayesianNMF(**_parameters(a_S="auto")).fit(X),
    "bayesian text": lambda X, y: sf.SupervisedBayesianNMF(**_parameters(a_lambda=2)).fit(
        X, NAMES_OF_CLASSES[y]
    ),
    "bayesian some": lambda X, y: sf.SupervisedBayesianNMF(**_parameters()).fit(X, y - 1.0),
}


def _intervals(model):
    if not hasattr(model, "interval_components"):
        return ()
    return (*model.interval_components(), *model.interval_representation())


@pytest.mark.parametrize("name", FITS)
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
    for low, high in zip(_intervals(loaded), _intervals(model), strict=True):
        assert np.array_equal(low, high)
    if hasattr(model, "predict"):
        assert np.array_equal(loaded.predict(X), model.predict(X))
        assert loaded.predict(X).dtype == model.predict(X).dtype


def test_feature_names_come_back(data, path):
    pd = pytest.importorskip("pandas")
    X, _ = data
    frame = pd.DataFrame(X, columns=[f"pixel {i}" for i in range(64)])
    model = sf.NMF(**_parameters()).fit(frame)
    sf.save(model, path)
    loaded = sf.load(path)
    assert list(loaded.feature_names_in_) == list(frame.columns)
    assert np.array_equal(loaded.transform(frame), model.transform(frame))


@pytest.mark.parametrize("supervised", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factorizations_come_back(supervised, dtype, data, path):
    X, y = data
    Y = np.eye(3)[y] if supervised else None
    result = sf.factorize(X.astype(dtype), Y, **_parameters())
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
    model = sf.NMF(**_parameters(init=start, random_state=rng, callback=lambda state: None))
    sf.save(model.fit(X), path)
    loaded = sf.load(path)
    assert (loaded.init, loaded.random_state, loaded.callback) == ("auto", None, None)
    assert np.array_equal(loaded.components_, model.components_)


def test_saving_replaces_and_leaves_nothing_behind(data, tmp_path):
    path = tmp_path / "name without ending"
    model = sf.NMF(**_parameters()).fit(data[0])
    sf.save(model, path)
    sf.save(model, path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_bad_models_are_refused(data, path):
    with pytest.raises(ValueError, match="not fitted"):
        sf.save(sf.NMF(), path)
    with pytest.raises(TypeError, match="A dict cannot be saved"):
        sf.save({}, path)
    assert not path.exists()


def _contents(path):
    with np.load(path, allow_pickle=False) as archive:
        arrays = dict(archive)
    return json.loads(arrays.pop("header").tobytes()), arrays


def _rewrite(path, header, arrays):
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    with path.open("wb") as file:
        np.savez(file, header=text, **arrays)


def _other_class(header, arrays):
    header["class"] = "os.system"


def _hidden_method(header, arrays):
    header["attributes"]["predict"] = "x"


def _class_attribute(header, arrays):
    header["attributes"]["__class__"] = "x"


def _negative(header, arrays):
    arrays["array/components_"] = -arrays["array/components_"]


def _shapes(header, arrays):
    arrays["array/components_"] = arrays["array/components_"][:, :-1]


def _missing(header, arrays):
    del arrays["array/components_"]


def _no_count(header, arrays):
    header["attributes"]["n_iter_"] = "ten"


def _parameter(header, arrays):
    header["parameters"]["surprise"] = 1


def _nested(header, arrays):
    header["parameters"]["init"] = {"a": 1}


def _format(header, arrays):
    header["format"] = "another"


def _history(header, arrays):
    header["attributes"]["objective_"] = 5


@pytest.mark.parametrize(
    "spoil",
    [
        _other_class,
        _hidden_method,
        _class_attribute,
        _negative,
        _shapes,
        _missing,
        _no_count,
        _parameter,
        _nested,
        _format,
        _history,
    ],
)
def test_spoiled_files_are_refused(spoil, data, path):
    sf.save(sf.SSNMFClassifier(**_parameters()).fit(*data), path)
    header, arrays = _contents(path)
    spoil(header, arrays)
    _rewrite(path, header, arrays)
    with pytest.raises(ValueError, match="is damaged, or is no model"):
        sf.load(path)


def _negative_rate(header, arrays):
    arrays["array/components_rate_"][1] = -1


def _no_rate(header, arrays):
    arrays["array/label_rates_"][1, 0] = np.nan


def _unknown_group(header, arrays):
    arrays["array/representation_groups_"][5] = 3


def _real_groups(header, arrays):
    arrays["array/representation_groups_"] = arrays["array/representation_groups_"] / 1.0


def _no_bound(header, arrays):
    header["attributes"]["lower_bound_"] = "high"


def _no_shape(header, arrays):
    header["attributes"]["a_A_"] = 0.0


@pytest.mark.parametrize(
    "spoil",
    [_negative, _negative_rate, _no_rate, _unknown_group, _real_groups, _no_bound, _no_shape],
)
def test_spoiled_files_of_bayesian_models_are_refused(spoil, data, path):
    sf.save(sf.SupervisedBayesianNMF(**_parameters()).fit(*data), path)
    header, arrays = _contents(path)
    spoil(header, arrays)
    _rewrite(path, header, arrays)
    with pytest.raises(ValueError, match="is damaged, or is no model"):
        sf.load(path)


def test_newer_files_are_named(data, path):
    sf.save(sf.NMF(**_parameters()).fit(data[0]), path)
    header, arrays = _contents(path)
    _rewrite(path, header | {"format_version": 99}, arrays)
    with pytest.raises(ValueError, match=r"format version 99.*Update ssnmf_fast"):
        sf.load(path)


def _npy():
    buffer = io.BytesIO()
    np.save(buffer, np.ones(3))
    return buffer.getvalue()


def _pickled():
    buffer = io.BytesIO()
    np.savez(buffer, header=np.array([{"a": 1}], dtype=object))
    return buffer.getvalue()


def _foreign_zip():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("header", "text")
    return buffer.getvalue()


@pytest.mark.parametrize(
    "content", [b"", b"garbage" * 50, b"PK\x03\x04 cut", _npy(), _pickled(), _foreign_zip()]
)
def test_garbage_is_refused(content, path):
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is damaged, or is no model"):
        sf.load(path)


def test_cut_and_flipped_files_are_refused(data, path):
    sf.save(sf.NMF(**_parameters()).fit(data[0]), path)
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], whole[:200] + b"\xff" * 50 + whole[250:]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is damaged, or is no model"):
            sf.load(path)


def test_a_damaged_directory_of_the_file_is_refused(data, path):
    """Places in it that lie before the file make the system refuse to go there."""
    sf.save(sf.NMF(**_parameters()).fit(data[0]), path)
    whole = path.read_bytes()
    end = whole.rindex(b"PK\x05\x06")
    place = int.from_bytes(whole[end + 16 : end + 20], "little")
    for wrong in (place + 1000, 2**31, 2**32 - 1):
        path.write_bytes(whole[: end + 16] + wrong.to_bytes(4, "little") + whole[end + 20 :])
        with pytest.raises(ValueError, match="is damaged, or is no model"):
            sf.load(path)


def test_no_file(path):
    with pytest.raises(FileNotFoundError):
        sf.load(path)


class TestFiles:
    """A model file is replaced as a whole, in its place."""

    @pytest.fixture
    def model(self, data):
        return sf.NMF(**_parameters()).fit(data[0])

    def test_links_are_followed(self, model, tmp_path):
        real, link = tmp_path / "deep" / "real.npz", tmp_path / "link.npz"
        real.parent.mkdir()
        link.symlink_to(real)
        for _ in range(2):  # first the link leads nowhere
            sf.save(model, link)
            assert link.is_symlink()
            assert isinstance(sf.load(real), sf.NMF)
        assert sorted(p.name for p in tmp_path.iterdir()) == ["deep", "link.npz"]

    @pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
    def test_permissions_stay(self, mode, model, path):
        path.touch()
        path.chmod(mode)
        sf.save(model, path)
        assert path.stat().st_mode & 0o777 == mode

    def test_new_files_follow_the_umask(self, model, path):
        earlier = os.umask(0o027)
        try:
            sf.save(model, path)
        finally:
            os.umask(earlier)
        assert path.stat().st_mode & 0o777 == 0o640

    @pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
    def test_an_interrupted_write_leaves_the_old_file(self, error, model, path, monkeypatch):
        sf.save(model, path)
        before = path.read_bytes()

        def half(file, **arrays):
            file.write(b"PK half")
            raise error

        monkeypatch.setattr(np, "savez_compressed", half)
        with pytest.raises(type(error)):
            sf.save(model, path)
        assert path.read_bytes() == before
        assert [p.name for p in path.parent.iterdir()] == [path.name]

    def test_errors_name_the_file_that_was_given(self, model, tmp_path):
        missing = tmp_path / "no folder" / "model.npz"
        with pytest.raises(FileNotFoundError) as caught:
            sf.save(model, missing)
        assert caught.value.filename == str(missing)
        with pytest.raises(IsADirectoryError):
            sf.save(model, tmp_path)


@pytest.mark.parametrize("seed", range(3))
def test_damaged_bytes_are_always_a_value_error(seed, data, path):
    sf.save(sf.NMF(**_parameters()).fit(data[0][:5, :6]), path)
    whole, rng = path.read_bytes(), np.random.default_rng(seed)
    directory = whole.rindex(b"PK\x01\x02")
    for trial in range(300):
        damaged = bytearray(whole)
        begin = (0, directory - 200)[trial % 2]  # half of them where the list of contents is
        for place in rng.integers(begin, len(whole), 1 + trial % 3):
            damaged[place] = rng.integers(256)
        path.write_bytes(bytes(damaged[: rng.integers(len(whole))] if trial % 5 == 0 else damaged))
        with suppress(ValueError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sf.load(path)
