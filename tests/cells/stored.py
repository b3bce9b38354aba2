"""The same AnnData with its matrix in files of every kind."""

import warnings

import anndata
import numpy as np
import scipy.sparse as sp


def _with(adata, X):
    other = adata.copy()
    other.X = X
    return other


def _backed(adata, X, folder):
    _with(adata, X).write_h5ad(folder / "cells.h5ad")
    return anndata.read_h5ad(folder / "cells.h5ad", backed="r")


def _rows(adata, folder):
    return _backed(adata, adata.X, folder)


def _columns(adata, folder):
    return _backed(adata, adata.X.tocsc(), folder)


def _dense(adata, folder):
    return _backed(adata, adata.X.toarray(), folder)


def _long_indices(adata, folder):
    X = adata.X.copy()
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return _backed(adata, X, folder)


def _unsorted(adata, folder):
    X = adata.X.copy()
    for first, last in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        X.indices[first:last] = X.indices[first:last][::-1].copy()
        X.data[first:last] = X.data[first:last][::-1].copy()
    X.has_sorted_indices = False
    return _backed(adata, X, folder)


def _layer(adata, folder):
    """The layer `stored` is in a file, and X in memory is something else."""
    import h5py

    adata.write_h5ad(folder / "cells.h5ad")
    stored = anndata.io.sparse_dataset(h5py.File(folder / "cells.h5ad")["X"])
    other = _with(adata, sp.csr_matrix(adata.shape, dtype=np.float32))
    other.layers["stored"] = stored
    return other


def _zarr(adata, folder):
    import zarr

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about versions of the format
        adata.write_zarr(folder / "cells.zarr")
        group = zarr.open(str(folder / "cells.zarr"), mode="r")
    return _with(adata, anndata.io.sparse_dataset(group["X"]))


def _dask(adata, folder):
    import dask.array

    del folder
    return _with(adata, dask.array.from_array(adata.X.toarray(), chunks=(100, 80)))


FORMS = {
    "rows": (_rows, None),
    "columns": (_columns, None),
    "dense": (_dense, None),
    "long indices": (_long_indices, None),
    "unsorted": (_unsorted, None),
    "layer": (_layer, None),
    "zarr": (_zarr, "zarr"),
    "dask": (_dask, "dask.array"),
}
