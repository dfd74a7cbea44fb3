/*!
 * \file src/tir/transforms/lower_tvm_builtin.cc
 * \brief Calls of packed functions spelled out: arguments are written to an array of TVMAny.
 */
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/analysis.h>

#include <utility>
#include <vector>

#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

TVM_REGISTER_OP("tir.tvm_stack_make_shape")
    .describe("(extents..): shape or strides of tvm_stack_make_array")
    .set_attr<Integer>(kTCallEffectKind, Integer(static_cast<int>(CallEffectKind::kPure)));
TVM_REGISTER_OP("tir.tvm_stack_make_array")
    .describe(
        "(data, shape, strides, ndim, value, offset): an array as argument of tvm_call_packed, for "
        "the time of the call. Shape and strides are calls of tvm_stack_make_shape, strides 0 if "
        "the array has no gaps; elements have the type of the value, and offset and strides count "
        "elements")
    .set_num_inputs(6)
    .set_attr<Integer>(kTCallEffectKind, Integer(static_cast<int>(CallEffectKind::kPure)));

const Op& StackMakeArray() {
  static const Op& op = Op::Get("tir.tvm_stack_make_array");
  return op;
}

/*! \brief What a call of tvm_stack_make_shape lists. */
Array<PrimExpr> Extents(const PrimExpr& shape, size_t ndim) {
  static const Op& op = Op::Get("tir.tvm_stack_make_shape");
  const auto* call = shape.as<CallNode>();
  TVM_CHECK(call != nullptr && call->op.same_as(op) && call->args.size() == ndim, TypeError)
      << "LowerTVMBuiltin: tvm_stack_make_array of " << ndim << " axes needs as many extents in "
      << "tvm_stack_make_shape, got " << shape;
  return call->args;
}

Array<PrimExpr> StridesWithoutGaps(const Array<PrimExpr>& shape) {
  Array<PrimExpr> strides;
  PrimExpr size = make_const(DataType::Int(64), 1);
  for (size_t i = shape.size(); i-- > 0;) {
    strides.insert(strides.begin(), size);
    size = size * cast(DataType::Int(64), shape[static_cast<int64_t>(i)]);
  }
  return strides;
}

class PackedCallLowerer final : public StmtExprMutator {
 private:
  /*! \brief What has to happen before the statement that contains a call. */
  struct Preparation {
    Array<Stmt> writes;
    std::vector<std::pair<Var, PrimExpr>> stacks;
    /*! \brief Memory for the arrays that are passed: pointer and number of words. */
    std::vector<std::pair<Var, PrimExpr>> arrays;
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
      for (const auto& [data, size] : before.arrays) {
        result = Allocate(data, DataType::Int(64), {size}, const_true(), result);
      }
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
    static const Op direct = Op::Get("tir.tvm_call_cpacked");
    static const Op direct_lowered = Op::Get("tir.tvm_call_cpacked_lowered");
    if (!op->op.same_as(builtin::tvm_call_packed()) && !op->op.same_as(direct)) return expr;
    TVM_CHECK(!op->args.empty() && op->args[0].as<StringImmNode>(), TypeError)
        << "LowerTVMBuiltin: a packed call needs the function's name as its first argument, got "
        << expr;
    int count = static_cast<int>(op->args.size()) - 1;
    Var stack("stack", DataType::Handle());
    pending_.stacks.emplace_back(stack, Call(DataType::Handle(), builtin::tvm_stack_alloca(),
                                             {StringImm("tvm_any"), PrimExpr(count + 1)}));
    for (int i = 0; i < count; ++i) {
      PrimExpr value = op->args[i + 1];
      const auto* array = value.as<CallNode>();
      bool is_array = array != nullptr && array->op.same_as(StackMakeArray());
      if (is_array) value = MakeArray(array);
      Pass(value, is_array, stack, i, &pending_.writes);
    }
    return Call(op->dtype,
                op->op.same_as(direct) ? direct_lowered : builtin::tvm_call_packed_lowered(),
                {op->args[0], stack, PrimExpr(0), PrimExpr(count)});
  }

  /*!
   * \brief Writes a DLTensor into memory of this call and gives its address.
   *
   * The six words of the struct as 64-bit machines lay it out, then the shape, then the strides.
   */
  PrimExpr MakeArray(const CallNode* op) {
    DataType wide = DataType::Int(64);
    const int64_t* axes = as_const_int(op->args[3]);
    TVM_CHECK(axes != nullptr && *axes >= 0, TypeError)
        << "LowerTVMBuiltin: the number of axes of tvm_stack_make_array must be constant, got "
        << op->args[3];
    DataType element = op->args[4].dtype();
    const size_t ndim = static_cast<size_t>(*axes);
    const Array<PrimExpr> shape = Extents(op->args[1], ndim);
    const Array<PrimExpr> strides =
        is_zero(op->args[2]) ? StridesWithoutGaps(shape) : Extents(op->args[2], ndim);
    Var data("array", PointerType(PrimType(wide), "local"));
    PrimExpr size(static_cast<int>(6 + 2 * ndim));
    Buffer words(data, wide, {size}, {}, PrimExpr(), data->name_hint);
    pending_.arrays.emplace_back(data, size);
    int position = 0;
    auto write = [&](const PrimExpr& value) {
      pending_.writes.push_back(BufferStore(words, cast(wide, value), {PrimExpr(position++)}));
    };
    auto address = [&](size_t word) {
      return Call(DataType::Handle(), builtin::address_of(),
                  {BufferLoad(words, {PrimExpr(static_cast<int>(word))})});
    };
    auto pair = [&](int64_t low, int64_t high) { return make_const(wide, low | high << 32); };
    write(reinterpret(wide, op->args[0]));
    write(pair(kDLCPU, 0));
    int64_t dtype = element.code() | element.bits() << 8 | int64_t(element.lanes()) << 16;
    write(pair(static_cast<int64_t>(ndim), dtype));
    write(reinterpret(wide, address(6)));
    write(reinterpret(wide, address(6 + ndim)));
    int bytes = (element.bits() * element.lanes() + 7) / 8;
    write(cast(wide, op->args[5]) * make_const(wide, bytes));
    for (const PrimExpr& extent : shape) write(extent);
    for (const PrimExpr& stride : strides) write(stride);
    return address(0);
  }

  static void Pass(PrimExpr value, bool is_array, const Var& stack, int index,
                   Array<Stmt>* writes) {
    DataType dtype = value.dtype();
    int code = is_array ? kTVMDLTensor : kTVMOpaqueHandle;
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
