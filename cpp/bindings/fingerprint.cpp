#include "../kernels/fingerprint.hpp"

#include "arrays.hpp"
#include "registry.hpp"

namespace ssnmf {
namespace {

py::tuple as_tuple(const Fingerprint& found) { return py::make_tuple(found.first, found.second); }

py::tuple bind_sparse_fingerprint(py::handle indptr, py::handle indices, py::handle values,
                                  Size first_row, Threads n_threads) {
  return as_tuple(visit_float(values, "values", [&](auto type) {
    using T = decltype(type);
    const CsrArgument<T> Z(indptr, indices, values);
    const KernelCall call;
    return sparse_fingerprint<T>(*Z, first_row, n_threads);
  }));
}

py::tuple bind_dense_fingerprint(py::handle Z, Size first_row, Threads n_threads) {
  return as_tuple(visit_float(Z, "Z", [&](auto type) {
    using T = decltype(type);
    const auto array = const_dense<T>(Z, "Z");
    const KernelCall call;
    return dense_fingerprint<T>(array, first_row, n_threads);
  }));
}

}  // namespace

void register_fingerprint(py::module_& module) {
  define(module, "sparse_fingerprint", &bind_sparse_fingerprint,
         "indptr indices values first_row n_threads",
         "Two sums that tell the entries of a sparse matrix from those of others.");
  define(module, "dense_fingerprint", &bind_dense_fingerprint, "Z first_row n_threads",
         "The same of a dense matrix.");
}

}  // namespace ssnmf
