// Thin QR of a tall matrix by blocks of rows (TSQR; Demmel, Grigori, Hoemmen and Langou 2012).
//
// The blocks depend on the shape alone: the same bits for any number of threads.  Blocks are worked
// on in double, so that columns of either type are orthonormal to their last digit.  Cost: about
// 6 n c^2 flops for n x c.
#pragma once

#include "../core/views.hpp"

namespace ssnmf {

// The first `columns` columns of A (n x C, n >= columns) become Q; its other columns are left.
template <class T>
void tall_qr(const Rows<T>& A, Size columns, const Rows<T>& R, int threads);

}  // namespace ssnmf
