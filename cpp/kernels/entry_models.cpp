#include "entry_models.hpp"

namespace ssnmf {

template FindModels<float> find_models<float>(const ColumnRows<float>&);
template FindModels<double> find_models<double>(const ColumnRows<double>&);

}  // namespace ssnmf
