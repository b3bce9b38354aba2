#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <vector>

#include "../core/parallel.hpp"
#include "dense_tiles.hpp"
#include "entry_losses.hpp"
#include "entry_rows.hpp"
#include "factor_ops.hpp"
#include "operations.hpp"
#include "passes.hpp"
#include "register_product.hpp"

namespace ssnmf {
namespace {

// More are summed in parts, in double: a sum in a register takes one number after the other.
constexpr Size kColumnsPerSum = 512;

// What a pass over one matrix is; see passes.hpp.
template <class T>
struct DensePass {
  Dense<T> Z;
  Rows<const T> F;  // nothing where no models are needed
  Rows<const T> G;
  Size rank;  // columns of G that count
  Reading reading;
  FindCoefficients<T> coefficients;  // or nothing
};

// The result of a block: rows of sums over its columns.
template <class T, Order order>
class BlockSum {
  static constexpr bool kByRows = order == Order::kRows;

 public:
  explicit BlockSum(const DensePass<T>& pass)
      : pass_(pass),
        tiles_(pass.Z, pass.F, pass.G, pass.rank),
        in_place_((kByRows ? pass.Z.column_stride : pass.Z.row_stride) == 1 &&
                  pass.coefficients == nullptr && pass.reading == Reading::kZeros),
        small_(pass.Z.rows * pass.Z.columns * Size(sizeof(T)) <= kSecondCache),
        row_(static_cast<std::size_t>(pass.rank)) {}

  // Entries are read where they lie; if a sum is no number, some may be missing, and all are read
  // again.  Both ways give the same bits.
  void run(Range rows, Range columns) {
    if (in_place_) {
      add(rows, columns, Reading::kInPlace);
      in_place_ = missing_ == 0;
      if (in_place_) {
        return;
      }
    }
    add(rows, columns, pass_.reading);
  }

  // Calls store(row, values) for the whole rows, but for the columns that pad the rank.
  template <class Store>
  void each(Range rows, const Store& store) {
    for (Size i = rows.begin; i < rows.end; ++i) {
      const double* total = total_.data() + (i - rows.begin) * (kByRows ? width_ : 1);
      for (Size k = 0; !kByRows && k < pass_.rank; ++k) {
        row_[static_cast<std::size_t>(k)] = total[k * width_];
      }
      store(i, kByRows ? total : row_.data());
    }
  }

 private:
  // The sums over the columns.
  void add(Range rows, Range columns, Reading reading) {
    width_ = Panels<T>::whole_registers(kByRows ? pass_.rank : size_of(rows));
    const auto places = static_cast<std::size_t>((kByRows ? size_of(rows) : pass_.rank) * width_);
    sum_.assign(places, T(0));
    total_.assign(places, 0.0);
    Size summed = 0;
    Block<const T> g{};
    const auto begin = [&](Range tile) {
      if (summed >= kColumnsPerSum) {
        add_part();
        summed = 0;
      }
      summed += size_of(tile);
      g = {pass_.G.row(tile.begin), size_of(tile), pass_.rank, pass_.G.columns};
      if (kByRows) {
        panels_.copy(g.data, g.stride, g.rows, g.columns);
      }
    };
    tiles_.visit(rows, columns, reading, begin, [&](const Piece<T>& piece) {
      if (pass_.coefficients != nullptr) {
        pass_.coefficients(piece.values, piece.models, piece.size(), tiles_.values());
      }
      const Size i = piece.rows.begin - rows.begin;
      const Size p = size_of(piece.rows);
      if (kByRows) {
        panels_.add_product(piece.values, piece.stride, p, sum_.data() + i * width_, width_);
      } else {
        const Block<const T> z{piece.values, piece.lines, p, piece.stride};
        const bool cached = small_ || reading != Reading::kInPlace;
        add_cross_product(g, z, cached, false, sum_.data() + i, width_);
      }
    });
    add_part();
  }

  // Moves the sum over some tiles to the total.
  void add_part() {
    missing_ = 0;
    for (std::size_t e = 0; e < sum_.size(); ++e) {
      const double total = total_[e] + static_cast<double>(sum_[e]);
      missing_ += total != total ? 1 : 0;
      total_[e] = total;
    }
    std::fill(sum_.begin(), sum_.end(), T(0));
  }

  const DensePass<T>& pass_;
  DenseTiles<T, order> tiles_;
  bool in_place_;
  const bool small_;  // whether Z stays in a cache
  Panels<T> panels_;
  // Sums by rows of Z; or, where its columns are contiguous, by components, of `width_` rows.
  Size width_ = 0;
  Buffer<T> sum_;
  std::vector<double> total_;
  std::uint64_t missing_ = 0;  // numbers of the total that are none (counted in registers)
  std::vector<double> row_;
};

template <Order order, class T>
void run(const DensePass<T>& pass, const Target<T>& to, int team) {
  const Size p = pass.Z.rows;
  const Size R = pass.G.columns;
  const TileSizes sizes = tile_sizes<T, order>(pass.coefficients != nullptr);
  const MatrixBlocks blocks(sizes, p, pass.Z.columns, most_partials(p * R));
  const bool whole = blocks.stretches() == 1;
  std::vector<double> parts(static_cast<std::size_t>(whole ? 0 : blocks.stretches() * p * R));
  const auto workspace = [&] { return BlockSum<T, order>(pass); };
  parallel_for(blocks.count(), team, workspace, [&](BlockSum<T, order>& sum, Size block) {
    const Range rows = blocks.rows(block);
    sum.run(rows, blocks.columns(block));
    double* part = parts.data() + blocks.stretch(block) * p * R;
    sum.each(rows, [&](Size i, const double* values) {
      if (whole) {
        to.store_row(i, values, pass.rank);
      } else {
        std::copy_n(values, pass.rank, part + i * R);
      }
    });
  });
  if (whole) {
    return;
  }
  const EvenBlocks rows(p, kRowsPerBlock);
  const int few = useful_threads(blocks.stretches() * p * R, team);
  parallel_for(rows.count(), few, [&](Size block) {
    for (Size i = rows[block].begin; i < rows[block].end; ++i) {
      double* sum = parts.data() + i * R;
      for (Size stretch = 1; stretch < blocks.stretches(); ++stretch) {
        const double* part = sum + stretch * p * R;
        std::transform(sum, sum + R, part, sum, std::plus<>());
      }
      to.store_row(i, sum, R);
    }
  });
}

// Calls body with the order of Z in memory.
template <class T, class Body>
auto visit_order(const Dense<T>& Z, const Body& body) {
  if (std::abs(Z.row_stride) < std::abs(Z.column_stride)) {
    return body(std::integral_constant<Order, Order::kColumns>{});
  }
  return body(std::integral_constant<Order, Order::kRows>{});
}

}  // namespace

template <class T>
void dense_pass(Operation operation, const Dense<T>& Z, bool mask, const Rows<const T>& F,
                const Rows<const T>& G, const Target<T>& to, int threads) {
  const FindCoefficients<T> coefficients = find_coefficients<T>(operation);
  const Rows<const T> modeled = coefficients == nullptr ? Rows<const T>{} : F;
  const Reading reading = operation.kind == Operation::kResidual ? Reading::kAsTheyAre
                          : mask                                 ? Reading::kOnes
                                                                 : Reading::kZeros;
  const DensePass<T> pass{Z, modeled, G, occupied_columns(G, threads), reading, coefficients};
  const int team = useful_threads(Z.rows * Z.columns * G.columns, threads);
  visit_order(Z, [&](auto order) { run<decltype(order)::value>(pass, to, team); });
}

template <class T>
double dense_loss(EntryLoss loss, const Dense<T>& Z, const Rows<const T>& F, const Rows<const T>& G,
                  int threads) {
  const Reading reading = missing_is_zero(loss) ? Reading::kZeros : Reading::kAsTheyAre;
  const Size rank = occupied_columns(G, threads);
  const int team = useful_threads(Z.rows * Z.columns * G.columns, threads);
  return visit_order(Z, [&](auto order) {
    using Tiles = DenseTiles<T, decltype(order)::value>;
    const TileSizes sizes = tile_sizes<T, decltype(order)::value>(true);
    const MatrixBlocks blocks(sizes, Z.rows, Z.columns, Z.columns);
    const auto workspace = [&] { return Tiles(Z, F, G, rank); };
    return ordered_sum(blocks.count(), team, workspace, [&](Tiles& tiles, Size block) {
      double sum = 0.0;
      const auto add = [&](const Piece<T>& piece) {
        for (Size e = 0; e < piece.size(); e += kLossRun) {
          const Size size = std::min(kLossRun, piece.size() - e);
          sum += loss_of_run<T>(loss, piece.values + e, piece.models + e, nullptr, size);
        }
      };
      tiles.visit(blocks.rows(block), blocks.columns(block), reading, [](Range) {}, add);
      return sum;
    });
  });
}

#define SSNMF_INSTANTIATE(T)                                                          \
  template void dense_pass<T>(Operation, const Dense<T>&, bool, const Rows<const T>&, \
                              const Rows<const T>&, const Target<T>&, int);           \
  template double dense_loss<T>(EntryLoss, const Dense<T>&, const Rows<const T>&,     \
                                const Rows<const T>&, int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
