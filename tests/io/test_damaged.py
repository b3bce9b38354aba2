"""Damaged model files, and files of strangers, are refused; none runs code."""

import copy
import io
import json
import tracemalloc
import warnings
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from helpers.each import each
from helpers.refused import refused
from quick_fits import parameters

import ssnmf_fast as sf


@pytest.fixture(scope="module")
def kept(data, tmp_path_factory):
    """Files of models, which every test reads and none changes."""
    X, y = data
    models = {
        "classifier": sf.SSNMFClassifier(**parameters()).fit(X, y),
        "Bayesian": sf.papers.SupervisedBayesianNMF(**parameters()).fit(X, y),
        "over time": sf.DynamicTopics(**parameters()).fit(
            X, np.datetime64("2001-01-01") + np.arange(len(X))
        ),
    }
    paths = {name: tmp_path_factory.mktemp("kept") / "model.npz" for name in models}
    for name, model in models.items():
        sf.save(model, paths[name])
    return paths


def _contents(path):
    with np.load(path, allow_pickle=False) as archive:
        arrays = dict(archive)
    return json.loads(arrays.pop("header").tobytes()), arrays


def _rewrite(path, header, arrays):
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    with path.open("wb") as file:
        np.savez(file, header=text, **arrays)


def _item(place, value):
    """Return a change of one item of an array."""

    def change(array):
        array[place] = value
        return array

    return change


@each(
    ("name", "place", "change"),
    [
        ("classifier", ("class",), "os.system"),
        ("classifier", ("attributes", "predict"), "x"),  # a method would be hidden
        ("classifier", ("attributes", "__class__"), "x"),
        ("classifier", "components_", np.negative),
        ("classifier", "components_", lambda A: A[:, :-1]),
        ("classifier", "components_", lambda A: None),
        ("classifier", ("attributes", "n_iter_"), "ten"),
        ("classifier", ("parameters", "surprise"), 1),
        ("classifier", ("parameters", "init"), {"a": 1}),
        ("classifier", ("format",), "another"),
        ("classifier", ("attributes", "objective_"), 5),
        ("Bayesian", "components_", np.negative),
        ("Bayesian", "components_rate_", _item(1, -1)),
        ("Bayesian", "label_rates_", _item((1, 0), np.nan)),
        ("Bayesian", "representation_groups_", _item(5, 3)),
        ("Bayesian", "representation_groups_", lambda groups: groups / 1.0),
        ("Bayesian", ("attributes", "lower_bound_"), "high"),
        ("Bayesian", ("attributes", "A_shape_"), 0.0),
        ("over time", ("attributes", "slices_", "values", 1), "soon"),
        ("over time", ("attributes", "slices_", "kind"), "ns"),
        ("over time", ("attributes", "slices_", "values", -1), None),
    ],
)
def test_spoiled_files_are_refused(name, place, change, kept, path):
    """Something of the header is replaced, or an array is changed; None leaves it out."""
    header, arrays = _contents(kept[name])
    if isinstance(place, tuple):
        header = _put(header, place, change)
    else:
        key = f"array/{place}"
        arrays = _put(arrays, (key,), change(arrays[key]))
    _rewrite(path, header, arrays)
    refused("is damaged, or was not written", sf.load, path)


def _models_with_numbers():
    """Return models, with names of their arrays (or counts) and values that these cannot have."""
    rng = np.random.default_rng(0)
    X, y, huge = rng.poisson(2.0, (36, 8)).astype(float), np.arange(36) % 3, 10**6
    model = sf.NMF(3, random_state=0).fit(X)
    over_time = sf.topics_over_time(model, X, np.datetime64("2020-01") + np.arange(36) % 6, by=y)
    holes = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    batches = sf.SSNMFClassifier(3, random_state=0).partial_fit(X, y, classes=[0, 1, 2])
    words = {"words/increase": (8, -1, huge), "words/top": (8, 0.5), "document_slices": (6, -1)}
    imputer = {"indicated_": (8, -1, huge), "ridge_": (np.nan, -1.0), "n_components_": (huge,)}
    kept = {"stream_statistics_/bA": (np.nan, -1.0), "class_prior_": (-1.0,)}
    seeded = sf.SeededTopics({0: [0], 1: [3], 2: [6]}, random_state=0).fit(X)
    return [
        (over_time, words | {"sizes": (-1,), "class_sizes/0": (-1,), "components": (np.nan, -1.0)}),
        (sf.LowRankImputer(random_state=0).fit(holes), imputer),
        (batches, kept),
        (seeded, {"seed_weights_/indices": (8, -1, 0.5)}),
        (sf.Recommender(random_state=0).fit(y, np.arange(36) % 8), {"n_components_": (huge,)}),
        (sf.BayesianNMF(2, random_state=0).fit(X), {"representation_groups_": (1, -1, 0.5)}),
    ]


@pytest.mark.filterwarnings("ignore")
def test_numbers_that_do_not_belong_to_their_arrays_are_refused(path):
    for model, spoiled in _models_with_numbers():
        sf.save(model, path)
        header, arrays = _contents(path)
        for name, values in spoiled.items():
            for value in values:
                attributes, others = dict(header["attributes"]), dict(arrays)
                if (key := f"array/{name}") in arrays:
                    kind = np.result_type(arrays[key], type(value))
                    others[key] = arrays[key].astype(kind)
                    others[key].flat[0] = value
                else:
                    attributes[name] = value
                _rewrite(path, header | {"attributes": attributes}, others)
                refused("do not fit together", sf.load, path)


def _leaves(values, path=()):
    """Paths to everything in a header."""
    yield path
    if isinstance(values, (dict, list)):
        for key in values if isinstance(values, dict) else range(min(len(values), 2)):
            yield from _leaves(values[key], (*path, key))


def _put(values, path, value):
    """Return a copy with another value, or without this key."""
    changed = copy.deepcopy(values)
    place = changed
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return changed


X = np.random.default_rng(0).random((8, 6))
FITS = {
    "Factorization": lambda: (sf.factorize(X, np.eye(2)[np.arange(8) % 2], **parameters()), X),
    "TensorFactorization": lambda: (
        sf.factorize_tensor(X.reshape(2, 4, 6), y={0: np.eye(2)}, **parameters()),
        X.reshape(2, 4, 6),
    ),
    "Consensus": lambda: (
        sf.consensus(X, 2, n_starts=3, distance_threshold=2, random_state=0),
        None,
    ),
    "Completion": lambda: (
        sf.complete(np.where(X < 0.2, np.nan, X), n_components=1, max_iter=5),
        None,
    ),
}
OTHERS = (None, 7, "x", [1], {"kind": "dict", "values": {"a": 1}})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FITS)
def test_headers_of_results_are_checked_when_they_are_read(name, path):
    """What is read can be used: nothing ends in an error of Python later on."""
    fit, data = FITS[name]()
    sf.save(fit, path)
    header, _ = _contents(path)
    whole, refused = path.read_bytes(), 0
    for place in _leaves(header["attributes"]):
        for other in OTHERS:
            if not place or (other is None and isinstance(place[-1], int)):
                continue
            changed = {**header, "attributes": _put(header["attributes"], place, other)}
            path.write_bytes(_with_header(whole, changed))
            try:
                loaded = sf.load(path)
            except ValueError as error:
                assert str(path) in str(error)  # noqa: PT017
                refused += 1
                continue
            assert repr(loaded)
            if data is not None:
                assert isinstance(sf.verify(loaded, data), sf.results.Verification)
    assert refused > 20


@each(
    ("place", "value"),
    [
        (("settings", "values", "zeros_stay"), 7),
        (("settings", "values", "loss"), ["frobenius"]),
        (("settings", "values", "tol"), "small"),
        (("settings", "values", "more"), 1),
        (("settings", "values", "max_iter"), None),
        (("residuals", "values", "S"), "x"),
        (("residuals", "values"), []),
        (("inputs", "values", "y"), 5),
        (("parts", "values", "S"), 5),
        (("n_iter",), True),
        (("n_iter",), 2.5),
        (("converged",), 1),
        (("objective",), "low"),
        (("level",), None),
        (("seal",), 5),
        (("more",), 5),
    ],
)
def test_receipts_are_checked_when_they_are_read(place, value, path):
    for name in ("Factorization", "TensorFactorization"):
        sf.save(FITS[name]()[0], path)
        header, arrays = _contents(path)
        receipt = header["attributes"]["receipt"]["values"]
        header["attributes"]["receipt"]["values"] = _put(receipt, place, value)
        if name == "TensorFactorization" and place[-1] in ("y", "S"):
            continue
        _rewrite(path, header, arrays)
        refused(f"{path} is damaged", sf.load, path)


def _with_header(whole, header):
    """Return the bytes of a file with another header; nothing else is packed anew."""
    buffer, text = io.BytesIO(), io.BytesIO()
    np.save(text, np.frombuffer(json.dumps(header).encode(), dtype=np.uint8))
    with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(buffer, "w") as new:
        for one in old.infolist():
            content = text.getvalue() if one.filename == "header.npy" else old.read(one)
            new.writestr(one.filename, content)
    return buffer.getvalue()


def _with_member(whole, name, shape, written):
    """Return the bytes of a file with one more array, of which only so many bytes are there."""
    start = io.BytesIO()
    about = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(start, about)
    buffer = io.BytesIO(whole)
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, start.getvalue() + bytes(written))
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["model", "start"])
def test_unknown_arrays_are_not_unpacked(kind, kept, path, tmp_path):
    size = 1 << 22
    if kind == "start":
        given = {"n_starts": 2, "random_state": 0, "distance_threshold": 2, "folder": tmp_path}
        sf.consensus(X, 2, **given)
        path = tmp_path / "start.k_2.iter_0.npz"
        known = "components"
    else:
        path.write_bytes(kept["classifier"].read_bytes())
        known = "array/class_shares_"

    def read():
        return sf.load(path) if kind == "model" else sf.consensus(X, 2, **given)

    whole = path.read_bytes()
    read()
    for name in ("more.npy", "array/more.npy", "array/A/b.npy", "more.txt", "../more.npy"):
        path.write_bytes(_with_member(whole, name, (size // 8,), size))
        assert path.stat().st_size < size / 50
        tracemalloc.start()
        with pytest.raises(ValueError, match="unknown array") as caught:
            read()
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < size / 4
        assert str(path) in str(caught.value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a name that is there twice
        path.write_bytes(_with_member(whole, f"{known}.npy", (2, 2), 32))
    with pytest.raises(ValueError, match="an array twice") as caught:
        read()


def test_arrays_are_as_long_as_they_are_said_to_be(kept, path):
    header, arrays = _contents(kept["classifier"])
    del arrays["array/representation_"]
    _rewrite(path, header, arrays)
    sf.load(path)
    whole = path.read_bytes()
    for shape, written in (((1 << 50, 4), 64), ((2, 4), 128), ((90, 4), 8)):
        path.write_bytes(_with_member(whole, "array/representation_.npy", shape, written))
        refused(r"is damaged.*representation_ does not have", sf.load, path)


def test_newer_files_are_named(data, path):
    sf.save(sf.NMF(**parameters()).fit(data[0]), path)
    header, arrays = _contents(path)
    _rewrite(path, header | {"format_version": 99}, arrays)
    refused(r"format version 99.*Update ssnmf_fast", sf.load, path)


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
    refused("is damaged, or was not written", sf.load, path)


def test_cut_and_flipped_files_are_refused(data, path):
    sf.save(sf.NMF(**parameters()).fit(data[0]), path)
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], whole[:200] + b"\xff" * 50 + whole[250:]):
        path.write_bytes(content)
        refused("is damaged, or was not written", sf.load, path)


def test_a_damaged_directory_of_the_file_is_refused(data, path):
    """Places in it that lie before the file make the system refuse to go there."""
    sf.save(sf.NMF(**parameters()).fit(data[0]), path)
    whole = path.read_bytes()
    end = whole.rindex(b"PK\x05\x06")
    place = int.from_bytes(whole[end + 16 : end + 20], "little")
    for wrong in (place + 1000, 2**31, 2**32 - 1):
        path.write_bytes(whole[: end + 16] + wrong.to_bytes(4, "little") + whole[end + 20 :])
        refused("is damaged, or was not written", sf.load, path)


def test_no_file(path):
    with pytest.raises(FileNotFoundError):
        sf.load(path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_damaged_bytes_are_always_a_value_error(seed, data, path):
    sf.save(sf.NMF(**parameters()).fit(data[0][:5, :6]), path)
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
