// Entry points of modules with a few attributes, by Python's own interface: pybind11 would take
// three seconds to compile.
#pragma once

#include <Python.h>

namespace ssnmf {

// Adds an attribute, a new reference or null; returns 0, or -1 with an exception.
inline int add_attribute(PyObject* module, const char* name, PyObject* value) {
  const int status = value == nullptr ? -1 : PyObject_SetAttrString(module, name, value);
  Py_XDECREF(value);
  return status;
}

// The definition of a module that `fill(module)` fills.
template <int (*fill)(PyObject*)>
PyObject* start_module(const char* name, const char* doc) {
  static PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(fill)},
#if PY_VERSION_HEX >= 0x030D0000
                                     {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
                                     {0, nullptr}};
  static PyModuleDef definition{
      PyModuleDef_HEAD_INIT, name, doc, 0, nullptr, slots, nullptr, nullptr, nullptr};
  return PyModuleDef_Init(&definition);
}

}  // namespace ssnmf
