// The kernels on problems that are large enough for several threads, which give the bits of one:
// for ThreadSanitizer, two ranks.
#include <functional>
#include <vector>

#include "kernels/completion_pass.hpp"
#include "kernels/coordinate_descent.hpp"
#include "kernels/factor_ops.hpp"
#include "kernels/passes.hpp"
#include "problem.hpp"

namespace {

using namespace ssnmf;

template <class T>
void test_rank(Size width) {
  Problem<T> a(300, 150, width, 5);
  const Size rank = a.rank;
  const Rows<T> out{a.out.data(), a.p, rank};
  const auto same = [&](const char* what, const std::function<double(int)>& run) {
    a.out.assign(a.out.size(), T(1));
    const double sum = run(1);
    const std::vector<T> alone = a.out;
    a.out.assign(a.out.size(), T(1));
    check(run(3) == sum && a.out == alone, what);
  };
  same("a pass", [&](int threads) {
    sparse_pass<T>(Operation::kRatio, a.csr(), a.f(), a.g(), a.to(), threads);
    return 0.0;
  });
  same("a pass by panels", [&](int threads) {  // two panels: halves of the rows
    const std::vector<Size> bounds{0, 20, 90, a.p / 2};
    const Target<T> half{{a.out.data(), a.p / 2, rank}, T(1), true};
    panel_pass<T>(Operation::kRatio, a.csr(), a.f(), a.g(), {bounds.data(), 4}, half, threads);
    return 0.0;
  });
  same("a pass for the columns", [&](int threads) {
    const std::vector<Size> bounds{0, 20, 90, a.q};
    scatter_pass<T>(Operation::kRatio, a.csr(), a.g(), a.f(), {bounds.data(), 4}, T(1),
                    {a.out.data(), a.q, rank}, threads);
    return 0.0;
  });
  same("a dense pass", [&](int threads) {
    dense_pass<T>(Operation::kRatio, a.dense(), false, a.f(), a.g(), a.to(), threads);
    return dense_loss<T>(EntryLoss::kFrobenius, a.dense(), a.f(), a.g(), threads);
  });
  same("a loss", [&](int threads) {
    return sparse_loss<T>(EntryLoss::kKullbackLeibler, a.csr(), nullptr, a.f(), a.g(), threads);
  });
  std::vector<T> residuals(a.values.size());
  same("residuals", [&](int threads) {
    residual_step<T>(a.csr(), a.f(), a.g(), residuals.data(), out, threads);
    return static_cast<double>(residuals.back());
  });
  std::vector<T> gram(std::size_t(rank * rank));
  same("coordinate descent", [&](int threads) {
    cross<T>(a.g(), a.g(), {}, {gram.data(), rank, rank}, threads);
    const Grams<T> grams{gram.data(), nullptr, 1, rank, a.p};
    coordinate_descent<T>(grams, {}, a.g(), a.f(), out, {}, 1, 2, threads);
    return static_cast<double>(gram.back());
  });
}

void test_races() {
  test_rank<double>(24);
  test_rank<float>(32);
}

}  // namespace

int main() { return run_tests(&test_races); }
