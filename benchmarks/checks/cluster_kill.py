"""Lose a worker at a random moment of a fit or a prediction, again and again; all must end.

    python benchmarks/run.py cluster_kill [--trials 60] [--retire] [--phases start fit]

Phases are start, fit, represent and predict.  Two other clusters work on the same machine
meanwhile (``--others 0`` for none).  One of two workers is killed (SIGKILL), or retired by
``client.retire_workers``, at a random moment of the phase, which was timed before without a loss.
A trial that takes more than ``--limit`` seconds (60), or five times what it takes without a loss
where that is more, counts as one that never ends; where it waits is printed then.  A retirement
that changes the result in any bit counts as one that cost something.
"""

from __future__ import annotations

import faulthandler
import os
import random
import signal
import subprocess
import threading
import time
from contextlib import suppress

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait
from distributed.utils import get_mp_context
from records import Options
from run import command

import ssnmf_fast.dask as sfd

N, M, RANK, CLASSES = 2000, 100, 6, 4
CUTS = (900, 100, 1000)
START = 600.0  # seconds for a cluster to start, and for the times without a loss
CLUSTER = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
PHASES = ("start", "fit", "represent", "predict")


def samples() -> tuple[da.Array, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(CLASSES, size=N)
    X = rng.poisson(rng.gamma(0.3, 1.0, (CLASSES, M))[y]).astype(float)
    # Names of their own: Dask gives up data at whose making workers ended several times.
    return da.from_array(X, chunks=(CUTS, M), name=False), y


def estimators(max_iter: int) -> list:
    common = {"max_iter": max_iter, "tol": 0, "random_state": 0}
    options = {"n_components": RANK} | common
    return [
        sfd.NMF(loss="kullback-leibler", **options),
        sfd.NMF(**options),
        sfd.BayesianNMF(**options),
        sfd.SSNMFClassifier(supervision_weight=1.0, **options),
        sfd.TopicSupervisedNMF(n_free_topics=2, **common),
    ]


class Trials:
    """What is done in each phase, with one estimator after the other."""

    def __init__(self, client: Client, phase: str) -> None:
        self.client, self.phase = client, phase
        self.X, self.y = samples()
        self.models = estimators(20)[3 if phase == "predict" else 0 :]
        if phase in ("represent", "predict"):
            for model in self.models:
                self.fit(model)

    def fit(self, model: sfd.NMF) -> np.ndarray:
        topics = [(label,) for label in self.y]
        y = topics if isinstance(model, sfd.TopicSupervisedNMF) else self.y
        return model.fit(self.X, y).components_

    def run(self, number: int) -> np.ndarray:
        self.X, _ = samples()
        model = self.models[number % len(self.models)]
        if self.phase in ("start", "fit"):
            return self.fit(model.set_params(max_iter=1 if self.phase == "start" else 30))
        method = "transform" if self.phase == "represent" else "predict"
        return getattr(model, method)(self.X).compute()


def ready(cluster: LocalCluster, client: Client) -> dict[str, int]:
    """Wait until two workers answer, and return their processes."""
    for attempt in range(10):
        with suppress(TimeoutError, OSError):
            client.wait_for_workers(2, timeout=30)
            pids = {address: pid for address, pid in client.run(os.getpid).items() if pid}
            if len(pids) >= 2:
                return pids
        if attempt % 2:  # the cluster has given a worker up that takes long to start again
            cluster.scale(len(cluster.worker_spec) + 1)
    raise TimeoutError("the cluster has no two workers")


def replace(cluster: LocalCluster, name: int | None) -> None:
    cluster.worker_spec.pop(name, None)
    nanny = cluster.workers.pop(name, None)
    if nanny is not None:
        cluster.sync(nanny.close)
    cluster.scale(2)


def lose(client: Client, address: str, pid: int, seconds: float, retire: bool) -> None:
    time.sleep(seconds)
    if retire:
        client.retire_workers([address])
    else:
        os.kill(pid, signal.SIGKILL)


def trials(phase: str, first: int, last: int, seed: int, retire: bool, limit: float) -> None:
    rng = random.Random(1000 * seed + first)
    # A worker that was lost is back in a fraction of a second: all is imported already.
    dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
    get_mp_context().set_forkserver_preload(
        ["distributed", "ssnmf_fast.dask", "ssnmf_fast.estimators"]
    )
    with LocalCluster(n_workers=2, **CLUSTER) as cluster, Client(cluster) as client:
        task = Trials(client, phase)
        expected, times = {}, {}
        for number in range(first, min(last, first + len(task.models))):
            begin, kind = time.monotonic(), number % len(task.models)
            expected[kind] = task.run(number)
            times[kind] = time.monotonic() - begin
        for number in range(first, last):
            pids, kind = ready(cluster, client), number % len(task.models)
            address = rng.choice(sorted(pids))
            seconds = rng.uniform(0.0, 0.9 * times[kind])
            given = client, address, pids[address], seconds, retire
            nannies = cluster.workers.items()
            place = next((k for k, nanny in nannies if nanny.worker_address == address), None)
            loss = threading.Thread(target=lose, args=given)
            most = max(limit, 5 * times[kind])
            print(f"begin {most}", flush=True)
            faulthandler.dump_traceback_later(0.9 * most)
            begin = time.monotonic()
            loss.start()
            found = task.run(number)
            took = time.monotonic() - begin
            faulthandler.cancel_dump_traceback_later()
            same = found.shape == expected[kind].shape and bool((found == expected[kind]).all())
            name = type(task.models[kind]).__name__
            print(f"{number} {name} {seconds:.2f} {times[kind]:.1f} {took:.1f} {same}", flush=True)
            loss.join()
            if retire:
                replace(cluster, place)


def other() -> None:
    with LocalCluster(n_workers=2, **CLUSTER) as cluster, Client(cluster) as client:
        X = client.persist(samples()[0])
        wait(X)
        while True:
            sfd.factorize(X, n_components=RANK, max_iter=200, tol=0)


def lost(options: Options, phase: str) -> int:
    """Run the trials of a phase, each batch in its own process; return how many went wrong."""
    done = hung = differ = failed = 0
    slowest = 0.0
    while done < options.trials:
        batch = command("cluster_kill", "--batch", phase, done, options.trials)
        batch += ["--limit", str(options.limit), "--seed", str(options.seed)]
        batch += ["--retire"] * options.retire
        process = subprocess.Popen(batch, stdout=subprocess.PIPE, text=True)
        limit = START
        while done < options.trials:
            timer = threading.Timer(limit, process.kill)
            timer.start()
            line = process.stdout.readline() if process.stdout else ""
            timer.cancel()
            if line.startswith("begin"):
                limit = float(line.split()[1])
                continue
            if not line:
                never = limit != START
                hung, failed = hung + never, failed + (not never)
                print(f"{phase} {done}: {'no end, or an error' if never else 'no cluster'}")
                done += never
                break
            print(phase, line.strip(), flush=True)
            *_, took, same = line.split()
            slowest = max(slowest, float(took))
            differ += options.retire and same != "True"
            done += 1
            limit = START
        if failed > options.trials:
            break
        process.kill()
        process.wait()
    how = "retired" if options.retire else "killed"
    print(
        f"{phase}: {done} {how}, {hung} without end, "
        f"{failed} without a cluster, {differ} with another result; slowest {slowest:.1f} s",
        flush=True,
    )
    return hung + failed + differ


OPTIONS = {
    "trials": (60, "of each phase"),
    "phases": list(PHASES),
    "retire": False,
    "others": (2, "clusters that work meanwhile"),
    "limit": 60.0,
    "seed": 0,
    "batch": ([str], None),
    "other": (False, None),
}


def main(options: Options) -> int:
    if options.other:
        other()
    elif options.batch:
        phase, first, last = options.batch
        trials(phase, int(first), int(last), options.seed, options.retire, options.limit)
    else:
        order = command("cluster_kill", "--other")
        others = [subprocess.Popen(order) for _ in range(options.others)]
        try:
            return sum(lost(options, phase) for phase in options.phases)
        finally:
            for process in others:
                process.terminate()
    return 0
