// Coordinate descent on many rows at once that have few components, each row its own.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <vector>

#include "../core/compiler.hpp"
#include "../core/numbers.hpp"
#include "coordinate_descent.hpp"
#include "descent_tile.hpp"
#include "few_components.hpp"

namespace ssnmf {

// A row in each lane, with the part of its matrix K_i that belongs to its components: width^2
// multiplications for a product instead of R^2.
template <class T>
class NarrowTile final : public Tile<T> {
  using Base = Tile<T>;
  using Base::curvature_;
  using Base::f_;
  using Base::inverse_;
  using Base::p_;

 public:
  using Base::kLanes;
  using typename Base::Lanes;

  // Rows have no more components than the width, and are 0 elsewhere.
  NarrowTile(const Grams<T>& grams, int width)
      : Base(static_cast<std::size_t>(width), static_cast<std::size_t>(width)),
        grams_(grams),
        width_(static_cast<std::size_t>(width)),
        K_(width_ * width_) {}

 private:
  void load(const Rows<const T>& P, const Rows<T>& F, const Support& allowed,
            const Span<const Size>& rows) override {
    for (TileColumns<T>* columns : {&f_, &p_, &K_}) {
      std::fill(columns->begin(), columns->end(), Lanes::Zero());
    }
    for (Size i = 0; i < rows.size; ++i) {
      const Size row = rows.data[i];
      Component* places = places_[i];
      counts_[i] = components_of(allowed.row(row), F.columns, kMostFew, places);
      for (int a = 0; a < counts_[i]; ++a) {
        const std::size_t k = static_cast<std::size_t>(a);
        f_[k](i) = F.row(row)[places[a]];
        p_[k](i) = P.row(row)[places[a]];
        for (Size t = 0; t < grams_.count; ++t) {
          const T* gram = grams_.row(t, places[a]);
          const T scale = grams_.scale(t, row);
          for (int b = 0; b < counts_[i]; ++b) {
            K_[k * width_ + static_cast<std::size_t>(b)](i) += scale * gram[places[b]];
          }
        }
      }
    }
    for (std::size_t k = 0; k < width_; ++k) {
      curvature_[k] = K_[k * width_ + k];
      inverse_[k] = (curvature_[k] > tiny<T>()).select(T(1) / curvature_[k].max(tiny<T>()), T(0));
    }
  }

  void store(const Rows<T>& F, const Span<const Size>& rows) const override {
    for (Size i = 0; i < rows.size; ++i) {
      for (int a = 0; a < counts_[i]; ++a) {
        F.row(rows.data[i])[places_[i][a]] = f_[static_cast<std::size_t>(a)](i);
      }
    }
  }

  void multiply(const TileColumns<T>& x, TileColumns<T>& to) const override {
    for (std::size_t k = 0; k < width_; ++k) {
      to[k] = product(x, k);
    }
  }

  void sweep(bool measured) override {
    for (std::size_t k = 0; k < width_; ++k) {
      const Lanes gradient = product(f_, k) - p_[k];
      measured ? this->template move<true>(k, gradient) : this->template move<false>(k, gradient);
    }
  }

  SSNMF_INLINE Lanes product(const TileColumns<T>& x, std::size_t k) const {
    Lanes sum = Lanes::Zero();
    for (std::size_t l = 0; l < width_; ++l) {
      sum += K_[k * width_ + l] * x[l];
    }
    return sum;
  }

  Grams<T> grams_;
  std::size_t width_;
  TileColumns<T> K_;
  Component places_[kLanes][kMostFew];
  int counts_[kLanes];
};

}  // namespace ssnmf
