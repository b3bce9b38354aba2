"""Damaged model files, and files of strangers, are refused; none runs code."""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from quick_fits import parameters

import ssnmf_fast as sf


@pytest.fixture(scope="module")
def kept(data, tmp_path_factory):
    """The file of a classifier, which every test reads and none changes."""
    path = tmp_path_factory.mktemp("kept") / "model.npz"
    sf.save(sf.SSNMFClassifier(**parameters()).fit(*data), path)
    return path


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
def test_spoiled_files_are_refused(spoil, kept, path):
    header, arrays = _contents(kept)
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
    header["attributes"]["A_shape_"] = 0.0


@pytest.mark.parametrize(
    "spoil",
    [_negative, _negative_rate, _no_rate, _unknown_group, _real_groups, _no_bound, _no_shape],
)
def test_spoiled_files_of_bayesian_models_are_refused(spoil, data, path):
    sf.save(sf.SupervisedBayesianNMF(**parameters()).fit(*data), path)
    header, arrays = _contents(path)
    spoil(header, arrays)
    _rewrite(path, header, arrays)
    with pytest.raises(ValueError, match="is damaged, or is no model"):
        sf.load(path)


def _no_times(header, arrays):
    header["attributes"]["slices_"]["values"][1] = "soon"


def _another_unit(header, arrays):
    header["attributes"]["slices_"]["kind"] = "ns"


def _fewer_slices(header, arrays):
    header["attributes"]["slices_"]["values"].pop()


@pytest.mark.parametrize("spoil", [_no_times, _another_unit, _fewer_slices])
def test_spoiled_slices_are_refused(spoil, data, path):
    times = np.datetime64("2001-01-01") + np.arange(len(data[0]))
    sf.save(sf.DynamicTopics(**parameters()).fit(data[0], times), path)
    header, arrays = _contents(path)
    spoil(header, arrays)
    _rewrite(path, header, arrays)
    with pytest.raises(ValueError, match="is damaged, or is no model"):
        sf.load(path)


def test_newer_files_are_named(data, path):
    sf.save(sf.NMF(**parameters()).fit(data[0]), path)
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
    sf.save(sf.NMF(**parameters()).fit(data[0]), path)
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], whole[:200] + b"\xff" * 50 + whole[250:]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is damaged, or is no model"):
            sf.load(path)


def test_a_damaged_directory_of_the_file_is_refused(data, path):
    """Places in it that lie before the file make the system refuse to go there."""
    sf.save(sf.NMF(**parameters()).fit(data[0]), path)
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
