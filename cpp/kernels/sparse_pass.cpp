#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "../core/system_threads.hpp"
#include "passes.hpp"
#include "row_pass.hpp"

namespace ssnmf {

template <class T>
void sparse_pass(Operation operation, const Csr<T>& Z, const Rows<const T>& F,
                 const Rows<const T>& G, const Target<T>& to, int threads) {
  visit_operation(operation, [&](const auto& op) {
    gathered_pass(op, Z, F, ColumnRows<T>(Z, G), to, threads);
  });
}

namespace {

// Ranges of rows that are worked on panel by panel.  A range waits until its earlier panel is done:
// blocks are taken in order, so that some thread is at it already.
class PanelOrder {
 public:
  explicit PanelOrder(Size ranges) : done_(static_cast<std::size_t>(ranges)) {}

  void wait(Size range, Size panel) const {
    while (done_[static_cast<std::size_t>(range)].load(std::memory_order_acquire) < panel) {
      end_if_interrupted();
      if (is_forked_child()) {
        throw Interrupted();  // What is waited for stayed behind in the parent.
      }
      std::this_thread::yield();
    }
  }
  void finish(Size range, Size panel) {
    done_[static_cast<std::size_t>(range)].store(panel + 1, std::memory_order_release);
  }

 private:
  std::vector<std::atomic<Size>> done_;
};

}  // namespace

template <class T>
void panel_pass(Operation operation, const Csr<T>& Z, const Rows<const T>& F,
                const Rows<const T>& G, const Span<const Size>& bounds, const Target<T>& to,
                int threads) {
  const Size ranges = bounds.size - 1;
  const Size panels = to.out.rows == 0 ? 0 : Z.rows / to.out.rows;
  const int team = useful_threads((Z.entries() + Z.rows) * G.columns, threads);
  if (panels == 0 && !to.accumulate) {
    std::fill(to.out.data, to.out.data + to.out.rows * to.out.columns, T(0));
  }
  const auto workspace = [&] { return RowWorkspace<T>(G.columns); };
  const ColumnRows<T> gather(Z, G);
  PanelOrder order(ranges);
  visit_operation(operation, [&](const auto& op) {
    const auto row_pass = choose_row_pass<std::decay_t<decltype(op)>, T, ColumnRows<T>>(G.columns);
    parallel_for(panels * ranges, team, workspace, [&](RowWorkspace<T>& work, Size block) {
      const Size panel = block / ranges;
      const Size range = block % ranges;
      const Csr<T> part{Z.indptr + panel * to.out.rows, Z.indices, Z.values, to.out.rows};
      const Target<T> target{to.out, to.scale, to.accumulate || panel > 0};
      order.wait(range, panel);
      for (Size row = bounds.data[range]; row < bounds.data[range + 1]; ++row) {
        if (panel == 0 || part.indptr[row] < part.indptr[row + 1]) {
          row_pass(op, part, row_or_null(F, row), gather, row, target, work);
        }
      }
      order.finish(range, panel);
    });
  });
}

#define SSNMF_INSTANTIATE(T)                                                                   \
  template void panel_pass<T>(Operation, const Csr<T>&, const Rows<const T>&,                  \
                              const Rows<const T>&, const Span<const Size>&, const Target<T>&, \
                              int);                                                            \
  template void sparse_pass<T>(Operation, const Csr<T>&, const Rows<const T>&,                 \
                               const Rows<const T>&, const Target<T>&, int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
