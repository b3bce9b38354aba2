// How the kernels of a module were compiled.
#pragma once

namespace ssnmf {

struct Build {
  const char* level;
  const char* compiler;
  const char* flags;
};

extern const Build kBuild;

}  // namespace ssnmf
