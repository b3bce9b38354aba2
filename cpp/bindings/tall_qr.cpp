#include "../kernels/tall_qr.hpp"

#include "arrays.hpp"
#include "registry.hpp"

namespace ssnmf {
namespace {

void bind_tall_qr(py::handle A, Size columns, py::handle R, Threads n_threads) {
  visit_float(A, "A", [&](auto type) {
    using T = decltype(type);
    const auto a = writable_rows<T>(A, "A");
    const auto r = writable_rows<T>(R, "R");
    if (columns < 1 || columns > a.columns || columns > a.rows) {
      throw bad("columns", "must be at least 1 and at most the rows and the columns of A");
    }
    require_equal(r.rows, columns, "rows of R and columns");
    require_equal(r.columns, columns, "columns of R and columns");
    require_apart({"A", A}, {{"R", R}});
    const KernelCall call;
    tall_qr<T>(a, columns, r, n_threads);
  });
}

}  // namespace

void register_tall_qr(py::module_& module) {
  define(module, "tall_qr", &bind_tall_qr, "A columns R n_threads",
         "Thin QR of the first columns of A, in place.");
}

}  // namespace ssnmf
