// The kernels without Python, for the sanitizers: exact storage, so that an access out of bounds is
// seen, against loops as plain as can be.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <stdexcept>
#include <vector>

#include "kernels/dense_pass.hpp"
#include "kernels/factor_ops.hpp"
#include "kernels/kl_rows.hpp"
#include "kernels/nnls.hpp"
#include "kernels/sparse_pass.hpp"
#include "kernels/update.hpp"

namespace {

using namespace ssnmf;

int failures = 0;

void check(bool condition, const char* what) {
  if (!condition) {
    std::printf("FAILED: %s\n", what);
    ++failures;
  }
}

template <class T>
struct Problem {
  Size p, q, rank;
  std::vector<T> F, G, Z, out;
  std::vector<std::int32_t> indptr{0}, indices;
  std::vector<T> values;

  Problem(Size rows, Size columns, Size width, unsigned seed)
      : p(rows), q(columns), rank(padded_rank(width, Size(sizeof(T)))) {
    std::mt19937 engine(seed);
    std::uniform_real_distribution<T> uniform(T(0.1), T(1));
    const auto fill = [&](std::vector<T>& data, Size size) {
      data.resize(std::size_t(size));
      for (T& entry : data) {
        entry = uniform(engine);
      }
    };
    fill(F, p * rank);
    fill(G, q * rank);
    fill(out, p * rank);
    Z.assign(std::size_t(p * q), T(0));
    for (Size i = 0; i < p; ++i) {
      for (Size j = 0; j < q; ++j) {
        if (uniform(engine) < T(0.4)) {
          Z[std::size_t(i * q + j)] = uniform(engine);
          indices.push_back(std::int32_t(j));
          values.push_back(Z[std::size_t(i * q + j)]);
        }
      }
      indptr.push_back(std::int32_t(indices.size()));
    }
  }

  Csr<T, std::int32_t> csr() const { return {indptr.data(), indices.data(), values.data(), p}; }
  Dense<T> dense() const { return {Z.data(), p, q, q, 1}; }
  Rows<const T> f() const { return {F.data(), p, rank}; }
  Rows<const T> g() const { return {G.data(), q, rank}; }
  Target<T> to() { return {{out.data(), p, rank}, T(1), false}; }

  // sum_ij coefficient(z_ij, model_ij) g_j, by the definition.
  template <class Op>
  bool agrees() const {
    for (Size i = 0; i < p; ++i) {
      for (Size k = 0; k < rank; ++k) {
        double sum = 0.0;
        for (Size j = 0; j < q; ++j) {
          double model = 0.0;
          for (Size l = 0; l < rank; ++l) {
            model += double(f().row(i)[l]) * double(g().row(j)[l]);
          }
          const double z = double(Z[std::size_t(i * q + j)]);
          sum += Op::coefficient(z, model) * double(g().row(j)[k]);
        }
        if (std::abs(sum - double(out[std::size_t(i * rank + k)])) > 1e-4 * (1.0 + sum)) {
          return false;
        }
      }
    }
    return true;
  }
};

template <class T>
void test_passes(Size p, Size q, Size rank) {
  Problem<T> a(p, q, rank, unsigned(p + 7 * q + rank));
  sparse_pass<Product>(a.csr(), Rows<const T>{}, a.g(), a.to(), 2);
  check(a.template agrees<Product>(), "sparse product");
  sparse_pass<Ratio>(a.csr(), a.f(), a.g(), a.to(), 2);
  check(a.template agrees<Ratio>(), "sparse ratio");
  sparse_pass<Sampled>(a.csr(), a.f(), a.g(), a.to(), 2);
  check(a.template agrees<Sampled>(), "sparse sampled");
  dense_pass<Product>(a.dense(), false, Rows<const T>{}, a.g(), a.to(), 2);
  check(a.template agrees<Product>(), "dense product");
  dense_pass<Ratio>(a.dense(), false, a.f(), a.g(), a.to(), 2);
  check(a.template agrees<Ratio>(), "dense ratio");
  const double sparse =
      sparse_loss<KullbackLeiblerLoss>(a.csr(), static_cast<const T*>(nullptr), a.f(), a.g(), 2);
  const double dense = dense_loss<KullbackLeiblerLoss>(a.dense(), a.f(), a.g(), 2);
  check(std::abs(sparse - dense) <= 1e-3 * (1.0 + std::abs(dense)), "sparse and dense losses");
}

template <class T>
void test_factors(Size p, Size rank) {
  Problem<T> a(p, 3, rank, 5);
  std::vector<T> K(std::size_t(a.rank * a.rank));
  gram<T>(a.f(), {}, {K.data(), a.rank, a.rank}, 2);
  std::vector<T> sums(std::size_t(a.rank), T(0));
  column_sums<T>(a.f(), {}, sums.data(), 2);
  multiply<T>(a.f(), {K.data(), a.rank, a.rank}, {}, a.to(), 2);
  add_row<T>(sums.data(), {}, {{a.out.data(), p, a.rank}, T(1), true}, 2);
  check(inner<T>(a.f(), {a.out.data(), p, a.rank}, 2) > 0.0, "inner");
  std::vector<T> moved = a.F;
  const Pulls<T> squared{a.out.data(), a.F.data()};
  const Pulls<T> divergence{a.F.data(), a.out.data()};
  update<T>({moved.data(), p, a.rank}, squared, divergence, true, 2);
  for (const T entry : moved) {
    check(std::isfinite(entry) && entry > T(0), "update");
  }
}

template <class T>
void test_rows(Size p, Size q, Size rank) {
  Problem<T> a(p, q, rank, 11);
  const double tol = sizeof(T) == 8 ? 1e-9 : 1e-4;
  std::vector<T> K(std::size_t(a.rank * a.rank));
  gram<T>(a.g(), {}, {K.data(), a.rank, a.rank}, 1);
  sparse_pass<Product>(a.csr(), Rows<const T>{}, a.g(), a.to(), 1);
  const Rows<const T> pull{a.out.data(), p, a.rank};
  const Rows<T> f{a.F.data(), p, a.rank};
  const Csr<T, std::int32_t> none{};
  check(nnls<T, std::int32_t>({K.data(), a.rank, a.rank}, none, a.g(), 1.0, pull, f, tol, 1000,
                              2) == 0,
        "nnls");
  check(nnls<T, std::int32_t>({}, a.csr(), a.g(), 1.0, pull, f, tol, 1000, 2) == 0,
        "nnls with weights");
  std::vector<T> sums(std::size_t(a.rank), T(0));
  column_sums<T>(a.g(), {}, sums.data(), 1);
  check(kl_rows<T, std::int32_t>(a.csr(), a.g(), {sums.data(), 1, a.rank}, f, tol, 1000, 2) == 0,
        "Kullback-Leibler rows");
}

template <class T>
void test_type() {
  for (const Size rank : {1, 8, 13, 40, 64, 65, 130}) {
    test_passes<T>(1, 1, rank);
    test_passes<T>(70, 33, rank);
    test_passes<T>(5, 300, rank);
    test_factors<T>(1, rank);
    test_factors<T>(1100, rank);
  }
  test_rows<T>(40, 60, 6);
  test_rows<T>(3, 400, 20);
}

void test_failures_reach_the_caller() {
  bool thrown = false;
  try {
    parallel_for(100, 2, [](Size block) {
      if (block == 57) {
        throw std::runtime_error("block 57");
      }
    });
  } catch (const std::runtime_error&) {
    thrown = true;
  }
  check(thrown, "an exception of a worker");
}

}  // namespace

int main() {
  test_type<double>();
  test_type<float>();
  test_failures_reach_the_caller();
  std::printf(failures == 0 ? "all kernels passed\n" : "%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
