// The structure of a sparse matrix: is it sound, and its transpose.
#pragma once

#include "../core/views.hpp"

namespace ssnmf {

// Ordered: a matrix is as bad as its worst row.
enum Structure { kSorted = 0, kUnsorted = 1, kDuplicates = 2, kUnsound = 3 };

// Given: any integers, `entries` of them in `indices` (std::int32_t or std::int64_t).
template <class Given>
int inspect_csr(const Size* indptr, const Given* indices, Size rows, Size columns, Size entries,
                int threads);

// The transpose of Z, with sorted rows.
template <class T>
void transpose(const Csr<T>& Z, Size columns, Size* indptr, Index* indices, T* values, int threads);

// The transpose cut into panels of `panel_rows` rows of Z: row k * columns + j of the result has
// the entries of column j within panel k.  indptr: panels * columns + 1.
template <class T>
void transpose_panels(const Csr<T>& Z, Size columns, Size panel_rows, Size* indptr, Index* indices,
                      T* values, int threads);

}  // namespace ssnmf
