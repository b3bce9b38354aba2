// Small dense matrices by rows.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "../core/parallel.hpp"

namespace ssnmf {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class T>
using MatrixMap = Eigen::Map<Matrix<T>>;

template <class T>
using ConstMatrixMap = Eigen::Map<const Matrix<T>>;

// Room for tiles.  It is aligned as matrices are: how Eigen takes small products depends on where
// the result lies.
template <class T>
using Buffer = std::vector<T, Eigen::aligned_allocator<T>>;

// The sum of matrices of the same size, in their order, by rows.
inline Matrix<double> sum_of(const std::vector<Matrix<double>>& parts, Size rows, Size columns,
                             int threads) {
  Matrix<double> sum = Matrix<double>::Zero(rows, columns);
  const EvenBlocks blocks(rows, 8);
  const int team = useful_threads(static_cast<Size>(parts.size()) * rows * columns, threads);
  parallel_for(blocks.count(), team, [&](Size block) {
    const Range range = blocks[block];
    for (const Matrix<double>& part : parts) {
      sum.middleRows(range.begin, range.end - range.begin) +=
          part.middleRows(range.begin, range.end - range.begin);
    }
  });
  return sum;
}

// A matrix by rows, or the corner of a larger one.
template <class T>
struct Block {
  T* data;
  Size rows;
  Size columns;
  Size stride;  // from row to row

  T* row(Size i) const { return data + i * stride; }
};

template <class T>
Block<const T> rows_of(const Rows<const T>& factor, Range range) {
  return {factor.row(range.begin), range.end - range.begin, factor.columns, factor.columns};
}

template <class T>
Block<T> corner(Matrix<T>& matrix, Size rows, Size columns) {
  return {matrix.data(), rows, columns, matrix.cols()};
}

template <class T>
Block<const T> as_const(const Block<T>& block) {
  return {block.data, block.rows, block.columns, block.stride};
}

}  // namespace ssnmf
