"""A folder that keeps starts: resumed, after a kill too, and never mixed with others."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse as sp
from consensus_data import found, planted, same

import ssnmf_fast as sf


def files(folder):
    return sorted(path.name for path in folder.glob("*.npz"))


def test_a_folder_is_read_instead_of_fits(tmp_path, monkeypatch):
    X, _ = planted(n=30)
    expected = found(X, n_starts=3)
    assert same(found(X, n_starts=3, folder=tmp_path / "new" / "starts"), expected)
    folder = tmp_path / "new" / "starts"
    assert files(folder) == [f"start.k_4.iter_{k}.npz" for k in range(3)]
    monkeypatch.setattr("ssnmf_fast.selection._consensus.fit_starts", lambda *_, **__: iter(()))
    assert same(found(X, n_starts=3, folder=folder), expected)


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
        ({"X": planted(n=30)[0].astype(np.float32)}, "data"),
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


def test_data_on_disk_have_the_starts_of_data_in_memory(tmp_path):
    X = sp.csr_array(planted(n=30)[0])
    sp.save_npz(tmp_path / "X.npz", X, compressed=False)
    found(X, n_starts=2, folder=tmp_path / "starts")
    found(sf.open_csr(tmp_path / "X.npz", memory=9000), n_starts=2, folder=tmp_path / "starts")


def test_a_folder_needs_a_seed(tmp_path):
    with pytest.raises(ValueError, match="folder is given without random_state"):
        found(planted(n=30)[0], folder=tmp_path, random_state=None)


def test_a_file_is_no_folder(tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(ValueError, match="is a file; give a folder"):
        found(planted(n=30)[0], folder=path)


def test_a_damaged_start_is_refused(tmp_path):
    X, _ = planted(n=30)
    found(X, n_starts=2, folder=tmp_path)
    path = tmp_path / "start.k_4.iter_1.npz"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="no start that was kept"):
        found(X, n_starts=2, folder=tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_killed_consensus_goes_on_with_the_same_bits(tmp_path):
    X = sp.random_array((600, 100), density=0.1, rng=np.random.default_rng(0), format="csr")
    sp.save_npz(tmp_path / "X.npz", X, compressed=False)
    given = {"n_starts": 50, "tol": 0, "max_iter": 60, "random_state": 0}
    code = (
        "import sys, scipy.sparse as sp, ssnmf_fast as sf\n"
        "X = sp.csr_array(sp.load_npz(sys.argv[1]))\n"
        f"sf.consensus(X, 5, folder=sys.argv[2], **{given!r}, density_threshold=2)\n"
    )
    folder = tmp_path / "starts"
    command = [sys.executable, "-c", code, str(tmp_path / "X.npz"), str(folder)]
    with subprocess.Popen(command) as process:
        while len(files(folder)) < 10 and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert 10 <= len(files(folder)) < 50
    given |= {"density_threshold": 2}
    assert same(sf.consensus(X, 5, folder=folder, **given), sf.consensus(X, 5, **given))
