/*!
 * \file kernel_facts.cc
 */
#include "kernel_facts.h"

#include <tvm/auto_scheduler/loop_features.h>
#include <tvm/expr/analysis.h>
#include <tvm/expr/op.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <map>
#include <string>

namespace tvm {
namespace auto_scheduler {

using namespace tir;

namespace {

// Addresses, loop counters and the operands of a copy; measured with NVRTC on matrix products and
// convolutions whose tiles are one element.
constexpr int64_t kBaseRegisters = 32;
constexpr int64_t kRegisterBytes = 4;
constexpr int64_t kSectorBytes = 32;
constexpr int64_t kBankBytes = 4;
constexpr int64_t kBankRowBytes = 128;
// Of a fragment, what one lane loads at a time.
constexpr int64_t kRowBytes = 16;

PrimExpr Int(int64_t value) { return IntImm(DataType::Int(64), value); }
PrimExpr Wide(const PrimExpr& e) { return cast(DataType::Int(64), e); }

bool Mentions(const ObjectRef& node, const Var& var) {
  bool found = false;
  PostOrderVisit(node, [&](const ObjectRef& part) { found = found || part.same_as(var); });
  return found;
}

bool Mentions(const AccessInfo& access, const Var& var) {
  return std::any_of(access.indices.begin(), access.indices.end(), [&](const auto& tuple) {
    return std::any_of(tuple.begin(), tuple.end(),
                       [&](const PrimExpr& index) { return Mentions(index, var); });
  });
}

bool IsWrittenOut(const LoopInfo& loop) {
  return loop.kind == ForKind::kUnrolled || loop.kind == ForKind::kVectorized;
}

/*! \brief Elements of a buffer that run of levels `level` and inside touches, int64. */
PrimExpr Touched(const AccessInfo& access, size_t level) {
  PrimExpr elements = Int(1);
  for (const PrimExpr& extent : access.extents[level]) elements = elements * Wide(extent);
  return elements;
}

/*!
 * \brief inside[i]: whether loop i and all that run inside of it satisfy `belongs`; a loop of one
 *        trip belongs anywhere, since lowering with numbers drops it.
 */
template <typename F>
std::vector<PrimExpr> InnermostWhere(const StoreInfo& store, F belongs) {
  std::vector<PrimExpr> inside(store.loops.size() + 1, const_true());
  PrimExpr open = const_true();
  for (size_t i = store.loops.size(); i-- > 0;) {
    const LoopInfo& loop = *store.loops[i];
    if (!belongs(loop)) {
      open = loop.is_thread() ? const_false() : BothOf(open, Opposite(IsMoreThanOne(loop.extent)));
    }
    inside[i] = open;
  }
  return inside;
}

/*! \brief The value of the outermost level that is inside. */
PrimExpr AtOutermost(const std::vector<PrimExpr>& inside, const std::vector<PrimExpr>& per_level) {
  PrimExpr out = per_level.back();
  for (size_t i = per_level.size() - 1; i-- > 0;) out = Choose(inside[i], per_level[i], out);
  return out;
}

bool TouchesFragments(const std::set<int>& fragments, const StoreInfo& store) {
  return std::any_of(store.accesses.begin(), store.accesses.end(),
                     [&](const AccessInfo& access) { return fragments.count(access.buffer) != 0; });
}

/*! \brief Registers of one lane for fragments that a warp holds of a buffer. */
PrimExpr RegistersOfFragments(const LoopProgram& program, const RealizeInfo& realize,
                              const MachineFacts& machine) {
  const DataType dtype = program.buffers[realize.buffer]->dtype;
  const bool is_sum =
      std::any_of(program.stores.begin(), program.stores.end(), [&](const StoreInfo& store) {
        return store.on_tensor_cores && store.buffer == realize.buffer;
      });
  // Operands of float16 are held twice, for the sake of the first tensor cores.
  const int64_t copies = dtype.is_float16() && !is_sum ? 2 : 1;
  return floordiv(realize.size() * Int(copies * program.element_bytes(realize.buffer)) +
                      (machine.warp_size * kRegisterBytes - 1),
                  Int(machine.warp_size * kRegisterBytes));
}

/*! \brief Operands that a thread holds for one step of the reduction, in registers. */
PrimExpr OperandRegisters(const LoopProgram& program, const StoreInfo& store) {
  const AccessInfo& target = store.accesses[0];
  const std::vector<PrimExpr> tile = InnermostWhere(store, [&](const LoopInfo& loop) {
    return IsWrittenOut(loop) && Mentions(target, loop.var);
  });
  PrimExpr registers = Int(0);
  for (const AccessInfo& access : store.accesses) {
    if (MemoryOf(program, access) == Memory::kRegisters) continue;
    std::vector<PrimExpr> elements;
    for (size_t i = 0; i <= store.loops.size(); ++i) elements.push_back(Touched(access, i));
    const int64_t words =
        std::max<int64_t>(1, program.element_bytes(access.buffer) / kRegisterBytes);
    registers = registers + AtOutermost(tile, elements) * Int(words);
  }
  return registers;
}

/*! \brief Statements that the loops of a store are written out as. */
PrimExpr WrittenOut(const StoreInfo& store) {
  PrimExpr count = Int(1);
  for (const LoopRef& loop : store.loops) {
    // A vector is one statement.
    if (loop->kind == ForKind::kUnrolled || loop->thread_tag == "vthread") {
      count = count * Wide(loop->extent);
    }
  }
  return count;
}

class KernelReader {
 public:
  KernelReader(const LoopProgram& program, const MachineFacts& machine)
      : program_(program), machine_(machine) {}

  KernelFacts Read(int kernel) const {
    KernelFacts facts;
    facts.shared_bytes = Int(0);
    const std::set<int> fragments = FragmentBuffers(program_);
    PrimExpr accumulators = Int(0), operands = Int(0);
    facts.body = Int(1);
    std::map<std::string, PrimExpr> axes;
    std::vector<const LoopInfo*> virtual_axes;
    facts.virtual_threads = Int(1);
    for (const StoreInfo& store : program_.stores) {
      if (store.kernel != kernel) continue;
      for (const LoopRef& loop : store.loops) {
        if (loop->thread_tag != "vthread") {
          if (loop->is_thread()) axes.emplace(loop->thread_tag, Wide(loop->extent));
        } else if (std::find(virtual_axes.begin(), virtual_axes.end(), loop.get()) ==
                   virtual_axes.end()) {
          virtual_axes.push_back(loop.get());
          facts.virtual_threads = facts.virtual_threads * Wide(loop->extent);
        }
      }
      if (!TouchesFragments(fragments, store)) {
        operands = max(operands, OperandRegisters(program_, store));
      }
      facts.body = max(facts.body, WrittenOut(store));
    }
    facts.blocks = ProductOf(axes, "blockIdx");
    facts.threads = ProductOf(axes, "threadIdx");
    for (const RealizeInfo& realize : program_.realizes) {
      if (realize.kernel != kernel) continue;
      const std::string scope = program_.buffers[realize.buffer].scope();
      const PrimExpr bytes = Int(program_.element_bytes(realize.buffer)) * realize.size();
      if (fragments.count(realize.buffer)) {
        accumulators = accumulators + RegistersOfFragments(program_, realize, machine_);
        continue;
      }
      if (scope == "shared") facts.shared_bytes = facts.shared_bytes + bytes * realize.copies();
      if (scope == "local") {
        // Every virtual thread has its own.
        accumulators = accumulators + floordiv(bytes + (kRegisterBytes - 1), Int(kRegisterBytes)) *
                                          facts.virtual_threads;
      }
    }
    facts.registers = accumulators + operands + Int(kBaseRegisters);
    facts.resident_blocks = ResidentBlocks(facts, machine_);
    return facts;
  }

 private:
  static PrimExpr ProductOf(const std::map<std::string, PrimExpr>& axes, const std::string& kind) {
    PrimExpr product = Int(1);
    for (const auto& [tag, extent] : axes) {
      if (tag.rfind(kind, 0) == 0) product = product * extent;
    }
    return product;
  }

  const LoopProgram& program_;
  const MachineFacts& machine_;
};

/*! \brief Elements between neighbours in each dimension, as its allocation lays a buffer out if it
 *         has one. */
std::vector<PrimExpr> StridesOf(const LoopProgram& program, int buffer) {
  for (const RealizeInfo& realize : program.realizes) {
    if (realize.buffer == buffer) return realize.strides;
  }
  const Array<PrimExpr>& shape = program.buffers[buffer]->shape;
  std::vector<PrimExpr> strides(shape.size(), Int(1));
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * Wide(shape[d]);
  return strides;
}

/*! \brief Bytes between what two neighbouring threads access, int64 >= 0. */
PrimExpr ThreadStep(const LoopProgram& program, const AccessInfo& access) {
  if (access.thread_steps.empty()) return Int(0);
  const std::vector<PrimExpr> strides = StridesOf(program, access.buffer);
  const PrimExpr bytes = Int(program.element_bytes(access.buffer));
  PrimExpr step = Int(0);
  for (size_t d = strides.size(); d-- > 0;) {
    if (is_zero(access.thread_steps[d])) continue;
    step = step + Wide(access.thread_steps[d]) * bytes * strides[d];
  }
  return max(step, Int(0) - step);
}

/*! \brief The loops of a store of a warp that run over what it has in fragments. */
std::vector<LoopRef> LoopsOfFragments(const LoopProgram& program, const StoreInfo& store,
                                      const std::set<int>& fragments) {
  const auto realize =
      std::find_if(program.realizes.begin(), program.realizes.end(), [&](const RealizeInfo& found) {
        return fragments.count(found.buffer) != 0 &&
               std::any_of(store.accesses.begin(), store.accesses.end(),
                           [&](const AccessInfo& of) { return of.buffer == found.buffer; });
      });
  ICHECK(realize != program.realizes.end());
  std::vector<LoopRef> loops;
  for (const LoopRef& loop : store.loops) {
    const std::vector<LoopRef>& around = realize->loops;
    if (std::find(around.begin(), around.end(), loop) == around.end()) loops.push_back(loop);
  }
  return loops;
}

/*! \brief Bytes from one row of a fragment in memory to the next, int64. */
PrimExpr RowStep(const LoopProgram& program, const StoreInfo& store, const AccessInfo& access,
                 const std::set<int>& fragments) {
  const std::vector<PrimExpr> strides = StridesOf(program, access.buffer);
  const std::vector<LoopRef> loops = LoopsOfFragments(program, store, fragments);
  for (size_t d = 0; d + 1 < strides.size(); ++d) {
    for (const LoopRef& loop : loops) {
      if (!Mentions(access.indices[0][d], loop->var)) continue;
      return strides[d] * Int(program.element_bytes(access.buffer));
    }
  }
  return Int(0);
}

/*!
 * \brief Whether the store before loads the same elements in the same body, as the second half of a
 *        pair such as that of argmax finds them.
 */
bool IsLoadedAlready(const StoreInfo& before, const StoreInfo& store, const AccessInfo& access) {
  if (access.type != AccessType::kRead || before.loops != store.loops) return false;
  auto are_equal = [](const Array<PrimExpr>& a, const Array<PrimExpr>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), ExprDeepEqual());
  };
  return std::any_of(before.accesses.begin(), before.accesses.end(), [&](const AccessInfo& other) {
    return other.buffer == access.buffer && other.type == AccessType::kRead &&
           std::equal(other.indices.begin(), other.indices.end(), access.indices.begin(),
                      access.indices.end(), are_equal);
  });
}

}  // namespace

std::set<int> FragmentBuffers(const LoopProgram& program) {
  std::set<int> buffers;
  for (const StoreInfo& store : program.stores) {
    if (!store.on_tensor_cores) continue;
    for (const AccessInfo& access : store.accesses) buffers.insert(access.buffer);
  }
  return buffers;
}

bool MovesFragments(const std::set<int>& fragments, const StoreInfo& store) {
  return !store.on_tensor_cores && TouchesFragments(fragments, store);
}

int CountKernels(const LoopProgram& program) {
  int count = 0;
  for (const StoreInfo& store : program.stores) count = std::max(count, store.kernel + 1);
  return count;
}

KernelFacts KernelOf(const LoopProgram& program, int kernel, const MachineFacts& machine) {
  return KernelReader(program, machine).Read(kernel);
}

PrimExpr ResidentBlocks(const KernelFacts& facts, const MachineFacts& machine) {
  PrimExpr warps = floordiv(facts.threads + (machine.warp_size - 1), Int(machine.warp_size));
  PrimExpr lanes = warps * Int(machine.warp_size);
  PrimExpr blocks = min(Int(machine.blocks_per_multiprocessor),
                        floordiv(Int(machine.threads_per_multiprocessor), lanes));
  blocks =
      min(blocks, floordiv(Int(machine.registers_per_multiprocessor), facts.registers * lanes));
  if (is_zero(facts.shared_bytes)) return blocks;
  return min(blocks, floordiv(Int(machine.shared_memory_per_multiprocessor), facts.shared_bytes));
}

Memory MemoryOf(const LoopProgram& program, const AccessInfo& access) {
  const std::string scope = program.buffers[access.buffer].scope();
  if (scope == "shared") return Memory::kShared;
  return scope == "global" || scope.empty() ? Memory::kGlobal : Memory::kRegisters;
}

Movement MovementOf(const LoopProgram& program, const StoreInfo& store, const AccessInfo& access,
                    const MachineFacts& machine) {
  const size_t n = store.loops.size();
  const double width = program.element_bytes(access.buffer);
  // What accumulates stays in a register while its thread reduces; the rest is loaded once for
  // each pass of what is written out.
  const bool accumulates = access.type == AccessType::kReadWrite;
  const std::vector<PrimExpr> inside = InnermostWhere(store, [&](const LoopInfo& loop) {
    return accumulates ? !loop.is_thread() : IsWrittenOut(loop);
  });
  std::vector<PrimExpr> elements;
  PrimExpr outer = RealConst(1);
  for (size_t i = 0; i <= n; ++i) {
    elements.push_back(outer * access.touched[i]);
    if (i < n) outer = outer * ToReal(store.loops[i]->extent);
  }
  Movement out;
  out.bytes = AtOutermost(inside, elements) * RealConst(width);
  out.unique_bytes = access.touched[0] * RealConst(width);
  const std::set<int> fragments = FragmentBuffers(program);
  const bool by_warp = MovesFragments(fragments, store);
  const PrimExpr step =
      by_warp ? RowStep(program, store, access, fragments) : ThreadStep(program, access);
  PrimExpr lanes = Int(1);
  for (const LoopRef& loop : store.loops) {
    if (loop->kind == ForKind::kVectorized && Mentions(access, loop->var)) {
      lanes = Wide(loop->extent);
    }
  }
  if (MemoryOf(program, access) == Memory::kGlobal) {
    // A warp fetches whole sectors: of threads that are far apart each one, of short rows each end.
    PrimExpr asked = ToReal(lanes) * RealConst(width);
    PrimExpr far = div(min(ToReal(step), RealConst(kSectorBytes)), asked);
    PrimExpr row = Int(1);
    size_t threads = 0;
    while (threads < n && store.loops[threads]->thread_tag.rfind("threadIdx", 0) != 0) ++threads;
    if (by_warp) threads = n - LoopsOfFragments(program, store, fragments).size();
    if (!access.extents[threads].empty()) row = Wide(access.extents[threads].back());
    PrimExpr row_bytes = min(ToReal(row) * RealConst(width), RealConst(kSectorBytes));
    PrimExpr split = div(RealConst(kSectorBytes), row_bytes);
    if (by_warp) {
      out.waste = max(RealConst(1), split);
      return out;
    }
    PrimExpr apart = max(RealConst(1), max(far, split));
    PrimExpr together =
        div(RealConst(kSectorBytes), asked * RealConst(static_cast<double>(machine.warp_size)));
    out.waste = is_zero(step) ? together : Choose(EQ(step, Int(0)), together, apart);
  } else {
    // Threads whose distance is a multiple of 2^k words meet in 2^k banks less; of fragments, eight
    // rows of 16 bytes are served at a time.
    PrimExpr conflicts = RealConst(1);
    const int64_t least = by_warp ? kRowBytes : kBankBytes;
    for (int64_t period = 2 * least; period <= kBankRowBytes; period *= 2) {
      PrimExpr meets = BothOf(NE(step, Int(0)), EQ(floormod(step, Int(period)), Int(0)));
      conflicts = conflicts * Choose(meets, RealConst(2), RealConst(1));
    }
    // Vectors are served in quarters, which take their turns anyway.
    out.waste = max(RealConst(1), div(conflicts, ToReal(lanes)));
  }
  return out;
}

Traffic TrafficOf(const LoopProgram& program, const std::vector<size_t>& stores,
                  const MachineFacts& machine) {
  Traffic out{RealConst(0), RealConst(0), RealConst(0), RealConst(1), RealConst(1)};
  std::map<int, PrimExpr> read_before;  // bytes of each buffer
  for (size_t i = 0; i < stores.size(); ++i) {
    const StoreInfo& store = program.stores[stores[i]];
    for (const AccessInfo& access : store.accesses) {
      const Memory memory = MemoryOf(program, access);
      if (memory == Memory::kRegisters) continue;
      if (i > 0 && IsLoadedAlready(program.stores[stores[i - 1]], store, access)) continue;
      const Movement movement = MovementOf(program, store, access, machine);
      if (memory == Memory::kShared) {
        out.shared = out.shared + movement.bytes * movement.waste;
        out.bank_conflicts = max(out.bank_conflicts, movement.waste);
        continue;
      }
      const PrimExpr moved = movement.bytes * movement.waste;
      out.cache = out.cache + moved;
      out.uncoalesced = max(out.uncoalesced, movement.waste);
      // Data of F bytes stays in a cache of C bytes to the degree 1 / (1 + (F / C)^2).
      PrimExpr ratio =
          div(movement.unique_bytes, RealConst(static_cast<double>(machine.cache_bytes[1])));
      PrimExpr fit = div(RealConst(1), RealConst(1) + ratio * ratio);
      // What other loops of the kernel have read before is still there to the same degree.
      PrimExpr once = min(movement.unique_bytes, moved);
      if (access.type == AccessType::kRead) {
        auto [before, is_first] = read_before.emplace(access.buffer, once);
        if (!is_first) {
          const PrimExpr known = before->second;
          before->second = max(known, once);
          once = max(once - known, RealConst(0));
        }
      }
      out.memory = out.memory + fit * once + (RealConst(1) - fit) * moved;
    }
  }
  return out;
}

}  // namespace auto_scheduler
}  // namespace tvm
