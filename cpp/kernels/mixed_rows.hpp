// A pass that gathers rows of which many have few positive components: samples whose labels allow
// some topics alone, or factors that coordinate descent has made sparse.  Such rows are listed as
// values and numbers of components; the others stay where they are.
#pragma once

#include <algorithm>
#include <memory>

#include "factor_ops.hpp"
#include "few_components.hpp"
#include "row_pass.hpp"

namespace ssnmf {

template <class T>
class MixedRows {
 public:
  // Whether listing the rows of G takes little time beside the pass and saves some of it: by a
  // sample of the rows.
  static bool pay(const Csr<T>& Z, const Rows<const T>& G) {
    constexpr Size sampled = 64;
    constexpr Size entries_of_a_row = 4;
    const Size most = most_few(G.columns);
    if (most == 0 || Z.entries() < entries_of_a_row * G.rows) {
      return false;
    }
    const Size step = std::max<Size>(1, G.rows / sampled);
    Component places[kMostFew];
    Size looked_at = 0;
    Size few = 0;
    for (Size i = 0; i < G.rows; i += step, ++looked_at) {
      few += components_of(G.row(i), G.columns, most, places) >= 0 ? 1 : 0;
    }
    return few >= looked_at / 8 && few > 0;
  }

  MixedRows(const Csr<T>& Z, const Rows<const T>& G, int threads)
      : Z_(Z), G_(G), entries_(Z.entries()), rows_(new Listed[static_cast<std::size_t>(G.rows)]) {
    // Each block of rows has room for all that it may list, of which it uses the beginning.
    const Size most = most_few(G.columns);
    values_.reset(new T[static_cast<std::size_t>(G.rows * most)]);
    places_.reset(new Component[static_cast<std::size_t>(G.rows * most)]);
    const EvenBlocks blocks(G.rows, kRowsPerBlock);
    const int team = useful_threads(G.rows * G.columns, threads);
    parallel_for(blocks.count(), team, [&](Size block) {
      const Range range = blocks[block];
      Size begin = range.begin * most;
      for (Size i = range.begin; i < range.end; ++i) {
        const T* g = G.row(i);
        Component* places = places_.get() + begin;
        const int count = components_of(g, G.columns, most, places);
        rows_[static_cast<std::size_t>(i)] = {begin, count};
        for (int a = 0; a < count; ++a) {
          values_[static_cast<std::size_t>(begin + a)] = g[places[a]];
        }
        begin += std::max(count, 0);
      }
    });
  }

  Size rank() const { return G_.columns; }

  // What an entry names: count < 0 for a row that is not listed.
  struct Row {
    int count;
    const T* values;
    const Component* places;
  };
  SSNMF_INLINE Row operator[](Size entry) const {
    const Listed& listed = rows_[static_cast<std::size_t>(Z_.indices[entry])];
    return {listed.count, values_.get() + listed.begin, places_.get() + listed.begin};
  }
  const T* whole(Size entry) const { return G_.row(static_cast<Size>(Z_.indices[entry])); }

  SSNMF_INLINE void prefetch_ahead(Size entry) const {
    const Size ahead = std::min(entry + kPrefetchDistance, entries_ - 1);
    const Listed& listed = rows_[static_cast<std::size_t>(Z_.indices[ahead])];
    if (listed.count < 0) {
      prefetch_row(G_, static_cast<Size>(Z_.indices[ahead]));
    } else {
      prefetch(values_.get() + listed.begin);
      prefetch(places_.get() + listed.begin);
    }
  }

 private:
  struct Listed {
    Size begin;
    int count;
  };

  Csr<T> Z_;
  Rows<const T> G_;
  Size entries_;
  std::unique_ptr<Listed[]> rows_;
  std::unique_ptr<T[]> values_;
  std::unique_ptr<Component[]> places_;
};

// Entries of a row that name whole rows, kept until they make a chunk.
template <class T>
struct WholeRows {
  const T* rows[kMostEntriesPerChunk];
  T coefficients[kMostEntriesPerChunk];
  Size count = 0;

  template <int R, int Width>
  RowMap<T, Width> row(Size e, Size k) const {
    return RowMap<T, Width>(rows[e] + k);
  }

  template <int Block>
  SSNMF_INLINE void add_to(T* sum, Size rank) {
    Size k = 0;
    for (; k + 2 * Block <= rank; k += 2 * Block) {
      add_columns<2 * Block>(coefficients, *this, 0, count, k, sum);
    }
    for (; k < rank; k += Block) {
      add_columns<Block>(coefficients, *this, 0, count, k, sum);
    }
    count = 0;
  }
};

// One row of the result.
template <class Op, int Block, class T>
SSNMF_FLATTEN void mixed_row(const Op& op, const Csr<T>& Z, const T* f, const MixedRows<T>& gather,
                             Size row, const Target<T>& to, RowWorkspace<T>& work) {
  const Size rank = gather.rank();
  T* sum = work.sum.data();
  std::fill_n(sum, rank, T(0));
  const Size first = Z.indptr[row];
  const Size last = Z.indptr[row + 1];
  const bool long_row = last - first > kEntriesPerSum;
  if (long_row) {
    work.begin_long_row();
  }
  const Size bytes = rank * static_cast<Size>(sizeof(T));
  const Size chunk = std::clamp<Size>(kBytesPerChunk / bytes, 1, kMostEntriesPerChunk);
  WholeRows<T> whole;
  for (Size begin = first; begin < last; begin += kEntriesPerSum) {
    const Size end = std::min(begin + kEntriesPerSum, last);
    for (Size entry = begin; entry < end; ++entry) {
      gather.prefetch_ahead(entry);
      const auto g = gather[entry];
      T model = T(0);
      if (g.count < 0) {
        const T* here = gather.whole(entry);
        if constexpr (Op::needs_model) {
          model = long_dot<Block>(f, here, rank);
        }
        whole.rows[whole.count] = here;
        whole.coefficients[whole.count++] = op.coefficient(Z.value(entry), model);
        if (whole.count == chunk) {
          whole.template add_to<Block>(sum, rank);
        }
        continue;
      }
      if constexpr (Op::needs_model) {
        for (int a = 0; a < g.count; ++a) {
          model += f[g.places[a]] * g.values[a];
        }
      }
      const T coefficient = op.coefficient(Z.value(entry), model);
      for (int a = 0; a < g.count; ++a) {
        sum[g.places[a]] += coefficient * g.values[a];
      }
    }
    whole.template add_to<Block>(sum, rank);
    if (long_row) {
      work.add_part(sum);
      std::fill_n(sum, rank, T(0));
    }
  }
  if (long_row) {
    work.store(to, row);
    return;
  }
  for (Size k = 0; k < rank; ++k) {
    to.store(row, k, sum[k]);
  }
}

}  // namespace ssnmf
