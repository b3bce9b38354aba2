#include "../kernels/csr.hpp"

#include "arrays.hpp"
#include "registry.hpp"

namespace ssnmf {
namespace {

template <class Given>
int inspect(const Span<const Size>& pointers, py::handle indices, Size n_columns,
            Threads n_threads) {
  const auto columns = const_vector<Given>(indices, "indices");
  const KernelCall call;
  return inspect_csr<Given>(pointers.data, columns.data, pointers.size - 1, n_columns, columns.size,
                            n_threads);
}

int bind_inspect_csr(py::handle indptr, py::handle indices, Size n_columns, Threads n_threads) {
  const Integers<Size> pointers(indptr, "indptr");
  if (pointers->size < 1 || pointers->data[0] != 0) {
    return static_cast<int>(kUnsound);
  }
  if (py::isinstance<py::array_t<std::int64_t>>(array_of(indices, "indices"))) {
    return inspect<std::int64_t>(*pointers, indices, n_columns, n_threads);
  }
  return inspect<std::int32_t>(*pointers, indices, n_columns, n_threads);
}

// The outputs of a transpose, checked.
template <class T>
struct Transposed {
  Span<Size> indptr;
  Span<Index> indices;
  Span<T> values;

  Transposed(const CsrArgument<T>& Z, py::handle out_indptr, py::handle out_indices,
             py::handle out_values)
      : indptr(writable_vector<Size>(out_indptr, "out_indptr")),
        indices(writable_vector<Index>(out_indices, "out_indices")),
        values(writable_vector<T>(out_values, "out_values")) {
    require_equal(indices.size, Z->entries(), "length of out_indices and entries");
    require_equal(values.size, Z->entries(), "length of out_values and entries");
    if (indptr.size < 1) {
      throw bad("out_indptr", "is empty");
    }
    const Extent to_indices{"out_indices", out_indices}, to_values{"out_values", out_values};
    require_apart({"out_indptr", out_indptr}, Z, {to_indices, to_values});
    require_apart(to_indices, Z, {to_values});
    require_apart(to_values, Z, {});
  }
};

void bind_transpose(py::handle indptr, py::handle indices, py::handle values, py::handle out_indptr,
                    py::handle out_indices, py::handle out_values, Threads n_threads) {
  visit_float(values, "values", [&](auto type) {
    using T = decltype(type);
    const CsrArgument<T> Z(indptr, indices, values);
    const Transposed<T> to(Z, out_indptr, out_indices, out_values);
    const KernelCall call;
    transpose<T>(*Z, to.indptr.size - 1, to.indptr.data, to.indices.data, to.values.data,
                 n_threads);
  });
}

void bind_transpose_panels(py::handle indptr, py::handle indices, py::handle values,
                           Size panel_rows, py::handle out_indptr, py::handle out_indices,
                           py::handle out_values, Threads n_threads) {
  if (panel_rows < 1) {
    throw bad("panel_rows", "must be at least 1");
  }
  visit_float(values, "values", [&](auto type) {
    using T = decltype(type);
    const CsrArgument<T> Z(indptr, indices, values);
    const Transposed<T> to(Z, out_indptr, out_indices, out_values);
    const Size panels = (Z->rows + panel_rows - 1) / panel_rows;
    const Size columns = panels == 0 ? 0 : (to.indptr.size - 1) / panels;
    require_equal(to.indptr.size, panels * columns + 1, "length of out_indptr and of its panels");
    const KernelCall call;
    transpose_panels<T>(*Z, columns, panel_rows, to.indptr.data, to.indices.data, to.values.data,
                        n_threads);
  });
}

}  // namespace

void register_csr(py::module_& module) {
  define(module, "inspect_csr", &bind_inspect_csr, "indptr indices n_columns n_threads",
         "0: sorted; 1: unsorted; 2: with duplicates; 3: unsound.");
  define(module, "transpose", &bind_transpose,
         "indptr indices values out_indptr out_indices out_values n_threads",
         "Transpose of a sound matrix, with sorted rows.");
  define(module, "transpose_panels", &bind_transpose_panels,
         "indptr indices values panel_rows out_indptr out_indices out_values n_threads",
         "Transpose of a sound matrix cut into panels of its rows.");
}

}  // namespace ssnmf
