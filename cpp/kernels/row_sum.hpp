// The sum of a pass over some entries of a row.
//
// It is compiled for operations, ranks, and whatever gives the rows that the entries name.  What
// goes through the rows of a matrix knows it as a RowSum alone, and stands once; see row_pass.hpp.
#pragma once

#include <algorithm>
#include <type_traits>

#include "entry_models.hpp"
#include "entry_rows.hpp"
#include "operations.hpp"
#include "row_batch.hpp"
#include "square.hpp"

namespace ssnmf {

template <class T>
class RowSum {
 public:
  // Stores the sum over some entries of a row, at most those of a part, as a row of the target; f
  // is the vector of the row, and `room` has room for a row.
  void store(const T* f, Range entries, const Target<T>& to, Size row, T* room) const {
    store_(*this, f, entries, to, row, room);
  }

  Size rank() const { return rank_; }
  // Rows of more than kEntriesPerSum entries are summed in parts of so many.
  Size entries_per_part() const { return entries_per_part_; }

 protected:
  using Store = void (*)(const RowSum& self, const T* f, Range entries, const Target<T>& to,
                         Size row, T* room);

  RowSum(Store way, Size rank, Size entries_per_part)
      : store_(way), rank_(rank), entries_per_part_(entries_per_part) {}
  ~RowSum() = default;

 private:
  Store store_;
  Size rank_;
  Size entries_per_part_;
};

template <class Op, int R, class T, class Gather>
SSNMF_INLINE void add_entry(const Op& op, const Csr<T>& Z, const T* f, const Gather& gather,
                            Size entry, RegisterRow<T, R>& sum) {
  using Row = RegisterRow<T, R>;
  const auto given = gather.template packets<typename Row::Packet, R>(entry);
  const std::conditional_t<Gather::in_place, decltype(given), const Row> g(given);
  T model = T(0);
  if constexpr (Op::needs_model) {
    model = Row::dot(f, g);
  }
  const T coefficient = op.coefficient(Z.value(entry), model);
  if constexpr (Op::keeps) {
    op.keep(entry, coefficient);
  }
  sum.add(coefficient, g);
}

// sum += c_e g_e for at most as many entries as a batch has, of an operation that needs the model.
template <class Op, int R, class T, class Gather>
SSNMF_INLINE void add_batch(const Op& op, const Csr<T>& Z, const T* f, const Gather& gather,
                            Size first, Size count, RegisterRow<T, R>& sum) {
  using namespace simd;
  using Batch = RowBatch<T, R>;
  constexpr int size = Batch::size;
  gather.template prefetch<R>(first, size);
  T models[size];
  T coefficients[size];
  T rest[size] = {};
  Batch batch;
  batch.dots(f, gather, first, count, models);
  const T* values = Z.values == nullptr ? nullptr : Z.values + first;
  if (count < size && values != nullptr && first + size > Z.entries()) {
    std::copy_n(values, count, rest);
    values = rest;
  }
  coefficients_of<size>(op, values, models, size, coefficients);
  if (count < size) {
    using Lanes = PacketFor<T, size>;
    const Lanes own = pcmp_lt(plset<Lanes>(T(0)), pset1<Lanes>(static_cast<T>(count)));
    pstoreu(coefficients, pand(own, ploadu<Lanes>(coefficients)));
  }
  batch.add_to(coefficients, sum.data());
}

// The sum over some entries of a row, for a rank that fits in registers.  (Inlined by force, and
// the functions around it flattened: in a large file GCC stops inlining parts of Eigen's
// expressions, at up to twice the time.)
template <class Op, int R, class T, class Gather>
SSNMF_INLINE void add_entries(const Op& op, const Csr<T>& Z, const T* f, const Gather& gather,
                              Size first, Size last, RegisterRow<T, R>& sum) {
  Size entry = first;
  using Batch = RowBatch<T, R>;
  if constexpr (Op::by_registers && Batch::fits) {
    for (; entry + Batch::size <= last; entry += Batch::size) {
      add_batch<Op, R>(op, Z, f, gather, entry, Batch::size, sum);
    }
    if (Batch::is_short && last - entry > Batch::size / 2) {
      add_batch<Op, R>(op, Z, f, gather, entry, last - entry, sum);
      entry = last;
    }
  }
  constexpr int kSums = sums_side_by_side<T, R>();
  if constexpr (kSums > 1 && Gather::in_place) {
    RegisterRow<T, R> sums[kSums];
    for (; entry + kSums <= last; entry += kSums) {
      gather.template prefetch<R, Op::needs_model>(entry, kSums);
      for (int e = 0; e < kSums; ++e) {
        add_entry<Op, R>(op, Z, f, gather, entry + e, sums[e]);
      }
    }
    for (const auto& other : sums) {
      sum.add(other);
    }
  }
  for (; entry < last; ++entry) {
    gather.template prefetch<R, Op::needs_model>(entry, 1);
    add_entry<Op, R>(op, Z, f, gather, entry, sum);
  }
}

// sum[k..k+Width) += sum over a chunk of c_e g_e[k..k+Width), held in registers.
template <int Width, class T, class Gather>
void add_columns(const T* coefficients, const Gather& gather, Size first, Size count, Size k,
                 T* sum) {
  using Row = RegisterRow<T, Width>;
  using Packet = typename Row::Packet;
  Row part(registers_of<Packet>(sum + k));
  for (Size e = 0; e < count; ++e) {
    const auto row = gather.template packets<Packet, 0>(first + e);
    part.add(coefficients[e], [&](Size l) { return row(k + l); });
  }
  part.store(sum + k);
}

// sum += sum over a chunk of c_e g_e, by column blocks; the rank is any multiple of Block.
template <int Block, class T, class Gather>
SSNMF_INLINE void add_rows(const T* coefficients, const Gather& gather, Size first, Size count,
                           T* sum) {
  const Size rank = gather.rank();
  Size k = 0;
  for (; k + 2 * Block <= rank; k += 2 * Block) {
    add_columns<2 * Block>(coefficients, gather, first, count, k, sum);
  }
  for (; k < rank; k += Block) {
    add_columns<Block>(coefficients, gather, first, count, k, sum);
  }
}

template <class T>
Size entries_per_chunk(Size rank) {
  const Size bytes = rank * static_cast<Size>(sizeof(T));
  return std::clamp<Size>(kBytesPerChunk / bytes, 1, kMostEntriesPerChunk);
}

// The sums of an operation over rows that come one way.
template <class Op, class T, class Gather>
class GatheredSum final : public RowSum<T> {
  using Base = RowSum<T>;
  using typename Base::Store;

 public:
  GatheredSum(const Op& op, const Csr<T>& Z, const Gather& gather)
      : GatheredSum(op, Z, gather, choose(gather.rank())) {}

  // For a rank that is known to the compiler, and for any multiple of Block.
  template <int R>
  static GatheredSum fixed(const Op& op, const Csr<T>& Z, const Gather& gather) {
    return {op, Z, gather, of_fixed<R>()};
  }
  template <int Block>
  static GatheredSum blocked(const Op& op, const Csr<T>& Z, const Gather& gather) {
    return {op, Z, gather, of_blocks<Block>(gather.rank())};
  }

 private:
  struct Way {
    Store store;
    Size entries_per_part;
  };

  GatheredSum(const Op& op, const Csr<T>& Z, const Gather& gather, const Way& way)
      : Base(way.store, gather.rank(), way.entries_per_part), op_(op), Z_(Z), gather_(gather) {}

  template <int R>
  static Way of_fixed() {
    return {&store_fixed<R>, kEntriesPerSum};
  }
  // Parts are whole chunks.
  template <int Block>
  static Way of_blocks(Size rank) {
    const Size chunk = entries_per_chunk<T>(rank);
    return {&store_blocked<Block>, (kEntriesPerSum + chunk - 1) / chunk * chunk};
  }

  static Way choose(Size rank) {
    if constexpr (!Gather::known_ranks || !Op::known_ranks) {
      return of_blocks<kNarrowestRank>(rank);
    } else {
      Way chosen{};
      visit_rank<T>(rank, [&chosen, rank](auto fixed) {
        constexpr int R = decltype(fixed)::value;
        if constexpr (R > 0) {
          chosen = of_fixed<R>();
        } else {
          chosen = of_blocks<kColumnBlock>(rank);
        }
      });
      return chosen;
    }
  }

  // For a rank that fits in registers.
  template <int R>
  SSNMF_FLATTEN static void store_fixed(const Base& base, const T* f, Range entries,
                                        const Target<T>& to, Size row, T*) {
    const auto& self = static_cast<const GatheredSum&>(base);
    // A copy of what is cheap to copy: the compiler knows that nothing changes it.
    const std::conditional_t<Gather::in_place, Gather, const Gather&> gather = self.gather_;
    const Op op = self.op_;
    const Csr<T> Z = self.Z_;
    RegisterRow<T, R> sum;
    add_entries<Op, R>(op, Z, f, gather, entries.begin, entries.end, sum);
    sum.store(to.scale, to.accumulate, to.out.row(row));
  }

  // For a large rank: a whole accumulator would spill, so that a chunk's coefficients come first,
  // and the sum follows by column blocks.
  template <int Block>
  SSNMF_FLATTEN static void store_blocked(const Base& base, const T* f, Range entries,
                                          const Target<T>& to, Size row, T* sum) {
    const auto& self = static_cast<const GatheredSum&>(base);
    const Gather& gather = self.gather_;
    const Size rank = gather.rank();
    std::fill_n(sum, rank, T(0));
    T models[kMostEntriesPerChunk];
    T coefficients[kMostEntriesPerChunk];
    const Size chunk = entries_per_chunk<T>(rank);
    for (Size begin = entries.begin; begin < entries.end; begin += chunk) {
      const Size count = std::min(chunk, entries.end - begin);
      if constexpr (Op::needs_model) {
        entry_models<0, Block>(gather, f, begin, count, models);
      } else {
        for (Size e = 0; e < count; ++e) {
          gather.template prefetch<0, false>(begin + e, 1);
          models[e] = T(0);
        }
      }
      coefficients_of<kRegisterLanes<T>>(self.op_, self.Z_, begin, count, models, coefficients);
      add_rows<Block>(coefficients, gather, begin, count, sum);
    }
    to.store_row(row, sum, rank);
  }

  Op op_;
  Csr<T> Z_;
  const Gather& gather_;
};

}  // namespace ssnmf
