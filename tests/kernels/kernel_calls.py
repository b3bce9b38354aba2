"""A call of every kernel that takes arrays, and what it writes: for tests of the border."""

from __future__ import annotations

from typing import Any

import numpy as np

RANK = 8  # the only axes of this length are those of components


def _csr() -> dict[str, Any]:
    return {
        "indptr": np.arange(5, dtype=np.int32),
        "indices": np.arange(4, dtype=np.int32),
        "values": np.ones(4),
    }


def _factor() -> np.ndarray:
    return np.ones((4, RANK))


def _bits() -> np.ndarray:
    return np.full((4, 1), 255, dtype=np.uint8)


def _call(written: str, **arguments: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    return tuple(written.split()), {**arguments, "n_threads": 1}


def calls() -> dict[str, tuple[tuple[str, ...], dict[str, Any]]]:
    """Return what each kernel writes and its arguments, all made anew."""
    out = {"out": _factor(), "scale": 1.0, "accumulate": False}
    model = {"F": _factor(), "G": _factor()}
    dense = {"Z": np.ones((4, 4))}
    power = {"exponent": -1.0}
    bounds = {"bounds": np.array([0, 4])}
    gamma = {"prior_shape": 1.0, "rates": np.ones((2, 8)), "groups": np.zeros(4, np.int32)}
    shrink = {"step": 0.1, "eps": 0.1, "q": 1.0, "proximal": True, "floor": 0.0}
    weights = {**_csr(), "weights": np.ones(4)}
    del weights["values"]
    ridge = {"ridge": np.ones(3)}
    tensor = {**_csr(), "indices": np.tile(_csr()["indices"], (2, 1)), "F": _factor()}
    tensor["factors"] = [_factor(), _factor()]
    stopped = {"tol": 1e-3, "max_sweeps": 100}
    scaled = {"grams": np.ones((1, 8, 8)), "scales": np.ones((1, 4))}
    swept = {"allowed": _bits(), "sweeps": 1}
    turned = {"turned": [*_csr().values()]}
    iterations = {
        "memory": [_factor() for _ in range(6)],
        "momentum": (1.0, 0.25, 0.25, 1.0, 0.0),
        "update": ("descent", 0.0, 1, 0, 0),
        "objective": (16.0, 1e-6),
        "count": 1,
    }
    names = "out_indptr out_indices out_values"
    transposed = {"out_indices": np.zeros(4, np.int32), "out_values": np.ones(4)}

    def factors(names: str) -> dict[str, Any]:
        return {name: _factor() for name in names.split()}

    return {
        "sparse_pass": _call("out", **power, **_csr(), **model, **out, asked=_bits()),
        "scatter_pass": _call(
            "out", **power, **_csr(), **model, **bounds, out=_factor(), scale=1.0
        ),
        "dense_pass": _call("out", **power, **dense, mask=False, **model, **out),
        "dense_residual_pass": _call("out", **dense, **model, **out),
        "sparse_beta_loss": _call("", **_csr(), beta=0.5, rest=False, **model),
        "dense_beta_loss": _call("", **dense, beta=0.5, rest=False, **model),
        "panel_pass": _call("out", **power, **_csr(), **model, **bounds, **out, asked=_bits()),
        "sparse_kl_loss": _call("", **_csr(), **model),
        "sparse_kl_unreached": _call("", **_csr(), **model),
        "sparse_frobenius_loss": _call("", **_csr(), weights=np.ones(4), **model),
        "dense_kl_loss": _call("", **dense, **model),
        "dense_kl_unreached": _call("", **dense, **model),
        "tensor_pass": _call("out", **power, **tensor, **out),
        "tensor_kl_loss": _call("", **tensor),
        "tensor_kl_unreached": _call("", **tensor),
        "tensor_frobenius_loss": _call("", **tensor, weights=np.ones(4)),
        "dense_frobenius_loss": _call("", **dense, **model),
        "gram": _call("out", G=_factor(), weights=np.ones(4), out=np.ones((8, 8))),
        "cross": _call("out", **model, out=np.ones((8, 8))),
        "column_sums": _call("out", G=_factor(), weights=np.ones(4), out=np.ones(8)),
        "multiply": _call("out", F=_factor(), K=np.ones((8, 8)), row_scale=np.ones(4), **out),
        "add_row": _call("out", vector=np.ones(8), row_scale=np.ones(4), **out),
        "inner": _call("", **factors("F P")),
        "imbalance": _call("", **factors("F P N"), moves=_bits()),
        "update": _call("F", **factors("F P2 N2 P1 N1"), rule="mu", relaxation=0.0),
        "extrapolate": _call("F before", **factors("F before"), step=0.5, positive=True),
        "nnls": _call(
            "F", K=np.eye(8), row_scale=np.ones(4), **weights, **factors("G P F"), **stopped
        ),
        "kl_rows": _call("F", **_csr(), **model, N=_factor(), **stopped),
        "kl_descent": _call("F", **_csr(), **model, N=_factor(), **swept, with_loss=True),
        "coordinate_descent": _call(
            "F", **scaled, **weights, **factors("G P F"), **swept, face_steps=0
        ),
        "dense_iterations": _call("", **dense, **iterations),
        "sparse_iterations": _call("", **_csr(), **turned, **iterations),
        "residual_step": _call(
            "residuals out", **_csr(), **model, residuals=np.ones(4), out=_factor()
        ),
        "mapped_residuals": _call("out", **_csr(), **model, scale=1.0, **shrink, out=np.ones(4)),
        "mapped_product": _call("out", **model, H=_factor(), **shrink, out=_factor()),
        "ridge_rows": _call("F", **_csr(), **model, **ridge),
        "conjugate_rows": _call("F", **_csr(), **model, gram=np.eye(8), ridges=np.ones(4), steps=2),
        "structured_rows": _call(
            "X F", **_csr(), **model, **ridge, alpha=1.0, eps=0.1, q=1.0, X=np.ones((4, 4))
        ),
        "tall_qr": _call("A R", A=np.eye(8), columns=8, R=np.ones((8, 8))),
        "gamma_update": _call("F E", **factors("F P E"), **gamma, rank=8, logs=True),
        "gamma_bound": _call("", E=_factor(), **gamma, rank=8),
        "group_sums": _call("out", E=_factor(), groups=gamma["groups"], out=np.ones((2, 8))),
        "inspect_csr": _call(
            "", indptr=_csr()["indptr"], indices=np.zeros(4, np.int32), n_columns=4
        ),
        "sparse_fingerprint": _call("", **_csr(), first_row=0),
        "dense_fingerprint": _call("", **dense, first_row=0),
        "dense_moments": _call("", **dense),
        "transpose": _call(names, **_csr(), out_indptr=np.zeros(5, np.int64), **transposed),
        "transpose_panels": _call(
            names, **_csr(), panel_rows=2, out_indptr=np.zeros(9, np.int64), **transposed
        ),
    }


def arrays(name: str) -> list[str]:
    """Return the arguments of a kernel that are arrays."""
    return [key for key, given in calls()[name][1].items() if isinstance(given, np.ndarray)]


def with_rank(value: Any, columns: int, dtype: Any) -> Any:
    """Return an argument, or the arrays in it, of a factor with other columns and another dtype."""
    if isinstance(value, list):
        return [with_rank(one, columns, dtype) for one in value]
    if not isinstance(value, np.ndarray):
        return columns if type(value) is int and value == RANK else value
    if value.dtype == np.uint8:
        return np.full((len(value), (columns + 7) // 8), 255, np.uint8)
    kind = dtype if value.dtype == np.float64 else value.dtype
    if RANK not in value.shape:
        return value.astype(kind)
    shape = [columns if size == RANK else size for size in value.shape]
    return (0.5 + np.random.default_rng(0).random(shape)).astype(kind)
