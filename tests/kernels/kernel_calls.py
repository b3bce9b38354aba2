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


def calls() -> dict[str, tuple[tuple[str, ...], dict[str, Any]]]:
    """Return what each kernel writes and its arguments, all made anew."""
    out = {"out": _factor(), "scale": 1.0, "accumulate": False}
    model = {"F": _factor(), "G": _factor()}
    bounds = {"bounds": np.array([0, 4]), "out": _factor(), "scale": 1.0}
    gamma = {"prior_shape": 1.0, "rates": np.ones((2, 8)), "groups": np.zeros(4, np.int32)}
    shrink = {"step": 0.1, "eps": 0.1, "q": 1.0, "proximal": True, "floor": 0.0}
    weights = {**_csr(), "weights": np.ones(4)}
    del weights["values"]
    ridge = {"ridge": np.ones(3)}
    tensor = {**_csr(), "indices": np.tile(_csr()["indices"], (2, 1)), "F": _factor()}
    tensor["factors"] = [_factor(), _factor()]
    written: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
        "sparse_pass": (("out",), {"exponent": -1.0, **_csr(), **model, **out, "asked": _bits()}),
        "scatter_pass": (("out",), {"exponent": -1.0, **_csr(), **model, **bounds}),
        "dense_pass": (
            ("out",),
            {"exponent": -1.0, "Z": np.ones((4, 4)), "mask": False, **model, **out},
        ),
        "dense_residual_pass": (("out",), {"Z": np.ones((4, 4)), **model, **out}),
        "sparse_beta_loss": ((), {**_csr(), "beta": 0.5, "rest": False, **model}),
        "dense_beta_loss": (
            (),
            {"Z": np.ones((4, 4)), "beta": 0.5, "rest": False, **model},
        ),
        "panel_pass": (
            ("out",),
            {
                "exponent": -1.0,
                **_csr(),
                **model,
                "bounds": np.array([0, 4]),
                **out,
                "asked": _bits(),
            },
        ),
        "sparse_kl_loss": ((), {**_csr(), **model}),
        "sparse_kl_unreached": ((), {**_csr(), **model}),
        "sparse_frobenius_loss": ((), {**_csr(), "weights": np.ones(4), **model}),
        "dense_kl_loss": ((), {"Z": np.ones((4, 4)), **model}),
        "dense_kl_unreached": ((), {"Z": np.ones((4, 4)), **model}),
        "tensor_pass": (("out",), {"exponent": -1.0, **tensor, **out}),
        "tensor_kl_loss": ((), {**tensor}),
        "tensor_kl_unreached": ((), {**tensor}),
        "tensor_frobenius_loss": ((), {**tensor, "weights": np.ones(4)}),
        "dense_frobenius_loss": ((), {"Z": np.ones((4, 4)), **model}),
        "gram": (("out",), {"G": _factor(), "weights": np.ones(4), "out": np.ones((8, 8))}),
        "cross": (("out",), {**model, "out": np.ones((8, 8))}),
        "column_sums": (("out",), {"G": _factor(), "weights": np.ones(4), "out": np.ones(8)}),
        "multiply": (
            ("out",),
            {"F": _factor(), "K": np.ones((8, 8)), "row_scale": np.ones(4), **out},
        ),
        "add_row": (("out",), {"vector": np.ones(8), "row_scale": np.ones(4), **out}),
        "inner": ((), {"F": _factor(), "P": _factor()}),
        "imbalance": ((), {**{name: _factor() for name in ("F", "P", "N")}, "moves": _bits()}),
        "update": (
            ("F",),
            {
                **{name: _factor() for name in ("F", "P2", "N2", "P1", "N1")},
                "rule": "mu",
                "relaxation": 0.0,
            },
        ),
        "extrapolate": (
            ("F", "before"),
            {"F": _factor(), "before": _factor(), "step": 0.5, "positive": True},
        ),
        "nnls": (
            ("F",),
            {
                "K": np.eye(8),
                "row_scale": np.ones(4),
                **weights,
                "G": _factor(),
                "P": _factor(),
                "F": _factor(),
                "tol": 1e-3,
                "max_sweeps": 100,
            },
        ),
        "kl_rows": (
            ("F",),
            {**_csr(), **model, "N": _factor(), "tol": 1e-3, "max_sweeps": 100},
        ),
        "kl_descent": (
            ("F",),
            {
                **_csr(),
                **model,
                "N": _factor(),
                "allowed": _bits(),
                "sweeps": 1,
                "with_loss": True,
            },
        ),
        "coordinate_descent": (
            ("F",),
            {
                "grams": np.ones((1, 8, 8)),
                "scales": np.ones((1, 4)),
                **weights,
                "G": _factor(),
                "P": _factor(),
                "F": _factor(),
                "allowed": _bits(),
                "sweeps": 1,
                "face_steps": 0,
            },
        ),
        "residual_step": (
            ("residuals", "out"),
            {**_csr(), **model, "residuals": np.ones(4), "out": _factor()},
        ),
        "mapped_residuals": (
            ("out",),
            {**_csr(), **model, "scale": 1.0, **shrink, "out": np.ones(4)},
        ),
        "mapped_product": (
            ("out",),
            {**model, "H": _factor(), **shrink, "out": _factor()},
        ),
        "ridge_rows": (("F",), {**_csr(), **model, **ridge}),
        "conjugate_rows": (
            ("F",),
            {**_csr(), **model, "gram": np.eye(8), "ridges": np.ones(4), "steps": 2},
        ),
        "structured_rows": (
            ("X", "F"),
            {
                **_csr(),
                **model,
                **ridge,
                "alpha": 1.0,
                "eps": 0.1,
                "q": 1.0,
                "X": np.ones((4, 4)),
            },
        ),
        "tall_qr": (("A", "R"), {"A": np.eye(8), "columns": 8, "R": np.ones((8, 8))}),
        "gamma_update": (
            ("F", "E"),
            {"F": _factor(), "P": _factor(), "E": _factor(), **gamma, "rank": 8, "logs": True},
        ),
        "gamma_bound": ((), {"E": _factor(), **gamma, "rank": 8}),
        "group_sums": (
            ("out",),
            {"E": _factor(), "groups": gamma["groups"], "out": np.ones((2, 8))},
        ),
        "inspect_csr": ((), {"indptr": _csr()["indptr"], "indices": np.zeros(4, np.int32)}),
        "sparse_fingerprint": ((), {**_csr(), "first_row": 0}),
        "dense_fingerprint": ((), {"Z": np.ones((4, 4)), "first_row": 0}),
        "transpose": (
            ("out_indptr", "out_indices", "out_values"),
            {
                **_csr(),
                "out_indptr": np.zeros(5, np.int64),
                "out_indices": np.zeros(4, np.int32),
                "out_values": np.ones(4),
            },
        ),
        "transpose_panels": (
            ("out_indptr", "out_indices", "out_values"),
            {
                **_csr(),
                "panel_rows": 2,
                "out_indptr": np.zeros(9, np.int64),
                "out_indices": np.zeros(4, np.int32),
                "out_values": np.ones(4),
            },
        ),
    }
    written["inspect_csr"][1]["n_columns"] = 4
    for _, arguments in written.values():
        arguments["n_threads"] = 1
    return written


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
