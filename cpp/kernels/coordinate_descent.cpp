#include "coordinate_descent.hpp"

#include <algorithm>

#include "../core/parallel.hpp"
#include "descent_row.hpp"
#include "descent_tile.hpp"
#include "row_problem.hpp"

namespace ssnmf {

template <class T>
void coordinate_descent(const Grams<T>& grams, const Csr<T>& weights, const Rows<const T>& G,
                        const Rows<const T>& P, const Rows<T>& F, const T* allowed, int sweeps,
                        int face_steps, int threads) {
  if (weights.indptr != nullptr) {
    const EvenBlocks blocks(F.rows, kSolvedRowsPerBlock);
    parallel_for(
        blocks.count(), threads, [&] { return DescentRow<T>(grams); },
        [&](DescentRow<T>& problem, Size block) {
          const Range range = blocks[block];
          for (Size i = range.begin; i < range.end; ++i) {
            problem.run(weights, G, i, P.row(i), allowed, sweeps, F.row(i));
          }
        });
    return;
  }
  constexpr Size lanes = DescentTile<T>::kLanes;
  constexpr Size tiles = 4;
  const EvenBlocks blocks(F.rows, lanes * tiles);
  const int team = useful_threads(F.rows * F.columns * F.columns * (sweeps + face_steps), threads);
  parallel_for(
      blocks.count(), team, [&] { return DescentTile<T>(grams); },
      [&](DescentTile<T>& tile, Size block) {
        const Range range = blocks[block];
        for (Size begin = range.begin; begin < range.end; begin += lanes) {
          tile.run(P, F, allowed, {begin, std::min(begin + lanes, range.end)}, sweeps, face_steps);
        }
      });
}

#define SSNMF_INSTANTIATE(T)                                                                    \
  template void coordinate_descent<T>(const Grams<T>&, const Csr<T>&, const Rows<const T>&,     \
                                      const Rows<const T>&, const Rows<T>&, const T*, int, int, \
                                      int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
