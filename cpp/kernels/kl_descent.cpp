#include "kl_descent.hpp"

#include "../core/parallel.hpp"
#include "entry_rows.hpp"
#include "kl_descent_row.hpp"

namespace ssnmf {

template <class T>
double kl_descent(const Csr<T>& X, const Factor<const T>& G, const Rows<const T>& N,
                  const Rows<T>& F, const Support& allowed, int sweeps, bool with_loss,
                  int threads) {
  const EqualWorkBlocks blocks(X.indptr, X.rows, kEntriesPerBlock / 4);
  const int team = useful_threads((X.entries() + X.rows) * G.columns * (1 + sweeps), threads);
  return ordered_sum(
      blocks.count(), team, [&] { return KlDescentRow<T>(threads); },
      [&](KlDescentRow<T>& problem, Size block) {
        const Range range = blocks[block];
        double sum = 0.0;
        for (Size i = range.begin; i < range.end; ++i) {
          const T* n = N.row(N.rows > 1 ? i : 0);
          sum += problem.run(X, i, G, n, allowed.row(i), sweeps, with_loss, F.row(i));
        }
        return sum;
      });
}

#define SSNMF_INSTANTIATE(T)                                                                 \
  template double kl_descent<T>(const Csr<T>&, const Factor<const T>&, const Rows<const T>&, \
                                const Rows<T>&, const Support&, int, bool, int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
