/*!
 * \file src/expr/builtin.cc
 * \brief Registration of the intrinsics that passes create.
 */
#include <tvm/expr/analysis.h>
#include <tvm/expr/builtin.h>

namespace tvm {
namespace tir {
namespace builtin {

#define TVM_TIR_DEFINE_BUILTIN(Name, Effect)    \
  const Op& Name() {                            \
    static const Op op = Op::Get("tir." #Name); \
    return op;                                  \
  }                                             \
  TVM_REGISTER_OP("tir." #Name)                 \
      .set_attr<Integer>(kTCallEffectKind, Integer(static_cast<int>(CallEffectKind::Effect)))

TVM_TIR_DEFINE_BUILTIN(ret, kUpdateState).set_num_inputs(1);
TVM_TIR_DEFINE_BUILTIN(likely, kExprAnnotation).set_num_inputs(1);
TVM_TIR_DEFINE_BUILTIN(if_then_else, kPure).set_num_inputs(3);
TVM_TIR_DEFINE_BUILTIN(reinterpret, kPure).set_num_inputs(1);
TVM_TIR_DEFINE_BUILTIN(fma, kPure).set_num_inputs(3);
TVM_TIR_DEFINE_BUILTIN(vscale, kPure).set_num_inputs(0);
TVM_TIR_DEFINE_BUILTIN(get_active_lane_mask, kPure).set_num_inputs(2);
TVM_TIR_DEFINE_BUILTIN(isnan, kPure).set_num_inputs(1);
TVM_TIR_DEFINE_BUILTIN(bitwise_and, kPure).set_num_inputs(2);
TVM_TIR_DEFINE_BUILTIN(bitwise_or, kPure).set_num_inputs(2);
TVM_TIR_DEFINE_BUILTIN(bitwise_xor, kPure).set_num_inputs(2);
TVM_TIR_DEFINE_BUILTIN(bitwise_not, kPure).set_num_inputs(1);
TVM_TIR_DEFINE_BUILTIN(shift_left, kPure).set_num_inputs(2);
TVM_TIR_DEFINE_BUILTIN(shift_right, kPure).set_num_inputs(2);
TVM_TIR_DEFINE_BUILTIN(large_uint_imm, kPure).set_num_inputs(2);
TVM_TIR_DEFINE_BUILTIN(address_of, kPure).set_num_inputs(1);
TVM_TIR_DEFINE_BUILTIN(tvm_access_ptr, kPure).set_num_inputs(5);
TVM_TIR_DEFINE_BUILTIN(type_annotation, kPure).set_num_inputs(0);
TVM_TIR_DEFINE_BUILTIN(tvm_tuple, kPure);
TVM_TIR_DEFINE_BUILTIN(prefetch, kOpaque).set_num_inputs(4);
TVM_TIR_DEFINE_BUILTIN(call_extern, kOpaque);
TVM_TIR_DEFINE_BUILTIN(call_pure_extern, kPure);
TVM_TIR_DEFINE_BUILTIN(call_llvm_pure_intrin, kPure);
TVM_TIR_DEFINE_BUILTIN(call_llvm_intrin, kOpaque);
TVM_TIR_DEFINE_BUILTIN(tvm_call_packed, kOpaque);
TVM_TIR_DEFINE_BUILTIN(tvm_call_packed_lowered, kOpaque).set_num_inputs(4);
TVM_TIR_DEFINE_BUILTIN(tvm_stack_alloca, kOpaque).set_num_inputs(2);
TVM_REGISTER_OP("tir.tvm_call_cpacked")
    .describe(
        "(name, args...): call of a symbol that has the calling convention of packed functions")
    .set_attr<Integer>(kTCallEffectKind, Integer(static_cast<int>(CallEffectKind::kOpaque)));
TVM_REGISTER_OP("tir.tvm_call_cpacked_lowered")
    .describe("(name, stack, begin, end): the same, of arguments that are in an array already")
    .set_attr<Integer>(kTCallEffectKind, Integer(static_cast<int>(CallEffectKind::kOpaque)))
    .set_num_inputs(4);
TVM_REGISTER_OP("tir.tvm_check_return")
    .describe(
        "(expected, status, call): leave the function with `status` unless `call` gives `expected`")
    .set_attr<Integer>(kTCallEffectKind, Integer(static_cast<int>(CallEffectKind::kOpaque)))
    .set_num_inputs(3);
TVM_REGISTER_OP("tir.tvm_throw_last_error")
    .describe("(): leave the function with the error that the runtime kept last")
    .set_attr<Integer>(kTCallEffectKind, Integer(static_cast<int>(CallEffectKind::kOpaque)))
    .set_num_inputs(0);
TVM_REGISTER_OP("tir.lookup_param")
    .describe("(name): address of the constant `__tvm_param__name` of the linked program")
    .set_attr<Integer>(kTCallEffectKind, Integer(static_cast<int>(CallEffectKind::kPure)))
    .set_num_inputs(1);
TVM_TIR_DEFINE_BUILTIN(null_handle, kPure).set_num_inputs(0);
TVM_REGISTER_OP("tir.tvm_static_handle")
    .describe("(): address of a pointer of the compiled code, NULL until somebody writes it")
    .set_attr<Integer>(kTCallEffectKind, Integer(static_cast<int>(CallEffectKind::kOpaque)))
    .set_num_inputs(0);
TVM_TIR_DEFINE_BUILTIN(isnullptr, kPure).set_num_inputs(1);
TVM_TIR_DEFINE_BUILTIN(tvm_struct_get, kReadState).set_num_inputs(3);
TVM_TIR_DEFINE_BUILTIN(tvm_struct_set, kUpdateState).set_num_inputs(4);
TVM_TIR_DEFINE_BUILTIN(error_text, kPure);
TVM_TIR_DEFINE_BUILTIN(tvm_storage_sync, kOpaque).set_num_inputs(1);
TVM_TIR_DEFINE_BUILTIN(tvm_thread_allreduce, kOpaque);
TVM_TIR_DEFINE_BUILTIN(tvm_warp_activemask, kOpaque).set_num_inputs(0);
TVM_TIR_DEFINE_BUILTIN(tvm_warp_shuffle, kOpaque).set_num_inputs(5);
TVM_TIR_DEFINE_BUILTIN(tvm_warp_shuffle_up, kOpaque).set_num_inputs(5);
TVM_TIR_DEFINE_BUILTIN(tvm_warp_shuffle_down, kOpaque).set_num_inputs(5);
TVM_TIR_DEFINE_BUILTIN(tvm_fill_fragment, kOpaque).set_num_inputs(6);
TVM_TIR_DEFINE_BUILTIN(tvm_load_matrix_sync, kOpaque).set_num_inputs(8);
TVM_TIR_DEFINE_BUILTIN(tvm_mma_sync, kOpaque).set_num_inputs(8);
TVM_TIR_DEFINE_BUILTIN(tvm_store_matrix_sync, kOpaque).set_num_inputs(8);

#undef TVM_TIR_DEFINE_BUILTIN

// Instructions of NVIDIA's processors, which no pass creates by a name in C++.
#define TVM_TIR_REGISTER_INSTRUCTION(Name) \
  TVM_REGISTER_OP("tir." #Name)            \
      .set_attr<Integer>(kTCallEffectKind, Integer(static_cast<int>(CallEffectKind::kOpaque)))

TVM_TIR_REGISTER_INSTRUCTION(tvm_bmma_sync).set_num_inputs(8);
TVM_TIR_REGISTER_INSTRUCTION(ptx_mma);
TVM_TIR_REGISTER_INSTRUCTION(ptx_mma_sp).set_num_inputs(16);
TVM_TIR_REGISTER_INSTRUCTION(ptx_ldmatrix).set_num_inputs(7);
TVM_TIR_REGISTER_INSTRUCTION(mma_store).set_num_inputs(6);
TVM_TIR_REGISTER_INSTRUCTION(mma_fill).set_num_inputs(3);
TVM_TIR_REGISTER_INSTRUCTION(ptx_cp_async);
TVM_TIR_REGISTER_INSTRUCTION(ptx_cp_async_bulk).set_num_inputs(6);
TVM_TIR_REGISTER_INSTRUCTION(ptx_commit_group).set_num_inputs(0);
TVM_TIR_REGISTER_INSTRUCTION(ptx_wait_group).set_num_inputs(1);
TVM_TIR_REGISTER_INSTRUCTION(ptx_ldg32).set_num_inputs(4);
TVM_TIR_REGISTER_INSTRUCTION(tvm_thread_context).set_num_inputs(1);
TVM_TIR_REGISTER_INSTRUCTION(create_barriers).set_num_inputs(1);
TVM_TIR_REGISTER_INSTRUCTION(ptx_init_barrier_thread_count).set_num_inputs(2);
TVM_TIR_REGISTER_INSTRUCTION(ptx_arrive_barrier).set_num_inputs(1);
TVM_TIR_REGISTER_INSTRUCTION(ptx_arrive_barrier_expect_tx).set_num_inputs(2);
TVM_TIR_REGISTER_INSTRUCTION(ptx_cp_async_barrier).set_num_inputs(1);
TVM_TIR_REGISTER_INSTRUCTION(ptx_wait_barrier).set_num_inputs(1);

#undef TVM_TIR_REGISTER_INSTRUCTION

}  // namespace builtin
}  // namespace tir
}  // namespace tvm
