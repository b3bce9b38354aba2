#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "../core/system_threads.hpp"
#include "mixed_rows.hpp"
#include "narrow_rows.hpp"
#include "passes.hpp"
#include "row_pass.hpp"

namespace ssnmf {

namespace {

// How to come to the rows of G, and the function that passes over a row of Z: body(gather,
// row_pass).
template <class Op, class T, class Body>
void visit_gather(const Csr<T>& Z, const Factor<const T>& G, int threads, const Body& body) {
  const auto row_pass = choose_row_pass<Op, T, ColumnRows<T>>(G.columns);
  if constexpr (Op::known_ranks) {  // a power takes longer than a row
    if (MixedRows<T>::pay(Z, G)) {
      const bool wide = G.columns % kColumnBlock == 0;
      body(MixedRows<T>(Z, G, threads),
           wide ? &mixed_row<Op, kColumnBlock, T> : &mixed_row<Op, kNarrowestRank, T>);
      return;
    }
  }
  body(ColumnRows<T>(Z, G), row_pass);
}

// Ranges of rows that are worked on panel by panel.  A range waits until its earlier panel is done:
// its panels are taken in order, so that some thread is at it already.
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
void sparse_pass(Operation operation, const Csr<T>& Z, const Rows<const T>& F,
                 const Factor<const T>& G, const Target<T>& to, int threads, const Support& asked) {
  visit_operation(operation, [&](const auto& op) {
    using Op = std::decay_t<decltype(op)>;
    const NarrowRows<T> narrow(G, asked);
    const auto apart = [&](Size row) { return narrow.run(op, Z, row_or_null(F, row), row, to); };
    visit_gather<Op>(Z, G, threads, [&](const auto& gather, auto row_pass) {
      gathered_pass(op, row_pass, Z, F, gather, to, threads, apart);
    });
  });
}

template <class T>
void panel_pass(Operation operation, const Csr<T>& Z, const Rows<const T>& F,
                const Factor<const T>& G, const Span<const Size>& bounds, const Target<T>& to,
                int threads, const Support& asked) {
  const Size ranges = bounds.size - 1;
  const Size panels = to.out.rows == 0 ? 0 : Z.rows / to.out.rows;
  const int team = useful_threads((Z.entries() + Z.rows) * G.columns, threads);
  if (panels == 0 && !to.accumulate) {
    std::fill(to.out.data, to.out.data + to.out.rows * to.out.columns, T(0));
  }
  const auto workspace = [&] { return RowWorkspace<T>(G.columns); };
  const NarrowRows<T> narrow(G, asked);
  PanelOrder order(ranges);
  const BlockCount blocks(panels * ranges, panels);
  visit_operation(operation, [&](const auto& op) {
    using Op = std::decay_t<decltype(op)>;
    visit_gather<Op>(Z, G, threads, [&](const auto& gather, auto row_pass) {
      parallel_for(blocks, team, workspace, [&](RowWorkspace<T>& work, Size block) {
        const Size panel = block / ranges;
        const Size range = block % ranges;
        const Csr<T> part{Z.indptr + panel * to.out.rows, Z.indices, Z.values, to.out.rows};
        const Target<T> target{to.out, to.scale, to.accumulate || panel > 0};
        order.wait(range, panel);
        for (Size row = bounds.data[range]; row < bounds.data[range + 1]; ++row) {
          const bool empty = panel > 0 && part.indptr[row] == part.indptr[row + 1];
          if (!empty && !narrow.run(op, part, row_or_null(F, row), row, target)) {
            row_pass(op, part, row_or_null(F, row), gather, row, target, work);
          }
        }
        order.finish(range, panel);
      });
    });
  });
}

#define SSNMF_INSTANTIATE(T)                                                                     \
  template void panel_pass<T>(Operation, const Csr<T>&, const Rows<const T>&,                    \
                              const Factor<const T>&, const Span<const Size>&, const Target<T>&, \
                              int, const Support&);                                              \
  template void sparse_pass<T>(Operation, const Csr<T>&, const Rows<const T>&,                   \
                               const Factor<const T>&, const Target<T>&, int, const Support&);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
