#include "operations.hpp"

#include <type_traits>

#include "square.hpp"

namespace ssnmf {

template <class T>
FindCoefficients<T> find_coefficients(Operation operation) {
  return visit_operation(operation, [](const auto& op) -> FindCoefficients<T> {
    if constexpr (!std::decay_t<decltype(op)>::needs_model) {
      return nullptr;
    } else {
      return [op](const T* values, const T* models, Size count, T* out) {
        coefficients_of<kRegisterLanes<T>>(op, values, models, count, out);
      };
    }
  });
}

template FindCoefficients<float> find_coefficients<float>(Operation);
template FindCoefficients<double> find_coefficients<double>(Operation);

}  // namespace ssnmf
