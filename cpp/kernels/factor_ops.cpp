#include "factor_ops.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <vector>

#include "../core/parallel.hpp"
#include "gemm.hpp"
#include "register_product.hpp"

namespace ssnmf {
namespace {

constexpr Size kBand = 32;  // columns; narrower bands save less than small products cost

template <class T>
Block<T> columns_of(const Block<T>& block, Size begin, Size end) {
  return {block.data + begin, block.rows, end - begin, block.stride};
}

// out += f^T g; of a symmetric product the bands of columns on and above the diagonal.
template <class T>
void add_cross(const Block<const T>& f, const Block<const T>& g, bool symmetric, Matrix<T>& out) {
  const Size band = symmetric ? kBand : f.columns;
  for (Size begin = 0; begin < f.columns; begin += band) {
    const Size end = std::min(begin + band, f.columns);
    const Size first = symmetric ? begin : 0;
    add_transposed_product(
        columns_of(f, begin, end), columns_of(g, first, g.columns),
        {out.data() + begin * g.columns + first, end - begin, g.columns - first, g.columns});
  }
}

}  // namespace

// Blocks of rows are summed in double: a float sum over millions of rows would lose what the last
// of them add.
template <class T>
void cross(const Rows<const T>& F, const Rows<const T>& G, const Span<const T>& weights,
           const Rows<T>& out, int threads) {
  const Size most = most_partials(F.columns * G.columns);
  const Size step = std::max(kRowsPerBlock, (G.rows + most - 1) / most);
  const EvenBlocks blocks(G.rows, step);
  const int team = useful_threads(G.rows * F.columns * G.columns, threads);
  const bool symmetric = F.data == G.data && F.columns == G.columns;
  struct Workspace {
    Matrix<T> weighted;
    Matrix<T> part;
  };
  std::vector<Matrix<double>> partials(static_cast<std::size_t>(blocks.count()));
  parallel_for(
      blocks.count(), team, [] { return Workspace{}; },
      [&](Workspace& work, Size block) {
        Matrix<T>& weighted = work.weighted;
        work.part.resize(F.columns, G.columns);
        Matrix<double>& partial = partials[static_cast<std::size_t>(block)];
        partial.setZero(F.columns, G.columns);
        const Range range = blocks[block];
        for (Size begin = range.begin; begin < range.end; begin += kRowsPerBlock) {
          const Range rows{begin, std::min(range.end, begin + kRowsPerBlock)};
          end_if_interrupted(kRowsPerBlock * F.columns * G.columns);
          const Block<const T> g = rows_of(G, rows);
          Block<const T> right = g;
          if (weights.data != nullptr) {
            weighted = ConstMatrixMap<T>(g.data, g.rows, g.columns);
            for (Size i = 0; i < g.rows; ++i) {
              weighted.row(i) *= weights.data[begin + i];
            }
            right = as_const(corner(weighted, g.rows, g.columns));
          }
          work.part.setZero();
          add_cross(rows_of(F, rows), right, symmetric, work.part);
          partial += work.part.template cast<double>();
        }
      });
  Matrix<double> total = Matrix<double>::Zero(out.rows, out.columns);
  for (const Matrix<double>& partial : partials) {
    total += partial;
  }
  if (symmetric) {
    total = Matrix<double>(total.template selfadjointView<Eigen::Upper>());
  }
  MatrixMap<T>(out.data, out.rows, out.columns) = total.template cast<T>();
}

template <class T>
void column_sums(const Rows<const T>& G, const Span<const T>& weights, T* out, int threads) {
  const std::size_t rank = static_cast<std::size_t>(G.columns);
  const EvenBlocks blocks(G.rows, std::max(4 * kRowsPerBlock, (G.rows + 255) / 256));
  const int team = useful_threads(G.rows * G.columns, threads);
  std::vector<double> partials(static_cast<std::size_t>(blocks.count()) * rank, 0.0);
  parallel_for(blocks.count(), team, [&](Size block) {
    double* sum = partials.data() + static_cast<std::size_t>(block) * rank;
    const Range range = blocks[block];
    for (Size i = range.begin; i < range.end; ++i) {
      const T* g = G.row(i);
      const double weight = weights.data == nullptr ? 1.0 : static_cast<double>(weights.data[i]);
      for (std::size_t k = 0; k < rank; ++k) {
        sum[k] += weight * static_cast<double>(g[k]);
      }
    }
  });
  for (std::size_t k = 0; k < rank; ++k) {
    double total = 0.0;
    for (Size block = 0; block < blocks.count(); ++block) {
      total += partials[static_cast<std::size_t>(block) * rank + k];
    }
    out[k] = static_cast<T>(total);
  }
}

template <class T>
void multiply(const Rows<const T>& F, const Rows<const T>& K, const Span<const T>& row_scale,
              const Target<T>& to, int threads) {
  const EvenBlocks blocks(F.rows, kRowsPerBlock);
  const int team = useful_threads(F.rows * K.rows * K.columns, threads);
  const Size occupied = occupied_columns(K);
  Panels<T> k;
  k.copy(K.data, K.columns, K.rows, occupied);
  const auto workspace = [&] { return Matrix<T>(kRowsPerBlock, k.width()); };
  parallel_for(blocks.count(), team, workspace, [&](Matrix<T>& result, Size block) {
    const Range range = blocks[block];
    k.product(F.row(range.begin), F.columns, range.end - range.begin, result.data(), k.width());
    for (Size i = range.begin; i < range.end; ++i) {
      const T a = row_scale.data == nullptr ? T(1) : row_scale.data[i];
      for (Size c = 0; c < K.columns; ++c) {
        to.store(i, c, c < occupied ? a * result(i - range.begin, c) : T(0));
      }
    }
  });
}

template <class T>
void add_row(const T* vector, const Span<const T>& row_scale, const Target<T>& to, int threads) {
  const EvenBlocks blocks(to.out.rows, kRowsPerBlock);
  const int team = useful_threads(to.out.rows * to.out.columns, threads);
  parallel_for(blocks.count(), team, [&](Size block) {
    const Range range = blocks[block];
    for (Size i = range.begin; i < range.end; ++i) {
      const T a = row_scale.data == nullptr ? T(1) : row_scale.data[i];
      for (Size c = 0; c < to.out.columns; ++c) {
        to.store(i, c, a * vector[c]);
      }
    }
  });
}

template <class T>
double inner(const Rows<const T>& F, const Rows<const T>& P, int threads) {
  const EvenBlocks blocks(F.rows, kRowsPerBlock);
  const int team = useful_threads(F.rows * F.columns, threads);
  return ordered_sum(
      blocks.count(), team, [] { return NoWorkspace{}; },
      [&](NoWorkspace&, Size block) {
        const Range range = blocks[block];
        // A sum for each place of a register: one sum alone would wait for every addition.
        constexpr int places = 8;
        using Run = Eigen::Map<const Eigen::Array<T, places, 1>>;
        Eigen::Array<double, places, 1> sums = Eigen::Array<double, places, 1>::Zero();
        const Size end = range.end * F.columns;
        Size e = range.begin * F.columns;
        for (; e + places <= end; e += places) {
          sums += Run(F.data + e).template cast<double>() * Run(P.data + e).template cast<double>();
        }
        for (; e < end; ++e) {
          sums[0] += static_cast<double>(F.data[e]) * static_cast<double>(P.data[e]);
        }
        return sums.sum();
      });
}

#define SSNMF_INSTANTIATE(T)                                                                  \
  template void cross<T>(const Rows<const T>&, const Rows<const T>&, const Span<const T>&,    \
                         const Rows<T>&, int);                                                \
  template void column_sums<T>(const Rows<const T>&, const Span<const T>&, T*, int);          \
  template void multiply<T>(const Rows<const T>&, const Rows<const T>&, const Span<const T>&, \
                            const Target<T>&, int);                                           \
  template void add_row<T>(const T*, const Span<const T>&, const Target<T>&, int);            \
  template double inner<T>(const Rows<const T>&, const Rows<const T>&, int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
