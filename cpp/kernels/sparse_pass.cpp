#include <type_traits>

#include "narrow_rows.hpp"
#include "passes.hpp"
#include "row_pass.hpp"

namespace ssnmf {

namespace {

// Calls body(sum of the entries of a row, what is done before a row).  Rows of more entries than
// `most` are never narrow.
template <class T, class Body>
void visit_sum(Operation operation, const Csr<T>& Z, const Rows<const T>& F,
               const Factor<const T>& G, const Support& asked, Size most, const Body& body) {
  visit_operation(operation, [&](const auto& op) {
    using Op = std::decay_t<decltype(op)>;
    const NarrowRows<T> narrow(op, Z, G, asked);
    BeforeRow<T> before;
    if (asked.data != nullptr) {
      before = [&](const Csr<T>& part, Size row, const Target<T>& to) {
        const Range entries = entries_of(part, row);
        return entries.end - entries.begin <= most &&
               narrow.run(entries, row_or_null(F, row), row, to);
      };
    }
    const ColumnRows<T> rows(Z, G);
    body(GatheredSum<Op, T, ColumnRows<T>>(op, Z, rows), before);
  });
}

}  // namespace

template <class T>
void sparse_pass(Operation operation, const Csr<T>& Z, const Rows<const T>& F,
                 const Factor<const T>& G, const Target<T>& to, int threads, const Support& asked) {
  visit_sum(operation, Z, F, G, asked, kLongestRow,
            [&](const RowSum<T>& sum, const BeforeRow<T>& before) {
              pass_rows(sum, Z, F, to, threads, before);
            });
}

template <class T>
void panel_pass(Operation operation, const Csr<T>& Z, const Rows<const T>& F,
                const Factor<const T>& G, const Span<const Size>& bounds, const Target<T>& to,
                int threads, const Support& asked) {
  visit_sum(operation, Z, F, G, asked, Z.entries(),
            [&](const RowSum<T>& sum, const BeforeRow<T>& before) {
              pass_panels(sum, Z, F, bounds, to, threads, before);
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
