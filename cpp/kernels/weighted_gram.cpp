#include "weighted_gram.hpp"

#include <algorithm>

#include "../core/interrupt.hpp"
#include "factor_ops.hpp"
#include "long_rows.hpp"

namespace ssnmf {

template <class T, class W>
void add_weighted_gram(const Csr<W>& weights, Size begin, Size end, const Rows<const T>& G,
                       GatheredColumns<T>& gathered, Eigen::MatrixXd& K, int threads) {
  constexpr Size kEntriesAtOnce = 512;
  if (threads > 0 && end - begin > kLongestRow) {
    const Size most = most_partials(G.columns * G.columns);
    const EvenBlocks pieces(end - begin, std::max(kEntriesPerBlock, (end - begin) / most + 1));
    const auto workspace = [] { return GatheredColumns<T>{}; };
    K += ordered_sum(pieces.count(), threads, workspace, [&](GatheredColumns<T>& own, Size piece) {
      Eigen::MatrixXd part = Eigen::MatrixXd::Zero(G.columns, G.columns);
      const Range range = pieces[piece];
      add_weighted_gram(weights, begin + range.begin, begin + range.end, G, own, part, 0);
      return part;
    });
    return;
  }
  const Size blocks = G.columns / kComponents;
  for (Size first = begin; first < end; first += kEntriesAtOnce) {
    const Size last = std::min(first + kEntriesAtOnce, end);
    end_if_interrupted((last - first) * G.columns * G.columns / 2);
    gathered.gather(weights, first, last, G, nullptr);
    for (Size a = 0; a < blocks; ++a) {
      for (Size b = 0; b <= a; ++b) {
        K.block<kComponents, kComponents>(a * kComponents, b * kComponents).array() +=
            gathered.products(a, b);
      }
    }
  }
  K.triangularView<Eigen::StrictlyUpper>() = K.transpose();
}

#define SSNMF_INSTANTIATE(T, W)                                                          \
  template void add_weighted_gram<T, W>(const Csr<W>&, Size, Size, const Rows<const T>&, \
                                        GatheredColumns<T>&, Eigen::MatrixXd&, int);
SSNMF_INSTANTIATE(float, float)
SSNMF_INSTANTIATE(double, float)
SSNMF_INSTANTIATE(double, double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
