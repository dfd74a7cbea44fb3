/*!
 * \file tvm/driver/build.h
 * \brief From a lowered module to code that runs.
 */
#ifndef TVM_DRIVER_BUILD_H_
#define TVM_DRIVER_BUILD_H_

#include <tvm/ir/module.h>
#include <tvm/ir/transform.h>
#include <tvm/runtime/module.h>
#include <tvm/target/target.h>

namespace tvm {

/*! \brief Option: leave the checks of arguments out of the generated code. */
constexpr const char* kDisableAssert = "tir.disable_assert";

/*!
 * \brief The passes between lowering and code generation, in order.
 *
 * They give functions the packed calling convention and replace intrinsics that no generator knows.
 */
Array<transform::Pass> BuildPasses(const Target& target);

/*!
 * \brief Code for a lowered module.
 * \throws ValueError when no code generator is registered for the target's kind.
 */
runtime::Module Build(IRModule lowered, const Target& target);

}  // namespace tvm

#endif  // TVM_DRIVER_BUILD_H_
