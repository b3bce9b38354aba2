"""The rows of S on a worker: three arrays that take turns, and what is kept of them."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssnmf_fast._backend.dispatch import kernels

da = pytest.importorskip("dask.array", reason="needs ssnmf-fast[dask]")
distributed = pytest.importorskip("distributed", reason="needs ssnmf-fast[dask]")

sfd = pytest.importorskip("ssnmf_fast.dask")
_rows = pytest.importorskip("ssnmf_fast.dask._rows")

STEPS = st.tuples(st.sampled_from([0.0, 0.25, 1.0]), st.booleans())


class PlainRows:
    """The rows and what they were before, each in one array."""

    def __init__(self, S):
        self.S, self.before = S.copy(), S.copy()

    def extrapolate(self, step, positive):
        kernels.extrapolate(self.S, self.before, step, positive, 1)

    def ahead_by(self, step, positive):
        moved = self.S.copy()
        kernels.extrapolate(moved, self.before.copy(), step, positive, 1)
        return moved

    def restore(self):
        np.copyto(self.S, self.before)

    def scale(self, scales):
        self.S[:, : len(scales)] *= scales
        np.copyto(self.before, self.S)

    def shift(self, exponents):
        for F in (self.S, self.before):
            np.ldexp(F, exponents, out=F)


CHANGES = st.one_of(
    st.tuples(st.just("extrapolate"), STEPS),
    st.tuples(st.just("ahead_by"), STEPS),
    st.tuples(st.just("update"), st.integers(0, 100)),
    st.tuples(st.just("restore"), st.just(())),
    st.tuples(st.just("scale"), st.tuples(st.just(np.array([0.5, 2.0, 3.0])))),
    st.tuples(st.just("shift"), st.tuples(st.just(np.arange(8) % 3 - 1))),
    st.tuples(st.just("move"), st.just(())),
)


@given(st.lists(CHANGES, max_size=20))
def test_arrays_take_turns_as_if_each_had_its_own(changes):
    start = np.random.default_rng(0).random((5, 8))
    rows, plain = _rows.Rows(start.copy()), PlainRows(start)
    for name, arguments in changes:
        if name == "update":
            new = np.random.default_rng(arguments).random((5, 8))
            rows.earlier()
            rows.ahead = None
            rows.S[...] = plain.S[...] = new
        elif name == "move":  # with their block to another worker
            rows = pickle.loads(pickle.dumps(rows, protocol=5))
        else:
            found, expected = (getattr(r, name)(*arguments) for r in (rows, plain))
            np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(rows.S, plain.S)
        np.testing.assert_array_equal(rows.earlier(), plain.before)
        arrays = [rows.S, rows.before, *([] if rows.moved is None else [rows.moved])]
        assert len({id(F) for F in arrays}) == len(arrays) <= 3


@pytest.mark.parametrize(("loss", "n_arrays"), [("kullback-leibler", 1), ("frobenius", 3)])
def test_what_rows_were_is_kept_for_momentum_alone(loss, n_arrays):
    X = np.random.default_rng(0).random((30, 8))
    seen = []

    def look(state):
        for rows in _rows.ROWS.values():
            arrays = [rows.S, rows.before, rows.moved]
            seen.append({F.ctypes.data for F in arrays if F is not None})

    options = {"processes": False, "dashboard_address": ":0"}
    with distributed.Client(n_workers=1, threads_per_worker=1, **options):
        given = {"loss": loss, "init": "random", "random_state": 0, "max_iter": 30, "tol": 0}
        blocks = da.from_array(X, chunks=(15, 8))
        sfd.factorize(blocks, n_components=2, callback=look, **given)
    first, last = seen[2:4], seen[-2:]  # after ten iterations, and in the end
    assert first == last
    assert {len(arrays) for arrays in last} == {n_arrays}


@pytest.mark.parametrize(("n_blocks", "messages"), [(2, 1), (5, 3)])
def test_a_step_is_one_message_and_one_for_each_level_of_sums(n_blocks, messages, monkeypatch):
    """Each costs the scheduler some milliseconds."""
    sent = []
    original = distributed.Client._send_to_scheduler

    def send(client, message):
        sent.append(message["op"])
        original(client, message)

    monkeypatch.setattr(distributed.Client, "_send_to_scheduler", send)
    X = np.random.default_rng(0).random((30, 8))
    counts = []
    options = {"processes": False, "dashboard_address": ":0", "direct_to_workers": True}
    with distributed.Client(n_workers=2, threads_per_worker=1, **options):
        sfd.factorize(
            da.from_array(X, chunks=(30 // n_blocks, 8)),
            n_components=2,
            loss="kullback-leibler",
            init="random",
            random_state=0,
            max_iter=30,
            tol=0,
            callback=lambda state: counts.append(sent.count("update-graph")),
        )
    assert counts[-1] - counts[-2] == 11 * messages  # ten iterations and an objective


def test_the_dashboard_groups_tasks_by_what_they_do(threads):
    X = da.from_array(np.random.default_rng(0).random((30, 8)), chunks=(15, 8))
    sfd.factorize(X, n_components=2, max_iter=3)
    groups = threads.run_on_scheduler(lambda dask_scheduler: {*dask_scheduler.task_prefixes})
    assert {"load_block", "build", "totals", "begin", "run_step", "plus"} <= groups
    assert not any("ssnmf" in group or "title" in group for group in groups)
