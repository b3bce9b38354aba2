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

}  // namespace ssnmf
