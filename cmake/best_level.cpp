// Prints the best instruction-set level of this processor.
#include <cstdio>

#include "../cpp/core/levels.hpp"

int main() { std::printf("%s", ssnmf::levels().back().c_str()); }
