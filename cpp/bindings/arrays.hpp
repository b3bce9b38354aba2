// From NumPy arrays to views, with every check at the border.
//
// Read-only and writable views come from different functions.  Nothing is ever copied or cast: an
// array of another dtype or layout is an error of the caller.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "../core/views.hpp"

namespace ssnmf {

namespace py = pybind11;

inline std::invalid_argument bad(const std::string& name, const std::string& what) {
  return std::invalid_argument(name + " " + what);
}

template <class T>
void require_dtype(const py::array& array, const char* name) {
  if (!py::isinstance<py::array_t<T>>(array)) {
    throw py::type_error(std::string(name) + " has dtype " + std::string(py::str(array.dtype())) +
                         "; needed is " + std::string(py::str(py::dtype::of<T>())));
  }
}

inline void require_contiguous(const py::array& array, const char* name, py::ssize_t dimensions) {
  if (array.ndim() != dimensions) {
    throw bad(name, "has " + std::to_string(array.ndim()) + " dimensions; needed are " +
                        std::to_string(dimensions));
  }
  if (array.size() == 0) {
    return;  // the strides of an empty array say nothing
  }
  py::ssize_t expected = array.itemsize();
  for (py::ssize_t d = dimensions - 1; d >= 0; --d) {
    if (array.shape(d) > 1 && array.strides(d) != expected) {
      throw bad(name, "is not C-contiguous");
    }
    expected *= array.shape(d);
  }
}

template <class T>
void require_aligned(const void* data, const char* name) {
  if (reinterpret_cast<std::uintptr_t>(data) % alignof(T) != 0) {
    throw bad(name, "is misaligned");
  }
}

template <class T>
const T* const_data(const py::array& array, const char* name) {
  require_dtype<T>(array, name);
  require_aligned<T>(array.data(), name);
  return static_cast<const T*>(array.data());
}

template <class T>
T* writable_data(py::array& array, const char* name) {
  require_dtype<T>(array, name);
  if (!array.writeable()) {
    throw bad(name, "is read-only");
  }
  require_aligned<T>(array.data(), name);
  return static_cast<T*>(array.mutable_data());
}

template <class T>
Rows<const T> const_rows(const py::array& array, const char* name) {
  const T* data = const_data<T>(array, name);
  require_contiguous(array, name, 2);
  return {data, array.shape(0), array.shape(1)};
}

template <class T>
Rows<T> writable_rows(py::array& array, const char* name) {
  T* data = writable_data<T>(array, name);
  require_contiguous(array, name, 2);
  return {data, array.shape(0), array.shape(1)};
}

// A vector of a given length, or nothing for None.
template <class T>
Span<const T> optional_vector(const py::object& object, const char* name, Size length) {
  if (object.is_none()) {
    return {};
  }
  const py::array array = py::cast<py::array>(object);
  const T* data = const_data<T>(array, name);
  require_contiguous(array, name, 1);
  if (array.shape(0) != length) {
    throw bad(name, "has length " + std::to_string(array.shape(0)) + "; needed is " +
                        std::to_string(length));
  }
  return {data, length};
}

template <class T, class Index>
Csr<T, Index> const_csr(const py::array& indptr, const py::array& indices,
                        const py::object& values) {
  Csr<T, Index> csr;
  csr.indptr = const_data<Index>(indptr, "indptr");
  csr.indices = const_data<Index>(indices, "indices");
  require_contiguous(indptr, "indptr", 1);
  require_contiguous(indices, "indices", 1);
  if (indptr.shape(0) < 1) {
    throw bad("indptr", "is empty");
  }
  csr.rows = indptr.shape(0) - 1;
  if (csr.indptr[0] != 0 || csr.entries() > indices.shape(0)) {
    throw bad("indptr", "must start at 0 and end within indices");
  }
  csr.values = optional_vector<T>(values, "values", indices.shape(0)).data;
  return csr;
}

template <class T>
Dense<T> const_dense(const py::array& array, const char* name) {
  const T* data = const_data<T>(array, name);
  if (array.ndim() != 2) {
    throw bad(name, "must have 2 dimensions");
  }
  const auto item = static_cast<py::ssize_t>(sizeof(T));
  if (array.strides(0) % item != 0 || array.strides(1) % item != 0) {
    throw bad(name, "has strides that are no multiples of its itemsize");
  }
  return {data, array.shape(0), array.shape(1), array.strides(0) / item, array.strides(1) / item};
}

template <class A, class B>
void require_same_shape(const Rows<A>& a, const Rows<B>& b, const char* name) {
  if (a.rows != b.rows || a.columns != b.columns) {
    throw bad(name, "has a shape that disagrees with the other arrays");
  }
}

inline void require_equal(Size given, Size needed, const char* what) {
  if (given != needed) {
    throw bad(what, "disagree: " + std::to_string(given) + " and " + std::to_string(needed));
  }
}

// Calls body(T{}) with the floating type of the array.
template <class Body>
auto visit_float(const py::array& array, const char* name, const Body& body) {
  if (py::isinstance<py::array_t<double>>(array)) {
    return body(double{});
  }
  if (py::isinstance<py::array_t<float>>(array)) {
    return body(float{});
  }
  throw py::type_error(std::string(name) + " must be float32 or float64");
}

// Calls body(Index{}) with the integer type of a CSR index array.
template <class Body>
auto visit_index(const py::array& array, const Body& body) {
  if (py::isinstance<py::array_t<std::int32_t>>(array)) {
    return body(std::int32_t{});
  }
  if (py::isinstance<py::array_t<std::int64_t>>(array)) {
    return body(std::int64_t{});
  }
  throw py::type_error("indptr and indices must be int32 or int64");
}

// Calls body(T{}, Index{}) with the types that a sparse matrix and the factors beside it have.
template <class Body>
auto visit_sparse(const py::array& array, const char* name, const py::array& indptr,
                  const Body& body) {
  return visit_float(array, name, [&](auto type) {
    return visit_index(indptr, [&](auto index) { return body(type, index); });
  });
}

}  // namespace ssnmf
