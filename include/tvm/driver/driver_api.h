/*!
 * \file tvm/driver/driver_api.h
 * \brief From a schedule, a function or a module to a module the code generators accept.
 */
#ifndef TVM_DRIVER_DRIVER_API_H_
#define TVM_DRIVER_DRIVER_API_H_

#include <tvm/ir/module.h>
#include <tvm/ir/transform.h>
#include <tvm/te/schedule.h>
#include <tvm/tir/function.h>

namespace tvm {

/*! \brief Option: array of [phase, pass]; phases 0 to 2 end there, 3 and above go last. */
constexpr const char* kAddLowerPass = "tir.add_lower_pass";
/*! \brief Option: loops marked vectorised run serially. */
constexpr const char* kDisableVectorize = "tir.disable_vectorize";

/*! \brief Option: accesses out of bounds raise an error when the program runs. */
constexpr const char* kInstrumentBoundCheckers = "tir.instrument_bound_checkers";

/*!
 * \brief The passes of lowering, in order.
 *
 * Phase 0 works on loop nests over multi-dimensional buffers, phase 1 flattens them, phase 2
 * expands vectors, unrolls and assigns storage, phase 3 tidies up; passes the user adds stand at
 * the end of their phase. Code generation proper (packed calling convention, intrinsics of the
 * target) is the build's business. Vectors have the width of the current target's registers, 256
 * bits when there is no target.
 *
 * \param simple_mode For reading: leaves out LoopPartition, so that each loop stands once.
 */
Array<transform::Pass> LowerPasses(bool simple_mode);

/*! \brief Applies LowerPasses as one sequence, after the passes that lower blocks if there are any.
 */
IRModule LowerModule(IRModule mod, bool simple_mode = false);
/*! \brief The same for one function, which is given the name `name`. */
IRModule LowerPrimFunc(tir::PrimFunc func, const String& name, bool simple_mode = false);
/*! \brief The same for a schedule. */
IRModule LowerSchedule(const te::Schedule& sch, const Array<ObjectRef>& args, const String& name,
                       const Map<te::Tensor, tir::Buffer>& binds = {}, bool simple_mode = false);

/*!
 * \brief The loop nest of a schedule as a function, before any pass.
 * \param args a Tensor, Buffer or Var per parameter.
 * \param binds buffers to use for tensors of `args`.
 */
IRModule ScheduleToModule(const te::Schedule& sch, const Array<ObjectRef>& args, const String& name,
                          const Map<te::Tensor, tir::Buffer>& binds = {});

}  // namespace tvm
#endif  // TVM_DRIVER_DRIVER_API_H_
