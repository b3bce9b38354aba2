"""Files of a consensus: saved, of the same bytes for any threads, and cNMF's tables."""

import csv
from hashlib import sha256

import numpy as np
import pytest
import scipy.sparse as sp
from consensus_data import found, planted, same
from helpers.refused import refused

import ssnmf_fast as sf


def test_what_is_saved_is_loaded(tmp_path):
    consensus = found(planted()[0])
    sf.save(consensus, tmp_path / "consensus.npz")
    loaded = sf.load(tmp_path / "consensus.npz")
    assert same(loaded, consensus)
    assert repr(loaded) == repr(consensus)


def test_without_stability_too(tmp_path):
    sf.save(found(planted(n=20)[0], 1, n_starts=2), tmp_path / "one.npz")
    assert np.isnan(sf.load(tmp_path / "one.npz").silhouette)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
@pytest.mark.compiled("the reference has one thread")
def test_files_have_the_same_bytes_for_any_number_of_threads(tmp_path, loss):
    X = sp.csr_array(planted()[0])
    digests = set()
    for n_threads, n_jobs in ((1, None), (2, None), (8, None), (8, 2)):
        sf.save(found(X, loss=loss, n_threads=n_threads, n_jobs=n_jobs), tmp_path / "file.npz")
        digests.add(sha256((tmp_path / "file.npz").read_bytes()).hexdigest())
    assert len(digests) == 1


def test_a_file_with_other_clusters_is_damaged(tmp_path):
    consensus = found(planted(n=20)[0], n_starts=2)
    sf.save(consensus, tmp_path / "file.npz")
    with np.load(tmp_path / "file.npz") as archive:
        parts = {name: archive[name] for name in archive.files}
    for name, value in (("clusters", parts["array/clusters"][1:]), ("usage", -consensus.usage)):
        np.savez(tmp_path / "bad.npz", **parts | {f"array/{name}": value})
        refused(f"do not fit together: {name}", sf.load, tmp_path / "bad.npz")


def table(path):
    with path.open(newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t")
    return header[1:], [row[0] for row in rows], np.array([row[1:] for row in rows], dtype=float)


def test_tables_have_the_names_and_the_form_of_cnmf(tmp_path):
    X, _ = planted(n=30)
    consensus = found(X)
    words, posts = [f"word {j}" for j in range(40)], [f"post {i}" for i in range(30)]
    files = consensus.to_cnmf(tmp_path, "text", feature_names=words, sample_names=posts)
    assert [path.name for path in files] == [
        "text.usages.k_4.dt_0_5.consensus.txt",
        "text.spectra.k_4.dt_0_5.consensus.txt",
        "text.gene_spectra_score.k_4.dt_0_5.txt",
    ]
    columns, rows, values = table(files[0])
    assert (columns, rows) == (["1", "2", "3", "4"], posts)
    assert np.array_equal(values, consensus.usage)
    for path, expected in zip(files[1:], (consensus.components, consensus.scores), strict=True):
        columns, rows, values = table(path)
        assert (columns, rows) == (words, ["1", "2", "3", "4"])
        assert np.array_equal(values, expected)


def test_tables_of_all_genes(tmp_path):
    X, _ = planted(n=30)
    consensus = found(X[:, ::2])
    files = consensus.to_cnmf(tmp_path / "new", tpm=X, tpm_names=[f"g{j}" for j in range(40)])
    assert files[3].name == "consensus.gene_spectra_tpm.k_4.dt_0_5.txt"
    np.testing.assert_allclose(table(files[2])[2], consensus.scores_of(X))
    columns, _, values = table(files[3])
    assert columns[-1] == "g39"
    expected = sf.represent(X.T, consensus.shares.T).T
    np.testing.assert_allclose(values, expected)
    of_sparse = consensus.components_of(sp.csr_array(X))
    np.testing.assert_allclose(values, of_sparse, rtol=1e-3, atol=1e-3)


def test_wrong_names_and_samples_are_refused(tmp_path):
    consensus = found(planted(n=30)[0], n_starts=2)
    refused("feature_names holds 3 names", consensus.to_cnmf, tmp_path, feature_names="abc")
    refused("sample_names holds 2 names", consensus.to_cnmf, tmp_path, sample_names=["a", "b"])
    with pytest.raises(ValueError, match="tpm_names holds 1 names"):
        consensus.to_cnmf(tmp_path, tpm=np.ones((30, 2)), tpm_names=["a"])
    refused("Y has 29 rows; expected the 30 samples", consensus.scores_of, np.ones((29, 2)))
    assert not list(tmp_path.iterdir())


def test_components_of_data_on_disk_are_refused(tmp_path):
    X = sp.csr_array(planted(n=30)[0])
    sp.save_npz(tmp_path / "X.npz", X, compressed=False)
    consensus, Y = found(X, n_starts=2), sf.io.open_csr(tmp_path / "X.npz")
    np.testing.assert_allclose(consensus.scores_of(Y), consensus.scores)
    with pytest.raises(TypeError, match="Y is on disk, and components_of needs it in memory"):
        consensus.components_of(Y)
