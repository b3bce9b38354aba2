#include "gemm.hpp"

#include <cstddef>
#include <string>

#include "block_sizes.hpp"

namespace ssnmf {
namespace {

template <class T>
auto map(const Block<const T>& block) {
  using Strided = Eigen::Map<const Matrix<T>, 0, Eigen::OuterStride<>>;
  return Strided(block.data, block.rows, block.columns, Eigen::OuterStride<>(block.stride));
}

template <class T>
auto map(const Block<T>& block) {
  using Strided = Eigen::Map<Matrix<T>, 0, Eigen::OuterStride<>>;
  return Strided(block.data, block.rows, block.columns, Eigen::OuterStride<>(block.stride));
}

constexpr std::ptrdiff_t kKibibyte = 1024;

}  // namespace

void fix_block_sizes() {
  Eigen::setCpuCacheSizes(32 * kKibibyte, 512 * kKibibyte, 4096 * kKibibyte);
}

std::string eigen_version() {
#if EIGEN_MAJOR_VERSION < 5  // after a number of the world, which does not count any more
  const int numbers[] = {EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION};
#else
  const int numbers[] = {EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION, EIGEN_PATCH_VERSION};
#endif
  return std::to_string(numbers[0]) + "." + std::to_string(numbers[1]) + "." +
         std::to_string(numbers[2]);
}

template <class T>
void product(const Block<const T>& a, const Block<const T>& b, const Block<T>& out) {
  map(out).setZero();
  add_product(a, b, out);
}

template <class T>
void product_with_transposed(const Block<const T>& a, const Block<const T>& b,
                             const Block<T>& out) {
  map(out).noalias() = map(a) * map(b).transpose();
}

template <class T>
void add_product(const Block<const T>& a, const Block<const T>& b, const Block<T>& out) {
  map(out).noalias() += map(a) * map(b);
}

template <class T>
void add_transposed_product(const Block<const T>& a, const Block<const T>& b, const Block<T>& out) {
  map(out).noalias() += map(a).transpose() * map(b);
}

#define SSNMF_INSTANTIATE(T)                                                                   \
  template void product<T>(const Block<const T>&, const Block<const T>&, const Block<T>&);     \
  template void product_with_transposed<T>(const Block<const T>&, const Block<const T>&,       \
                                           const Block<T>&);                                   \
  template void add_product<T>(const Block<const T>&, const Block<const T>&, const Block<T>&); \
  template void add_transposed_product<T>(const Block<const T>&, const Block<const T>&,        \
                                          const Block<T>&);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
