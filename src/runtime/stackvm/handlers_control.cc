/*!
 * \file handlers_control.cc
 * \brief Branches and loops of the stackvm: of one thread, and of a block with its active threads.
 */
#include <cstring>

#include "runtime/stackvm/machine.h"
#include "runtime/stackvm/scalar_types.h"

namespace tvm {
namespace runtime {
namespace stackvm {
namespace {

inline const Instr* Target(const Machine& m, const Instr* i) {
  return m.function.code.data() + i->a;
}

const Instr* Jump(Machine& m, const Instr* i) { return Target(m, i); }

const Instr* JumpUnless(Machine& m, const Instr* i) {
  return m.At<uint8_t>(i->b, 0) ? i + 1 : Target(m, i);
}

template <typename Index>
const Instr* ForTest(Machine& m, const Instr* i) {
  return m.At<Index>(i->b, 0) < m.At<Index>(i->c, 0) ? i + 1 : Target(m, i);
}

/*! \brief Adds one to the variable, and goes back while it is below the end in `c`. */
template <typename Index>
const Instr* ForNext(Machine& m, const Instr* i) {
  Index& variable = m.At<Index>(i->b, 0);
  variable = static_cast<Index>(variable + 1);
  return variable < m.At<Index>(i->c, 0) ? Target(m, i) : i + 1;
}

/*!
 * \brief Fill the innermost mask with the threads of `outer` for which `keep` holds.
 * \return Whether any is left.
 */
template <typename F>
bool Narrow(Mask outer, Mask* inner, F keep) {
  int count = 0;
  for (int t = outer.begin; t < outer.end; ++t) {
    const uint8_t active = static_cast<uint8_t>(outer.bits[t] & keep(t));
    inner->bits[t] = active;
    count += active;
  }
  int begin = outer.begin, end = outer.end;
  if (count == 0) {
    end = begin;
  } else {
    while (inner->bits[begin] == 0) ++begin;
    while (inner->bits[end - 1] == 0) --end;
  }
  inner->begin = begin;
  inner->end = end;
  inner->count = count;
  return count != 0;
}

const Instr* If(Machine& m, const Instr* i) {
  const uint8_t* condition = m.Reg<uint8_t>(i->b);
  Mask outer = m.mask;
  m.PushMask();
  return Narrow(outer, &m.mask, [&](int t) { return condition[t]; }) ? i + 1 : Target(m, i);
}

const Instr* Else(Machine& m, const Instr* i) {
  const uint8_t* condition = m.Reg<uint8_t>(i->b);
  m.PopMask();
  Mask outer = m.mask;
  m.PushMask();
  return Narrow(outer, &m.mask, [&](int t) { return condition[t] ^ 1; }) ? i + 1 : Target(m, i);
}

const Instr* EndIf(Machine& m, const Instr* i) {
  m.PopMask();
  return i + 1;
}

const Instr* LoopBegin(Machine& m, const Instr* i) {
  Mask outer = m.mask;
  m.PushMask();
  Narrow(outer, &m.mask, [](int) { return 1; });
  return i + 1;
}

const Instr* LoopTest(Machine& m, const Instr* i) {
  const uint8_t* condition = m.Reg<uint8_t>(i->b);
  Mask now = m.mask;
  return Narrow(now, &m.mask, [&](int t) { return condition[t]; }) ? i + 1 : Target(m, i);
}

template <typename Index>
const Instr* LoopTestLess(Machine& m, const Instr* i) {
  const Index* variable = m.Reg<Index>(i->b);
  const Index* end = m.Reg<Index>(i->c);
  Mask now = m.mask;
  return Narrow(now, &m.mask, [&](int t) { return variable[t] < end[t]; }) ? i + 1 : Target(m, i);
}

/*! \brief Adds one to the variable of all threads; those that left the loop no longer read it. */
template <typename Index>
const Instr* LoopNext(Machine& m, const Instr* i) {
  Index* variable = m.Reg<Index>(i->b);
  for (int t = m.mask.begin; t < m.mask.end; ++t) variable[t] = static_cast<Index>(variable[t] + 1);
  return Target(m, i);
}

const Instr* Return(Machine&, const Instr*) { return nullptr; }

template <typename Lane>
const Instr* ReturnValue(Machine& m, const Instr* i) {
  auto value = m.At<typename Lane::Register>(i->a, 0);
  m.return_value = 0;
  std::memcpy(&m.return_value, &value, sizeof(value));
  return nullptr;
}

Handler IndexHandler(ScalarType type, Handler narrow, Handler wide) {
  if (type == ScalarType::kInt32) return narrow;
  return type == ScalarType::kInt64 ? wide : nullptr;
}

}  // namespace

Handler ControlHandler(const Instr& instr) {
  switch (instr.op) {
    case Opcode::kJump:
      return &Jump;
    case Opcode::kJumpUnless:
      return &JumpUnless;
    case Opcode::kForTest:
      return IndexHandler(instr.type, &ForTest<int32_t>, &ForTest<int64_t>);
    case Opcode::kForNext:
      return IndexHandler(instr.type, &ForNext<int32_t>, &ForNext<int64_t>);
    case Opcode::kIf:
      return &If;
    case Opcode::kElse:
      return &Else;
    case Opcode::kEndIf:
    case Opcode::kLoopEnd:
      return &EndIf;
    case Opcode::kLoopBegin:
      return &LoopBegin;
    case Opcode::kLoopTest:
      return &LoopTest;
    case Opcode::kLoopTestLess:
      return IndexHandler(instr.type, &LoopTestLess<int32_t>, &LoopTestLess<int64_t>);
    case Opcode::kLoopNext:
      return IndexHandler(instr.type, &LoopNext<int32_t>, &LoopNext<int64_t>);
    case Opcode::kReturn:
      return &Return;
    case Opcode::kReturnValue:
      return DispatchLane(instr.type,
                          [](auto lane) -> Handler { return &ReturnValue<decltype(lane)>; });
    default:
      return nullptr;
  }
}

}  // namespace stackvm
}  // namespace runtime
}  // namespace tvm
