#include <utility>

#include "../kernels/tensor_pass.hpp"
#include "arrays.hpp"
#include "operation_argument.hpp"
#include "registry.hpp"

namespace ssnmf {
namespace {

// A tensor unfolded by one mode, and the factors of the others.  Takes the indices as they are,
// like CsrArgument.
template <class T>
class UnfoldedTensor {
 public:
  UnfoldedTensor(py::handle indptr, py::handle indices, py::handle values, const py::list& factors)
      : indptr_(indptr, "indptr") {
    const py::array named = array_of(indices, "indices");
    const Index* data = const_data<Index>(named, "indices");
    require_contiguous(named, "indices", 2);
    if (indptr_->size < 1) {
      throw bad("indptr", "is empty");
    }
    const Size entries = named.shape(1);
    csr = {indptr_->data, data, optional_vector<T>(values, "values", entries).data,
           indptr_->size - 1};
    if (csr.indptr[0] != 0 || csr.entries() != entries) {
      throw bad("indptr", "must start at 0 and end at the number of columns of indices");
    }
    require_equal(static_cast<Size>(factors.size()), named.shape(0), "factors and rows of indices");
    if (factors.size() < 1) {
      throw bad("factors", "is empty");
    }
    for (const py::handle factor : factors) {
      others.push_back(const_factor<T>(factor, "factors"));
      require_equal(others.back().columns, others.front().columns, "columns of the factors");
    }
  }

  Size rank() const { return others.front().columns; }

  Csr<T> csr;
  FactorList<T> others;

 private:
  Integers<Size> indptr_;
};

py::handle first_factor(const py::list& factors) {
  if (factors.empty()) {
    throw bad("factors", "is empty");
  }
  return factors[0].ptr();
}

void bind_tensor_pass(py::handle exponent, py::handle indptr, py::handle indices, py::handle values,
                      py::handle F, const py::list& factors, py::handle out, double scale,
                      bool accumulate, Threads n_threads) {
  const Operation operation = operation_of(exponent);
  if (operation.kind == Operation::kPower) {
    throw bad("exponent", "must be 0, 1 or -1 for a tensor");
  }
  F = factor_read(operation, F);
  visit_float(first_factor(factors), "factors", [&](auto type) {
    using T = decltype(type);
    const UnfoldedTensor<T> Z(indptr, indices, values, factors);
    const Target<T> to{writable_rows<T>(out, "out"), static_cast<T>(scale), accumulate};
    require_equal(to.out.rows, Z.csr.rows, "rows of out and of the tensor");
    require_equal(to.out.columns, Z.rank(), "columns of out and of the factors");
    Rows<const T> f{nullptr, to.out.rows, to.out.columns};
    if (operation.kind != Operation::kProduct) {
      f = const_rows<T>(F, "F");
      require_same_shape(f, to.out, "F");
      require_apart({"out", out}, {{"F", F}});
    }
    require_apart({"out", out}, {{"indptr", indptr}, {"indices", indices}, {"values", values}});
    for (const py::handle factor : factors) {
      require_apart({"out", out}, {{"factors", factor}});
    }
    const KernelCall call;
    tensor_pass<T>(operation, Z.csr, f, Z.others, to, n_threads);
  });
}

double run_tensor_loss(EntryLoss loss, py::handle indptr, py::handle indices, py::handle values,
                       py::handle weights, py::handle F, const py::list& factors,
                       Threads n_threads) {
  return visit_float(first_factor(factors), "factors", [&](auto type) {
    using T = decltype(type);
    const UnfoldedTensor<T> Z(indptr, indices, values, factors);
    const auto w = optional_vector<T>(weights, "weights", Z.csr.entries());
    const auto f = const_rows<T>(F, "F");
    require_equal(f.rows, Z.csr.rows, "rows of F and of the tensor");
    require_equal(f.columns, Z.rank(), "columns of F and of the factors");
    const KernelCall call;
    return tensor_loss<T>(loss, Z.csr, w.data, f, Z.others, n_threads);
  });
}

template <EntryLoss::Kind kind>
double bind_tensor_loss(py::handle indptr, py::handle indices, py::handle values, py::handle F,
                        const py::list& factors, Threads n_threads) {
  return run_tensor_loss(kind, indptr, indices, values, Py_None, F, factors, n_threads);
}

double bind_weighted_tensor_loss(py::handle indptr, py::handle indices, py::handle values,
                                 py::handle weights, py::handle F, const py::list& factors,
                                 Threads n_threads) {
  return run_tensor_loss(EntryLoss::kFrobenius, indptr, indices, values, weights, F, factors,
                         n_threads);
}

}  // namespace

void register_tensors(py::module_& module) {
  define(module, "tensor_pass", &bind_tensor_pass,
         "exponent indptr indices values F factors out scale accumulate n_threads",
         "(Z .* (F G^T)^exponent) G over the entries of a tensor unfolded by one mode; a row of "
         "G is the product of the rows of the factors that an entry names.");
  define(module, "tensor_kl_loss", &bind_tensor_loss<EntryLoss::kKullbackLeibler>,
         "indptr indices values F factors n_threads",
         "Sum over the stored entries of x log(x/z) - x.");
  define(module, "tensor_kl_unreached", &bind_tensor_loss<EntryLoss::kUnreached>,
         "indptr indices values F factors n_threads",
         "What of tensor_kl_loss belongs to entries with z = 0.");
  define(module, "tensor_frobenius_loss", &bind_weighted_tensor_loss,
         "indptr indices values weights F factors n_threads",
         "Sum over the stored entries of w (x - z)^2.");
}

}  // namespace ssnmf
