"""Fits of the command on a Dask cluster."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from ._errors import UsageError

LOCAL = "local:"
_LEAST_ROWS, _MOST_BLOCKS = 256, 64  # blocks depend on the data alone, and so does the result


def settle(model: Any, options: Any, able: list[str]) -> None:
    """Check what a fit on a cluster needs, and set what it cannot choose."""
    if not model.on_cluster:
        raise UsageError(f"--model {model.name} is not for --cluster, which fits {', '.join(able)}")
    if options.learning_curve:
        raise UsageError("--learning-curve fits in memory, and --cluster does not; give one")
    if model.chooses:
        options.readout = options.readout or "refit"
        if options.readout == "logistic":
            raise UsageError(
                "--readout logistic needs the data in memory; with --cluster give refit or joint"
            )
        weight = options.supervision_weight
        if weight is None:
            weight = model.options["supervision_weight"]
        if options.rank is None or weight in (None, "auto"):
            raise UsageError(
                "with --cluster nothing is chosen by validation: give --rank and "
                "--supervision-weight (a number, balanced or inf)"
            )
    namespace(options)  # says what is missing before the data are read


def namespace(options: Any) -> Any:
    """Return where the estimators are: those of the package, or of its part for clusters."""
    if options.cluster is None:
        import ssnmf_fast

        return ssnmf_fast
    from .. import dask  # says what is to be installed, if it is missing

    return dask


def fit_on_cluster(estimator: Any, X: Any, y: Any, address: str) -> Any:
    """Fit on the cluster; return the fitted estimator in memory."""
    n = X.shape[0]
    size = max(_LEAST_ROWS, -(-n // _MOST_BLOCKS))
    with _client(address) as client:
        blocks = client.scatter([X[i : i + size] for i in range(0, n, size)], hash=False)
        estimator.fit(blocks, y, client=client)
        return estimator.in_memory(rows=True)


@contextmanager
def _client(address: str) -> Iterator[Any]:
    """Give a client of the scheduler at an address, or of workers that run only for this."""
    from distributed import Client, LocalCluster

    with ExitStack() as stack:
        if address.startswith(LOCAL):
            cluster = stack.enter_context(
                LocalCluster(
                    n_workers=int(address.removeprefix(LOCAL)),
                    threads_per_worker=1,
                    processes=True,
                    dashboard_address=":0",
                    silence_logs=logging.ERROR,
                )
            )
            yield stack.enter_context(Client(cluster))
            return
        try:
            client = stack.enter_context(Client(address))
        except (OSError, ValueError) as error:
            raise UsageError(
                f"--cluster {address}: no scheduler answers there ({error})"
            ) from error
        yield client
