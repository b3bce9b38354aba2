// What the tests of the kernels share: problems in exact storage, so that an access out of bounds
// is seen, and what is expected by the definition.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "core/levels.hpp"
#include "core/views.hpp"
#include "kernels/operations.hpp"
#include "kernels/rank.hpp"

namespace ssnmf {

inline int failures = 0;

inline void check(bool condition, const char* what) {
  if (!condition) {
    std::printf("FAILED: %s\n", what);
    ++failures;
  }
}

template <class T>
struct Problem {
  Size p, q, rank;
  std::vector<T> F, G, Z, out;
  std::vector<Size> indptr{0};
  std::vector<Index> indices;
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
          indices.push_back(Index(j));
          values.push_back(Z[std::size_t(i * q + j)]);
        }
      }
      indptr.push_back(Size(indices.size()));
    }
  }

  Csr<T> csr() const { return {indptr.data(), indices.data(), values.data(), p}; }
  Dense<T> dense() const { return {Z.data(), p, q, q, 1}; }
  Factor<const T> f() const { return {{F.data(), p, rank}, "F"}; }
  Factor<const T> g() const { return {{G.data(), q, rank}, "G"}; }
  Target<T> to() { return {{out.data(), p, rank}, T(1), false}; }

  // Whether out is start + scale sum_ij coefficient(z_ij, model_ij) g_j, by the definition.
  template <class Op>
  bool agrees(double start = 0.0, double scale = 1.0) const {
    for (Size i = 0; i < p; ++i) {
      std::vector<double> sums(std::size_t(rank), 0.0);
      for (Size j = 0; j < q; ++j) {
        double model = 0.0;
        for (Size l = 0; l < rank; ++l) {
          model += double(f().row(i)[l]) * double(g().row(j)[l]);
        }
        const double c = Op{}.coefficient(double(Z[std::size_t(i * q + j)]), model);
        for (Size k = 0; k < rank; ++k) {
          sums[std::size_t(k)] += c * double(g().row(j)[k]);
        }
      }
      for (Size k = 0; k < rank; ++k) {
        const double wanted = start + scale * sums[std::size_t(k)];
        if (!(std::abs(wanted - double(out[std::size_t(i * rank + k)])) <= 1e-4 * (1.0 + wanted))) {
          return false;
        }
      }
    }
    return true;
  }
};

// The exit status of a test program: 77 where the processor lacks the instructions.
inline int run_tests(void (*tests)()) {
#if defined(__AVX512F__)
  const char* level = "v4";
#elif defined(__AVX2__)
  const char* level = "v3";
#else
  const char* level = "base";
#endif
  const std::vector<std::string> usable = levels();
  if (std::find(usable.begin(), usable.end(), level) == usable.end()) {
    std::printf("skipped: this processor lacks the instructions\n");
    return 77;
  }
  tests();
  std::printf(failures == 0 ? "all passed\n" : "%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace ssnmf
