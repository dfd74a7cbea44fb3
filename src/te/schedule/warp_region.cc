/*!
 * \file warp_region.cc
 * \brief Lanes and warps of a launch, and the boxes that a warp touches.
 */
#include "warp_region.h"

#include <tvm/arith/iter_affine_map.h>
#include <tvm/expr/op.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/launch.h>

#include <algorithm>
#include <sstream>

namespace tvm {
namespace te {

namespace {

/*! \brief Which of threadIdx.x, y and z the attribute binds, or -1. */
int ThreadDim(const tir::AttrStmtNode* op) {
  if (op->attr_key != tir::attr::thread_extent) return -1;
  tir::ThreadTag tag = tir::ParseThreadTag(op->node.as<IterVarNode>()->thread_tag);
  return tag.kind == tir::ThreadKind::kThread ? tag.dim : -1;
}

}  // namespace

std::optional<StoreNest> StoreNestOf(const Stmt& stmt) {
  StoreNest nest;
  const Stmt* at = &stmt;
  while (true) {
    if (const auto* loop = at->as<tir::ForNode>()) {
      nest.loops.push_back(loop);
      at = &loop->body;
      continue;
    }
    const auto* attr = at->as<tir::AttrStmtNode>();
    if (attr == nullptr ||
        std::string(attr->attr_key).rfind(tir::attr::pragma_scope_prefix, 0) != 0) {
      break;
    }
    nest.pragmas.push_back(attr);
    at = &attr->body;
  }
  nest.store = at->as<tir::BufferStoreNode>();
  if (nest.store == nullptr) return std::nullopt;
  return nest;
}

void WarpContext::Launch(const tir::AttrStmtNode* op) {
  launch_ = op;
  no_warps_.clear();
  int64_t extents[3] = {1, 1, 1};
  tir::PostOrderVisit(GetRef<Stmt>(op), [&](const ObjectRef& node) {
    const auto* attr = node.as<tir::AttrStmtNode>();
    int dim = attr == nullptr ? -1 : ThreadDim(attr);
    if (dim < 0) return;
    const int64_t* extent = tir::as_const_int(attr->value);
    if (extent == nullptr) {
      no_warps_ = "the number of threads must be constant";
    } else {
      extents[dim] = std::max(extents[dim], *extent);
    }
  });
  int64_t missing = kLanes;
  bool whole = true;
  for (int dim = 0; dim < 3; ++dim) {
    Digit& digit = digits_[dim];
    std::string name(1, "xyz"[dim]);
    digit.lane = Var("lane." + name);
    digit.warp = Var("warp." + name);
    bool filled = extents[dim] % missing == 0;
    bool divides = missing % extents[dim] == 0;
    digit.lanes = filled ? missing : divides ? extents[dim] : 1;
    digit.warps = extents[dim] / digit.lanes;
    missing /= digit.lanes;
    // Lanes would not be neighbours any more.
    if (!filled && !divides) whole = false;
    analyzer.Bind(digit.lane, Range::FromMinExtent(0, static_cast<int>(digit.lanes)));
    analyzer.Bind(digit.warp, Range::FromMinExtent(0, static_cast<int>(digit.warps)));
  }
  if ((missing != 1 || !whole) && no_warps_.empty()) {
    no_warps_ = "blocks of " + std::to_string(extents[0]) + " x " + std::to_string(extents[1]) +
                " x " + std::to_string(extents[2]) + " threads do not consist of whole warps of " +
                std::to_string(kLanes) + " neighbours";
  }
}

void WarpContext::Enter(const tir::AttrStmtNode* op) {
  if (launch_ == nullptr) Launch(op);
  const auto* thread = op->node.as<IterVarNode>();
  analyzer.Bind(thread->var, Range::FromMinExtent(0, op->value), true);
  int dim = ThreadDim(op);
  if (dim < 0) return;
  const Digit& digit = digits_[dim];
  PrimExpr warps = digit.warps == 1 ? PrimExpr(0) : digit.warp * static_cast<int>(digit.lanes);
  of_lanes_[thread->var.get()] = warps + digit.lane;
  // The outermost binding is in scope wherever an inner one is.
  of_threads_.emplace(digit.warp.get(), floordiv(thread->var, static_cast<int>(digit.lanes)));
}

void WarpContext::Leave(const tir::AttrStmtNode* op) {
  if (launch_ != op) return;
  launch_ = nullptr;
  of_threads_.clear();
}

bool WarpContext::DependsOnLane(const PrimExpr& expr) const {
  PrimExpr of_lanes = ToLanes(expr);
  return tir::UsesVar(of_lanes, [&](const VarNode* var) {
    for (const Digit& digit : digits_) {
      if (digit.lane.get() == var && digit.lanes != 1) return true;
    }
    return false;
  });
}

WarpRegion WarpContext::Detect(const Array<PrimExpr>& indices, Map<Var, Range> iters, bool once,
                               const std::string& where) {
  TVM_CHECK(launch_ != nullptr, ScheduleError)
      << where << "it runs in no thread; bind the loops around it to threads";
  TVM_CHECK(no_warps_.empty(), ScheduleError) << where << no_warps_;
  Array<PrimExpr> of_lanes;
  for (const PrimExpr& index : indices) of_lanes.push_back(analyzer.Simplify(ToLanes(index)));
  for (const Digit& digit : digits_) {
    auto uses = [&](const PrimExpr& index) {
      return tir::UsesVar(index, [&](const VarNode* var) { return var == digit.lane.get(); });
    };
    // Threads that do the same as others need not be told apart.
    if (!std::any_of(of_lanes.begin(), of_lanes.end(), uses)) continue;
    iters.Set(digit.lane, Range::FromMinExtent(0, static_cast<int>(digit.lanes)));
  }
  auto describe = [&] {
    std::ostringstream text;
    text << where << "the threads of a warp together must reach a box of elements"
         << (once ? ", each once, " : " ") << "but they reach " << of_lanes;
    return text.str();
  };
  arith::IterMapResult map = arith::DetectIterMap(
      of_lanes, iters, once ? arith::IterMapLevel::kBijective : arith::IterMapLevel::kSurjective);
  TVM_CHECK(map->errors.empty(), ScheduleError) << describe() << ": " << map->errors[0];
  TVM_CHECK(map->IsExact(), ScheduleError) << describe() << ", which ends within a tile";
  WarpRegion region;
  for (const arith::IterSumExpr& index : map->indices) {
    int64_t extent = 1;
    if (!index->args.empty()) {
      TVM_CHECK(index->args.size() == 1 && tir::is_one(index->args[0]->scale), ScheduleError)
          << describe() << ", which leaves gaps";
      extent = *tir::as_const_int(index->args[0]->extent);
    }
    region.min.push_back(analyzer.Simplify(index->base));
    region.extent.push_back(extent);
  }
  return region;
}

WarpRegion WarpContext::RegionOf(const Array<PrimExpr>& indices,
                                 const std::vector<const tir::ForNode*>& loops, bool once,
                                 const std::string& where) {
  Map<Var, Range> iters;
  for (const tir::ForNode* loop : loops) {
    Range range = Range::FromMinExtent(loop->min, loop->extent);
    TVM_CHECK(tir::as_const_int(loop->min) && tir::as_const_int(loop->extent), ScheduleError)
        << where << "loop " << loop->loop_var->name_hint << " has range " << range
        << ", which must be constant";
    analyzer.Bind(loop->loop_var, range, true);
    iters.Set(loop->loop_var, range);
  }
  return Detect(indices, iters, once, where);
}

WarpRegion WarpContext::RegionOf(const Array<Range>& bounds, const std::string& where) {
  Map<Var, Range> iters;
  Array<PrimExpr> indices;
  for (const Range& bound : bounds) {
    TVM_CHECK(tir::as_const_int(bound->extent), ScheduleError)
        << where << "a thread has " << bound << ", whose extent must be constant";
    Var element("element");
    Range range = Range::FromMinExtent(0, bound->extent);
    analyzer.Bind(element, range);
    iters.Set(element, range);
    indices.push_back(bound->min + element);
  }
  return Detect(indices, iters, false, where);
}

}  // namespace te
}  // namespace tvm
