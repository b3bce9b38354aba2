// Passes over a matrix Z (p x q) and the factors F (p x R) and G (q x R).
//
// For every entry z_ij an operation gives a coefficient c_ij, and row i of the result is
// sum_j c_ij g_j:
//   kProduct   c = z                  Z G                         (Frobenius P, Kullback-Leibler N)
//   kRatio     c = z / (f_i . g_j)    (Z ./ (F G^T)) G            (Kullback-Leibler P)
//   kSampled   c = z * (f_i . g_j)    (Z .* (F G^T)) G            (Frobenius N on a pattern)
//   kPower     c = z * (f_i . g_j)^e  (Z .* (F G^T)^e) G          (both of a beta-divergence)
//   kResidual  c = z - f_i . g_j      (Z - F G^T) G               (dense Z with missing entries)
// Cost: 2R flops (kProduct) or 4R flops for an entry, and for kPower a logarithm and an exponential
// more, unless e is -1 or -2; Z is read once and nothing of its size is
// written.  The result must not overlap F or G.
#pragma once

#include "rank.hpp"

namespace ssnmf {

struct Operation {
  enum Kind { kProduct, kRatio, kSampled, kPower, kResidual };
  Kind kind;
  double exponent;
  double least;  // a model below counts as this in a ratio or a power
  Operation(Kind which, double e = 0.0, double model = 0.0)  // a kind is an operation
      : kind(which), exponent(e), least(model) {}
};

// F.data may be null for kProduct.  Only the components in `asked` of each row of the result have
// to be there, others may be zero; F is 0 in them.  Rows of the result with few that are asked for
// take as much less time.
template <class T>
void sparse_pass(Operation operation, const Csr<T>& Z, const Rows<const T>& F,
                 const Factor<const T>& G, const Target<T>& to, int threads,
                 const Support& asked = {});

// The pass for the factor of the columns, without a transposed copy of Z, whose rows are sorted:
//   out_j += scale * sum_i c_ij g_i,   F and out: q x R,   G: p x R.
// bounds: the first column of each range that a thread works on, and the number of columns; the
// same bits for any ranges.
template <class T>
void scatter_pass(Operation operation, const Csr<T>& Z, const Rows<const T>& F,
                  const Factor<const T>& G, const Span<const Size>& bounds, T scale,
                  const Rows<T>& out, int threads);

// The pass over a matrix that is cut into panels of its columns: row k * F.rows + j of Z has the
// entries of row j in panel k.  The rows of G that a panel names stay in the cache, where a row as
// a whole would fetch each from memory. bounds: the first row of each range that a thread works on,
// and the number of rows; the same bits for any ranges.
template <class T>
void panel_pass(Operation operation, const Csr<T>& Z, const Rows<const T>& F,
                const Factor<const T>& G, const Span<const Size>& bounds, const Target<T>& to,
                int threads, const Support& asked = {});

// NaN entries are missing and count nothing; with `mask` the other entries are read as ones.  The
// only pass for kResidual.
template <class T>
void dense_pass(Operation operation, const Dense<T>& Z, bool mask, const Rows<const T>& F,
                const Rows<const T>& G, const Target<T>& to, int threads);

// What an entry x of the data with the model z and the weight w adds to a sum:
//   kKullbackLeibler   x log(x/z) - x, with 0 log 0 = 0
//   kUnreached         the same where z = 0; updates keep it so, and this part is constant
//   kFrobenius         w (x - z)^2
//   kBeta              w d(x, z), the beta-divergence, less z^beta / beta where `rest` says so
// `least` (of kBeta and kKullbackLeibler): data up to it count as 0, and a smaller model as it; but
// in z^beta / beta the model counts as it is.
struct EntryLoss {
  enum Kind { kKullbackLeibler, kUnreached, kFrobenius, kBeta };
  Kind kind;
  double beta;
  bool rest;
  double least;
  EntryLoss(Kind which, double b = 0.0, bool less = false, double model = 0.0)
      : kind(which), beta(b), rest(less), least(model) {}
};

// Over the stored entries; weights == nullptr stands for ones.
template <class T>
double sparse_loss(EntryLoss loss, const Csr<T>& Z, const T* weights, const Rows<const T>& F,
                   const Factor<const T>& G, int threads);

// Over the entries that are not NaN.
template <class T>
double dense_loss(EntryLoss loss, const Dense<T>& Z, const Rows<const T>& F, const Rows<const T>& G,
                  int threads);

}  // namespace ssnmf
