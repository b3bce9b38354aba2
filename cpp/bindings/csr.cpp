#include "../kernels/csr.hpp"

#include "arrays.hpp"
#include "registry.hpp"

namespace ssnmf {
namespace {

int bind_inspect_csr(const py::array& indptr, const py::array& indices, Size n_columns,
                     int n_threads) {
  return visit_index(indptr, [&](auto index) {
    using Index = decltype(index);
    const Index* pointers = const_data<Index>(indptr, "indptr");
    const Index* columns = const_data<Index>(indices, "indices");
    require_contiguous(indptr, "indptr", 1);
    require_contiguous(indices, "indices", 1);
    if (indptr.shape(0) < 1 || pointers[0] != 0) {
      return static_cast<int>(kUnsound);
    }
    const Size rows = indptr.shape(0) - 1;
    const Size entries = indices.shape(0);
    const py::gil_scoped_release release;
    return inspect_csr<Index>(pointers, columns, rows, n_columns, entries, n_threads);
  });
}

void bind_transpose(const py::array& indptr, const py::array& indices, const py::array& values,
                    py::array out_indptr, py::array out_indices, py::array out_values,
                    int n_threads) {
  visit_sparse(values, "values", indptr, [&](auto type, auto index) {
    using T = decltype(type);
    using Index = decltype(index);
    const auto Z = const_csr<T, Index>(indptr, indices, values);
    Index* pointers = writable_data<Index>(out_indptr, "out_indptr");
    Index* rows = writable_data<Index>(out_indices, "out_indices");
    T* data = writable_data<T>(out_values, "out_values");
    require_contiguous(out_indptr, "out_indptr", 1);
    require_contiguous(out_indices, "out_indices", 1);
    require_contiguous(out_values, "out_values", 1);
    require_equal(out_indices.shape(0), Z.entries(), "length of out_indices and entries");
    require_equal(out_values.shape(0), Z.entries(), "length of out_values and entries");
    if (out_indptr.shape(0) < 1) {
      throw bad("out_indptr", "is empty");
    }
    const Size columns = out_indptr.shape(0) - 1;
    const py::gil_scoped_release release;
    transpose<T, Index>(Z, columns, pointers, rows, data, n_threads);
  });
}

}  // namespace

void register_csr(py::module_& module) {
  module.def("inspect_csr", &bind_inspect_csr, py::arg("indptr"), py::arg("indices"),
             py::arg("n_columns"), py::arg("n_threads"),
             "0: sorted; 1: unsorted; 2: with duplicates; 3: unsound.");
  module.def("transpose", &bind_transpose, py::arg("indptr"), py::arg("indices"), py::arg("values"),
             py::arg("out_indptr"), py::arg("out_indices"), py::arg("out_values"),
             py::arg("n_threads"), "Transpose of a sound matrix, with sorted rows.");
}

}  // namespace ssnmf
