#include "fingerprint.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "../core/parallel.hpp"

namespace ssnmf {
namespace {

using Bits = std::uint64_t;

constexpr Size kEntriesPerBlock = 65536;
// The golden ratio, and the multipliers of the finalizers of two well-known hash functions.
constexpr Bits kStep = 0x9e3779b97f4a7c15;
constexpr Bits kMultiplier = 0xff51afd7ed558ccd;
constexpr Bits kOther = 0xc4ceb9fe1a85ec53;
constexpr Bits kNan = 0x7ff8000000000000;

inline Bits mixed(Bits x) {
  x ^= x >> 32;
  x *= kMultiplier;
  x ^= x >> 29;
  x *= kOther;
  return x ^ (x >> 32);
}

inline Bits key_of_row(Size row) { return mixed(static_cast<Bits>(row) * kStep + kMultiplier); }

// Without a branch, and with numbers of one width, so that the compiler takes several at once.
template <class T>
inline void add(Fingerprint& sums, Bits place, T value) {
  const double wide = static_cast<double>(value);
  Bits bits;
  std::memcpy(&bits, &wide, sizeof(bits));
  bits = wide != wide ? kNan : bits;
  constexpr double least = static_cast<double>(std::numeric_limits<T>::min());
  const Bits counts = std::abs(wide) < least ? Bits(0) : ~Bits(0);
  const Bits once = mixed(bits ^ place);
  const Bits twice = (once + bits) * kStep;
  sums.first += once & counts;
  sums.second += (twice ^ (twice >> 32)) & counts;
}

}  // namespace

template <class T>
Fingerprint sparse_fingerprint(const Csr<T>& Z, Size first_row, int threads) {
  const EqualWorkBlocks blocks(Z.indptr, Z.rows, kEntriesPerBlock);
  return ordered_sum(blocks.count(), useful_threads(Z.entries(), threads), [&](Size block) {
    const Range rows = blocks[block];
    Fingerprint sums;
    for (Size i = rows.begin; i < rows.end; ++i) {
      const Bits key = key_of_row(first_row + i);
      for (Size e = Z.indptr[i]; e < Z.indptr[i + 1]; ++e) {
        add(sums, key + static_cast<Bits>(Z.indices[e]) * kStep, Z.value(e));
      }
    }
    return sums;
  });
}

template <class T>
Fingerprint dense_fingerprint(const Dense<T>& Z, Size first_row, int threads) {
  const EvenBlocks blocks(Z.rows, kEntriesPerBlock / std::max<Size>(Z.columns, 1));
  const bool by_columns = std::abs(Z.row_stride) < std::abs(Z.column_stride);
  return ordered_sum(blocks.count(), useful_threads(Z.rows * Z.columns, threads), [&](Size block) {
    const Range rows = blocks[block];
    Fingerprint sums;
    if (!by_columns) {
      for (Size i = rows.begin; i < rows.end; ++i) {
        Bits place = key_of_row(first_row + i);
        const T* row = Z.data + i * Z.row_stride;
        for (Size j = 0; j < Z.columns; ++j, place += kStep) {
          add(sums, place, row[j * Z.column_stride]);
        }
      }
      return sums;
    }
    std::vector<Bits> keys;
    for (Size i = rows.begin; i < rows.end; ++i) {
      keys.push_back(key_of_row(first_row + i));
    }
    for (Size j = 0; j < Z.columns; ++j) {
      const T* column = Z.data + rows.begin * Z.row_stride + j * Z.column_stride;
      const Bits step = static_cast<Bits>(j) * kStep;
      for (Size i = 0; i < rows.end - rows.begin; ++i) {
        add(sums, keys[static_cast<std::size_t>(i)] + step, column[i * Z.row_stride]);
      }
    }
    return sums;
  });
}

#define SSNMF_INSTANTIATE(T)                                            \
  template Fingerprint sparse_fingerprint<T>(const Csr<T>&, Size, int); \
  template Fingerprint dense_fingerprint<T>(const Dense<T>&, Size, int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
