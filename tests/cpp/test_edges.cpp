// Kernels at the edges: sums that go on, patterns, missing tiles, no rows.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/coordinate_descent.hpp"
#include "kernels/csr.hpp"
#include "kernels/factor_ops.hpp"
#include "kernels/kl_rows.hpp"
#include "kernels/nnls.hpp"
#include "kernels/passes.hpp"
#include "problem.hpp"

namespace {

using namespace ssnmf;

// out <- 1 + 0.5 times the result, with values and with ones in their place.
template <class T>
void test_accumulation(Size p, Size q, Size rank) {
  Problem<T> a(p, q, rank, 29);
  const auto pass = [&](Operation operation, const Csr<T>& Z) {
    a.out.assign(a.out.size(), T(1));
    const Target<T> to{{a.out.data(), p, a.rank}, T(0.5), true};
    sparse_pass<T>(operation, Z, a.f(), a.g(), to, 2);
  };
  pass(Operation::kProduct, a.csr());
  check(a.template agrees<Product>(1.0, 0.5), "accumulated product");
  pass(Operation::kRatio, a.csr());
  check(a.template agrees<Ratio>(1.0, 0.5), "accumulated ratio");
  const Csr<T> pattern{a.indptr.data(), a.indices.data(), nullptr, p};
  for (T& z : a.Z) {
    z = z > T(0) ? T(1) : T(0);
  }
  pass(Operation::kProduct, pattern);
  check(a.template agrees<Product>(1.0, 0.5), "product of a pattern");
  pass(Operation::kRatio, pattern);
  check(a.template agrees<Ratio>(1.0, 0.5), "ratio of a pattern");
}

// Missing entries count nothing, also where a whole tile has no others; with `mask`, the rest is
// read as ones.
template <class T>
void test_missing(Size p, Size q, Size rank) {
  Problem<T> a(p, q, rank, 31);
  std::vector<T> holes = a.Z;
  for (Size i = 0; i < p; ++i) {
    for (Size j = 0; j < q; ++j) {
      const auto at = std::size_t(i * q + j);
      if ((i < Size(64) && j < Size(256)) || (i + j) % 3 == 0) {
        holes[at] = std::numeric_limits<T>::quiet_NaN();
        a.Z[at] = T(0);
      }
    }
  }
  const Dense<T> Z{holes.data(), p, q, q, 1};
  dense_pass<T>(Operation::kProduct, Z, false, Rows<const T>{}, a.g(), a.to(), 2);
  check(a.template agrees<Product>(), "product with missing entries");
  dense_pass<T>(Operation::kRatio, Z, false, a.f(), a.g(), a.to(), 2);
  check(a.template agrees<Ratio>(), "ratio with missing entries");
  const double kl = dense_loss<T>(EntryLoss::kKullbackLeibler, Z, a.f(), a.g(), 2);
  const double zeros = dense_loss<T>(EntryLoss::kKullbackLeibler, a.dense(), a.f(), a.g(), 2);
  check(std::abs(kl - zeros) <= 1e-6 * (1.0 + std::abs(zeros)), "divergence, entries missing");
  double squares = 0.0;
  for (std::size_t e = 0; e < holes.size(); ++e) {
    const bool missing = std::isnan(holes[e]);
    if (!missing) {
      double model = 0.0;
      for (Size k = 0; k < a.rank; ++k) {
        model += double(a.f().row(Size(e) / q)[k]) * double(a.g().row(Size(e) % q)[k]);
      }
      squares += std::pow(double(holes[e]) - model, 2);
    }
    a.Z[e] = missing ? T(0) : T(1);
  }
  const double loss = dense_loss<T>(EntryLoss::kFrobenius, Z, a.f(), a.g(), 2);
  check(std::abs(loss - squares) <= 1e-4 * (1.0 + squares), "squares, entries missing");
  dense_pass<T>(Operation::kSampled, Z, true, a.f(), a.g(), a.to(), 2);
  check(a.template agrees<Sampled>(), "mask");
}

// Sweeps of coordinate descent, by tiles and by rows: the objective falls, a multiple of a row's
// problem has the same solution, and what is not allowed stays.
template <class T>
void test_descent(Size p, Size q, Size rank) {
  Problem<T> a(p, q, rank, 13);
  std::vector<T> K(std::size_t(a.rank * a.rank));
  gram<T>(a.g(), {}, {K.data(), a.rank, a.rank}, 1);
  sparse_pass<T>(Operation::kProduct, a.csr(), Rows<const T>{}, a.g(), a.to(), 1);
  const Rows<const T> pull{a.out.data(), p, a.rank};
  const Csr<T> none{};
  const auto squared = [&](const std::vector<T>& F) {
    double sum = 0.0;
    for (Size i = 0; i < p; ++i) {
      for (Size j = 0; j < q; ++j) {
        double model = 0.0;
        for (Size k = 0; k < a.rank; ++k) {
          model += double(F[std::size_t(i * a.rank + k)]) * double(a.g().row(j)[k]);
        }
        sum += std::pow(double(a.Z[std::size_t(i * q + j)]) - model, 2);
      }
    }
    return sum;
  };
  std::vector<T> moved = a.F;
  coordinate_descent<T>({K.data(), nullptr, 1, a.rank, p}, none, a.g(), pull,
                        {moved.data(), p, a.rank}, {}, 2, 0, 2);
  check(squared(moved) < squared(a.F), "coordinate descent");
  std::vector<T> once = a.F, further = a.F;
  for (const int steps : {0, 8}) {
    std::vector<T>& F = steps == 0 ? once : further;
    coordinate_descent<T>({K.data(), nullptr, 1, a.rank, p}, none, a.g(), pull,
                          {F.data(), p, a.rank}, {}, steps == 0 ? 1 : 2, steps, 2);
  }
  check(squared(further) <= 1.0001 * squared(once), "steps on faces");
  std::vector<T> scales(std::size_t(p), T(1)), scaled_pull = a.out;
  std::vector<std::uint8_t> allowed(a.F.size() / 8, 255);
  for (Size i = 0; i < p; ++i) {
    scales[std::size_t(i)] = T(1 << i % 3);
    for (Size k = 0; k < a.rank; ++k) {
      scaled_pull[std::size_t(i * a.rank + k)] *= scales[std::size_t(i)];
    }
  }
  const Grams<T> grams{K.data(), scales.data(), 1, a.rank, p};
  const Rows<const T> pulls{scaled_pull.data(), p, a.rank};
  const auto descend = [&](const Csr<T>& weights) {
    std::vector<T> F = a.F;
    coordinate_descent<T>(grams, weights, a.g(), pulls, {F.data(), p, a.rank},
                          {allowed.data(), a.rank / 8}, 2, 0, 2);
    return F;
  };
  check(descend(none) == moved, "scales of coordinate descent");
  // Rows that may have two components of every eight, and rows with all but two: both kinds of
  // tile.
  for (std::size_t byte = 0; byte < allowed.size(); ++byte) {
    allowed[byte] = byte / std::size_t(a.rank / 8) % 2 == 0 ? 0x11 : 0xee;
  }
  const std::vector<Size> empty(std::size_t(p + 1), 0);
  const std::vector<T> tiled = descend(none);
  const std::vector<T> by_rows = descend({empty.data(), nullptr, nullptr, p});
  for (std::size_t e = 0; e < tiled.size(); ++e) {
    check((allowed[e / 8] >> e % 8 & 1) != 0 || tiled[e] == a.F[e],
          "supports of coordinate descent");
    check(std::abs(tiled[e] - by_rows[e]) <= T(1e-3) * (T(1) + by_rows[e]), "tiles and rows");
  }
  std::vector<T> listed = a.F;
  coordinate_descent<T>({K.data(), nullptr, 0, a.rank, p}, a.csr(), a.g(), pull,
                        {listed.data(), p, a.rank}, {}, 2, 0, 2);
  for (const T entry : listed) {
    check(std::isfinite(entry) && entry >= T(0), "coordinate descent with weights");
  }
  // Every entry listed with weight 1, and a common matrix from which half of them are taken: both
  // are the problem of the tiles, by entries and, where the rank is low, by matrices.
  const Size some = std::min<Size>(p, 20);
  const Rows<const T> some_pull{a.out.data(), some, a.rank};
  std::vector<Size> indptr(std::size_t(some + 1));
  std::vector<Index> indices;
  for (Size i = 0; i < some; ++i) {
    for (Size j = 0; j < q; ++j) {
      indices.push_back(static_cast<Index>(j));
    }
    indptr[std::size_t(i + 1)] = static_cast<Size>(indices.size());
  }
  const std::vector<T> halves(indices.size(), T(-0.5));
  std::vector<T> more(K);
  for (T& entry : more) {
    entry *= T(1.5);
  }
  for (const int sweeps : {1, 2}) {
    std::vector<T> expected = a.F, ones = a.F, difference = a.F;
    coordinate_descent<T>({K.data(), nullptr, 1, a.rank, some}, none, a.g(), some_pull,
                          {expected.data(), some, a.rank}, {}, sweeps, 0, 2);
    coordinate_descent<T>({K.data(), nullptr, 0, a.rank, some},
                          {indptr.data(), indices.data(), nullptr, some}, a.g(), some_pull,
                          {ones.data(), some, a.rank}, {}, sweeps, 0, 2);
    coordinate_descent<T>({more.data(), nullptr, 1, a.rank, some},
                          {indptr.data(), indices.data(), halves.data(), some}, a.g(), some_pull,
                          {difference.data(), some, a.rank}, {}, sweeps, 0, 2);
    check(std::abs(squared(ones) - squared(expected)) <= T(1e-3) * squared(expected),
          "all entries listed");
    check(std::abs(squared(difference) - squared(expected)) <= T(1e-3) * squared(expected),
          "half of all entries taken away");
  }
}

// Few rows: their columns are cut into stretches.  By rows and by columns, one thread and more.
template <class T>
void test_stretches(Size p, Size q, Size rank) {
  Problem<T> a(p, q, rank, 41);
  std::vector<T> by_columns(a.Z.size());
  for (Size i = 0; i < p; ++i) {
    for (Size j = 0; j < q; ++j) {
      by_columns[std::size_t(j * p + i)] = a.Z[std::size_t(i * q + j)];
    }
  }
  for (const Dense<T>& Z : {a.dense(), Dense<T>{by_columns.data(), p, q, 1, p}}) {
    std::vector<T> once;
    for (const int threads : {1, 3}) {
      dense_pass<T>(Operation::kProduct, Z, false, Rows<const T>{}, a.g(), a.to(), threads);
      check(a.template agrees<Product>(), "product of few rows");
      dense_pass<T>(Operation::kRatio, Z, false, a.f(), a.g(), a.to(), threads);
      check(a.template agrees<Ratio>(), "ratio of few rows");
      check(once.empty() || once == a.out, "the same bits");
      once = a.out;
    }
  }
}

// Matrices without rows, and rows without entries.
template <class T>
void test_nothing(Size rank) {
  for (const Size p : {0, 3}) {
    Problem<T> a(p, 4, rank, 37);
    a.indptr.assign(std::size_t(p + 1), 0);
    a.Z.assign(a.Z.size(), T(0));
    a.indices.clear();
    a.values.clear();
    const Rows<T> f{a.F.data(), p, a.rank};
    sparse_pass<T>(Operation::kProduct, a.csr(), Rows<const T>{}, a.g(), a.to(), 2);
    check(a.template agrees<Product>(), "product of nothing");
    sparse_pass<T>(Operation::kRatio, a.csr(), a.f(), a.g(), a.to(), 2);
    check(a.template agrees<Ratio>(), "ratio of nothing");
    dense_pass<T>(Operation::kRatio, a.dense(), false, a.f(), a.g(), a.to(), 2);
    check(a.template agrees<Ratio>(), "dense ratio of nothing");
    std::vector<T> K(std::size_t(a.rank * a.rank)), sums(std::size_t(a.rank));
    gram<T>(a.f(), {}, {K.data(), a.rank, a.rank}, 2);
    column_sums<T>(a.g(), {}, sums.data(), 2);
    std::vector<Size> indptr(5);
    std::vector<Index> indices;
    std::vector<T> values, columns(a.G.size());
    transpose(a.csr(), 4, indptr.data(), indices.data(), values.data(), 2);
    check(inspect_csr(a.indptr.data(), a.indices.data(), p, 4, 0, 2) == kSorted, "no entries");
    const std::vector<std::int64_t> bounds{0, 2, 4};
    const Rows<const T> no_model{nullptr, 4, a.rank};
    scatter_pass<T>(Operation::kProduct, a.csr(), no_model, a.f(), {bounds.data(), 3}, T(1),
                    Rows<T>{columns.data(), 4, a.rank}, 2);
    gram<T>(a.g(), {}, {K.data(), a.rank, a.rank}, 2);
    const Rows<const T> k{K.data(), a.rank, a.rank};
    const Rows<const T> pull{a.out.data(), p, a.rank};
    check(nnls<T>(k, nullptr, {}, a.g(), pull, f, 1e-4, 100, 2) == 0, "nnls of nothing");
    const Rows<const T> down{sums.data(), 1, a.rank};
    check(kl_rows<T>(a.csr(), a.g(), down, f, 1e-4, 100, 2) == 0, "rows of nothing");
    for (const T entry : a.F) {
      check(entry == T(0), "nothing is represented by nothing");
    }
  }
}

template <class T>
void test_type() {
  for (const Size rank : {1, 20, 64, 96, 130}) {
    test_accumulation<T>(70, 33, rank);
    test_missing<T>(70, 300, rank);
    test_nothing<T>(rank);
    test_stretches<T>(5, 1700, rank);
    test_descent<T>(150, 30, rank);
  }
  test_descent<T>(1, 5, 1);
}

void test_edges() {
  test_type<double>();
  test_type<float>();
}

}  // namespace

int main() { return run_tests(&test_edges); }
