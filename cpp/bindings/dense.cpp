#include "../kernels/dense_pass.hpp"

#include "arrays.hpp"
#include "registry.hpp"

namespace ssnmf {
namespace {

template <class Op>
void run(py::handle Z, bool mask, py::handle F, py::handle G, py::handle out, double scale,
         bool accumulate, Threads n_threads) {
  visit_float(G, "G", [&](auto type) {
    using T = decltype(type);
    const auto z = const_dense<T>(Z, "Z");
    const auto g = const_rows<T>(G, "G");
    const Target<T> to{writable_rows<T>(out, "out"), static_cast<T>(scale), accumulate};
    require_equal(to.out.rows, z.rows, "rows of out and of Z");
    require_equal(g.rows, z.columns, "rows of G and columns of Z");
    require_equal(to.out.columns, g.columns, "columns of out and of G");
    Rows<const T> f{};
    if (!F.is_none()) {
      f = const_rows<T>(F, "F");
      require_same_shape(f, to.out, "F");
    }
    require_apart({"out", out}, {{"Z", Z}, {"F", F}, {"G", G}});
    const KernelCall call;
    dense_pass<Op>(z, mask, f, g, to, n_threads);
  });
}

template <class Loss>
double run_loss(py::handle Z, py::handle F, py::handle G, Threads n_threads) {
  return visit_float(G, "G", [&](auto type) {
    using T = decltype(type);
    const auto z = const_dense<T>(Z, "Z");
    const auto f = const_rows<T>(F, "F");
    const auto g = const_rows<T>(G, "G");
    require_equal(f.rows, z.rows, "rows of F and of Z");
    require_equal(g.rows, z.columns, "rows of G and columns of Z");
    require_equal(f.columns, g.columns, "columns of F and of G");
    const KernelCall call;
    return dense_loss<Loss>(z, f, g, n_threads);
  });
}

}  // namespace

void register_dense(py::module_& module) {
  module.def(
      "dense_product",
      [](py::handle Z, bool mask, py::handle G, py::handle out, double scale, bool accumulate,
         Threads n_threads) {
        run<Product>(Z, mask, py::none(), G, out, scale, accumulate, n_threads);
      },
      py::arg("Z"), py::arg("mask"), py::arg("G"), py::arg("out"), py::arg("scale"),
      py::arg("accumulate"), py::arg("n_threads"), "Z G.");
  module.def(
      "dense_ratio",
      [](py::handle Z, py::handle F, py::handle G, py::handle out, double scale, bool accumulate,
         Threads n_threads) { run<Ratio>(Z, false, F, G, out, scale, accumulate, n_threads); },
      py::arg("Z"), py::arg("F"), py::arg("G"), py::arg("out"), py::arg("scale"),
      py::arg("accumulate"), py::arg("n_threads"), "(Z ./ (F G^T)) G.");
  module.def(
      "dense_sampled",
      [](py::handle Z, bool mask, py::handle F, py::handle G, py::handle out, double scale,
         bool accumulate,
         Threads n_threads) { run<Sampled>(Z, mask, F, G, out, scale, accumulate, n_threads); },
      py::arg("Z"), py::arg("mask"), py::arg("F"), py::arg("G"), py::arg("out"), py::arg("scale"),
      py::arg("accumulate"), py::arg("n_threads"), "(Z .* (F G^T)) G.");
  module.def("dense_kl_loss", &run_loss<KullbackLeiblerLoss>, py::arg("Z"), py::arg("F"),
             py::arg("G"), py::arg("n_threads"), "Sum over the entries of x log(x/z) - x.");
  module.def("dense_kl_unreached", &run_loss<UnreachedLoss>, py::arg("Z"), py::arg("F"),
             py::arg("G"), py::arg("n_threads"),
             "What of dense_kl_loss belongs to entries with z = 0.");
  module.def("dense_frobenius_loss", &run_loss<FrobeniusLoss>, py::arg("Z"), py::arg("F"),
             py::arg("G"), py::arg("n_threads"), "Sum over the entries of (x - z)^2.");
}

}  // namespace ssnmf
