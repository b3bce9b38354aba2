// Products of a matrix with a narrow one, whose sums stay in registers.
//
// out (p x n) += a (p x q) b (q x n).  b comes in panels of a few registers' width; a few rows of a
// at a time meet a panel, so that every number that is read serves several products: as in Goto and
// van de Geijn 2008, but a is read where it lies.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "../core/compiler.hpp"
#include "matrices.hpp"
#include "square.hpp"

namespace ssnmf {

// Where the numbers of a lie: rows or columns are contiguous.
enum class Order { kRows, kColumns };

// Columns of a factor before those that pad its rank, at least one.
template <class T>
Size occupied_columns(const Rows<const T>& G, int threads) {
  std::atomic<Size> most{1};
  const EvenBlocks blocks(G.rows, 4096);
  parallel_for(blocks.count(), useful_threads(G.rows * G.columns, threads), [&](Size block) {
    Size occupied = most;
    for (Size i = blocks[block].begin; i < blocks[block].end && occupied < G.columns; ++i) {
      const T* row = G.row(i);
      for (Size k = G.columns; k > occupied; --k) {
        if (row[k - 1] != T(0)) {
          occupied = k;
        }
      }
    }
    for (Size seen = most; seen < occupied && !most.compare_exchange_weak(seen, occupied);) {
    }
  });
  return most;
}

// A matrix of some columns, filled up to whole registers by zeros, in panels one after the other.
template <class T>
class Panels {
 public:
  static constexpr Size kLanes = kRegisterLanes<T>;

  static constexpr Size whole_registers(Size columns) {
    return (columns + kLanes - 1) / kLanes * kLanes;
  }

  // Columns, filled up.
  Size width() const { return registers_ * kLanes; }

  // Some rows, whose numbers after so many columns are zeros.
  void copy(const T* from, Size stride, Size rows, Size columns);

  // The transpose of the first columns of some rows: `columns` x `rows`.
  void copy_transposed(const T* from, Size stride, Size rows, Size columns);

  // out (p x n) = a times this matrix, of n = width() columns; a by rows.
  void product(const T* a, Size a_stride, Size p, T* out, Size stride) const;

  // out += a times this matrix; with `upper`, at least on and above the diagonal.
  void add_product(Order order, const T* a, Size a_stride, Size p, T* out, Size stride,
                   bool upper = false) const;

 private:
  void resize(Size rows, Size columns);

  // Calls body(first column, registers, where it begins) for panels of about equal width.
  template <class Body>
  void for_each_panel(const Body& body) const;

  Buffer<T> data_;
  Size rows_ = 0;
  Size registers_ = 0;
};

}  // namespace ssnmf
