/*!
 * \file tvm/codegen/codegen.h
 * \brief From lowered functions to a runtime module, by the target's kind.
 */
#ifndef TVM_CODEGEN_CODEGEN_H_
#define TVM_CODEGEN_CODEGEN_H_

#include <tvm/ir/module.h>
#include <tvm/runtime/module.h>
#include <tvm/target/target.h>

namespace tvm {
namespace codegen {

/*!
 * \brief The generator of the target's kind, `target.build.<kind>`.
 * \throws ValueError when none is registered.
 */
const PackedFunc& Generator(const Target& target);

/*!
 * \brief Generate code for all functions of `mod` with the generator `target.build.<kind>`.
 * \throws ValueError when no generator of that name is registered.
 */
runtime::Module Build(IRModule mod, Target target);

}  // namespace codegen
}  // namespace tvm

#endif  // TVM_CODEGEN_CODEGEN_H_
