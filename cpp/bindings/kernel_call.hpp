// The time in which a kernel runs, without Python.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <exception>
#include <new>
#include <stdexcept>
#include <thread>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "../core/interrupt.hpp"

namespace ssnmf {

// Python handles signals on the first thread of the process (in a forked child: on the only one).
// Elsewhere than on Linux every thread asks; Python answers the others that there is none.
inline bool on_main_thread() {
#if defined(__linux__)
  return syscall(SYS_gettid) == getpid();
#else
  return true;
#endif
}

// Python ends a thread that asks for the interpreter while this shuts down: up to version 3.13 by
// unwinding its stack, through destructors that must not be left so and that need the interpreter.
// Here the thread sleeps until the process ends, as in later versions.
inline void take_interpreter(PyThreadState* state) noexcept {
  try {
    PyEval_RestoreThread(state);
  } catch (...) {
    for (;;) {
      std::this_thread::sleep_for(std::chrono::hours(1));
    }
  }
}

// While it lives, other Python threads run; on the main thread handlers of signals are still
// called, and Ctrl-C ends the kernel.
class KernelCall final : InterruptSource {
 public:
  KernelCall() : state_(PyEval_SaveThread()), scope_(*this) {}
  ~KernelCall() { take_interpreter(state_); }
  KernelCall(const KernelCall&) = delete;
  KernelCall& operator=(const KernelCall&) = delete;

 private:
  // What a handler has raised stays with the thread, for translate_exception().
  bool interrupted() override {
    if (!on_main_thread()) {
      return false;
    }
    take_interpreter(state_);
    const bool raised = PyErr_CheckSignals() != 0;
    PyEval_SaveThread();
    return raised;
  }

  PyThreadState* const state_;
  InterruptScope scope_;
};

// For pybind11: Interrupted leaves with the Python exception that is already there, the others as
// the exceptions of the same meaning.  pybind11 translates those of the standard library too, but
// by a function of whichever module was loaded first, which does not know them where each module
// has a C++ library of its own in it.
inline void translate_exception(std::exception_ptr exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Interrupted&) {
    if (PyErr_Occurred() == nullptr) {
      PyErr_SetNone(PyExc_KeyboardInterrupt);
    }
  } catch (const pybind11::builtin_exception& error) {
    error.set_error();
  } catch (const std::bad_alloc& error) {
    PyErr_SetString(PyExc_MemoryError, error.what());
  } catch (const std::invalid_argument& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::length_error& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::runtime_error& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

}  // namespace ssnmf
