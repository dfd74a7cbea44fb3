/*!
 * \file src/tir/transforms/inject_ptx_async_copy.cc
 * \brief Asynchronous copies and their queues as instructions of NVIDIA's processors.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/launch.h>

#include <algorithm>
#include <string>

#include "pass_common.h"
#include "software_pipeline.h"

namespace tvm {
namespace tir {
namespace {

Stmt Instruction(const char* name, const DataType& dtype, const Array<PrimExpr>& args) {
  return Evaluate(Call(dtype, Op::Get(name), args));
}

class AsyncCopyInjector final : public StmtMutator {
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key == attr::async_scope) {
      bool outer = std::exchange(async_, true);
      Stmt body = VisitStmt(op->body);
      async_ = outer;
      return body;
    }
    if (op->attr_key == attr::async_commit_queue_scope) {
      return SeqStmt::Flatten(
          {VisitStmt(op->body), Instruction("tir.ptx_commit_group", DataType::Void(), {})});
    }
    if (op->attr_key == attr::async_wait_queue_scope) {
      const auto* wait = op->body.as<AttrStmtNode>();
      TVM_CHECK(wait != nullptr && wait->attr_key == attr::async_wait_inflight_count, ValueError)
          << "InjectPTXAsyncCopy: attribute " << attr::async_wait_queue_scope
          << " is around one named " << attr::async_wait_inflight_count;
      // The instruction takes a constant. Fewer groups under way than allowed is always right.
      int64_t count = std::max<int64_t>(0, analyzer_.const_int_bound(wait->value)->min_value);
      return SeqStmt::Flatten(
          {Instruction("tir.ptx_wait_group", DataType::Void(), {Integer(static_cast<int>(count))}),
           VisitStmt(wait->body)});
    }
    const auto* axis = op->node.as<IterVarNode>();
    if (op->attr_key == attr::thread_extent && axis != nullptr) {
      analyzer_.Bind(axis->var, Range::FromMinExtent(make_zero(op->value.dtype()), op->value),
                     true);
    }
    return StmtMutator::VisitStmt_(op);
  }
  Stmt VisitStmt_(const ForNode* op) final {
    analyzer_.Bind(op->loop_var, Range::FromMinExtent(op->min, op->extent), true);
    return StmtMutator::VisitStmt_(op);
  }

  Stmt VisitStmt_(const BufferStoreNode* op) final {
    if (!async_ || op->indices.size() != 1 ||
        std::string(op->buffer.scope()).rfind("shared", 0) != 0) {
      return GetRef<Stmt>(op);
    }
    PrimExpr guard;
    const auto* load = op->value.as<BufferLoadNode>();
    const auto* call = op->value.as<CallNode>();
    if (call != nullptr && call->op.same_as(builtin::if_then_else()) && IsZero(call->args[2])) {
      guard = call->args[0];
      load = call->args[1].as<BufferLoadNode>();
    }
    if (load == nullptr || load->buffer.scope() != "global" || load->indices.size() != 1 ||
        load->buffer->dtype != op->buffer->dtype ||
        (guard.defined() && !guard.dtype().is_scalar())) {
      return GetRef<Stmt>(op);
    }
    PrimExpr to = FirstOfRun(op->indices[0]);
    PrimExpr from = FirstOfRun(load->indices[0]);
    const int64_t bytes = op->value.dtype().bytes() * op->value.dtype().lanes();
    bool fits = to.defined() && from.defined() && (bytes == 4 || bytes == 8 || bytes == 16);
    if (!fits) return GetRef<Stmt>(op);
    Array<PrimExpr> args;
    for (const auto& [buffer, index] : {std::pair{op->buffer, to}, std::pair{load->buffer, from}}) {
      for (const PrimExpr& part : Pointer(buffer, index)) args.push_back(part);
    }
    args.push_back(Integer(static_cast<int>(bytes)));
    if (guard.defined()) args.push_back(guard);
    return Instruction("tir.ptx_cp_async", op->buffer->dtype.element_of(), args);
  }

  static bool IsZero(const PrimExpr& value) {
    const auto* broadcast = value.as<BroadcastNode>();
    const PrimExpr& element = broadcast != nullptr ? broadcast->value : value;
    const auto* number = element.as<FloatImmNode>();
    return number != nullptr ? number->value == 0 : is_zero(element);
  }
  /*! \brief The first index of neighbours; undefined for other accesses. */
  static PrimExpr FirstOfRun(const PrimExpr& index) {
    if (index.dtype().is_scalar()) return index;
    const auto* ramp = index.as<RampNode>();
    return ramp != nullptr && is_one(ramp->stride) ? ramp->base : PrimExpr();
  }
  /*! \brief A pointer and an offset from it, in elements of the buffer. */
  static Array<PrimExpr> Pointer(const Buffer& buffer, const PrimExpr& index) {
    const auto* pointer = buffer->data->type_annotation.as<PointerTypeNode>();
    const auto* element = pointer == nullptr ? nullptr : pointer->element_type.as<PrimTypeNode>();
    if (element != nullptr && element->dtype == buffer->dtype) {
      return {buffer->data, buffer.ElemOffset({index})};
    }
    // Memory of another type, such as bytes that several buffers share.
    PrimExpr address =
        Call(DataType::Handle(), builtin::address_of(), {BufferLoad(buffer, {index})});
    return {address, make_zero(index.dtype())};
  }

  bool async_ = false;
  arith::Analyzer analyzer_;
};

}  // namespace

namespace transform {

Pass InjectPTXAsyncCopy() {
  return BodyPass("tir.InjectPTXAsyncCopy", [](const PrimFunc& func, const PassContext&) {
    return AsyncCopyInjector()(func->body);
  });
}

TVM_REGISTER_GLOBAL("tir.transform.InjectPTXAsyncCopy").set_body_typed(InjectPTXAsyncCopy);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
