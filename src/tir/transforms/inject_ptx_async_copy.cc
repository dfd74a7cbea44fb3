/*!
 * \file src/tir/transforms/inject_ptx_async_copy.cc
 * \brief Asynchronous copies and their queues as instructions of NVIDIA's processors.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/async_copies.h>
#include <tvm/tir/launch.h>

#include <algorithm>
#include <string>

#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

Stmt Instruction(const char* name, const DataType& dtype, const Array<PrimExpr>& args) {
  return Evaluate(Call(dtype, Op::Get(name), args));
}

bool IsZero(const PrimExpr& value) {
  const auto* broadcast = value.as<BroadcastNode>();
  const PrimExpr& element = broadcast != nullptr ? broadcast->value : value;
  const auto* number = element.as<FloatImmNode>();
  return number != nullptr ? number->value == 0 : is_zero(element);
}

/*! \brief The first index of neighbours; undefined for other accesses. */
PrimExpr FirstOfRun(const PrimExpr& index) {
  if (index.dtype().is_scalar()) return index;
  const auto* ramp = index.as<RampNode>();
  return ramp != nullptr && is_one(ramp->stride) ? ramp->base : PrimExpr();
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
      const auto [under_way, body] = WaitOf(op);
      // The instruction takes a constant. Fewer groups under way than allowed is always right.
      int64_t count = std::max<int64_t>(0, analyzer_.const_int_bound(under_way)->min_value);
      return SeqStmt::Flatten(
          {Instruction("tir.ptx_wait_group", DataType::Void(), {Integer(static_cast<int>(count))}),
           VisitStmt(body)});
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
    const std::optional<AsyncCopy> copy = async_ ? AsyncCopyOf(op) : std::nullopt;
    if (!copy) return GetRef<Stmt>(op);
    Array<PrimExpr> args;
    for (const auto& [buffer, index] :
         {std::pair{op->buffer, copy->to_index}, std::pair{copy->from->buffer, copy->from_index}}) {
      for (const PrimExpr& part : Pointer(buffer, index)) args.push_back(part);
    }
    args.push_back(Integer(copy->bytes));
    if (copy->guard.defined()) args.push_back(copy->guard);
    return Instruction("tir.ptx_cp_async", op->buffer->dtype.element_of(), args);
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

std::optional<AsyncCopy> AsyncCopyOf(const BufferStoreNode* store) {
  if (store->indices.size() != 1 || std::string(store->buffer.scope()).rfind("shared", 0) != 0) {
    return std::nullopt;
  }
  AsyncCopy copy;
  const auto* load = store->value.as<BufferLoadNode>();
  const auto* call = store->value.as<CallNode>();
  if (call != nullptr && call->op.same_as(builtin::if_then_else()) && IsZero(call->args[2])) {
    copy.guard = call->args[0];
    load = call->args[1].as<BufferLoadNode>();
  }
  if (load == nullptr || load->buffer.scope() != "global" || load->indices.size() != 1 ||
      load->buffer->dtype != store->buffer->dtype ||
      (copy.guard.defined() && !copy.guard.dtype().is_scalar())) {
    return std::nullopt;
  }
  copy.from = GetRef<BufferLoad>(load);
  copy.to_index = FirstOfRun(store->indices[0]);
  copy.from_index = FirstOfRun(load->indices[0]);
  copy.bytes = store->value.dtype().bytes() * store->value.dtype().lanes();
  const bool has_instruction = copy.bytes == 4 || copy.bytes == 8 || copy.bytes == 16;
  if (!copy.to_index.defined() || !copy.from_index.defined() || !has_instruction) {
    return std::nullopt;
  }
  return copy;
}

std::pair<PrimExpr, Stmt> WaitOf(const AttrStmtNode* queue_scope) {
  const auto* wait = queue_scope->body.as<AttrStmtNode>();
  TVM_CHECK(wait != nullptr && wait->attr_key == attr::async_wait_inflight_count, ValueError)
      << "asynchronous copies: attribute " << attr::async_wait_queue_scope
      << " is around one named " << attr::async_wait_inflight_count;
  return {wait->value, wait->body};
}

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
