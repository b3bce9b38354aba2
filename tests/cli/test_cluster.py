"""Fits of the command on a Dask cluster."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from labelled_texts import fit
from outputs import error_line

import ssnmf_fast as sf
from ssnmf_fast.cli import main


@pytest.fixture(scope="module")
def address():
    pytest.importorskip("distributed")
    from dask.distributed import LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster:
        yield cluster.scheduler_address


REFIT = ["--readout", "refit"]


class TestFiles:
    @pytest.mark.parametrize(
        ("model", "more"),
        [
            ("nmf", []),
            ("ts-nmf", []),
            ("vbnmf", []),
            ("dd", REFIT),
            ("ssnmf", ["--supervision-weight", "inf"]),
        ],
    )
    def test_are_the_same(self, address, model, more, single, tmp_path):
        given = ["--labels", "kind", "--tol", "0", "--max-iter", "20", *more]
        readout = REFIT if model == "ssnmf" else []
        assert fit(single, model, tmp_path / "memory", *given, *readout) == 0
        assert fit(single, model, tmp_path / "cluster", *given, "--cluster", address) == 0
        in_memory, on_cluster = tmp_path / "memory", tmp_path / "cluster"
        assert {p.name for p in in_memory.iterdir()} == {p.name for p in on_cluster.iterdir()}
        wanted, found = (sf.load(out / "model.npz") for out in (in_memory, on_cluster))
        assert type(found) is type(wanted)
        np.testing.assert_allclose(found.components_, wanted.components_, rtol=1e-9, atol=1e-12)
        S, T = found.representation_, wanted.representation_
        np.testing.assert_allclose(S, T, rtol=1e-9, atol=1e-12)
        if model == "ts-nmf":  # its readout sees topics only on a cluster
            return
        metrics = [
            json.loads((out / "metrics.json").read_text(encoding="utf-8"))["measures"]
            for out in (in_memory, on_cluster)
        ]
        assert metrics[1] == pytest.approx(metrics[0])

    def test_local_workers(self, address, tmp_path):
        np.save(tmp_path / "X.npy", np.random.default_rng(0).random((600, 8)))
        given = ["fit", str(tmp_path / "X.npy"), "--rank", "2", "--max-iter", "5", "--tol", "0"]
        out = tmp_path / "out"
        assert main([*given, "--out", str(out), "--cluster", "local:2"]) == 0
        assert sf.load(out / "model.npz").representation_.shape == (600, 2)


class TestErrors:
    @pytest.mark.parametrize(
        ("model", "more", "message"),
        [
            ("cnmf", [], "--model cnmf is not for --cluster, which fits ssnmf, ff"),
            ("ssnmf", [], "nothing is chosen by validation"),
            ("dd", ["--supervision-weight", "auto"], "nothing is chosen by validation"),
            ("dd", ["--readout", "logistic"], "--readout logistic needs the data in memory"),
            ("dd", ["--learning-curve"], "--learning-curve fits in memory"),
        ],
    )
    def test_what_is_not_to_be_had(self, model, more, message, single, tmp_path, capsys):
        given = ["--labels", "kind", "--cluster", "tcp://127.0.0.1:1", *more]
        assert fit(single, model, tmp_path / "out", *given) == 2
        assert message in error_line(capsys)
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize("text", ["host", "local:0", "local:many"])
    def test_no_address(self, text, single, tmp_path, capsys):
        assert fit(single, "nmf", tmp_path / "out", "--cluster", text) == 2
        assert "expected the address of a scheduler" in error_line(capsys)

    def test_no_scheduler(self, single, tmp_path, capsys):
        pytest.importorskip("distributed")
        import dask

        with dask.config.set({"distributed.comm.timeouts.connect": "100ms"}):
            given = ["--cluster", "tcp://127.0.0.1:9"]
            assert fit(single, "nmf", tmp_path / "out", *given) == 2
        assert "no scheduler answers there" in error_line(capsys)
        assert not (tmp_path / "out").exists()

    def test_without_the_extra(self, single, tmp_path, capsys, monkeypatch):
        for name in [name for name in sys.modules if name.startswith("ssnmf_fast.dask")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.delattr(sf, "dask", raising=False)
        monkeypatch.setitem(sys.modules, "distributed", None)
        assert fit(single, "nmf", tmp_path / "out", "--cluster", "local:2") == 2
        assert "ssnmf-fast[dask]" in error_line(capsys)
