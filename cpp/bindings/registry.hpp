// One function for each family of kernels, and how kernels are defined.
#pragma once

#include <pybind11/pybind11.h>

#include <array>
#include <sstream>
#include <string>
#include <tuple>

namespace ssnmf {

// Defines a function; `names` has those of its arguments, but for the last ones, with defaults.
template <class Result, class... Arguments, class... Defaults>
void define(pybind11::module_& module, const char* name, Result (*function)(Arguments...),
            const char* names, const char* doc, const Defaults&... defaults) {
  std::array<std::string, sizeof...(Arguments) - sizeof...(Defaults)> words;
  std::istringstream given(names);
  for (std::string& word : words) {
    given >> word;
  }
  const auto with_names = [&](const auto&... word) {
    module.def(name, function, pybind11::arg(word.c_str())..., defaults..., doc);
  };
  std::apply(with_names, words);
}

void register_csr(pybind11::module_& module);
void register_fingerprint(pybind11::module_& module);
void register_passes(pybind11::module_& module);
void register_factors(pybind11::module_& module);
void register_solvers(pybind11::module_& module);
void register_iterations(pybind11::module_& module);
void register_completion(pybind11::module_& module);
void register_tall_qr(pybind11::module_& module);
void register_gamma(pybind11::module_& module);
void register_tensors(pybind11::module_& module);

}  // namespace ssnmf
