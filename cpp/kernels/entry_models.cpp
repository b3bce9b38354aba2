#include "entry_models.hpp"

namespace ssnmf {
namespace {

template <int R, class T>
SSNMF_FLATTEN void models_of(const ColumnRows<T>& gather, const T* f, Size first, Size count,
                             T* models) {
  const ColumnRows<T> local = gather;  // of which the compiler knows that nothing changes it
  entry_models<R, kColumnBlock>(local, f, first, count, models);
}

}  // namespace

template <class T>
FindModels<T> find_models(Size rank) {
  FindModels<T> found = nullptr;
  visit_rank<T>(rank, [&found](auto fixed) { found = &models_of<decltype(fixed)::value, T>; });
  return found;
}

template FindModels<float> find_models<float>(Size);
template FindModels<double> find_models<double>(Size);

}  // namespace ssnmf
