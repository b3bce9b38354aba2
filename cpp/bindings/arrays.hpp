// From NumPy arrays to views, with every check at the border.
//
// Arguments come as handles and nothing is ever copied or cast: what is no array, or one of another
// dtype or layout, is an error of the caller.  Views point into arrays that the caller's arguments
// keep alive.  Read-only and writable views come from different functions.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "../kernels/rank.hpp"
#include "kernel_call.hpp"
#include "threads.hpp"

namespace ssnmf {

namespace py = pybind11;

inline std::invalid_argument bad(const std::string& name, const std::string& what) {
  return std::invalid_argument(name + " " + what);
}

// The array that an argument is.
inline py::array array_of(py::handle argument, const char* name) {
  if (!py::isinstance<py::array>(argument)) {
    throw py::type_error(std::string(name) + " must be a NumPy array, not " +
                         Py_TYPE(argument.ptr())->tp_name);
  }
  return py::reinterpret_borrow<py::array>(argument);
}

template <class T>
void require_dtype(const py::array& array, const char* name) {
  if (!py::isinstance<py::array_t<T>>(array)) {
    throw py::type_error(std::string(name) + " has dtype " + std::string(py::str(array.dtype())) +
                         "; expected " + std::string(py::str(py::dtype::of<T>())));
  }
}

inline void require_dimensions(const py::array& array, const char* name, py::ssize_t dimensions) {
  if (array.ndim() != dimensions) {
    throw bad(name, "has " + std::to_string(array.ndim()) + " dimensions; expected " +
                        std::to_string(dimensions));
  }
}

inline void require_contiguous(const py::array& array, const char* name, py::ssize_t dimensions) {
  require_dimensions(array, name, dimensions);
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
const T* const_data(const py::array& array, const char* name) {
  require_dtype<T>(array, name);
  if (reinterpret_cast<std::uintptr_t>(array.data()) % alignof(T) != 0) {
    throw bad(name, "is misaligned");
  }
  return static_cast<const T*>(array.data());
}

template <class T>
T* writable_data(py::array& array, const char* name) {
  const_data<T>(array, name);
  if (!array.writeable()) {
    throw bad(name, "is read-only");
  }
  return static_cast<T*>(array.mutable_data());
}

template <class T>
Span<const T> const_vector(py::handle argument, const char* name) {
  const py::array array = array_of(argument, name);
  const T* data = const_data<T>(array, name);
  require_contiguous(array, name, 1);
  return {data, array.shape(0)};
}

template <class T>
Span<T> writable_vector(py::handle argument, const char* name) {
  py::array array = array_of(argument, name);
  T* data = writable_data<T>(array, name);
  require_contiguous(array, name, 1);
  return {data, array.shape(0)};
}

template <class T>
Rows<const T> const_rows(py::handle argument, const char* name) {
  const py::array array = array_of(argument, name);
  const T* data = const_data<T>(array, name);
  require_contiguous(array, name, 2);
  return {data, array.shape(0), array.shape(1)};
}

template <class T>
Rows<T> writable_rows(py::handle argument, const char* name) {
  py::array array = array_of(argument, name);
  T* data = writable_data<T>(array, name);
  require_contiguous(array, name, 2);
  return {data, array.shape(0), array.shape(1)};
}

// For kernels that rely on the padding; other arguments must then have as many columns.
template <class T>
Factor<const T> const_factor(py::handle argument, const char* name) {
  return {const_rows<T>(argument, name), name};
}

template <class T>
Factor<T> writable_factor(py::handle argument, const char* name) {
  return {writable_rows<T>(argument, name), name};
}

// A vector of a given length, or nothing for None.
template <class T>
Span<const T> optional_vector(py::handle argument, const char* name, Size length) {
  if (argument.is_none()) {
    return {};
  }
  const auto vector = const_vector<T>(argument, name);
  if (vector.size != length) {
    throw bad(name,
              "has length " + std::to_string(vector.size) + "; expected " + std::to_string(length));
  }
  return vector;
}

// Integers as the kernels have them: those of another length are copied, and checked for theirs.
template <class To>
class Integers {
 public:
  Integers(py::handle argument, const char* name) {
    const py::array array = array_of(argument, name);
    if (py::isinstance<py::array_t<To>>(array)) {
      view_ = const_vector<To>(argument, name);
    } else if (py::isinstance<py::array_t<std::int32_t>>(array)) {
      copy(const_vector<std::int32_t>(argument, name), name);
    } else if (py::isinstance<py::array_t<std::int64_t>>(array)) {
      copy(const_vector<std::int64_t>(argument, name), name);
    } else {
      throw py::type_error(std::string(name) + " has dtype " + std::string(py::str(array.dtype())) +
                           "; it must be int32 or int64");
    }
  }

  const Span<const To>& operator*() const { return view_; }
  const Span<const To>* operator->() const { return &view_; }

 private:
  template <class From>
  void copy(const Span<const From>& given, const char* name) {
    copy_.resize(static_cast<std::size_t>(given.size));
    for (Size i = 0; i < given.size; ++i) {
      const To value = static_cast<To>(given.data[i]);
      if (static_cast<From>(value) != given.data[i]) {
        throw bad(name, "has " + std::to_string(given.data[i]) + ", which is more than " +
                            std::to_string(std::numeric_limits<To>::max()));
      }
      copy_[static_cast<std::size_t>(i)] = value;
    }
    view_ = {copy_.data(), given.size};
  }

  Span<const To> view_;
  std::vector<To> copy_;
};

// The memory between the first and the last item of an argument; nothing for None.
struct Extent {
  const char* name;
  std::intptr_t begin = 0;
  std::intptr_t end = 0;

  Extent(const char* given_name, py::handle argument) : name(given_name) {
    if (argument.is_none()) {
      return;
    }
    const py::array array = array_of(argument, name);
    if (array.size() == 0) {
      return;
    }
    begin = reinterpret_cast<std::intptr_t>(array.data());
    end = begin + array.itemsize();
    for (py::ssize_t d = 0; d < array.ndim(); ++d) {
      const py::ssize_t length = (array.shape(d) - 1) * array.strides(d);
      (length < 0 ? begin : end) += length;
    }
  }

  bool overlaps(const Extent& other) const { return begin < other.end && other.begin < end; }
};

// What a kernel writes must lie apart from all the rest.
inline void require_apart(const Extent& written, std::initializer_list<Extent> others) {
  for (const Extent& other : others) {
    if (written.overlaps(other)) {
      throw bad(written.name,
                std::string("shares memory with ") + other.name + "; it needs memory of its own");
    }
  }
}

// A CSR matrix.  Takes the entries as they are: that pointers never fall and every index lies
// within the columns is what inspect_csr is for, once for each matrix.
template <class T>
class CsrArgument {
 public:
  CsrArgument(py::handle indptr, py::handle indices, py::handle values, const char* name = "values")
      : extents{{"indptr", indptr}, {"indices", indices}, {name, values}},
        indptr_(indptr, "indptr"),
        indices_(indices, "indices") {
    if (indptr_->size < 1) {
      throw bad("indptr", "is empty");
    }
    csr_ = {indptr_->data, indices_->data, optional_vector<T>(values, name, indices_->size).data,
            indptr_->size - 1};
    if (csr_.indptr[0] != 0 || csr_.entries() != indices_->size) {
      throw bad("indptr", "must start at 0 and end at the length of indices");
    }
  }

  const Csr<T>& operator*() const { return csr_; }
  const Csr<T>* operator->() const { return &csr_; }

  const Extent extents[3];

 private:
  Integers<Size> indptr_;
  Integers<Index> indices_;
  Csr<T> csr_;
};

template <class T>
void require_apart(const Extent& written, const CsrArgument<T>& Z,
                   std::initializer_list<Extent> others) {
  const auto& [indptr, indices, values] = Z.extents;
  require_apart(written, {indptr, indices, values});
  require_apart(written, others);
}

template <class T>
Dense<T> const_dense(py::handle argument, const char* name) {
  const py::array array = array_of(argument, name);
  const T* data = const_data<T>(array, name);
  require_dimensions(array, name, 2);
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

// A row for each row of a factor, or one for all.
template <class T>
auto const_rows_or_one(py::handle argument, const char* name, const Rows<T>& F) {
  const auto rows = const_rows<std::remove_const_t<T>>(argument, name);
  if (rows.rows != 1 && rows.rows != F.rows) {
    throw bad(name, "has " + std::to_string(rows.rows) + " rows; expected 1 or " +
                        std::to_string(F.rows));
  }
  require_same_shape(rows, Rows<T>{F.data, rows.rows, F.columns}, name);
  return rows;
}

inline void require_equal(Size given, Size needed, const char* what) {
  if (given != needed) {
    throw bad(what, "disagree: " + std::to_string(given) + " and " + std::to_string(needed));
  }
}

// A sparse matrix and the factors of its model; U is T where F is written.
template <class T, class U = const T>
struct SparseModel {
  CsrArgument<T> Z;
  Rows<U> F;
  Factor<const T> G;

  SparseModel(py::handle indptr, py::handle indices, py::handle values, py::handle f, py::handle g)
      : Z(indptr, indices, values), G(const_factor<T>(g, "G")) {
    if constexpr (std::is_const_v<U>) {
      F = const_rows<T>(f, "F");
    } else {
      F = writable_rows<T>(f, "F");
    }
    require_equal(F.rows, Z->rows, "rows of F and of the sparse matrix");
    require_equal(F.columns, G.columns, "columns of F and of G");
  }
};

// A bit for each entry of a factor, or all of them for None.
template <class T>
Support support_of(py::handle argument, const char* name, const Rows<T>& F) {
  if (argument.is_none()) {
    return {};
  }
  const auto bits = const_rows<std::uint8_t>(argument, name);
  if (bits.rows != F.rows || bits.columns != (F.columns + 7) / 8) {
    throw bad(name, "must have a bit for each entry of the factor, rows of whole bytes");
  }
  return {bits.data, bits.columns};
}

// Calls body(T{}) with the floating type of the array.
template <class Body>
auto visit_float(py::handle argument, const char* name, const Body& body) {
  const py::array array = array_of(argument, name);
  if (py::isinstance<py::array_t<double>>(array)) {
    return body(double{});
  }
  if (py::isinstance<py::array_t<float>>(array)) {
    return body(float{});
  }
  throw py::type_error(std::string(name) + " has dtype " + std::string(py::str(array.dtype())) +
                       "; it must be float32 or float64");
}

}  // namespace ssnmf
