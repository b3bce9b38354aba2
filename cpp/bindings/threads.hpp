// The argument n_threads.
#pragma once

#include <pybind11/pybind11.h>

#include <limits>
#include <string>

namespace ssnmf {

struct Threads {
  int count = 1;

  operator int() const { return count; }
};

}  // namespace ssnmf

namespace pybind11 {
namespace detail {

// Without this, pybind11 answers a number out of range with a list of C++ signatures.
template <>
struct type_caster<ssnmf::Threads> {
  PYBIND11_TYPE_CASTER(ssnmf::Threads, const_name("int"));

  bool load(handle source, bool) {
    const object index = reinterpret_steal<object>(PyNumber_Index(source.ptr()));
    if (!index) {
      PyErr_Clear();
      throw type_error(std::string("n_threads must be an integer, not ") +
                       Py_TYPE(source.ptr())->tp_name);
    }
    int overflow = 0;
    const long long count = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
    constexpr long long most = std::numeric_limits<int>::max();
    if (overflow != 0 || count < 1 || count > most) {
      throw value_error("n_threads is " + std::string(str(index)) +
                        "; it must be at least 1 and at most " + std::to_string(most));
    }
    value.count = static_cast<int>(count);
    return true;
  }
};

}  // namespace detail
}  // namespace pybind11
