/*!
 * \file constraints.cc
 * \brief What a schedule for processors must respect, as inequalities in its knobs.
 */
#include <tvm/auto_scheduler/loop_features.h>
#include <tvm/expr/op.h>

#include <algorithm>

#include "cpu_space.h"
#include "register_tile.h"

namespace tvm {
namespace auto_scheduler {

using namespace tir;

namespace {

// Vector operations written out in one loop body. Each costs about 0.3 ms of compile time, and a
// longer body leaves the cache of decoded instructions.
constexpr int kMaxBodyVectors = 128;
// A vector loop longer than this many registers only adds to the body.
constexpr int kMaxVectorsPerLoop = 8;

/*! \brief Whether steps of the reduction are written out one after the other. */
bool UnrollsReduction(const StoreInfo& store) {
  return std::any_of(store.loops.begin(), store.loops.end(), [&](const LoopRef& loop) {
    return loop->kind == ForKind::kUnrolled && !Mentions(store.accesses[0], loop->var);
  });
}

bool IsUpdate(const StoreInfo& store) { return store.accesses[0].type == AccessType::kReadWrite; }

}  // namespace

std::vector<Constraint> ProcessorConstraints(const LoopProgram& program,
                                             const MachineFacts& machine,
                                             const arith::VarContext& context) {
  std::vector<Constraint> out;
  auto add = [&out](std::string name, PrimExpr lhs, PrimExpr rhs) {
    out.push_back({std::move(name), std::move(lhs), std::move(rhs)});
  };
  std::vector<const LoopInfo*> seen;
  for (const StoreInfo& store : program.stores) {
    const std::string& name = program.buffers[store.buffer]->name;
    int lanes = std::max(1, machine.vector_bytes / program.element_bytes(store.buffer));
    RegisterTile tile(store);
    PrimExpr vectors = CeilDivReal(tile.vector_length(), lanes);
    PrimExpr body = tile.unrolled() * vectors;
    if (tile.vector_var().defined()) {
      add(name + ".vector", ToReal(tile.vector_length()), RealConst(kMaxVectorsPerLoop * lanes));
    }
    add(name + ".body", body, RealConst(kMaxBodyVectors));
    if (IsUpdate(store)) {
      // Accumulators, one row of the streamed operand, and one broadcast value. What does not fit
      // is written to the stack and read back in each step of the reduction.
      add(name + ".registers", tile.rows() * vectors + vectors + RealConst(1),
          RealConst(machine.num_vector_registers));
      // Of steps that are written out, each reads and writes what it adds to, unless the memory for
      // it is just the register tile.
      for (const RealizeInfo& realize : program.realizes) {
        if (realize.buffer != store.buffer || !UnrollsReduction(store)) continue;
        PrimExpr elements = RealConst(1);
        for (const PrimExpr& extent : realize.extents) elements = elements * ToReal(extent);
        add(name + ".resident", elements, tile.rows() * ToReal(tile.vector_length()));
      }
    }
    PrimExpr chunks = RealConst(1);
    const LoopInfo* outermost = nullptr;
    for (const LoopRef& loop : store.loops) {
      if (loop->kind != ForKind::kParallel) continue;
      if (!outermost) outermost = loop.get();
      chunks = chunks * ToReal(loop->extent);
    }
    if (!outermost || std::find(seen.begin(), seen.end(), outermost) != seen.end()) continue;
    seen.push_back(outermost);
    if (machine.num_cores > 1) {
      // Only where the loops can be cut into that many chunks at all.
      KnobPoint coarsest = CentralPoint(context);
      for (const arith::SplitGroup& group : context->split_groups) {
        coarsest[group->quotient->name_hint] = coarsest[group->extent->name_hint];
        for (const SizeVar& var : group->vars) coarsest[var->name_hint] = 1;
      }
      double most = EvaluateAt({chunks}, coarsest)[0];
      if (most >= machine.num_cores) {
        add(name + ".chunks", RealConst(machine.num_cores), chunks);
      }
    }
  }
  for (const RealizeInfo& realize : program.realizes) {
    if (realize.loops.empty()) continue;  // allocated once, not on the stack of a worker
    PrimExpr bytes = RealConst(program.element_bytes(realize.buffer));
    for (const PrimExpr& extent : realize.extents) bytes = bytes * ToReal(extent);
    add(program.buffers[realize.buffer]->name + ".local_bytes", bytes,
        RealConst(static_cast<double>(machine.cache_bytes[1])));
  }
  return out;
}

}  // namespace auto_scheduler
}  // namespace tvm
