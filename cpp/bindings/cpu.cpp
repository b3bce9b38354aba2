// The module that knows which levels can be used.
//
// Compiled for the baseline, without Eigen, so that importing it is always safe.
#include <string>
#include <vector>

#include "../core/levels.hpp"
#include "small_module.hpp"

namespace {

PyObject* as_tuple(const std::vector<std::string>& names) {
  PyObject* const result = PyTuple_New(static_cast<Py_ssize_t>(names.size()));
  for (std::size_t i = 0; result != nullptr && i < names.size(); ++i) {
    PyObject* const name = PyUnicode_FromString(names[i].c_str());
    if (name == nullptr) {
      Py_DECREF(result);
      return nullptr;
    }
    PyTuple_SET_ITEM(result, static_cast<Py_ssize_t>(i), name);
  }
  return result;
}

int fill(PyObject* module) {
  const int status = ssnmf::add_attribute(module, "levels", as_tuple(ssnmf::levels()));
  return status != 0 ? status
                     : ssnmf::add_attribute(module, "built_levels", as_tuple({SSNMF_BUILT_LEVELS}));
}

}  // namespace

PyMODINIT_FUNC PyInit__cpu() {
  return ssnmf::start_module<&fill>(
      "_cpu", "Instruction-set levels: of this processor, and of this installation.");
}
