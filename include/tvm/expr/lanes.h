/*!
 * \file tvm/expr/lanes.h
 * \brief Numbers of lanes as expressions: those of scalable vectors are multiples of vscale().
 */
#ifndef TVM_EXPR_LANES_H_
#define TVM_EXPR_LANES_H_

#include <tvm/expr/expr.h>

#include <optional>

namespace tvm {
namespace tir {

/*! \brief What the lanes of a type count: a constant, or `vscale() * n` of a scalable vector. */
PrimExpr LaneCount(int lanes, DataType dtype = DataType::Int(32));

/*! \brief The lanes of a type that an expression counts; nothing if it is no such count. */
std::optional<int> LanesOfCount(const PrimExpr& count);

/*! \brief What a ramp has in its last lane. */
PrimExpr LastOfRamp(const RampNode* ramp);

/*! \brief Lanes of what is computed from both: a scalar joins any vector. */
inline int CommonLanes(int a, int b) { return a == 1 ? b : a; }

}  // namespace tir
}  // namespace tvm

#endif  // TVM_EXPR_LANES_H_
