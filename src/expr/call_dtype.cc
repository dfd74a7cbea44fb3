/*!
 * \file src/expr/call_dtype.cc
 * \brief Result types of calls that need not be written.
 */
#include "call_dtype.h"

#include <tvm/expr/builtin.h>
#include <tvm/ir/op.h>
#include <tvm/runtime/registry.h>

#include <unordered_map>

namespace tvm {
namespace tir {

DataType CallDType(const RelayExpr& op, const Array<PrimExpr>& args) {
  static const std::unordered_map<const Object*, DataType> fixed = {
      {builtin::isnullptr().get(), DataType::Bool()},
      {builtin::address_of().get(), DataType::Handle()},
      {builtin::tvm_access_ptr().get(), DataType::Handle()},
      {builtin::null_handle().get(), DataType::Handle()},
      {builtin::tvm_stack_alloca().get(), DataType::Handle()},
      {Op::Get("tir.tvm_static_handle").get(), DataType::Handle()},
      {Op::Get("tir.TVMBackendAllocWorkspace").get(), DataType::Handle()},
      {Op::Get("tir.tvm_stack_make_shape").get(), DataType::Handle()},
      {Op::Get("tir.tvm_stack_make_array").get(), DataType::Handle()},
      {builtin::tvm_call_packed_lowered().get(), DataType::Int(32)},
      {Op::Get("tir.tvm_call_cpacked_lowered").get(), DataType::Int(32)},
      {Op::Get("tir.tvm_throw_last_error").get(), DataType::Handle()},
      {Op::Get("tir.lookup_param").get(), DataType::Handle()},
      {Op::Get("tir.tvm_bmma_sync").get(), DataType::Handle()},
      {builtin::tvm_tuple().get(), DataType::Handle()},
      {builtin::error_text().get(), DataType::Handle()},
      {builtin::tvm_struct_set().get(), DataType::Int(32)},
      {builtin::tvm_storage_sync().get(), DataType::Int(32)},
      {builtin::tvm_thread_allreduce().get(), DataType::Int(32)},
      {builtin::tvm_warp_activemask().get(), DataType::UInt(32)},
      {builtin::tvm_fill_fragment().get(), DataType::Handle()},
      {builtin::tvm_load_matrix_sync().get(), DataType::Handle()},
      {builtin::tvm_mma_sync().get(), DataType::Handle()},
      {builtin::tvm_store_matrix_sync().get(), DataType::Handle()},
      {builtin::prefetch().get(), DataType::Int(32)},
      {builtin::large_uint_imm().get(), DataType::UInt(64)},
      {builtin::ret().get(), DataType::Int(32)},
      {Op::Get("tir.ptx_commit_group").get(), DataType::Void()},
      {Op::Get("tir.ptx_wait_group").get(), DataType::Void()},
      {Op::Get("tir.create_barriers").get(), DataType::Void()},
      {Op::Get("tir.ptx_init_barrier_thread_count").get(), DataType::Void()},
      {Op::Get("tir.ptx_arrive_barrier").get(), DataType::Void()},
      {Op::Get("tir.ptx_arrive_barrier_expect_tx").get(), DataType::Void()},
      {Op::Get("tir.ptx_cp_async_barrier").get(), DataType::Void()},
      {Op::Get("tir.ptx_wait_barrier").get(), DataType::Void()},
  };
  // What functions of the module give stands in their definitions.
  if (op.as<GlobalVarNode>() != nullptr) return DataType::Void();
  if (auto it = fixed.find(op.get()); it != fixed.end()) return it->second;
  if (op.same_as(builtin::isnan()) && !args.empty()) return DataType::Bool(args[0].dtype().lanes());
  if (op.same_as(builtin::if_then_else()) && args.size() == 3) return args[1].dtype();
  // The first argument of a shuffle is the mask.
  bool shuffle = op.same_as(builtin::tvm_warp_shuffle()) ||
                 op.same_as(builtin::tvm_warp_shuffle_up()) ||
                 op.same_as(builtin::tvm_warp_shuffle_down());
  if (shuffle && args.size() > 1) return args[1].dtype();
  return args.empty() ? DataType::Int(32) : args[0].dtype();
}

TVM_REGISTER_GLOBAL("tir.CallDType").set_body_typed([](RelayExpr op, Array<PrimExpr> args) {
  return CallDType(op, args);
});

}  // namespace tir
}  // namespace tvm
