// A fingerprint of the content of a matrix, which tells two matrices apart.
#pragma once

#include <cstdint>

#include "../core/views.hpp"

namespace ssnmf {

// Two sums modulo 2^64, over the entries that are not zero, of mixed bits of the row, the column
// and the value as double.  They do not depend on the order of the entries, add up over parts of a
// matrix, and are those of all forms in which it may be stored.  NaN is one value; numbers below
// the normal range of their type count as zero, as they do in the other kernels.
struct Fingerprint {
  std::uint64_t first = 0;
  std::uint64_t second = 0;

  void operator+=(const Fingerprint& other) {
    first += other.first;
    second += other.second;
  }
};

// Rows count from `first_row`.  Reads every entry once: three multiplications for each.
template <class T>
Fingerprint sparse_fingerprint(const Csr<T>& Z, Size first_row, int threads);

template <class T>
Fingerprint dense_fingerprint(const Dense<T>& Z, Size first_row, int threads);

}  // namespace ssnmf
