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
  const auto workspace = [&] { return KlDescentRow<T>(threads); };
  return sum_over_rows(blocks, team, workspace, [&](KlDescentRow<T>& problem, Size i) {
    return problem.run(X, i, G, row_or_only(N, i), allowed.row(i), sweeps, with_loss, F.row(i));
  });
}

#define SSNMF_INSTANTIATE(T)                                                                 \
  template double kl_descent<T>(const Csr<T>&, const Factor<const T>&, const Rows<const T>&, \
                                const Rows<T>&, const Support&, int, bool, int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
