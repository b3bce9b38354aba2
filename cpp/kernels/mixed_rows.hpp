// A pass that gathers rows of which many have few positive components: samples whose labels allow
// some topics alone, or factors that coordinate descent has made sparse.  Such rows are listed as
// values and numbers of components; the others stay where they are.
#pragma once

#include <algorithm>
#include <memory>

#include "entry_models.hpp"
#include "factor_ops.hpp"
#include "few_components.hpp"
#include "row_sum.hpp"

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
      : Z_(Z), G_(G), rows_(new Listed[static_cast<std::size_t>(G.rows)]) {
    // Each block of rows has room for all that it may list, of which it uses the beginning.
    const Size most = most_few(G.columns);
    const Size room = G.rows * filled_up(most);
    values_.reset(new T[static_cast<std::size_t>(room)]);
    places_.reset(new Component[static_cast<std::size_t>(room)]);
    const EvenBlocks blocks(G.rows, kRowsPerBlock);
    const int team = useful_threads(G.rows * G.columns, threads);
    parallel_for(blocks.count(), team, [&](Size block) {
      const Range range = blocks[block];
      Size begin = range.begin * filled_up(most);
      for (Size i = range.begin; i < range.end; ++i) {
        const T* g = G.row(i);
        Component* places = places_.get() + begin;
        const int count = components_of(g, G.columns, most, places);
        const Size listed = count < 0 ? -1 : filled_up(count);
        rows_[static_cast<std::size_t>(i)] = {begin, static_cast<int>(listed)};
        for (Size a = 0; a < listed; ++a) {
          places[a] = a < count ? places[a] : Component(0);
          values_[static_cast<std::size_t>(begin + a)] = a < count ? g[places[a]] : T(0);
        }
        begin += std::max<Size>(listed, 0);
      }
    });
  }

  Size rank() const { return G_.columns; }

  // The numbers of the entries that name rows that are listed, and of the others; without a branch
  // that nobody could predict.
  struct Parted {
    Size few[kEntriesPerSum];
    Size whole[kEntriesPerSum];
    Size n_few = 0;
    Size n_whole = 0;
  };
  SSNMF_INLINE void part(Range entries, Parted& parted) const {
    parted.n_few = 0;
    parted.n_whole = 0;
    for (Size entry = entries.begin; entry < entries.end; ++entry) {
      const Listed& listed = rows_[static_cast<std::size_t>(Z_.indices[entry])];
      prefetch(values_.get() + listed.begin);
      prefetch(places_.get() + listed.begin);
      parted.few[parted.n_few] = entry;
      parted.whole[parted.n_whole] = entry;
      parted.n_few += listed.count < 0 ? 0 : 1;
      parted.n_whole += listed.count < 0 ? 1 : 0;
    }
  }

  // The row that an entry names, if it is listed.
  struct Row {
    int count;
    const T* values;
    const Component* places;
  };
  SSNMF_INLINE Row listed(Size entry) const {
    const Listed& row = rows_[static_cast<std::size_t>(Z_.indices[entry])];
    return {row.count, values_.get() + row.begin, places_.get() + row.begin};
  }
  const T* whole(Size entry) const { return G_.row(static_cast<Size>(Z_.indices[entry])); }
  SSNMF_INLINE void prefetch_whole(Size entry) const {
    prefetch_row(G_, static_cast<Size>(Z_.indices[entry]));
  }

 private:
  struct Listed {
    Size begin;
    int count;  // -1 for a row that is not
  };

  // Rows have even numbers of values, some of which are 0: most then have two, and the processor
  // guesses how many.
  static Size filled_up(Size count) { return std::max<Size>(2, count + count % 2); }

  Csr<T> Z_;
  Rows<const T> G_;
  std::unique_ptr<Listed[]> rows_;
  std::unique_ptr<T[]> values_;
  std::unique_ptr<Component[]> places_;
};

// Some rows that are not listed.
template <class T>
struct WholeRows {
  Size columns;
  const T* rows[kMostEntriesPerChunk];
  T coefficients[kMostEntriesPerChunk];

  explicit WholeRows(Size rank) : columns(rank) {}

  Size rank() const { return columns; }

  template <class Packet, int R>
  SSNMF_INLINE auto packets(Size e) const {
    return registers_of<Packet>(rows[e]);
  }
};

// The sums of an operation over such rows.
template <class Op, class T>
class MixedSum final : public RowSum<T> {
 public:
  MixedSum(const Op& op, const Csr<T>& Z, const MixedRows<T>& gather)
      : RowSum<T>(gather.rank() % kColumnBlock == 0 ? &store_mixed<kColumnBlock>
                                                    : &store_mixed<kNarrowestRank>,
                  gather.rank(), kEntriesPerSum),
        op_(op),
        Z_(Z),
        gather_(gather) {}

 private:
  template <int Block>
  SSNMF_FLATTEN static void store_mixed(const RowSum<T>& base, const T* f, Range entries,
                                        const Target<T>& to, Size row, T* sum) {
    const auto& self = static_cast<const MixedSum&>(base);
    const MixedRows<T>& gather = self.gather_;
    const Size rank = gather.rank();
    std::fill_n(sum, rank, T(0));
    typename MixedRows<T>::Parted parted;
    gather.part(entries, parted);
    for (Size e = 0; e < parted.n_few; ++e) {
      const auto g = gather.listed(parted.few[e]);
      T model = T(0);
      if constexpr (Op::needs_model) {
        for (int a = 0; a < g.count; ++a) {
          model += f[g.places[a]] * g.values[a];
        }
      }
      const T coefficient = self.op_.coefficient(self.Z_.value(parted.few[e]), model);
      for (int a = 0; a < g.count; ++a) {
        sum[g.places[a]] += coefficient * g.values[a];
      }
    }
    WholeRows<T> whole(rank);
    const Size chunk = entries_per_chunk<T>(rank);
    for (Size done = 0; done < parted.n_whole; done += chunk) {
      const Size count = std::min(chunk, parted.n_whole - done);
      for (Size e = 0; e < count; ++e) {
        const Size entry = parted.whole[done + e];
        const Size ahead = std::min(done + e + kPrefetchDistance, parted.n_whole - 1);
        gather.prefetch_whole(parted.whole[ahead]);
        whole.rows[e] = gather.whole(entry);
        const T model = Op::needs_model ? entry_model<0, Block>(whole, f, e) : T(0);
        whole.coefficients[e] = self.op_.coefficient(self.Z_.value(entry), model);
      }
      add_rows<Block>(whole.coefficients, whole, 0, count, sum);
    }
    to.store_row(row, sum);
  }

  Op op_;
  Csr<T> Z_;
  const MixedRows<T>& gather_;
};

}  // namespace ssnmf
