/*!
 * \file tvm/driver/build.h
 * \brief From lowered modules to code that runs: host and device parts, and their generators.
 */
#ifndef TVM_DRIVER_BUILD_H_
#define TVM_DRIVER_BUILD_H_

#include <tvm/ir/module.h>
#include <tvm/ir/transform.h>
#include <tvm/runtime/module.h>
#include <tvm/target/target.h>

#include <utility>

namespace tvm {

/*! \brief Option: leave the checks of arguments out of the generated code. */
constexpr const char* kDisableAssert = "tir.disable_assert";

/*!
 * \brief The passes on functions that still hold host code and kernels together, in order.
 *
 * Afterwards host functions have the packed calling convention and kernels are functions of their
 * own. A program without threads comes out of them as host functions only.
 */
Array<transform::Pass> MixedPasses(const Target& target);
/*! \brief The passes that leave host functions alone in the module and prepare their code. */
Array<transform::Pass> HostPasses(const Target& host);
/*! \brief The same for the kernels. */
Array<transform::Pass> DevicePasses(const Target& target);

/*! \brief Target of the code around the kernels of `target`: its host, itself on a processor. */
Target HostOf(const Target& target, const Target& host = Target(nullptr));

/*! \brief Host module and device module of a lowered module; the latter may have no functions. */
std::pair<IRModule, IRModule> SplitDevHostFuncs(IRModule lowered, const Target& target,
                                                const Target& host);

/*! \brief Code of the kernels; an undefined module when there are none. */
runtime::Module DeviceBuild(const IRModule& kernels, const Target& target);

/*!
 * \brief Code for lowered modules of several targets: one host module that imports one device
 * module per target that has kernels.
 *
 * \param host Target of the host functions; undefined takes the first host that a target names,
 * else the first target that is a processor, else the default one.
 * \throws ValueError when no code generator is registered for a target's kind, two host functions
 * have one name, or a program of a GPU target accesses arrays outside of its kernels.
 */
runtime::Module Build(const Map<Target, IRModule>& lowered, Target host = Target(nullptr));
/*! \brief The same for one target. */
runtime::Module Build(IRModule lowered, const Target& target);

}  // namespace tvm

#endif  // TVM_DRIVER_BUILD_H_
