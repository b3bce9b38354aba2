#include "block_sizes.hpp"

#include <Eigen/Core>
#include <cstddef>
#include <string>

namespace ssnmf {
namespace {

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

}  // namespace ssnmf
