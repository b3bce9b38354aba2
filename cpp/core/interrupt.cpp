#include "interrupt.hpp"

namespace ssnmf {
namespace detail {

Attention& attention() {
  static thread_local Attention here;
  return here;
}

void look(Attention& here) {
  here.work = 0;
  if (here.failed != nullptr && here.failed->load(std::memory_order_relaxed)) {
    throw Interrupted();
  }
  if (here.source == nullptr || InterruptClock::now() < here.due) {
    return;
  }
  // The source may run anything, other kernels included; they do not ask it in turn.
  InterruptSource* const source = here.source;
  here.source = nullptr;
  const bool interrupted = [&] {
    const ArithmeticScope callers(here.arithmetic);
    return source->interrupted();
  }();
  here.source = source;
  here.due = InterruptClock::now() + kTimeBetweenQuestions;
  if (interrupted) {
    throw Interrupted();
  }
}

}  // namespace detail

InterruptScope::InterruptScope(InterruptSource& source) : before_(detail::attention()) {
  detail::Attention& here = detail::attention();
  here.source = &source;
  here.failed = nullptr;
  here.arithmetic = arithmetic_mode();
  here.due = detail::InterruptClock::now() + detail::kTimeBetweenQuestions;
  here.work = 0;
}

InterruptScope::~InterruptScope() { detail::attention() = before_; }

}  // namespace ssnmf
