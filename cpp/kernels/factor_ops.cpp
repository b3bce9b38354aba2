#include "factor_ops.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <vector>

#include "../core/parallel.hpp"
#include "few_components.hpp"
#include "matrices.hpp"
#include "register_product.hpp"

namespace ssnmf {
namespace {

// out += weight g^T g on and above the diagonal, for a row g with few components.
template <class T>
void add_square(const T* g, const Component* places, int count, T weight, Matrix<T>& out) {
  for (int a = 0; a < count; ++a) {
    const T factor = weight * g[places[a]];
    T* row = out.row(places[a]).data();
    for (int b = a; b < count; ++b) {
      row[places[b]] += factor * g[places[b]];
    }
  }
}

// Rows of a block: those with few positive components, and copies of the others side by side.
template <class T>
class SplitRows {
 public:
  struct Few {
    Size row;  // in the factor
    int count;
    Component places[kMostFew];
  };

  // Returns whether enough rows, half of a sample, are of the former kind to go by themselves: the
  // processor cannot guess which, and whole rows of lower ranks take less time than that.
  bool split(const Rows<const T>& F, Range range) {
    few_.clear();
    whole_.clear();
    constexpr Size lowest_rank = 96;
    const Size most = F.columns < lowest_rank ? 0 : most_few(F.columns);
    if (most == 0) {
      return false;
    }
    constexpr Size step = 8;  // between the rows of a sample
    Size balance = 0;
    for (Size i = range.begin; i < range.end; i += step) {
      balance += has_few(F.row(i), F.columns, most) ? 1 : -1;
    }
    if (balance < 0) {
      return false;
    }
    for (Size i = range.begin; i < range.end; ++i) {
      Few few{i, 0, {}};
      few.count = components_of(F.row(i), F.columns, most, few.places);
      if (few.count < 0) {
        whole_.push_back(i);
      } else {
        few_.push_back(few);
      }
    }
    copies_.resize(std::max<Size>(copies_.rows(), range.end - range.begin), F.columns);
    for (std::size_t i = 0; i < whole_.size(); ++i) {
      std::copy_n(F.row(whole_[i]), F.columns, copies_.row(static_cast<Eigen::Index>(i)).data());
    }
    return true;
  }

  const std::vector<Few>& few() const { return few_; }
  const std::vector<Size>& whole() const { return whole_; }
  Block<const T> copies() {
    return as_const(corner(copies_, static_cast<Size>(whole_.size()), copies_.cols()));
  }

 private:
  std::vector<Few> few_;
  std::vector<Size> whole_;
  Matrix<T> copies_;
};

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
    SplitRows<T> rows;
  };
  std::vector<Matrix<double>> partials(static_cast<std::size_t>(blocks.count()));
  parallel_for(
      blocks.count(), team, [] { return Workspace{}; },
      [&](Workspace& work, Size block) {
        Matrix<T>& weighted = work.weighted;
        work.part.resize(F.columns, Panels<T>::whole_registers(G.columns));
        Matrix<double>& partial = partials[static_cast<std::size_t>(block)];
        partial.setZero(F.columns, G.columns);
        const Range range = blocks[block];
        for (Size begin = range.begin; begin < range.end; begin += kRowsPerBlock) {
          const Range rows{begin, std::min(range.end, begin + kRowsPerBlock)};
          end_if_interrupted(kRowsPerBlock * F.columns * G.columns);
          work.part.setZero();
          const bool split = symmetric && work.rows.split(G, rows);
          if (split) {
            for (const auto& few : work.rows.few()) {
              const T weight = weights.data == nullptr ? T(1) : weights.data[few.row];
              add_square(G.row(few.row), few.places, few.count, weight, work.part);
            }
          }
          const Block<const T> g = split ? work.rows.copies() : rows_of(G, rows);
          Block<const T> right = g;
          if (weights.data != nullptr) {
            weighted = ConstMatrixMap<T>(g.data, g.rows, g.columns);
            for (Size i = 0; i < g.rows; ++i) {
              const Size row = split ? work.rows.whole()[static_cast<std::size_t>(i)] : begin + i;
              weighted.row(i) *= weights.data[row];
            }
            right = as_const(corner(weighted, g.rows, g.columns));
          }
          add_cross_product(split ? g : rows_of(F, rows), right, false, symmetric, work.part.data(),
                            static_cast<Size>(work.part.cols()));
          partial += work.part.leftCols(G.columns).template cast<double>();
        }
      });
  Matrix<double> total = sum_of(partials, out.rows, out.columns, threads);
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
  const Size occupied = occupied_columns(K, threads);
  Panels<T> k;
  k.copy(K.data, K.columns, K.rows, occupied);
  struct Workspace {
    Matrix<T> result;
    SplitRows<T> rows;
  };
  const auto workspace = [&] { return Workspace{Matrix<T>(kRowsPerBlock, k.width()), {}}; };
  const auto store = [&](Size row, const T* result) {
    to.store_row(row, result, occupied, row_scale.data == nullptr ? T(1) : row_scale.data[row]);
  };
  parallel_for(blocks.count(), team, workspace, [&](Workspace& work, Size block) {
    const Range range = blocks[block];
    T* result = work.result.data();
    const bool split = work.rows.split(F, range);
    if (split) {
      for (const auto& few : work.rows.few()) {
        std::fill_n(result, occupied, T(0));
        const T* f = F.row(few.row);
        for (int a = 0; a < few.count; ++a) {
          const T factor = f[few.places[a]];
          const T* row = K.row(few.places[a]);
          for (Size c = 0; c < occupied; ++c) {
            result[c] += factor * row[c];
          }
        }
        store(few.row, result);
      }
    }
    const Block<const T> f = split ? work.rows.copies() : rows_of(F, range);
    k.product(f.data, f.stride, f.rows, result, k.width());
    for (Size i = 0; i < f.rows; ++i) {
      const Size row = split ? work.rows.whole()[static_cast<std::size_t>(i)] : range.begin + i;
      store(row, result + i * k.width());
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
      to.store_row(i, vector, to.out.columns, a);
    }
  });
}

template <class T>
double inner(const Rows<const T>& F, const Rows<const T>& P, int threads) {
  const EvenBlocks blocks(F.rows, kRowsPerBlock);
  const int team = useful_threads(F.rows * F.columns, threads);
  return ordered_sum(blocks.count(), team, [&](Size block) {
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
