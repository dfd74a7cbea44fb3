/*!
 * \file src/tir/transforms/make_packed_api.cc
 * \brief The calling convention of packed functions, with checks of every argument.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/registry.h>
#include <tvm/target/target.h>
#include <tvm/tir/launch.h>

#include <functional>
#include <optional>
#include <string>
#include <unordered_set>

#include "pass_common.h"

namespace tvm {
namespace tir {
namespace {

using builtin::StructField;

/*! \brief Builds the statements around a body that check arguments and bind variables to them. */
class ArgumentBinder {
 public:
  ArgumentBinder(std::string name, Var args, int device_type)
      : name_(std::move(name)), args_(std::move(args)), device_type_(device_type) {}

  void BindScalar(const Var& param, int position) {
    DataType dtype = param->dtype;
    PrimExpr code = TypeCode(position);
    std::string where = Where(param->name_hint, position);
    if (dtype.is_handle()) {
      Assert(Is(code, kTVMOpaqueHandle) || Is(code, kTVMNull) || Is(code, kTVMDLTensor),
             "TypeError: " + where + ": expected a handle, got <kind {}>", {code});
      BindPointer(param, code, position);
      return;
    }
    PrimExpr integer = Get(DataType::Int(64), args_, position, builtin::kAnyValue);
    if (dtype.is_int() || dtype.is_uint()) {
      Assert(Is(code, kTVMInt) || Is(code, kTVMBool),
             "TypeError: " + where + ": expected an integer, got <kind {}>", {code});
      if (dtype.bits() < 64 && !dtype.is_bool()) {
        DataType wide = DataType::Int(64);
        PrimExpr last = make_const(wide, (int64_t{1} << (dtype.bits() - dtype.is_int())) - 1);
        PrimExpr first = dtype.is_int() ? -last - 1 : make_zero(wide);
        Assert(first <= integer && integer <= last,
               "ValueError: " + where + ": {} does not fit " + dtype.ToString(), {integer});
      }
      Bind(param, cast(dtype, integer));
      return;
    }
    Assert(Is(code, kTVMFloat) || Is(code, kTVMInt),
           "TypeError: " + where + ": expected a number, got <kind {}>", {code});
    PrimExpr real = Get(DataType::Float(64), args_, position, builtin::kAnyValue);
    Bind(param,
         cast(dtype, if_then_else(Is(code, kTVMFloat), real, cast(DataType::Float(64), integer))));
  }

  void BindBuffer(const Buffer& buffer, int position) {
    std::string where = Where(buffer->name, position);
    PrimExpr code = TypeCode(position);
    Assert(Is(code, kTVMDLTensor),
           "TypeError: " + where +
               ": expected a tensor, got <kind {}>; make one with tvm.nd.array or tvm.nd.empty",
           {code});
    Var tensor(buffer->name + ".tensor", DataType::Handle());
    Bind(tensor, Get(DataType::Handle(), args_, position, builtin::kAnyDLTensor));

    PrimExpr ndim = Get(DataType::Int(32), tensor, 0, builtin::kArrNDim);
    int expected_ndim = static_cast<int>(buffer->shape.size());
    Assert(ndim == expected_ndim,
           "ValueError: " + where + ": expected " + std::to_string(expected_ndim) + " axes, got {}",
           {ndim});
    CheckDType(buffer, tensor, where);
    CheckDevice(tensor, where);

    Var shape(buffer->name + ".shape", DataType::Handle());
    Bind(shape, Get(DataType::Handle(), tensor, 0, builtin::kArrShape));
    for (int axis = 0; axis < expected_ndim; ++axis) {
      PrimExpr actual = Get(DataType::Int(64), shape, axis, builtin::kInt64Element);
      Match(buffer->shape[axis], actual,
            "ValueError: " + where + ".shape[" + std::to_string(axis) + "]");
    }
    BindStrides(buffer, tensor, shape, where);
    BindData(buffer, tensor, where);
  }

  /*! \brief `body` with everything bound and checked before it. */
  Stmt Wrap(Stmt body) {
    if (device_type_ != static_cast<int>(kDLCPU)) body = OnDevice(body);
    // Extents that are expressions can be checked once all variables have their values.
    for (const auto& check : deferred_) check();
    for (auto it = steps_.rbegin(); it != steps_.rend(); ++it) body = (*it)(body);
    return body;
  }

  void Assert(PrimExpr condition, const std::string& text, Array<PrimExpr> values) {
    if (is_one(condition)) return;
    Array<PrimExpr> message{StringImm(text)};
    for (const PrimExpr& value : values) message.push_back(cast(DataType::Int(64), value));
    PrimExpr call = Call(DataType::Handle(), builtin::error_text(), message);
    steps_.push_back([condition, call](Stmt body) { return AssertStmt(condition, call, body); });
  }

  const std::string& name() const { return name_; }

 private:
  /*! \brief `body` with the device of the arguments as the current one. */
  Stmt OnDevice(const Stmt& body) const {
    bool known = bound_.count(device_id_.get()) != 0;
    PrimExpr id = known ? PrimExpr(device_id_) : PrimExpr(0);
    Stmt set =
        Evaluate(Call(DataType::Int(32), builtin::tvm_call_packed(),
                      {StringImm(runtime::symbol::tvm_set_device), PrimExpr(device_type_), id}));
    Stmt both = SeqStmt::Flatten({set, body});
    both = AttrStmt(StringImm("default"), attr::device_id, id, both);
    return AttrStmt(StringImm("default"), attr::device_type, PrimExpr(device_type_), both);
  }

  std::string Where(const std::string& argument, int position) const {
    return name_ + ": argument " + std::to_string(position) + " (" + argument + ")";
  }

  /*! \brief A pointer to elements takes the memory of a tensor, any other handle what is given. */
  void BindPointer(const Var& param, const PrimExpr& code, int position) {
    PrimExpr given = Get(DataType::Handle(), args_, position, builtin::kAnyValue);
    const auto* pointer = param->type_annotation.as<PointerTypeNode>();
    if (pointer == nullptr || pointer->element_type.as<PrimTypeNode>() == nullptr) {
      Bind(param, given);
      return;
    }
    Var tensor(param->name_hint + ".tensor", DataType::Handle());
    Bind(tensor, given);
    PrimExpr is_tensor = Is(code, kTVMDLTensor);
    DataType element = pointer->element_type.as<PrimTypeNode>()->dtype;
    PrimExpr type_code = Get(DataType::Int(32), tensor, 0, builtin::kArrDTypeCode);
    PrimExpr bits = Get(DataType::Int(32), tensor, 0, builtin::kArrDTypeBits);
    PrimExpr same = type_code == element.code() && bits == element.bits();
    Assert(if_then_else(is_tensor, same, const_true()),
           "TypeError: " + Where(param->name_hint, position) + ": expected memory of " +
               element.ToString() + ", got a tensor of another dtype",
           {});
    DataType wide = DataType::Int(64);
    PrimExpr data = Get(DataType::Handle(), tensor, 0, builtin::kArrData);
    PrimExpr offset = Get(wide, tensor, 0, builtin::kArrByteOffset);
    Var address(param->name_hint + ".address", wide);
    Bind(address,
         if_then_else(is_tensor, reinterpret(wide, data) + offset, reinterpret(wide, tensor)));
    Bind(param, reinterpret(DataType::Handle(), address));
  }

  static PrimExpr Is(const PrimExpr& code, TVMTypeCode expected) {
    return code == static_cast<int>(expected);
  }

  static PrimExpr Get(DataType dtype, const PrimExpr& handle, int index, StructField field) {
    return Call(dtype, builtin::tvm_struct_get(), {handle, index, static_cast<int>(field)});
  }

  PrimExpr TypeCode(int position) {
    Var code("arg" + std::to_string(position) + ".code", DataType::Int(32));
    Bind(code, Get(DataType::Int(32), args_, position, builtin::kAnyTypeCode));
    return code;
  }

  void Bind(const Var& var, const PrimExpr& value) {
    bound_.insert(var.get());
    steps_.push_back([var, value](Stmt body) { return LetStmt(var, value, body); });
  }

  void CheckDevice(const Var& tensor, const std::string& where) {
    PrimExpr type = Get(DataType::Int(32), tensor, 0, builtin::kArrDeviceType);
    std::string expected = "<device " + std::to_string(device_type_) + ">";
    Assert(type == device_type_,
           "ValueError: " + where + ": expected memory of the target's device, " + expected +
               ", got memory of <device {}>; copy it with copyto(tvm.device(\"" + expected + "\"))",
           {type});
    // The number of a processor says nothing; kernels run on the device their arguments are on.
    if (device_type_ == static_cast<int>(kDLCPU)) return;
    Match(device_id_, Get(DataType::Int(32), tensor, 0, builtin::kArrDeviceId),
          "ValueError: " + where + ".device_id");
  }

  void CheckDType(const Buffer& buffer, const Var& tensor, const std::string& where) {
    DataType dtype = buffer->dtype;
    PrimExpr code = Get(DataType::Int(32), tensor, 0, builtin::kArrDTypeCode);
    PrimExpr bits = Get(DataType::Int(32), tensor, 0, builtin::kArrDTypeBits);
    PrimExpr lanes = Get(DataType::Int(32), tensor, 0, builtin::kArrDTypeLanes);
    PrimExpr same = code == dtype.code() && bits == dtype.bits() && lanes == dtype.lanes();
    if (dtype.is_bool()) {
      // Frameworks hand booleans over with a code of their own or as bytes.
      same = lanes == 1 && ((code == static_cast<int>(kDLBool) && bits == 8) ||
                            (code == static_cast<int>(kDLUInt) && (bits == 1 || bits == 8)));
    }
    Assert(
        same,
        "TypeError: " + where + ": expected dtype " + dtype.ToString() + ", got <dtype {} {} {}>",
        {code, bits, lanes});
  }

  /*! \brief `expected` equals `actual`; a variable without a value yet takes it. */
  void Match(const PrimExpr& expected, const PrimExpr& actual, const std::string& what) {
    if (expected.as<VarNode>() != nullptr && bound_.count(expected.as<VarNode>()) == 0) {
      Bind(Downcast<Var>(expected), cast(expected.dtype(), actual));
      return;
    }
    auto check = [this, expected, actual, what] {
      PrimExpr wide = cast(DataType::Int(64), expected);
      Assert(actual == wide, what + ": expected {}, got {}", {wide, actual});
    };
    if (is_const_int(expected) || expected.as<VarNode>() != nullptr) {
      check();
    } else {
      deferred_.push_back(check);
    }
  }

  /*!
   * \brief The variable of a stride `if_then_else(extent == 1, 0, variable)`, which takes whatever
   *        the array has: where the extent is 1 it is not used.
   */
  std::optional<Var> StrideOfRepeated(const PrimExpr& stride) const {
    const auto* choice = stride.as<CallNode>();
    if (choice == nullptr || !choice->op.same_as(builtin::if_then_else())) return std::nullopt;
    const auto* one = choice->args[0].as<EQNode>();
    const auto* var = choice->args[2].as<VarNode>();
    bool repeats = one != nullptr && is_one(one->b) && is_zero(choice->args[1]);
    if (!repeats || var == nullptr || bound_.count(var) != 0) return std::nullopt;
    return GetRef<Var>(var);
  }

  void BindStrides(const Buffer& buffer, const Var& tensor, const Var& shape,
                   const std::string& where) {
    int ndim = static_cast<int>(buffer->shape.size());
    if (ndim == 0) return;
    DataType wide = DataType::Int(64);
    Var strides(buffer->name + ".strides", DataType::Handle());
    Bind(strides, Get(DataType::Handle(), tensor, 0, builtin::kArrStrides));
    PrimExpr row_major = Call(DataType::Bool(), builtin::isnullptr(), {strides});
    PrimExpr compact = make_const(wide, 1);
    std::vector<PrimExpr> compact_strides(ndim);
    for (int axis = ndim - 1; axis >= 0; --axis) {
      compact_strides[axis] = compact;
      // The extents of the array are known to match by now; a constant one costs no reading.
      compact = compact * (is_const_int(buffer->shape[axis])
                               ? cast(wide, buffer->shape[axis])
                               : Get(wide, shape, axis, builtin::kInt64Element));
    }
    if (buffer->strides.empty()) {
      CheckCompact(buffer, shape, strides, row_major, compact_strides, where);
      return;
    }
    for (int axis = 0; axis < ndim; ++axis) {
      // No strides are given for a row-major array; then the pointer must not be followed.
      PrimExpr actual = if_then_else(row_major, compact_strides[axis],
                                     Get(wide, strides, axis, builtin::kInt64Element));
      PrimExpr expected = buffer->strides[axis];
      if (auto stride = StrideOfRepeated(expected)) expected = *stride;
      Match(expected, actual, "ValueError: " + where + ".strides[" + std::to_string(axis) + "]");
    }
  }

  /*! \brief One check of all axes: every branch adds to what each candidate costs to compile. */
  void CheckCompact(const Buffer& buffer, const Var& shape, const Var& strides,
                    const PrimExpr& row_major, const std::vector<PrimExpr>& compact_strides,
                    const std::string& where) {
    DataType wide = DataType::Int(64);
    PrimExpr same = const_true();
    std::string expected, got;
    Array<PrimExpr> values, actual;
    for (size_t axis = 0; axis < compact_strides.size(); ++axis) {
      int index = static_cast<int>(axis);
      PrimExpr stride = Get(wide, strides, index, builtin::kInt64Element);
      // The stride of an axis of one element is never used.
      PrimExpr unused = is_const_int(buffer->shape[axis])
                            ? make_const(DataType::Bool(), is_one(buffer->shape[axis]))
                            : Get(wide, shape, index, builtin::kInt64Element) == 1;
      same = same && (stride == compact_strides[axis] || unused);
      expected += axis == 0 ? "{}" : ", {}";
      values.push_back(compact_strides[axis]);
      actual.push_back(stride);
    }
    got = expected;
    for (const PrimExpr& stride : actual) values.push_back(stride);
    Assert(if_then_else(row_major, const_true(), same),
           "ValueError: " + where + ".strides: expected (" + expected +
               ") of a contiguous array, got (" + got + "); make the array contiguous",
           values);
  }

  void BindData(const Buffer& buffer, const Var& tensor, const std::string& where) {
    DataType wide = DataType::Int(64);
    PrimExpr offset = Get(wide, tensor, 0, builtin::kArrByteOffset);
    if (buffer->elem_offset.as<VarNode>() != nullptr) {
      // The function takes the offset itself: the pointer stays at the start of the memory.
      int bytes = buffer->dtype.bytes() * buffer->dtype.lanes();
      Match(buffer->elem_offset, truncdiv(offset, make_const(wide, bytes)),
            "ValueError: " + where + ".elem_offset");
      Bind(buffer->data, Get(DataType::Handle(), tensor, 0, builtin::kArrData));
    } else {
      Var start(buffer->name + ".start", PointerType(PrimType(DataType::UInt(8))));
      Bind(start, Get(DataType::Handle(), tensor, 0, builtin::kArrData));
      Buffer bytes(start, DataType::UInt(8), {offset + 1}, {}, PrimExpr(), start->name_hint);
      Bind(buffer->data,
           Call(DataType::Handle(), builtin::address_of(), {BufferLoad(bytes, {offset})}));
    }
    // What this runtime allocates has the usual alignment, which nothing relies on; of memory from
    // elsewhere only elements at their own multiples are asked for. Another alignment was declared.
    int alignment = buffer->data_alignment == kAllocationAlignment ? buffer->dtype.bytes()
                                                                   : buffer->data_alignment;
    if (alignment > 1) {
      PrimExpr address = reinterpret(wide, buffer->data);
      PrimExpr rest = bitwise_and(address, make_const(wide, alignment - 1));
      Assert(rest == 0,
             "ValueError: " + where + ": the address must be a multiple of " +
                 std::to_string(alignment) +
                 " bytes, got {} bytes more than one; copy the array to aligned memory",
             {rest});
    }
  }

  std::string name_;
  Var args_;
  int device_type_;
  Var device_id_{"device_id", DataType::Int(32)};
  std::unordered_set<const VarNode*> bound_;
  /*! \brief Wrappers in order, the outermost first. */
  std::vector<std::function<Stmt(Stmt)>> steps_;
  std::vector<std::function<void()>> deferred_;
};

/*! \brief Turns returns of a value into writes to the packed result and returns of success. */
class ReturnLowerer final : public StmtExprMutator {
 public:
  ReturnLowerer(std::string name, Var result)
      : name_(std::move(name)), result_(std::move(result)) {}

 private:
  Stmt VisitStmt_(const EvaluateNode* op) final {
    const auto* call = op->value.as<CallNode>();
    if (call == nullptr || !call->op.same_as(builtin::ret()))
      return StmtExprMutator::VisitStmt_(op);
    TVM_CHECK(concurrent_ == 0, ValueError)
        << name_ << ": " << op->value << " is inside of a loop that runs in parallel, which one "
        << "iteration cannot end for the others; write the value to a buffer and return it after";
    PrimExpr value = VisitExpr(call->args[0]);
    DataType dtype = value.dtype();
    TVM_CHECK(dtype.lanes() == 1 && !value.as<StringImmNode>(), TypeError)
        << name_ << ": " << value << " of " << dtype
        << " cannot be returned; numbers and handles can";
    int code = kTVMOpaqueHandle;
    if (dtype.is_float() || dtype.is_bfloat16()) {
      code = kTVMFloat;
      value = cast(DataType::Float(64), value);
    } else if (!dtype.is_handle()) {
      code = dtype.is_bool() ? kTVMBool : kTVMInt;
      value = cast(DataType::Int(64), value);
    }
    auto set = [this](StructField field, const PrimExpr& content) -> Stmt {
      return Evaluate(Call(DataType::Int(32), builtin::tvm_struct_set(),
                           {result_, PrimExpr(0), PrimExpr(static_cast<int>(field)), content}));
    };
    return SeqStmt({set(builtin::kAnyTypeCode, PrimExpr(code)), set(builtin::kAnyValue, value),
                    Evaluate(Call(DataType::Int(32), builtin::ret(), {PrimExpr(0)}))});
  }

  PrimExpr VisitExpr_(const CallNode* op) final {
    TVM_CHECK(!op->op.same_as(builtin::ret()), ValueError)
        << name_ << ": " << GetRef<PrimExpr>(op)
        << " is a part of an expression; a return is a statement of its own";
    return StmtExprMutator::VisitExpr_(op);
  }

  Stmt VisitStmt_(const ForNode* op) final {
    bool concurrent = op->kind == ForKind::kParallel || op->kind == ForKind::kThreadBinding;
    concurrent_ += concurrent;
    Stmt result = StmtExprMutator::VisitStmt_(op);
    concurrent_ -= concurrent;
    return result;
  }
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    bool concurrent = op->attr_key == attr::thread_extent;
    concurrent_ += concurrent;
    Stmt result = StmtExprMutator::VisitStmt_(op);
    concurrent_ -= concurrent;
    return result;
  }

  std::string name_;
  Var result_;
  /*! \brief Loops around that run at once. */
  int concurrent_ = 0;
};

PrimFunc WrapFunction(PrimFunc func) {
  auto symbol = func->GetAttr<String>(attr::kGlobalSymbol);
  // A function without a name is called inside of the module only; one with a convention is done.
  if (!symbol || GetCallingConv(func) != CallingConv::kDefault) return func;
  Var args("args", DataType::Handle());
  Var num_args("num_args", DataType::Int(32));
  Var ret("ret", DataType::Handle());
  auto target = func->GetAttr<Target>(attr::kTarget);
  ArgumentBinder binder(*symbol, args, target ? (*target)->GetTargetDeviceType() : kDLCPU);
  int expected = static_cast<int>(func->params.size());
  binder.Assert(num_args == expected,
                "TypeError: " + binder.name() + ": expected " + std::to_string(expected) +
                    " arguments, got {}",
                {num_args});
  // Scalars first: buffers may mention them in their shapes.
  for (int i = 0; i < expected; ++i) {
    if (!func->buffer_map.contains(func->params[i])) binder.BindScalar(func->params[i], i);
  }
  for (int i = 0; i < expected; ++i) {
    if (Optional<Buffer> buffer = func->buffer_map.Get(func->params[i])) {
      binder.BindBuffer(buffer.value(), i);
    }
  }
  PrimFuncNode* node = func.CopyOnWrite();
  node->body = binder.Wrap(ReturnLowerer(*symbol, ret)(node->body));
  node->params = {args, num_args, ret};
  node->buffer_map = {};
  node->ret_type = PrimType(DataType::Int(32));
  // What is left here after SplitHostDevice runs on the host.
  if (target && (*target)->GetHost().defined()) {
    func = WithAttr(std::move(func), attr::kTarget, (*target)->GetHost());
  }
  return WithAttr(func, attr::kCallingConv, static_cast<int>(CallingConv::kCPackedFunc));
}

}  // namespace

namespace transform {

Pass MakePackedAPI() {
  return CreatePrimFuncPass(
      [](PrimFunc func, IRModule, PassContext) { return WrapFunction(std::move(func)); }, 0,
      "tir.MakePackedAPI");
}

TVM_REGISTER_GLOBAL("tir.transform.MakePackedAPI").set_body_typed(MakePackedAPI);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
