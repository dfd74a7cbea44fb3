/*!
 * \file src/tir/transforms/lower_tvm_builtin.cc
 * \brief Calls of packed functions spelled out: arguments are written to an array of TVMAny.
 */
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/builtin.h>
#include <tvm/tir/op.h>

#include <utility>
#include <vector>

#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

class PackedCallLowerer final : public StmtExprMutator {
 private:
  /*! \brief What has to happen before the statement that contains a call. */
  struct Preparation {
    Array<Stmt> writes;
    std::vector<std::pair<Var, PrimExpr>> stacks;
  };

  Stmt VisitStmt(const Stmt& stmt) final {
    Preparation before;
    std::swap(before, pending_);
    Stmt result = StmtExprMutator::VisitStmt(stmt);
    std::swap(before, pending_);
    if (!before.stacks.empty()) {
      TVM_CHECK(!stmt.as<WhileNode>(), ValueError)
          << "LowerTVMBuiltin: the condition of a while loop calls a packed function, whose "
          << "arguments would be computed once only; store the result and test that";
      before.writes.push_back(result);
      result = SeqStmt::Flatten(before.writes);
      // A stack of its own for each call: bodies of parallel loops run at the same time.
      for (auto it = before.stacks.rbegin(); it != before.stacks.rend(); ++it) {
        result = LetStmt(it->first, it->second, result);
      }
    }
    return result;
  }

  PrimExpr VisitExpr_(const CallNode* op) final {
    PrimExpr expr = StmtExprMutator::VisitExpr_(op);
    op = expr.as<CallNode>();
    if (!op->op.same_as(builtin::tvm_call_packed())) return expr;
    TVM_CHECK(!op->args.empty() && op->args[0].as<StringImmNode>(), TypeError)
        << "LowerTVMBuiltin: tvm_call_packed needs the function's name as its first argument, got "
        << expr;
    int count = static_cast<int>(op->args.size()) - 1;
    Var stack("stack", DataType::Handle());
    pending_.stacks.emplace_back(stack, Call(DataType::Handle(), builtin::tvm_stack_alloca(),
                                             {StringImm("tvm_any"), PrimExpr(count + 1)}));
    for (int i = 0; i < count; ++i) Pass(op->args[i + 1], stack, i, &pending_.writes);
    return Call(op->dtype, builtin::tvm_call_packed_lowered(),
                {op->args[0], stack, PrimExpr(0), PrimExpr(count)});
  }

  static void Pass(PrimExpr value, const Var& stack, int index, Array<Stmt>* writes) {
    DataType dtype = value.dtype();
    int code = kTVMOpaqueHandle;
    if (value.as<StringImmNode>()) {
      code = kTVMStr;
    } else if (dtype.is_float() || dtype.is_bfloat16()) {
      code = kTVMFloat;
      value = cast(DataType::Float(64), value);
    } else if (!dtype.is_handle()) {
      code = dtype.is_bool() ? kTVMBool : kTVMInt;
      value = cast(DataType::Int(64), value);
    }
    auto set = [&](builtin::StructField field, PrimExpr content) {
      writes->push_back(
          Evaluate(Call(DataType::Int(32), builtin::tvm_struct_set(),
                        {stack, PrimExpr(index), PrimExpr(static_cast<int>(field)), content})));
    };
    set(builtin::kAnyTypeCode, PrimExpr(code));
    set(builtin::kAnyValue, value);
  }

  /*! \brief Of the innermost statement being visited. */
  Preparation pending_;
};

}  // namespace

namespace transform {

Pass LowerTVMBuiltin() {
  return BodyPass("tir.LowerTVMBuiltin", [](const PrimFunc& func, const PassContext&) {
    return PackedCallLowerer()(func->body);
  });
}

TVM_REGISTER_GLOBAL("tir.transform.LowerTVMBuiltin").set_body_typed(LowerTVMBuiltin);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
