#include "operations.hpp"

#include <type_traits>

#include "square.hpp"

namespace ssnmf {

namespace {

// x - z, and 0 where x is NaN.
template <class T>
void residuals(const T* values, const T* models, Size count, T* out) {
  using namespace simd;
  using Packet = PacketFor<T, kRegisterLanes<T>>;
  Size e = 0;
  for (; e + kLanesOf<Packet> <= count; e += kLanesOf<Packet>) {
    const Packet x = ploadu<Packet>(values + e);
    pstoreu(out + e, pand(pcmp_eq(x, x), psub(x, ploadu<Packet>(models + e))));
  }
  for (; e < count; ++e) {
    out[e] = values[e] == values[e] ? values[e] - models[e] : T(0);
  }
}

}  // namespace

template <class T>
FindCoefficients<T> find_coefficients(Operation operation) {
  if (operation.kind == Operation::kResidual) {
    return residuals<T>;
  }
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
