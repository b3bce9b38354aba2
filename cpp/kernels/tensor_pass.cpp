#include "tensor_pass.hpp"

#include <algorithm>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "gathered_loss.hpp"
#include "row_pass.hpp"

namespace ssnmf {
namespace {

// The product of the rows that an entry names; see ColumnRows.  Others is the number of factors, or
// 0 for any.
template <class T, int Others>
class ProductRows {
 public:
  static constexpr bool in_place = false;
  static constexpr bool known_ranks = Others > 0;

  ProductRows(const Csr<T>& Z, const FactorList<T>& others)
      : entries_(Z.entries()), rank_(others.front().columns) {
    for (const Rows<const T>& factor : others) {
      factors_.push_back({factor.data, Z.indices + static_cast<Size>(factors_.size()) * entries_,
                          factor.rows * rank_ * static_cast<Size>(sizeof(T)) > kFirstCache});
    }
  }

  Size rank() const { return rank_; }

  template <class Packet, int R>
  SSNMF_INLINE auto packets(Size entry) const {
    return [this, entry](Size k) {
      using namespace simd;
      Packet product = ploadu<Packet>(place<R>(0, entry) + k);
      for (std::size_t other = 1; other < count(); ++other) {
        product = pmul(product, ploadu<Packet>(place<R>(other, entry) + k));
      }
      return product;
    };
  }

  template <int R, bool Dots = true>
  SSNMF_INLINE void prefetch(Size first, Size entries) const {
    constexpr Size line = 64 / static_cast<Size>(sizeof(T));
    const Size last = first + kPrefetchDistance + entries;
    for (std::size_t other = 0; other < count() && last <= entries_; ++other) {
      for (Size e = last - entries; factors_[other].far && e < last; ++e) {
        const T* g = place<R>(other, e);
        for (Size k = 0; k < width<R>(); k += line) {
          ssnmf::prefetch(g + k);
        }
      }
    }
  }

 private:
  static constexpr Size kFirstCache = 1 << 15;
  struct Factor {
    const T* data;
    const Index* indices;
    bool far;  // whether rows are worth prefetching
  };

  std::size_t count() const { return Others > 0 ? Others : factors_.size(); }

  template <int R>
  Size width() const {
    return R > 0 ? R : rank_;
  }

  template <int R>
  const T* place(std::size_t other, Size entry) const {
    const Factor& factor = factors_[other];
    return factor.data + static_cast<Size>(factor.indices[entry]) * width<R>();
  }

  Size entries_;
  Size rank_;
  std::vector<Factor> factors_;
};

// Calls body with the rows that the entries of Z name.
template <class T, class Body>
auto visit_products(const Csr<T>& Z, const FactorList<T>& others, const Body& body) {
  if (others.size() == 2) {
    return body(ProductRows<T, 2>(Z, others));
  }
  return body(ProductRows<T, 0>(Z, others));
}

}  // namespace

template <class T>
void tensor_pass(Operation operation, const Csr<T>& Z, const Rows<const T>& F,
                 const FactorList<T>& others, const Target<T>& to, int threads) {
  if (others.size() == 1) {
    sparse_pass(operation, Z, F, others.front(), to, threads);
    return;
  }
  visit_products(Z, others, [&](const auto& gather) {
    const auto pass = [&](const auto& op) {
      using Sum = GatheredSum<std::decay_t<decltype(op)>, T, std::decay_t<decltype(gather)>>;
      pass_rows<T>(Sum(op, Z, gather), Z, F, to, threads);
    };
    switch (operation.kind) {
      case Operation::kProduct:
        return pass(Product{});
      case Operation::kSampled:
        return pass(Sampled{});
      case Operation::kRatio:
        return pass(Ratio{});
      default:
        throw std::invalid_argument("a pass over a tensor has the exponent 0, 1 or -1");
    }
  });
}

template <class T>
double tensor_loss(EntryLoss loss, const Csr<T>& Z, const T* weights, const Rows<const T>& F,
                   const FactorList<T>& others, int threads) {
  if (others.size() == 1) {
    return sparse_loss(loss, Z, weights, F, others.front(), threads);
  }
  return visit_products(Z, others, [&](const auto& gather) {
    return gathered_loss<T>(loss, Z, weights, F, find_models<T>(gather), threads);
  });
}

#define SSNMF_INSTANTIATE(T)                                                               \
  template void tensor_pass<T>(Operation, const Csr<T>&, const Rows<const T>&,             \
                               const FactorList<T>&, const Target<T>&, int);               \
  template double tensor_loss<T>(EntryLoss, const Csr<T>&, const T*, const Rows<const T>&, \
                                 const FactorList<T>&, int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
