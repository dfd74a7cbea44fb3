/*!
 * \file register_tile.cc
 * \brief The loops of a store that code generation writes out.
 */
#include "register_tile.h"

#include <tvm/auto_scheduler/loop_features.h>
#include <tvm/expr/op.h>
#include <tvm/tir/stmt_functor.h>

namespace tvm {
namespace auto_scheduler {

using namespace tir;

PrimExpr CeilDivReal(const PrimExpr& extent, int64_t n) {
  if (n == 1) return ToReal(extent);
  return ToReal(floordiv(extent + (n - 1), n));
}

bool Mentions(const AccessInfo& access, const Var& var) {
  bool found = false;
  for (const Array<PrimExpr>& tuple : access.indices) {
    for (const PrimExpr& index : tuple) {
      PostOrderVisit(index, [&](const ObjectRef& node) { found = found || node.same_as(var); });
    }
  }
  return found;
}

RegisterTile::RegisterTile(const StoreInfo& store)
    : vector_length_(IntImm(DataType::Int(32), 1)), unrolled_(RealConst(1)), rows_(RealConst(1)) {
  inside_.assign(store.loops.size() + 1, const_true());
  PrimExpr open = const_true();
  for (size_t i = store.loops.size(); i-- > 0;) {
    const LoopInfo& loop = *store.loops[i];
    bool written_out = loop.kind == ForKind::kVectorized || loop.kind == ForKind::kUnrolled;
    if (!written_out) open = BothOf(open, Opposite(IsMoreThanOne(loop.extent)));
    inside_[i] = open;
    if (loop.kind == ForKind::kVectorized && !vector_var_.defined()) {
      vector_length_ = loop.extent;
      vector_var_ = loop.var;
    } else if (written_out) {
      PrimExpr trips = Choose(open, ToReal(loop.extent), RealConst(1));
      unrolled_ = unrolled_ * trips;
      if (Mentions(store.accesses[0], loop.var)) rows_ = rows_ * trips;
    }
  }
}

PrimExpr RegisterTile::At(const std::vector<PrimExpr>& per_level) const {
  PrimExpr out = per_level.back();
  for (size_t i = per_level.size() - 1; i-- > 0;) out = Choose(inside_[i], per_level[i], out);
  return out;
}

}  // namespace auto_scheduler
}  // namespace tvm
