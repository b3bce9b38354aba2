// The kernels without Python, for the sanitizers: exact storage, so that an access out of bounds is
// seen, against loops as plain as can be.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include "kernels/completion_pass.hpp"
#include "kernels/csr.hpp"
#include "kernels/factor_ops.hpp"
#include "kernels/fingerprint.hpp"
#include "kernels/gamma_posterior.hpp"
#include "kernels/imbalance.hpp"
#include "kernels/iterations.hpp"
#include "kernels/kl_descent.hpp"
#include "kernels/kl_rows.hpp"
#include "kernels/nnls.hpp"
#include "kernels/passes.hpp"
#include "kernels/ridge_rows.hpp"
#include "kernels/tall_qr.hpp"
#include "kernels/tensor_pass.hpp"
#include "kernels/update.hpp"
#include "problem.hpp"

namespace {

using namespace ssnmf;

template <class T>
void test_passes(Size p, Size q, Size rank) {
  Problem<T> a(p, q, rank, unsigned(p + 7 * q + rank));
  sparse_pass<T>(Operation::kProduct, a.csr(), Rows<const T>{}, a.g(), a.to(), 2);
  check(a.template agrees<Product>(), "sparse product");
  sparse_pass<T>(Operation::kRatio, a.csr(), a.f(), a.g(), a.to(), 2);
  check(a.template agrees<Ratio>(), "sparse ratio");
  sparse_pass<T>(Operation::kSampled, a.csr(), a.f(), a.g(), a.to(), 2);
  check(a.template agrees<Sampled>(), "sparse sampled");
  dense_pass<T>(Operation::kProduct, a.dense(), false, Rows<const T>{}, a.g(), a.to(), 2);
  check(a.template agrees<Product>(), "dense product");
  dense_pass<T>(Operation::kRatio, a.dense(), false, a.f(), a.g(), a.to(), 2);
  check(a.template agrees<Ratio>(), "dense ratio");
  std::vector<T> by_columns(a.Z.size());
  for (Size i = 0; i < p; ++i) {
    for (Size j = 0; j < q; ++j) {
      by_columns[std::size_t(j * p + i)] = a.Z[std::size_t(i * q + j)];
    }
  }
  dense_pass<T>(Operation::kRatio, Dense<T>{by_columns.data(), p, q, 1, p}, false, a.f(), a.g(),
                a.to(), 2);
  check(a.template agrees<Ratio>(), "dense ratio by columns");
  const double sparse =
      sparse_loss<T>(EntryLoss::kKullbackLeibler, a.csr(), nullptr, a.f(), a.g(), 2);
  const double dense = dense_loss<T>(EntryLoss::kKullbackLeibler, a.dense(), a.f(), a.g(), 2);
  check(std::abs(sparse - dense) <= 1e-3 * (1.0 + std::abs(dense)), "sparse and dense losses");
}

// The passes for the columns against those over a transposed copy.
template <class T>
void test_scattered(Size p, Size q, Size rank) {
  const Problem<T> a(p, q, rank, 3);
  std::vector<Size> indptr(std::size_t(q + 1));
  std::vector<Index> indices(a.indices.size());
  std::vector<T> values(a.values.size());
  transpose(a.csr(), q, indptr.data(), indices.data(), values.data(), 1);
  std::vector<T> expected(std::size_t(q * a.rank)), out(expected.size());
  const Rows<T> to{out.data(), q, a.rank};
  const Csr<T> columns{indptr.data(), indices.data(), values.data(), q};
  sparse_pass<T>(Operation::kRatio, columns, a.g(), a.f(),
                 {{expected.data(), q, a.rank}, T(1), false}, 1);
  const std::vector<std::int64_t> bounds{0, q / 3, q / 2, q};
  scatter_pass<T>(Operation::kRatio, a.csr(), a.g(), a.f(), {bounds.data(), 4}, T(1), to, 3);
  for (std::size_t e = 0; e < out.size(); ++e) {
    check(std::abs(out[e] - expected[e]) <= T(1e-4) * (T(1) + expected[e]), "scattered ratio");
  }
  const Size panel_rows = std::max<Size>(1, p / 3);
  const Size panels = (p + panel_rows - 1) / panel_rows;
  std::vector<Size> cut(std::size_t(panels * q + 1));
  transpose_panels(a.csr(), q, panel_rows, cut.data(), indices.data(), values.data(), 2);
  const Csr<T> parts{cut.data(), indices.data(), values.data(), panels * q};
  std::fill(out.begin(), out.end(), T(7));
  panel_pass<T>(Operation::kRatio, parts, a.g(), a.f(), {bounds.data(), 4}, {to, T(1), false}, 3);
  for (std::size_t e = 0; e < out.size(); ++e) {
    check(std::abs(out[e] - expected[e]) <= T(1e-4) * (T(1) + expected[e]), "ratio by panels");
  }
  std::fill(out.begin(), out.end(), T(0));
  const Rows<const T> no_model{nullptr, q, a.rank};
  scatter_pass<T>(Operation::kProduct, a.csr(), no_model, a.f(), {bounds.data(), 4}, T(1), to, 2);
}

// A tensor whose modes after the second have one index each is the matrix.
template <class T>
void test_tensors(Size p, Size q, Size rank) {
  Problem<T> a(p, q, rank, 17);
  const std::vector<T> ones(std::size_t(a.rank), T(1));
  std::vector<Index> indices = a.indices;
  FactorList<T> others{a.g()};
  for (int modes = 3; modes <= 5; ++modes) {
    indices.resize(indices.size() + a.indices.size(), Index(0));
    others.push_back({{ones.data(), 1, a.rank}, "ones"});
    Csr<T> Z = a.csr();
    Z.indices = indices.data();
    tensor_pass<T>(Operation::kProduct, Z, Rows<const T>{}, others, a.to(), 2);
    check(a.template agrees<Product>(), "tensor product");
    tensor_pass<T>(Operation::kRatio, Z, a.f(), others, a.to(), 2);
    check(a.template agrees<Ratio>(), "tensor ratio");
    tensor_pass<T>(Operation::kSampled, Z, a.f(), others, a.to(), 2);
    check(a.template agrees<Sampled>(), "tensor sampled");
    const EntryLoss loss = EntryLoss::kKullbackLeibler;
    const double found = tensor_loss<T>(loss, Z, nullptr, a.f(), others, 2);
    const double expected = sparse_loss<T>(loss, a.csr(), nullptr, a.f(), a.g(), 2);
    check(std::abs(found - expected) <= 1e-3 * (1.0 + std::abs(expected)), "tensor loss");
  }
}

template <class T>
void test_factors(Size p, Size rank) {
  Problem<T> a(p, 3, rank, 5);
  std::vector<T> K(std::size_t(a.rank * a.rank));
  gram<T>(a.f(), {}, {K.data(), a.rank, a.rank}, 2);
  std::vector<T> sums(std::size_t(a.rank), T(0));
  column_sums<T>(a.f(), {}, sums.data(), 2);
  multiply<T>(a.f(), {K.data(), a.rank, a.rank}, {}, a.to(), 2);
  std::vector<T> crossed(K.size());
  cross<T>(a.f(), a.f(), {}, {crossed.data(), a.rank, a.rank}, 1);
  check(crossed == K, "cross");
  add_row<T>(sums.data(), {}, {{a.out.data(), p, a.rank}, T(1), true}, 2);
  check(inner<T>(a.f(), {a.out.data(), p, a.rank}, 2) > 0.0, "inner");
  std::vector<T> moved = a.F;
  const Rows<const T> pull{a.out.data(), p, a.rank};
  const Pulls<T> squared{pull, a.f()};
  const Pulls<T> divergence{a.f(), pull};
  update<T>({moved.data(), p, a.rank}, squared, divergence, true, 0.9, 2);
  for (const T entry : moved) {
    check(std::isfinite(entry) && entry > T(0), "update");
  }
  std::vector<T> before = a.F;
  extrapolate<T>({moved.data(), p, a.rank}, {before.data(), p, a.rank}, 0.5, false, 2);
  extrapolate<T>({moved.data(), p, a.rank}, {before.data(), p, a.rank}, 0.5, true, 2);
  for (const T entry : moved) {
    check(std::isfinite(entry) && entry >= T(0), "extrapolate");
  }
}

// Memory of the exact size; with momentum no iteration raises the objective.
template <class T>
void test_iterations(Size p, Size q, Size rank) {
  Problem<T> a(p, q, rank, 3);
  const Size R = a.rank;
  const Size longest = std::max(p, q);
  std::vector<T> S = a.F, A = a.G, P(std::size_t(longest * R)), N = P, before_S = S, before_A = A;
  const Dense<T> Z = a.dense();
  const auto pass = [&](bool for_A, Operation operation, const Rows<const T>& F,
                        const Factor<const T>& G, const Rows<T>& out) {
    const Dense<T> turned{Z.data, q, p, Z.column_stride, Z.row_stride};
    dense_pass<T>(operation, for_A ? turned : Z, false, F, G, {out}, 2);
  };
  const MatrixFit<T> fit{pass,
                         nullptr,
                         1e6,
                         0.0,
                         {S.data(), p, R},
                         {A.data(), q, R},
                         {P.data(), longest, R},
                         {N.data(), longest, R},
                         {before_S.data(), p, R},
                         {before_A.data(), q, R}};
  for (const auto kind :
       {FactorUpdate::kFillIn, FactorUpdate::kMultiply, FactorUpdate::kMultiplyByRatios}) {
    iterations<T>(fit, {kind, 0.5, 2, 1, 1}, {}, 2, 2);
  }
  double last = 1e9;
  Momentum momentum{{last, 0.25, 0.25, 1.0, 0.0}};
  for (int call = 0; call < 4; ++call) {
    momentum = iterations<T>(fit, {FactorUpdate::kDescent, 0.0, 2, 1, 1}, momentum, 3, 2);
    check((*momentum)[0] <= last, "iterations");
    last = (*momentum)[0];
  }
}

template <class T>
void test_rows(Size p, Size q, Size rank) {
  Problem<T> a(p, q, rank, 11);
  const double tol = sizeof(T) == 8 ? 1e-9 : 1e-4;
  std::vector<T> K(std::size_t(a.rank * a.rank));
  gram<T>(a.g(), {}, {K.data(), a.rank, a.rank}, 1);
  sparse_pass<T>(Operation::kProduct, a.csr(), Rows<const T>{}, a.g(), a.to(), 1);
  const Rows<const T> pull{a.out.data(), p, a.rank};
  const Rows<T> f{a.F.data(), p, a.rank};
  const Csr<T> none{};
  check(nnls<T>({K.data(), a.rank, a.rank}, nullptr, none, a.g(), pull, f, tol, 1000, 2) == 0,
        "nnls");
  check(nnls<T>({}, nullptr, a.csr(), a.g(), pull, f, tol, 1000, 2) == 0, "nnls with weights");
  std::vector<T> sums(std::size_t(a.rank), T(0));
  column_sums<T>(a.g(), {}, sums.data(), 1);
  check(kl_rows<T>(a.csr(), a.g(), {sums.data(), 1, a.rank}, f, tol, 1000, 2) == 0,
        "Kullback-Leibler rows");
  const Rows<const T> down{sums.data(), 1, a.rank};
  std::vector<std::uint8_t> masked(a.F.size() / 8, 255);
  masked[0] = 254;
  std::vector<T> descending(a.F.size(), T(1));
  const Rows<T> d{descending.data(), p, a.rank};
  double before = std::numeric_limits<double>::infinity();
  for (const Support& allowed : {Support{}, Support{masked.data(), a.rank / 8}}) {
    double value = kl_descent<T>(a.csr(), a.g(), down, d, allowed, 2, true, 2);
    for (std::size_t e = 0; e < descending.size(); ++e) {
      value += static_cast<double>(descending[e] * sums[e % std::size_t(a.rank)]);
    }
    check(value <= before + std::abs(before) * static_cast<double>(tol), "falls");
    before = value;
  }
}

// A step on the residuals is F + (Z - F G^T) G over the stored entries, and so on.
template <class T>
void test_completion(Size p, Size q, Size rank) {
  Problem<T> a(p, q, rank, 19);
  const Rows<T> to{a.out.data(), p, a.rank};
  std::vector<T> residuals(a.values.size()), stepped(a.values.size());
  const Shrinkage<T> none{T(0), T(1), T(1), true, -std::numeric_limits<T>::infinity()};
  mapped_residuals(a.csr(), a.f(), a.g(), T(1), none, residuals.data(), 2);
  residual_step(a.csr(), a.f(), a.g(), stepped.data(), to, 2);
  for (std::size_t e = 0; e < residuals.size(); ++e) {
    check(std::abs(residuals[e] - stepped[e]) <= T(1e-4) * T(rank), "residuals");
  }
  for (const T q_power : {T(0), T(0.5), T(1)}) {
    for (const bool proximal : {true, false}) {
      const Shrinkage<T> shrink{T(0.01), T(0.1), q_power, proximal, T(0)};
      std::fill(a.out.begin(), a.out.end(), T(0));
      add_mapped_product(a.f(), a.g(), a.g(), shrink, to, 2);
      for (const T entry : a.out) {
        check(std::isfinite(entry) && entry > T(0), "mapped product");
      }
    }
  }
  const std::vector<double> ridge(std::size_t(rank), 0.5);
  const Span<const double> penalties{ridge.data(), rank};
  ridge_rows(a.csr(), a.g(), penalties, to, 2);
  const std::vector<T> exact = a.out;
  std::vector<T> X = a.Z;
  structured_rows(a.csr(), a.g(), penalties, MissingWeights<T>{0.0, 0.1, 1.0}, {X.data(), p, q}, to,
                  2);
  for (std::size_t e = 0; e < exact.size(); ++e) {
    check(std::abs(exact[e] - a.out[e]) <= T(1e-3), "rows without weights");
  }
  const std::vector<double> every(std::size_t(a.rank), 0.5);  // for the padding too
  ridge_rows(a.csr(), a.g(), {every.data(), a.rank}, to, 2);
  const std::vector<T> solved = a.out;
  const std::vector<T> common(std::size_t(a.rank * a.rank), T(0));
  const std::vector<T> own(std::size_t(p), T(0.5));
  conjugate_rows<T>(a.csr(), a.g(), {common.data(), a.rank, a.rank}, {own.data(), p}, 3, to, 2);
  for (std::size_t e = 0; e < solved.size(); ++e) {
    const T scale = T(1) + std::abs(solved[e]);
    check(std::abs(solved[e] - a.out[e]) <= T(1e-3) * scale, "conjugate gradients at the solution");
  }
}

template <class T>
void test_tall_qr(Size n, Size columns) {
  const Size stride = columns + 3;
  std::mt19937 engine(23);
  std::normal_distribution<T> normal;
  std::vector<T> A(std::size_t(n * stride)), R(std::size_t(columns * columns));
  for (T& entry : A) {
    entry = normal(engine);
  }
  const std::vector<T> given = A;
  tall_qr<T>({A.data(), n, stride}, columns, {R.data(), columns, columns}, 2);
  for (Size i = 0; i < n; ++i) {
    for (Size j = 0; j < stride; ++j) {
      T product = j < columns ? T(0) : A[std::size_t(i * stride + j)];
      for (Size k = 0; j < columns && k <= j; ++k) {
        product += A[std::size_t(i * stride + k)] * R[std::size_t(k * columns + j)];
      }
      check(std::abs(product - given[std::size_t(i * stride + j)]) <= T(1e-4), "QR");
    }
  }
}

template <class T>
void test_structure(Size p, Size q) {
  const Problem<T> a(p, q, 4, 17);
  const Size entries = Size(a.indices.size());
  std::vector<Size> indptr(std::size_t(q + 1));
  std::vector<Index> indices(a.indices.size());
  std::vector<T> values(a.values.size());
  transpose(a.csr(), q, indptr.data(), indices.data(), values.data(), 3);
  check(inspect_csr(indptr.data(), indices.data(), q, p, entries, 2) == kSorted, "transpose");
  for (Size j = 0; j < q; ++j) {
    for (Size e = indptr[std::size_t(j)]; e < indptr[std::size_t(j + 1)]; ++e) {
      const Size i = indices[std::size_t(e)];
      check(values[std::size_t(e)] == a.Z[std::size_t(i * q + j)], "entries of the transpose");
    }
  }
  const Size rows[] = {0, 3, 5};
  const std::int32_t unsorted[] = {2, 0, 1, 4, 0};
  const std::int32_t repeated[] = {2, 0, 2, 4, 0};
  const std::int32_t outside[] = {2, 0, 5, 4, 0};
  check(inspect_csr(rows, unsorted, 2, 5, 5, 1) == kUnsorted, "unsorted rows");
  check(inspect_csr(rows, repeated, 2, 5, 5, 1) == kDuplicates, "a repeated column");
  check(inspect_csr(rows, outside, 2, 5, 5, 1) == kUnsound, "a column outside");
}

// One fingerprint for all forms of a matrix, which is the sum of those of its parts.
template <class T>
void test_fingerprint(Size p, Size q) {
  const Problem<T> a(p, q, 4, 18);
  const Fingerprint sparse = sparse_fingerprint(a.csr(), 0, 3);
  const Fingerprint dense = dense_fingerprint(a.dense(), 0, 1);
  check(sparse.first == dense.first && sparse.second == dense.second, "fingerprint");
  const Dense<T> turned{a.Z.data(), q, p, 1, q};
  Fingerprint sum;
  for (Size j = 0; j < q; ++j) {
    const Dense<T> row{turned.data + j, 1, p, 1, q};
    const Fingerprint part = dense_fingerprint(row, j, 1);
    sum = {sum.first + part.first, sum.second + part.second};
  }
  const Fingerprint whole = dense_fingerprint(turned, 0, 2);
  check(sum.first == whole.first && sum.second == whole.second, "fingerprint of parts");
}

template <class T>
void test_imbalance(Size p, Size rank) {
  const std::vector<T> F(std::size_t(p * rank), T(2)), P(F.size(), T(3)),
      N(std::size_t(rank), T(1));
  const Rows<const T> f{F.data(), p, rank}, up{P.data(), p, rank}, down{N.data(), 1, rank};
  const double number = static_cast<double>(p * rank);
  const std::vector<std::uint8_t> every_other(std::size_t(p * rank / 8), 0x55);
  for (const Support& moves : {Support{}, Support{every_other.data(), rank / 8}}) {
    const double counts = moves.data == nullptr ? 1 : 0.5;
    const Imbalance found = imbalance(f, up, down, moves, 2);
    check(std::abs(found.apart - 4 * counts * number) <= 1e-9 * number, "imbalance");
    check(std::abs(found.pull - 6 * counts * number) <= 1e-9 * number, "pull");
  }
}

// Expectations of S add up to shapes over rates, and exp(Lg) lies below E, for every group of rows.
template <class T>
void test_gamma(Size p, Size width) {
  Problem<T> problem(p, 1, width, 12);
  const Size rank = problem.rank;
  std::vector<double> rates(std::size_t(2 * rank), 2.0), sums(std::size_t(2 * rank));
  std::vector<std::int32_t> groups(std::size_t(p), 0);
  groups.back() = 1;
  std::vector<T> E(problem.F.size());
  const std::vector<T> before = problem.F;
  const Factor<T> f{{problem.F.data(), p, rank}, "F"};
  const Rows<T> e{E.data(), p, rank};
  const GammaRates posterior{{rates.data(), 2, rank}, groups.data()};
  const double logs =
      gamma_update<T>(f, {problem.out.data(), p, rank}, 0.5, posterior, e, width, true, 2);
  bool right = std::isfinite(logs);
  double total = 0.0;
  for (Size i = 0; i < p; ++i) {
    for (Size k = 0; k < rank; ++k) {
      const auto at = std::size_t(i * rank + k);
      const double shape = 0.5 + double(before[at]) * double(problem.out[at]);
      const double wanted = k < width ? shape / 2.0 : 0.0;
      right = right && std::abs(double(E[at]) - wanted) < 1e-6 && problem.F[at] <= E[at];
      total += double(E[at]);
    }
  }
  check(right, "gamma posteriors");
  group_sums<T>({E.data(), p, rank}, groups.data(), {sums.data(), 2, rank}, 2);
  for (const double sum : sums) {
    total -= sum;
  }
  check(std::abs(total) < 1e-9 * double(p * rank), "sums by group");
  check(std::isfinite(gamma_bound<T>({{E.data(), p, rank}, "E"}, 0.5, posterior, width, 2)),
        "bound");
}

template <class T>
void test_type() {
  for (const Size rank : {1, 8, 20, 60, 65, 130}) {
    test_passes<T>(1, 1, rank);
    test_passes<T>(70, 33, rank);
    test_passes<T>(5, 300, rank);
    test_scattered<T>(1, 1, rank);
    test_scattered<T>(33, 70, rank);
    test_tensors<T>(1, 1, rank);
    test_tensors<T>(33, 70, rank);
    test_factors<T>(1, rank);
    test_factors<T>(1100, rank);
  }
  for (const Size rank : {1, 8, 20, 64, 130}) {
    test_completion<T>(1, 1, rank);
    test_completion<T>(120, 300, rank);
  }
  test_tall_qr<T>(1, 1);
  test_tall_qr<T>(40, 40);
  test_tall_qr<T>(3000, 17);
  test_iterations<T>(40, 61, 5);
  test_iterations<T>(70, 3, 20);
  test_rows<T>(40, 60, 6);
  test_rows<T>(3, 400, 20);
  for (const Size rank : {1, 20, 70}) {
    test_gamma<T>(1, rank);
    test_gamma<T>(700, rank);
  }
  test_structure<T>(1, 1);
  test_structure<T>(40, 3000);
  test_fingerprint<T>(1, 1);
  test_fingerprint<T>(300, 500);
  test_imbalance<T>(1, 3);
  test_imbalance<T>(700, 16);
}

void test_kernels() {
  test_type<double>();
  test_type<float>();
}

}  // namespace

int main() { return run_tests(&test_kernels); }
