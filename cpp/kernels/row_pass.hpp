// Passes row by row, over any sum of the entries of a row.
#pragma once

#include <functional>

#include "../core/views.hpp"
#include "entry_rows.hpp"
#include "long_rows.hpp"
#include "row_sum.hpp"

namespace ssnmf {

// Does what is to be done before a row, or in place of its sum: then it returns true.
template <class T>
using BeforeRow = std::function<bool(const Csr<T>& Z, Size row, const Target<T>& to)>;

template <class T>
const T* row_or_null(const Rows<const T>& F, Size row) {
  return F.data == nullptr ? nullptr : F.row(row);
}

// Stores the sum of every row of Z.
template <class T>
void pass_rows(const RowSum<T>& sum, const Csr<T>& Z, const Rows<const T>& F, const Target<T>& to,
               int threads, const BeforeRow<T>& before = nullptr);

// The same over panels, by the ranges that `bounds` gives; see panel_pass.
template <class T>
void pass_panels(const RowSum<T>& sum, const Csr<T>& Z, const Rows<const T>& F,
                 const Span<const Size>& bounds, const Target<T>& to, int threads,
                 const BeforeRow<T>& before = nullptr);

}  // namespace ssnmf
