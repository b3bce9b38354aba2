// Two steps, each of which reads rows of one matrix alone: rows of F and of the result at once
// would drive each other out of the caches.  First the coefficients of the entries, by blocks of
// rows, for a stretch of rows at a time.  Then what they add to the columns: these are cut into
// ranges, one thread works on each, and finds its part of every row by bisection.  What is added to
// a column is added in the order of the rows, wherever the cuts are.
#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "entry_models.hpp"
#include "entry_rows.hpp"
#include "operations.hpp"
#include "passes.hpp"
#include "square.hpp"

namespace ssnmf {
namespace {

// Of a million coefficients, so that the caches are seldom filled anew.
constexpr Size kBlocksPerStretch = 256;

// The entries that some rows have in a range of columns, and a place in them that runs ahead: rows
// are asked for in one steady stream, across the ends of rows.
class Segments {
 public:
  static constexpr Size kRows = 128;

  template <class T>
  void find(const Csr<T>& Z, const Range& rows, Index low, Index high) {
    rows_ = rows.end - rows.begin;
    for (Size i = 0; i < rows_; ++i) {
      const Index* begin = Z.indices + Z.indptr[rows.begin + i];
      const Index* end = Z.indices + Z.indptr[rows.begin + i + 1];
      const Index* from = low == 0 ? begin : std::lower_bound(begin, end, low);
      const Index* to = high == kNoBound ? end : std::lower_bound(from, end, high);
      found_[i] = {static_cast<Size>(from - Z.indices), static_cast<Size>(to - Z.indices)};
    }
    row_ = -1;
    next_ = {0, 0};
  }

  const Range& operator[](Size i) const { return found_[i]; }

  // Asks for the row of G that the next entry names.
  template <class T, class U>
  SSNMF_INLINE void prefetch_next(const Csr<T>& Z, const Rows<U>& G) {
    while (next_.begin == next_.end) {
      if (row_ + 1 >= rows_) {
        return;
      }
      next_ = found_[++row_];
    }
    prefetch_row(G, static_cast<Size>(Z.indices[next_.begin++]));
  }

  static constexpr Index kNoBound = std::numeric_limits<Index>::max();

 private:
  Range found_[kRows];
  Range next_{0, 0};
  Size rows_ = 0;
  Size row_ = -1;
};

// out_j += c_ij g_i for the entries of some rows; c begins with the first of these rows, and is
// null for ones.
template <int R, class T>
SSNMF_FLATTEN void scatter_rows(const Csr<T>& Z, const Range& rows, const T* c,
                                const Rows<const T>& G, Index low, Index high, T scale,
                                const Rows<T>& out) {
  constexpr int width = R > 0 ? R : kColumnBlock;
  using Row = RegisterRow<T, width>;
  const Size rank = R > 0 ? R : out.columns;
  const Rows<T> to{out.data, out.rows, rank};
  const Size before = Z.indptr[rows.begin];
  Segments segments;
  for (Size begin = rows.begin; begin < rows.end; begin += Segments::kRows) {
    const Range part{begin, std::min(begin + Segments::kRows, rows.end)};
    segments.find(Z, part, low, high);
    for (Size ahead = 0; ahead < kPrefetchDistance; ++ahead) {
      segments.prefetch_next(Z, to);
    }
    for (Size row = part.begin; row < part.end; ++row) {
      const Range here = segments[row - part.begin];
      end_if_interrupted((1 + here.end - here.begin) * rank);
      const T* g = G.data + row * rank;
      for (Size entry = here.begin; entry < here.end; ++entry) {
        segments.prefetch_next(Z, to);
        const T factor = c == nullptr ? scale : scale * c[entry - before];
        T* place = to.row(static_cast<Size>(Z.indices[entry]));
        for (Size k = 0; k < rank; k += width) {
          Row::add_to(place + k, factor, registers_of<typename Row::Packet>(g + k));
        }
      }
    }
  }
}

}  // namespace

template <class T>
void scatter_pass(Operation operation, const Csr<T>& Z, const Rows<const T>& F,
                  const Factor<const T>& G, const Span<const Size>& bounds, T scale,
                  const Rows<T>& out, int threads) {
  const int team = useful_threads((Z.entries() + Z.rows) * out.columns, threads);
  const auto scatter = [&](auto fixed, const Range& rows, const T* coefficients) {
    parallel_for(bounds.size - 1, team, [&](Size range) {
      const Index low = static_cast<Index>(bounds.data[range]);
      const Size last = bounds.data[range + 1];
      const Index high = last == out.rows ? Segments::kNoBound : static_cast<Index>(last);
      scatter_rows<decltype(fixed)::value>(Z, rows, coefficients, G, low, high, scale, out);
    });
  };
  const auto scatter_all = [&](const Range& rows, const T* coefficients) {
    visit_rank<T>(out.columns, [&](auto fixed) { scatter(fixed, rows, coefficients); });
  };
  if (operation.kind == Operation::kProduct) {
    scatter_all({0, Z.rows}, Z.values);
    return;
  }
  const ColumnRows<T> gather(Z, F);
  const FindModels<T> find = find_models<T>(gather);
  const FindCoefficients<T> coefficients_of = find_coefficients<T>(operation);
  const EqualWorkBlocks blocks(Z.indptr, Z.rows, kEntriesPerBlock);
  std::vector<T> coefficients;
  for (Size first = 0; first < blocks.count(); first += kBlocksPerStretch) {
    const Size count = std::min(kBlocksPerStretch, blocks.count() - first);
    const Range rows{blocks[first].begin, blocks[first + count - 1].end};
    const Size before = Z.indptr[rows.begin];
    const Size most = Z.indptr[rows.end] - before;
    coefficients.resize(std::max(coefficients.size(), static_cast<std::size_t>(most)));
    parallel_for(count, team, [&](Size block) {
      const Range part = blocks[first + block];
      for (Size row = part.begin; row < part.end; ++row) {
        const Range entries = entries_of(Z, row);
        const Size size = entries.end - entries.begin;
        end_if_interrupted((1 + size) * out.columns);
        T* c = coefficients.data() + (entries.begin - before);
        find(G.row(row), entries.begin, size, c);
        coefficients_of(Z.values == nullptr ? nullptr : Z.values + entries.begin, c, size, c);
      }
    });
    scatter_all(rows, coefficients.data());
  }
}

#define SSNMF_INSTANTIATE(T)                                                        \
  template void scatter_pass<T>(Operation, const Csr<T>&, const Rows<const T>&,     \
                                const Factor<const T>&, const Span<const Size>&, T, \
                                const Rows<T>&, int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
