// What Eigen's products depend on.
#pragma once

#include <string>

namespace ssnmf {

// Eigen cuts products into blocks by the sizes of the caches, which it asks the processor for, and
// sums in the order of the blocks.  After this call all machines of a level give the same bits.
void fix_block_sizes();

std::string eigen_version();

}  // namespace ssnmf
