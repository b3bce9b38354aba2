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

void bind_transpose(py::handle indptr, py::handle indices, py::handle values, py::handle out_indptr,
                    py::handle out_indices, py::handle out_values, Threads n_threads) {
  visit_float(values, "values", [&](auto type) {
    using T = decltype(type);
    const CsrArgument<T> Z(indptr, indices, values);
    const auto pointers = writable_vector<Size>(out_indptr, "out_indptr");
    const auto rows = writable_vector<Index>(out_indices, "out_indices");
    const auto data = writable_vector<T>(out_values, "out_values");
    require_equal(rows.size, Z->entries(), "length of out_indices and entries");
    require_equal(data.size, Z->entries(), "length of out_values and entries");
    if (pointers.size < 1) {
      throw bad("out_indptr", "is empty");
    }
    const Extent to_indptr{"out_indptr", out_indptr}, to_indices{"out_indices", out_indices};
    const std::initializer_list<Extent> given{
        {"indptr", indptr}, {"indices", indices}, {"values", values}};
    require_apart(to_indptr, given);
    require_apart(to_indices, given);
    require_apart({"out_values", out_values}, given);
    require_apart(to_indptr, {to_indices, {"out_values", out_values}});
    require_apart(to_indices, {{"out_values", out_values}});
    const KernelCall call;
    transpose<T>(*Z, pointers.size - 1, pointers.data, rows.data, data.data, n_threads);
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
