"""A folder that keeps starts: resumed, after a kill too, and never mixed with others."""

import json
import signal
import subprocess
import sys
import time
from itertools import count

import numpy as np
import pytest
import scipy.sparse as sp
from consensus_data import found, planted, same
from helpers.refused import refused

import ssnmf_fast as sf


def files(folder):
    return sorted(path.name for path in folder.glob("*.npz"))


def test_a_folder_is_read_instead_of_fits(tmp_path):
    X, _ = planted(n=30)
    expected = found(X, n_starts=3)
    assert same(found(X, n_starts=3, folder=tmp_path / "new" / "starts"), expected)
    folder = tmp_path / "new" / "starts"
    assert files(folder) == [f"start.k_4.iter_{k}.npz" for k in range(3)]
    written = [(path, path.stat().st_mtime_ns) for path in sorted(folder.glob("*.npz"))]
    assert same(found(X, n_starts=3, folder=folder), expected)
    assert written == [(path, path.stat().st_mtime_ns) for path in sorted(folder.glob("*.npz"))]


def test_only_what_is_missing_is_fitted(tmp_path):
    X, _ = planted(n=30)
    expected = found(X, n_starts=5)
    found(X, n_starts=4, folder=tmp_path)
    (tmp_path / "start.k_4.iter_1.npz").unlink()
    times = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.npz")}
    assert same(found(X, n_starts=5, folder=tmp_path), expected)
    assert {path: path.stat().st_mtime_ns for path in times} == times
    assert len(files(tmp_path)) == 5


def test_a_folder_serves_several_ranks(tmp_path):
    X, _ = planted(n=30)
    for rank in (2, 3):
        found(X, rank, n_starts=2, folder=tmp_path)
    assert len(files(tmp_path)) == 4


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"loss": "kullback-leibler"}, "loss 'frobenius'; now 'kullback-leibler'"),
        ({"random_state": 1}, "seed"),
        ({"tol": 1e-3}, "tol 1e-05; now 0.001"),
        ({"X_weights": np.ones((30, 40))}, "X_weights None"),
        ({"X": planted(n=30, seed=5)[0]}, "data"),
        ({"X": planted(n=31)[0]}, "shape"),
        ({"dtype": "float64"}, "dtype"),
    ],
)
def test_starts_of_other_data_or_settings_are_refused(tmp_path, other, named):
    X, _ = planted(n=30)
    found(X, n_starts=2, folder=tmp_path)
    given = {"X": X, "n_components": 4, "n_starts": 2, "random_state": 0, "folder": tmp_path}
    with pytest.raises(ValueError, match="other data or settings") as caught:
        sf.consensus(**given | other)
    assert named in str(caught.value)


def test_equal_weights_are_the_same_settings(tmp_path):
    X, _ = planted(n=30)
    for weights in (sf.weights.outer(rows=np.ones(30)), sf.weights.outer(rows=np.ones(30))):
        found(X, n_starts=2, folder=tmp_path, X_weights=weights)
    with pytest.raises(ValueError, match="X_weights"):
        found(X, n_starts=2, folder=tmp_path, X_weights=sf.weights.outer(rows=np.arange(30.0)))


def forms_of(X, folder):
    """Return the same numbers in forms whose sums are rounded otherwise."""
    rows = sp.csr_array(X)
    backwards = rows.copy()
    for part in (backwards.indices, backwards.data):
        for first, last in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
            part[first:last] = part[first:last][::-1].copy()
    backwards.has_sorted_indices = False
    zeros = sp.coo_array(np.ones(X.shape)).tocsr()
    zeros.data[:] = X.ravel()
    path = folder / "X.npz"
    sp.save_npz(path, rows, compressed=False)
    disk, parts = (sf.io.open_csr(path, **given) for given in ({}, {"memory": 5000}))
    return {"dense": X, "rows": rows, "backwards": backwards, "zeros": zeros} | {
        "disk": disk, "parts": parts,
    }  # fmt: skip


@pytest.mark.slow
def test_the_folder_knows_the_form_of_its_data(tmp_path):
    X = planted(n=30)[0]
    forms = forms_of(X, tmp_path)
    for form, data in forms.items():
        folder = tmp_path / form
        found(data, n_starts=2, folder=folder)
        for other in forms.keys() - {form}:
            with pytest.raises(ValueError, match=r"other data or settings: .* with form"):
                found(forms[other], n_starts=2, folder=folder)
    # None of these changes a bit of a start.
    found(np.asfortranarray(X), n_starts=2, folder=tmp_path / "dense")
    found(sp.csc_array(X), n_starts=2, folder=tmp_path / "rows")
    found(sp.csr_array(X).astype(np.int64), n_starts=2, folder=tmp_path / "rows")


def test_the_folder_knows_its_level(tmp_path, monkeypatch):
    X, _ = planted(n=30)
    found(X, n_starts=2, folder=tmp_path)
    monkeypatch.setattr("ssnmf_fast._backend.dispatch.level", "other")
    refused(r"other data or settings: .* with level", found, X, n_starts=2, folder=tmp_path)
    others = count()  # every call is from another worker
    monkeypatch.setattr(
        "ssnmf_fast._backend.dispatch.level_in_use", lambda: f"level {next(others)}"
    )
    with pytest.raises(ValueError, match=r"a worker has .* Set SSNMF_FAST_ISA"):
        found(X, n_starts=2, folder=tmp_path / "of a worker")


def _header(change):
    def changed(parts):
        header = json.loads(parts["header"].tobytes())
        change(header)
        return {**parts, "header": np.frombuffer(json.dumps(header).encode(), np.uint8)}

    return changed


DAMAGES = {
    "fewer components": lambda z: {**z, "components": z["components"][:2]},
    "negative": lambda z: {**z, "components": -z["components"]},
    "rescaled": lambda z: {**z, "components": 2 * z["components"]},
    "NaN": lambda z: {**z, "components": z["components"] * np.nan},
    "fewer features": lambda z: {**z, "components": z["components"][:, :10]},
    "another dtype": lambda z: {**z, "components": z["components"].astype(np.float64)},
    "out of range": lambda z: {**z, "assignments": z["assignments"] + 100},
    "permuted": lambda z: {**z, "assignments": z["assignments"][::-1]},
    "fewer samples": lambda z: {**z, "assignments": z["assignments"][:5]},
    "reals": lambda z: {**z, "assignments": z["assignments"] / 1.0},
    "an array more": lambda z: {**z, "more": np.ones(3)},
    "an array less": lambda z: {name: z[name] for name in ("header", "components")},
    "no header": lambda z: {name: z[name] for name in ("assignments", "components")},
    "a header of ones": lambda z: {**z, "header": np.ones(3)},
    "no key": _header(lambda h: h.pop("key")),
    "a list for a key": _header(lambda h: h.update(key=[1])),
    "a text for a key": _header(lambda h: h.update(key="x")),
    "another objective": _header(lambda h: h.update(objective=h["objective"] / 2)),
    "a text for an objective": _header(lambda h: h.update(objective="low")),
    "no objective": _header(lambda h: h.pop("objective")),
    "no seal": _header(lambda h: h.pop("seal")),
}


def test_a_start_that_was_changed_is_refused(tmp_path):
    X, _ = planted(n=30)
    expected = found(X, n_starts=2, folder=tmp_path)
    path = tmp_path / "start.k_4.iter_1.npz"
    whole = path.read_bytes()
    with np.load(path) as archive:
        parts = dict(archive)
    for damage in DAMAGES.values():
        np.savez(path, **damage(parts))
        with pytest.raises(ValueError, match=r"is not a saved start.*Remove it") as caught:
            found(X, n_starts=2, folder=tmp_path)
        assert str(path) in str(caught.value)
    path.write_bytes(whole)
    assert same(found(X, n_starts=2, folder=tmp_path), expected)


def test_a_folder_needs_a_seed(tmp_path):
    with pytest.raises(ValueError, match="folder needs random_state"):
        found(planted(n=30)[0], folder=tmp_path, random_state=None)


def test_a_file_is_no_folder(tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    refused("is a file; give a folder", found, planted(n=30)[0], folder=path)


def test_a_damaged_start_is_refused(tmp_path):
    X, _ = planted(n=30)
    found(X, n_starts=2, folder=tmp_path)
    path = tmp_path / "start.k_4.iter_1.npz"
    path.write_bytes(path.read_bytes()[:-100])
    refused("is not a saved start", found, X, n_starts=2, folder=tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_killed_consensus_goes_on_with_the_same_bits(tmp_path):
    X = sp.random_array((600, 100), density=0.1, rng=np.random.default_rng(0), format="csr")
    sp.save_npz(tmp_path / "X.npz", X, compressed=False)
    given = {"n_starts": 50, "tol": 0, "max_iter": 60, "random_state": 0}
    code = (
        "import sys, scipy.sparse as sp, ssnmf_fast as sf\n"
        "X = sp.csr_array(sp.load_npz(sys.argv[1]))\n"
        f"sf.consensus(X, 5, folder=sys.argv[2], **{given!r}, distance_threshold=2)\n"
    )
    folder = tmp_path / "starts"
    command = [sys.executable, "-c", code, str(tmp_path / "X.npz"), str(folder)]
    with subprocess.Popen(command) as process:
        while len(files(folder)) < 10 and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert 10 <= len(files(folder)) < 50
    given |= {"distance_threshold": 2}
    assert same(sf.consensus(X, 5, folder=folder, **given), sf.consensus(X, 5, **given))
