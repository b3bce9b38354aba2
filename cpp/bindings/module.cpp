// What of the bindings is compiled for each level: its name, and how its kernels were compiled.
#include <Python.h>

#include "build.hpp"

const ssnmf::Build ssnmf::kBuild{SSNMF_LEVEL, SSNMF_COMPILER, SSNMF_FLAGS};

PyMODINIT_FUNC PyInit__kernels();  // in kernels.cpp
PyMODINIT_FUNC SSNMF_ENTRY() { return PyInit__kernels(); }
