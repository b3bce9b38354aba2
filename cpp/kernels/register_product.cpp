#include "register_product.hpp"

#include <Eigen/Core>
#include <type_traits>
#include <utility>

namespace ssnmf {
namespace {

// The widest panel in registers, of which levels have 16 or 32, and how many rows of a meet a panel
// at once: for the sums, a row of the panel and a number of a.  Eight sums or more, since each
// waits four steps for the one before, and two are done in a step.
#if defined(__AVX512F__) || defined(__aarch64__) || defined(_M_ARM64)
constexpr int kWidestPanel = 4;
constexpr int kRowsAtOnce[] = {8, 12, 8, 6};
#elif defined(__FMA__)
constexpr int kWidestPanel = 3;
constexpr int kRowsAtOnce[] = {8, 6, 4};
#else
constexpr int kWidestPanel = 2;
constexpr int kRowsAtOnce[] = {8, 4};
#endif

// body(I) for every number, known to the compiler: what it numbers stays in registers, where it
// would leave an array that a loop goes through in memory before and after.
template <int... I, class Body>
SSNMF_INLINE void for_numbers(std::integer_sequence<int, I...>, const Body& body) {
  (body(std::integral_constant<int, I>{}), ...);
}

template <int N, class Body>
SSNMF_INLINE void for_numbers(const Body& body) {
  for_numbers(std::make_integer_sequence<int, N>{}, body);
}

// out += a b for `Height` rows of a and a panel of `Width` registers; or, `fresh`, out = a b.
template <class T, int Width, int Height, Order order, bool fresh>
SSNMF_FLATTEN SSNMF_APART void panel_rows(const T* a, Size a_stride, const T* panel, Size length,
                                          T* out, Size stride) {
  using namespace simd;
  constexpr int lanes = kRegisterLanes<T>;
  Packet<T> sums[Height * Width];
  for_numbers<Height * Width>([&](auto s) {
    const T* place = out + s / Width * stride + s % Width * lanes;
    sums[s] = fresh ? pset1<Packet<T>>(T(0)) : ploadu<Packet<T>>(place);
  });
  for (Size j = 0; j < length; ++j) {
    Packet<T> row[Width];
    for_numbers<Width>([&](auto k) { row[k] = ploadu<Packet<T>>(panel + k * lanes); });
    for_numbers<Height>([&](auto i) {
      const Packet<T> value = pset1<Packet<T>>(order == Order::kRows ? a[i * a_stride] : a[i]);
      for_numbers<Width>([&](auto k) {
        constexpr int s = decltype(i)::value * Width + decltype(k)::value;
        sums[s] = pmadd(value, row[k], sums[s]);
      });
    });
    a += order == Order::kRows ? 1 : a_stride;
    panel += Width * lanes;
  }
  for_numbers<Height * Width>(
      [&](auto s) { pstoreu(out + s / Width * stride + s % Width * lanes, sums[s]); });
}

// The same for any number of rows; those that are left over come one by one.
template <class T, int Width, Order order, bool fresh>
void panel_columns(const T* a, Size a_stride, const T* panel, Size length, T* out, Size stride,
                   Size rows) {
  constexpr int height = kRowsAtOnce[Width - 1];
  const Size step = order == Order::kRows ? a_stride : 1;
  Size i = 0;
  for (; i + height <= rows; i += height) {
    panel_rows<T, Width, height, order, fresh>(a + i * step, a_stride, panel, length,
                                               out + i * stride, stride);
  }
  for (; i < rows; ++i) {
    panel_rows<T, Width, 1, order, fresh>(a + i * step, a_stride, panel, length, out + i * stride,
                                          stride);
  }
}

template <int Width, Order order, bool fresh, class T>
void of_width(Size registers, const T* a, Size a_stride, const T* panel, Size length, T* out,
              Size stride, Size rows) {
  if (registers == Width) {
    panel_columns<T, Width, order, fresh>(a, a_stride, panel, length, out, stride, rows);
  } else if constexpr (Width > 1) {
    of_width<Width - 1, order, fresh>(registers, a, a_stride, panel, length, out, stride, rows);
  }
}

}  // namespace

template <class T>
void Panels<T>::resize(Size rows, Size columns) {
  rows_ = rows;
  registers_ = whole_registers(columns) / kLanes;
  data_.resize(static_cast<std::size_t>(rows_ * width()));
}

template <class T>
template <class Body>
void Panels<T>::for_each_panel(const Body& body) const {
  const Size count = (registers_ + kWidestPanel - 1) / kWidestPanel;
  for (Size panel = 0; panel < count; ++panel) {
    const Size begin = panel * registers_ / count;
    const Size end = (panel + 1) * registers_ / count;
    body(begin * kLanes, end - begin, begin * kLanes * rows_);
  }
}

template <class T>
void Panels<T>::copy(const T* from, Size stride, Size rows, Size columns) {
  using namespace simd;
  resize(rows, columns);
  for_each_panel([&](Size first, Size registers, Size begin) {
    T* to = data_.data() + begin;
    // All registers but the last are whole, and that one too where rows are long enough.
    const Size whole = std::min(registers, (stride - first) / kLanes);
    for (Size j = 0; j < rows; ++j) {
      const T* row = from + j * stride + first;
      for (Size k = 0; k < whole; ++k) {
        pstoreu(to + k * kLanes, ploadu<Packet<T>>(row + k * kLanes));
      }
      for (Size k = whole * kLanes; k < registers * kLanes; ++k) {
        to[k] = first + k < columns ? row[k] : T(0);
      }
      to += registers * kLanes;
    }
  });
}

template <class T>
SSNMF_FLATTEN void Panels<T>::copy_transposed(const T* from, Size stride, Size rows, Size columns) {
  resize(columns, rows);
  for_each_panel([&](Size first, Size registers, Size begin) {
    const Size width = registers * kLanes;
    for (Size i = 0; i < width; i += kLanes) {
      const Size row = first + i;
      T* to = data_.data() + begin + i;
      const Size turned = row + kLanes <= rows ? columns / kLanes * kLanes : 0;
      for (Size k = 0; k < turned; k += kLanes) {
        turn_square<T>([&](int c) { return from + (row + c) * stride + k; },
                       [&](int c) { return to + (k + c) * width; });
      }
      for (Size k = turned; k < columns; ++k) {
        for (Size c = 0; c < kLanes; ++c) {
          to[k * width + c] = row + c < rows ? from[(row + c) * stride + k] : T(0);
        }
      }
    }
  });
}

template <class T>
void Panels<T>::product(const T* a, Size a_stride, Size p, T* out, Size stride) const {
  for_each_panel([&](Size first, Size registers, Size begin) {
    of_width<kWidestPanel, Order::kRows, true>(registers, a, a_stride, data_.data() + begin, rows_,
                                               out + first, stride, p);
  });
}

template <class T>
void Panels<T>::add_product(Order order, const T* a, Size a_stride, Size p, T* out, Size stride,
                            bool upper) const {
  for_each_panel([&](Size first, Size registers, Size begin) {
    const auto add = order == Order::kRows ? of_width<kWidestPanel, Order::kRows, false, T>
                                           : of_width<kWidestPanel, Order::kColumns, false, T>;
    const Size height = kRowsAtOnce[registers - 1];
    const Size end = (first + registers * kLanes + height - 1) / height * height;
    add(registers, a, a_stride, data_.data() + begin, rows_, out + first, stride,
        upper ? std::min(p, end) : p);
  });
}

template class Panels<float>;
template class Panels<double>;

}  // namespace ssnmf
