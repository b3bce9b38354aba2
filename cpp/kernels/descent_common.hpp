// Coordinate descent on many rows at once, where Gram matrices are common to all.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <vector>

#include "../core/compiler.hpp"
#include "../core/numbers.hpp"
#include "../core/parallel.hpp"
#include "coordinate_descent.hpp"
#include "descent_tile.hpp"
#include "square.hpp"

namespace ssnmf {

// Rows without weights of their own.
template <class T>
class CommonTile final : public Tile<T> {
  using Base = Tile<T>;
  using Base::curvature_;
  using Base::f_;
  using Base::inverse_;
  using Base::p_;

 public:
  using Base::kLanes;
  using typename Base::Lanes;

  explicit CommonTile(const Grams<T>& grams) : CommonTile(grams, occupied(grams)) {}

 private:
  static constexpr int kSide = kRegisterLanes<T>;

  CommonTile(const Grams<T>& grams, Size occupied)
      : Base(static_cast<std::size_t>(grams.rank), static_cast<std::size_t>(occupied)),
        grams_(grams),
        occupied_(occupied),
        whole_(static_cast<std::size_t>(grams.rank)),
        scales_(static_cast<std::size_t>(grams.count), Lanes::Ones()) {
    if (grams.scales == nullptr) {
      invert();
    }
  }

  void load(const Rows<const T>& P, const Rows<T>& F, const Support& allowed,
            const Span<const Size>& rows) override {
    turn(P, p_, rows);
    turn({F.data, F.rows, F.columns}, f_, rows);
    if (grams_.scales != nullptr) {
      scale(rows);
    }
    if (allowed.data != nullptr) {
      let_move(allowed, rows);
    }
  }

  void multiply(const TileColumns<T>& x, TileColumns<T>& to) const override {
    for (Size k = 0; k < occupied_; k += 2) {
      products(x, k, to[static_cast<std::size_t>(k)], to[static_cast<std::size_t>(k + 1)]);
    }
  }

  void sweep(bool measured) override {
    for (Size k = 0; k < occupied_; k += 2) {
      measured ? step<true>(k) : step<false>(k);
    }
  }

  // The columns before those that pad the rank, which no sweep moves, in pairs.
  static Size occupied(const Grams<T>& grams) {
    for (Size k = grams.rank; k > 0; --k) {
      for (Size t = 0; t < grams.count; ++t) {
        const T* row = grams.row(t, k - 1);
        if (std::any_of(row, row + grams.rank, [](T value) { return value != T(0); })) {
          return (k + 1) / 2 * 2;
        }
      }
    }
    return 0;
  }

  // A column of the factor in each element; rows that are wanting are zeros.
  SSNMF_FLATTEN void turn(const Rows<const T>& from, TileColumns<T>& to,
                          const Span<const Size>& rows) const {
    const Size count = rows.size;
    const Size turned = count == kLanes ? grams_.rank / kSide * kSide : 0;
    for (Size i = 0; turned > 0 && i < count; i += kSide) {
      for (Size k = 0; k < turned; k += kSide) {
        turn_square<T>([&](int row) { return from.row(rows.data[i + row]) + k; },
                       [&](int c) { return to[static_cast<std::size_t>(k + c)].data() + i; });
      }
    }
    for (Size k = turned; k < grams_.rank; ++k) {
      Lanes& column = to[static_cast<std::size_t>(k)];
      column.setZero();
      for (Size i = 0; i < count; ++i) {
        column(i) = from.row(rows.data[i])[k];
      }
    }
  }

  SSNMF_FLATTEN void store(const Rows<T>& F, const Span<const Size>& rows) const override {
    const Size count = rows.size;
    const Size turned = count == kLanes ? grams_.rank / kSide * kSide : 0;
    for (Size i = 0; turned > 0 && i < count; i += kSide) {
      for (Size k = 0; k < turned; k += kSide) {
        turn_square<T>([&](int c) { return f_[static_cast<std::size_t>(k + c)].data() + i; },
                       [&](int row) { return F.row(rows.data[i + row]) + k; });
      }
    }
    for (Size k = turned; k < grams_.rank; ++k) {
      for (Size i = 0; i < count; ++i) {
        F.row(rows.data[i])[k] = f_[static_cast<std::size_t>(k)](i);
      }
    }
  }

  void scale(const Span<const Size>& rows) {
    for (Size t = 0; t < grams_.count; ++t) {
      for (Size i = 0; i < rows.size; ++i) {
        scales_[static_cast<std::size_t>(t)](i) = grams_.scale(t, rows.data[i]);
      }
    }
    invert();
  }

  // K_kk, and 1 / K_kk, or 0 where there is no curvature.
  void invert() {
    for (Size k = 0; k < grams_.rank; ++k) {
      Lanes& curvature = curvature_[static_cast<std::size_t>(k)];
      curvature.setZero();
      for (Size t = 0; t < grams_.count; ++t) {
        curvature += scales_[static_cast<std::size_t>(t)] * grams_.row(t, k)[k];
      }
      whole_[static_cast<std::size_t>(k)] =
          (curvature > tiny<T>()).select(T(1) / curvature.max(tiny<T>()), T(0));
    }
    inverse_ = whole_;
  }

  void let_move(const Support& allowed, const Span<const Size>& rows) {
    for (std::size_t k = 0; k < whole_.size(); ++k) {
      inverse_[k].setZero();
      for (Size i = 0; i < rows.size; ++i) {
        if (has(allowed.row(rows.data[i]), static_cast<Size>(k))) {
          inverse_[k](i) = whole_[k](i);
        }
      }
    }
  }

  // Two columns of x K at once: more chains of sums that wait for nothing.
  SSNMF_INLINE void products(const TileColumns<T>& x, Size k, Lanes& first, Lanes& second) const {
    first.setZero();
    second.setZero();
    for (Size t = 0; t < grams_.count; ++t) {
      const T* row = grams_.row(t, k);
      const T* next = grams_.row(t, k + 1);
      Lanes sum = Lanes::Zero();
      Lanes next_sum = Lanes::Zero();
      for (Size l = 0; l < occupied_; ++l) {
        const Lanes& column = x[static_cast<std::size_t>(l)];
        sum += row[l] * column;
        next_sum += next[l] * column;
      }
      const Lanes& scale = scales_[static_cast<std::size_t>(t)];
      first += scale * sum;
      second += scale * next_sum;
    }
  }

  template <bool Measured>
  SSNMF_FLATTEN void step(Size k) {
    Lanes first;
    Lanes second;
    products(f_, k, first, second);
    first -= p_[static_cast<std::size_t>(k)];
    second -= p_[static_cast<std::size_t>(k + 1)];
    Lanes between = Lanes::Zero();
    for (Size t = 0; t < grams_.count; ++t) {
      between += scales_[static_cast<std::size_t>(t)] * grams_.row(t, k + 1)[k];
    }
    const Lanes before = f_[static_cast<std::size_t>(k)];
    this->template move<Measured>(static_cast<std::size_t>(k), first);
    second += between * (f_[static_cast<std::size_t>(k)] - before);
    this->template move<Measured>(static_cast<std::size_t>(k + 1), second);
  }

  Grams<T> grams_;
  Size occupied_;
  TileColumns<T> whole_;  // 1 / K_kk, or 0 where there is no curvature
  TileColumns<T> scales_;
};

}  // namespace ssnmf
