"""Arrays that a kernel must refuse, and the module's description of itself."""

import numpy as np
import pytest
from helpers.each import each
from helpers.refused import refused
from kernel_calls import RANK, arrays, calls, with_rank

KERNELS = sorted(calls())
ARRAYS = [(kernel, name) for kernel in KERNELS for name in arrays(kernel)]
WRITTEN = [(kernel, name) for kernel in KERNELS for name in calls()[kernel][0]]


def arguments(**changes):
    given = {
        "indptr": np.array([0, 1, 2], dtype=np.int32),
        "indices": np.array([0, 1], dtype=np.int32),
        "values": np.ones(2),
        "G": np.ones((2, 8)),
        "out": np.ones((2, 8)),
        "scale": 1.0,
        "accumulate": False,
        "n_threads": 1,
    }
    return {**given, **changes}


def read_only():
    array = np.ones((2, 8))
    array.flags.writeable = False
    return array


def misaligned():
    return np.frombuffer(bytearray(8 * 16 + 4), dtype=np.uint8)[4:].view(np.float64).reshape(2, 8)


@each(
    ("changes", "error", "message"),
    [
        ({"out": read_only()}, ValueError, "out is read-only"),
        ({"out": misaligned()}, ValueError, "out is misaligned"),
        ({"out": np.ones((2, 16))[:, ::2]}, ValueError, "out is not C-contiguous"),
        ({"out": np.asfortranarray(np.ones((2, 8)))}, ValueError, "out is not C-contiguous"),
        ({"out": np.ones((3, 8))}, ValueError, "rows of out"),
        ({"out": np.ones((2, 16))}, ValueError, "columns of out"),
        ({"out": np.ones((2, 8), np.float32)}, TypeError, "out has dtype float32"),
        ({"values": np.ones(3)}, ValueError, "values has length 3"),
        ({"values": np.ones(2, np.float32)}, TypeError, "values has dtype float32"),
        (
            {"indices": np.array([0, 1 << 31])},
            ValueError,
            "2147483648, which is more than 2147483647",
        ),
        (
            {"indices": np.array([0.0, 1])},
            TypeError,
            "indices has dtype float64; .* int32 or int64",
        ),
        ({"indptr": np.array([0, 1, 3], np.int32)}, ValueError, "must start at 0 and end at"),
        ({"indptr": np.array([0, 1, 1], np.int32)}, ValueError, "must start at 0 and end at"),
        ({"indptr": np.array([0.0, 1, 2])}, TypeError, "int32 or int64"),
        ({"G": np.ones((2, 8), int)}, TypeError, "float32 or float64"),
        ({"G": np.ones((2, 9)), "out": np.ones((2, 9))}, ValueError, "not a padded rank"),
    ],
)
def test_refused(kernels, changes, error, message):
    refused(message, kernels.sparse_pass, 0, F=None, **arguments(**changes), error=error)


def test_zero_stride_output_is_refused(kernels):
    out = np.lib.stride_tricks.as_strided(np.ones(8), shape=(2, 8), strides=(0, 8))
    refused("not C-contiguous", kernels.sparse_pass, 0, F=None, **arguments(out=out))


@each("name", KERNELS)
def test_the_calls_are_sound(kernels, name):
    """What the following tests change about them is why they are refused."""
    getattr(kernels, name)(**calls()[name][1])


@each(("kernel", "name"), ARRAYS)
def test_what_is_no_array_is_refused(kernels, kernel, name):
    given = calls()[kernel][1]
    for other in (given[name].tolist(), "text"):
        with pytest.raises(TypeError, match=rf"^{name} must be a NumPy array, not (list|str)$"):
            getattr(kernels, kernel)(**{**given, name: other})


@each(("kernel", "name"), ARRAYS)
def test_other_dtypes_and_layouts_are_refused(kernels, kernel, name):
    given = calls()[kernel][1]
    array = given[name]
    other = np.int16 if array.dtype == np.uint8 else array.dtype.newbyteorder()
    swapped = array.astype(other)
    with pytest.raises(TypeError, match=rf"^{name} has dtype"):
        getattr(kernels, kernel)(**{**given, name: swapped})
    if name != "Z":
        spread = np.repeat(array, 2, axis=-1)[..., ::2]
        with pytest.raises(ValueError, match=rf"^{name} is not C-contiguous"):
            getattr(kernels, kernel)(**{**given, name: spread})


@each(("kernel", "name"), WRITTEN)
def test_read_only_outputs_are_refused(kernels, kernel, name):
    given = calls()[kernel][1]
    given[name].flags.writeable = False
    refused(f"^{name} is read-only", getattr(kernels, kernel), **given)


@each(("kernel", "name"), WRITTEN)
def test_outputs_that_overlap_other_arrays_are_refused(kernels, kernel, name):
    """Each other array in turn starts with the last item of the output."""
    for other in set(arrays(kernel)) - {name}:
        given = calls()[kernel][1]
        output, array = given[name], given[other]
        if output.itemsize != array.itemsize:
            continue
        start = output.nbytes - output.itemsize
        memory = np.zeros(start + array.nbytes, dtype=np.uint8)
        memory[: output.nbytes].view(output.dtype)[:] = output.ravel()
        memory[start:].view(array.dtype)[:] = array.ravel()
        given[name] = memory[: output.nbytes].view(output.dtype).reshape(output.shape)
        given[other] = memory[start:].view(array.dtype).reshape(array.shape)
        refused(f"({name}|{other}) shares memory with", getattr(kernels, kernel), **given)


def test_every_kernel_has_a_call(kernels):
    functions = {name for name, value in vars(kernels).items() if callable(value)}
    apart = {"build_info", "padded_rank", "tiny", "use_team", "_record_loops"}
    assert functions - apart == set(KERNELS)


DOUBLE = {"rates", "ridge", "group_sums out"}  # beside factors of any dtype


NEED_PADDING = {
    *("sparse_pass", "panel_pass", "scatter_pass", "sparse_kl_loss", "sparse_kl_unreached"),
    *("sparse_frobenius_loss", "sparse_beta_loss", "tensor_pass", "tensor_kl_loss"),
    *("tensor_kl_unreached", "tensor_frobenius_loss", "nnls", "kl_rows", "kl_descent"),
    *("coordinate_descent", "residual_step", "mapped_residuals", "ridge_rows", "structured_rows"),
    *("conjugate_rows", "dense_iterations", "sparse_iterations"),
    *("gamma_update", "gamma_bound"),
}


@each("kernel", KERNELS)
def test_factors_of_every_width(kernels, reference, kernel):
    """Refused, or right: all arguments with columns of components have others, then each alone."""
    run, given = getattr(kernels, kernel), calls()[kernel][1]

    def shapes(value):
        return [np.shape(one) for one in value] if isinstance(value, list) else np.shape(value)

    def of_rank(columns, dtype):
        return {
            name: with_rank(value, columns, float if DOUBLE & {name, f"{kernel} {name}"} else dtype)
            for name, value in given.items()
        }

    for dtype in (np.float32, np.float64):
        padded = of_rank(RANK, dtype)
        for columns in range(1, 10):
            ours, theirs = of_rank(columns, dtype), of_rank(columns, dtype)
            changed = [name for name in ours if shapes(ours[name]) != shapes(padded[name])]
            if kernel in NEED_PADDING:
                if columns == RANK:
                    continue
                refused(f"{columns} columns, which is not a padded", run, **ours)
            elif "fingerprint" not in kernel and kernel != "tall_qr":  # which have no one result
                found, wanted = run(**ours), getattr(reference, kernel)(**theirs)
                for one, other in (
                    (found, wanted),
                    *((ours[k], theirs[k]) for k in arrays(kernel)),
                ):
                    if one is not None:
                        np.testing.assert_allclose(one, other, rtol=1e-3, err_msg=kernel)
            for name in changed:
                if (kernel, name) != (
                    "tall_qr",
                    "A",
                ) or columns < RANK:  # takes some of the columns
                    with pytest.raises(ValueError, match=r"padded|disagree|has (length|more)|must"):
                        run(**{**of_rank(RANK, dtype), name: ours[name]})


# First axes that may be of any length; so may those of factors whose rows a sparse matrix names,
# which does not tell how wide it is.
FREE = {
    *("scatter_pass bounds", "panel_pass bounds", "ridge_rows ridge", "structured_rows ridge"),
    *("gamma_update rates", "gamma_bound rates", "group_sums out", "tall_qr A"),
    *("transpose indptr", "transpose out_indptr", "sparse_fingerprint indptr"),
}


@each("kernel", sorted(set(KERNELS) - {"inspect_csr", "dense_fingerprint", "dense_moments"}))
def test_arrays_of_other_lengths_are_refused(kernels, kernel):
    """The last of each axis comes twice."""
    for name in arrays(kernel):
        named_by_entries = name == "G" and kernel not in ("scatter_pass", "structured_rows")
        for axis in range(calls()[kernel][1][name].ndim):
            given = calls()[kernel][1]
            given[name] = np.concatenate([given[name], np.take(given[name], [-1], axis)], axis)
            free = f"{kernel} {name}" in FREE or (named_by_entries and "indptr" in given)
            if free and axis == 0:
                getattr(kernels, kernel)(**given)
            elif (kernel, name) != ("tall_qr", "A"):
                with pytest.raises(
                    ValueError, match=r"disagree|padded|has (length|more|\d rows)|must|shape"
                ):
                    getattr(kernels, kernel)(**given)


@each("name", KERNELS)
def test_numbers_of_threads(kernels, name):
    given = calls()[name][1]
    for count in (0, -1, 2**31, 2**40, 2**70):
        with pytest.raises(ValueError, match=f"^n_threads is {count}; it must be at least 1"):
            getattr(kernels, name)(**{**given, "n_threads": count})
    with pytest.raises(TypeError, match=r"^n_threads must be an integer, not float"):
        getattr(kernels, name)(**{**given, "n_threads": 1.5})
    getattr(kernels, name)(**{**given, "n_threads": np.int64(2)})


def test_pulls_down_without_rows_are_refused(kernels):
    given = calls()["kl_rows"][1]
    for rows in (0, 3):
        with pytest.raises(ValueError, match=f"^N has {rows} rows; expected 1 or 4"):
            kernels.kl_rows(**{**given, "N": np.ones((rows, 8))})
    kernels.kl_rows(**{**given, "N": np.ones((1, 8))})


def test_build_info(kernels):
    info = kernels.build_info()
    assert info["level"] == kernels.LEVEL
    assert info["eigen"].startswith(("3.4", "5."))
    assert info["threads"] in ("pool (futex)", "pool (mutex)", "openmp")


def test_padded_rank_is_stable(kernels):
    for itemsize in (4, 8):
        for rank in range(1, 600):
            padded = kernels.padded_rank(rank, itemsize)
            assert padded >= rank
            assert kernels.padded_rank(padded, itemsize) == padded
