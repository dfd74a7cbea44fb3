/*!
 * \file instruction_parts.h
 * \brief Arguments of an instruction in two lists: what it takes from others, and its settings.
 *
 * This is how TVM keeps and saves instructions. Blocks, loops, sizes and the value of an annotation
 * are inputs, lists of them spelled out; everything else is an attribute. A buffer of a block is
 * two attributes, its position and 0 among those that are read or 1 among those that are written.
 */
#ifndef TVM_SRC_TIR_SCHEDULE_INSTRUCTION_PARTS_H_
#define TVM_SRC_TIR_SCHEDULE_INSTRUCTION_PARTS_H_

#include <tvm/tir/schedule/trace.h>

namespace tvm {
namespace tir {
namespace sched {

/*! \brief What the instruction works on, in the order of its arguments. */
Array<Any> InputsOf(const Instruction& inst);
/*! \brief Its other arguments, in their order. */
Array<Any> AttrsOf(const Instruction& inst);
/*!
 * \brief The instruction that these are the parts of; arguments that are missing at the end have
 *        their defaults.
 * \throws ValueError if the parts are too many or too few for the kind.
 */
Instruction FromParts(const InstructionKind& kind, const Array<Any>& inputs,
                      const Array<Any>& attrs, const Array<ObjectRef>& outputs);

}  // namespace sched
}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_SCHEDULE_INSTRUCTION_PARTS_H_
