/*!
 * \file constraints.cc
 * \brief What the kernels of a schedule must respect, as inequalities in its knobs.
 */
#include <tvm/auto_scheduler/loop_features.h>
#include <tvm/expr/op.h>
#include <tvm/expr/substitute.h>

#include <algorithm>
#include <set>
#include <string>

#include "kernel_facts.h"
#include "symbolic_parts.h"

namespace tvm {
namespace auto_scheduler {

using namespace tir;

namespace {

// Statements written out in one loop body. More leave the cache of instructions, and the compiler
// takes seconds.
constexpr int64_t kMaxBody = 1024;
// As what draws tiles at random is told by default, so that both search the same points.
constexpr int64_t kMaxInnermost = 64;

/*! \brief The values in [1, limit] that divisors of the groups' extents multiply to. */
std::set<int64_t> ProductsOfDivisors(const arith::VarContext& context,
                                     const std::set<std::string>& knobs, int64_t limit) {
  std::set<int64_t> products = {1};
  for (const arith::SplitGroup& group : context->split_groups) {
    const int64_t* extent = as_const_int(group->extent_expr);
    bool takes_part = false;
    for (const SizeVar& var : group->vars) takes_part |= knobs.count(var->name_hint) != 0;
    if (extent == nullptr || !takes_part) continue;
    std::set<int64_t> next;
    for (int64_t divisor = 1; divisor <= std::min(*extent, limit); ++divisor) {
      if (*extent % divisor != 0) continue;
      for (int64_t product : products) {
        if (product * divisor <= limit) next.insert(product * divisor);
      }
    }
    products = std::move(next);
  }
  return products;
}

/*! \brief The innermost dimension of more than one element, behind which lie only ones. */
PrimExpr RowOf(const std::vector<PrimExpr>& extents) {
  size_t d = extents.size() - 1;
  while (d > 0 && is_one(extents[d])) --d;
  return extents[d];
}

/*! \brief The length of rows that a copy reads from global memory; undefined if it reads no rows.
 */
PrimExpr RowOfMemory(const LoopProgram& program, const StoreInfo& store) {
  for (const AccessInfo& access : store.accesses) {
    if (access.type != AccessType::kRead || MemoryOf(program, access) != Memory::kGlobal) continue;
    const Array<PrimExpr>& shape = program.buffers[access.buffer]->shape;
    if (shape.size() > 1) return shape.back();
  }
  return PrimExpr();
}

std::set<std::string> KnobsOf(const PrimExpr& e) {
  std::set<std::string> names;
  PostOrderVisit(e, [&](const ObjectRef& node) {
    if (const auto* var = node.as<VarNode>()) names.insert(var->name_hint);
  });
  return names;
}

}  // namespace

std::vector<Constraint> GpuConstraints(const LoopProgram& program, const MachineFacts& machine,
                                       const arith::VarContext& context) {
  std::vector<Constraint> out;
  auto at_most = [&out](std::string name, const PrimExpr& lhs, int64_t limit) {
    out.push_back({std::move(name), ToReal(lhs), RealConst(static_cast<double>(limit))});
  };
  const int num_kernels = CountKernels(program);
  for (int i = 0; i < num_kernels; ++i) {
    const KernelFacts kernel = KernelOf(program, i, machine);
    const std::string name = "kernel" + std::to_string(i);
    at_most(name + ".threads", kernel.threads, machine.max_threads_per_block);
    at_most(name + ".virtual_threads", kernel.virtual_threads, machine.max_vthread_extent);
    if (!is_zero(kernel.shared_bytes)) {
      at_most(name + ".shared_memory", kernel.shared_bytes,
              machine.max_dynamic_shared_memory_per_block);
    }
    at_most(name + ".registers", kernel.registers, machine.max_registers_per_thread);
    at_most(name + ".registers_of_block", kernel.registers * kernel.threads,
            machine.registers_per_block);
    at_most(name + ".body", kernel.body, kMaxBody);
    // Less than a warp leaves lanes idle, which only a tiny result excuses: where the loops cannot
    // be cut into many more threads than a warp has, hardly a point would be left.
    const std::set<std::string> knobs = KnobsOf(kernel.threads);
    const std::set<int64_t> threads =
        ProductsOfDivisors(context, knobs, machine.max_threads_per_block);
    if (!knobs.empty() && *threads.rbegin() > 2 * machine.warp_size) {
      out.push_back({name + ".warp", RealConst(static_cast<double>(machine.warp_size)),
                     ToReal(kernel.threads)});
    }
  }
  for (size_t g = 0; g < context->split_groups.size(); ++g) {
    const arith::SplitGroup& group = context->split_groups[g];
    // One part alone are threads or lanes.
    if (group->vars.size() < 2) continue;
    at_most("axis" + std::to_string(g) + ".innermost", group->vars.back(), kMaxInnermost);
  }
  for (const StoreInfo& store : program.stores) {
    for (const LoopRef& loop : store.loops) {
      if (store.kernel < 0 || loop->kind != ForKind::kVectorized) continue;
      const std::string& name = program.buffers[store.buffer]->name;
      const PrimExpr lanes = ToReal(loop->extent);
      at_most(name + ".vector", loop->extent * program.element_bytes(store.buffer),
              machine.vector_bytes);
      // Lanes that cross the end of a row are no neighbours in memory.
      for (const RealizeInfo& realize : program.realizes) {
        if (realize.buffer != store.buffer || realize.extents.empty()) continue;
        const PrimExpr row = RowOf(realize.extents);
        out.push_back(
            {name + ".rows_of_vectors", ToReal(row), lanes * ToReal(floordiv(row, loop->extent))});
      }
      // Rows of memory that are no multiples of a vector begin between two.
      const PrimExpr memory_row = RowOfMemory(program, store);
      if (as_const_int(loop->extent) == nullptr && memory_row.defined()) {
        out.push_back({name + ".aligned_vectors", ToReal(memory_row),
                       lanes * ToReal(floordiv(memory_row, loop->extent))});
      }
    }
  }
  return out;
}

}  // namespace auto_scheduler
}  // namespace tvm
