// Rows of several entries at once, for ranks and ways that the level at hand may not choose.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/row_pass.hpp"
#include "problem.hpp"

namespace {

using namespace ssnmf;

// The pass by batches, as levels with registers for it take it; the last one may not be full.
template <class T, int R>
void batched_row(const Csr<T>& Z, const T* f, const ColumnRows<T>& gather, Size row, T* out) {
  constexpr Size size = RowBatch<T, R>::size;
  const Size last = Z.indptr[row + 1];
  RegisterRow<T, R> sum;
  for (Size entry = Z.indptr[row]; entry < last; entry += size) {
    add_batch<Ratio, R>(Ratio{}, Z, f, gather, entry, std::min(size, last - entry), sum);
  }
  sum.store(out);
}

template <class T, int R>
void test_rank() {
  for (const Size columns : {1, 7, 60, 900}) {
    Problem<T> a(6, columns, R, unsigned(R + columns));
    const Csr<T> Z = a.csr();
    const ColumnRows<T> gather(Z, a.g());
    const auto by_rows = [&](const auto& row_pass, const char* what) {
      std::fill(a.out.begin(), a.out.end(), T(7));
      for (Size row = 0; row < a.p; ++row) {
        row_pass(row);
      }
      check(a.template agrees<Ratio>(), what);
    };
    by_rows([&](Size i) { batched_row<T, R>(Z, a.f().row(i), gather, i, a.to().out.row(i)); },
            "batches");
    using Sum = GatheredSum<Ratio, T, ColumnRows<T>>;
    const auto check_sum = [&](const Sum& sum, const char* what) {
      std::fill(a.out.begin(), a.out.end(), T(7));
      pass_rows<T>(sum, Z, a.f(), a.to(), 1);
      check(a.template agrees<Ratio>(), what);
    };
    check_sum(Sum::template fixed<R>(Ratio{}, Z, gather), "a sum in registers");
    check_sum(Sum::template blocked<8>(Ratio{}, Z, gather), "chunks");
    std::vector<T> models(a.values.size());
    for (Size i = 0; i < a.p; ++i) {
      const Size first = Z.indptr[i];
      entry_models<R, R>(gather, a.f().row(i), first, Z.indptr[i + 1] - first,
                         models.data() + first);
      for (Size e = first; e < Z.indptr[i + 1]; ++e) {
        double model = 0.0;
        for (Size k = 0; k < R; ++k) {
          model += double(a.f().row(i)[k]) * double(a.g().row(Z.indices[e])[k]);
        }
        check(std::abs(double(models[std::size_t(e)]) - model) <= 1e-5 * model, "models");
      }
    }
  }
}

// More ranks take too long to compile for the sanitizers.
void test_batches() {
  test_rank<double, 8>();
  test_rank<double, 24>();
  test_rank<double, 40>();
  test_rank<float, 16>();
  test_rank<float, 32>();
  test_rank<float, 64>();
#ifndef SSNMF_FAST_SANITIZED
  test_rank<double, 16>();
  test_rank<double, 32>();
  test_rank<double, 48>();
  test_rank<double, 64>();
  test_rank<double, 96>();
  test_rank<float, 8>();
  test_rank<float, 48>();
  test_rank<float, 96>();
#endif
}

}  // namespace

int main() { return run_tests(&test_batches); }
