/*!
 * \file src/tir/analysis/is_sum.cc
 * \brief Which reductions are sums.
 */
#include <tvm/expr/op.h>
#include <tvm/tir/analysis.h>

namespace tvm {
namespace tir {

bool IsSum(const CommReducer& combiner) {
  if (combiner->result.size() != 1) return false;
  const auto* add = combiner->result[0].as<AddNode>();
  const auto* real = combiner->identity_element[0].as<FloatImmNode>();
  const bool from_zero =
      real != nullptr ? real->value == 0 : is_zero(combiner->identity_element[0]);
  return add != nullptr && from_zero && add->a.same_as(combiner->lhs[0]) &&
         add->b.same_as(combiner->rhs[0]);
}

}  // namespace tir
}  // namespace tvm
