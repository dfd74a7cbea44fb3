/*!
 * \file src/tir/transforms/narrow_float_legalize.cc
 * \brief Arithmetic of floating point of 8 and 16 bits in a wider type, and its storage as
 *        integers.
 */
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/legalize_halves.h>

#include <string>
#include <utility>

#include "narrow_float.h"
#include "pass_common.h"
#include "tir/ir/buffer_mutator.h"

namespace tvm {
namespace tir {
namespace {

/*! \brief The types that a pass is about. */
using TypeTest = bool (*)(DataType);

bool IsBFloat16(DataType t) { return t.is_bfloat16(); }
bool IsFloat16(DataType t) { return t.is_float() && t.bits() == 16; }
bool IsNarrowFloat(DataType t) { return NarrowFloatFormatOf(t) != nullptr; }

DataType Float32Like(DataType t) { return DataType::Float(32, t.lanes()); }
DataType LanesOf(DataType element, DataType t) { return element.with_lanes(t.lanes()); }

/*! \brief The element type of the memory that a pointer points to; void if nobody says. */
DataType PointedType(const Var& pointer) {
  const auto* type = pointer->type_annotation.as<PointerTypeNode>();
  const auto* element = type == nullptr ? nullptr : type->element_type.as<PrimTypeNode>();
  return element == nullptr ? DataType::Void() : element->dtype;
}
Var PointerTo(const Var& pointer, DataType element) {
  const auto* type = pointer->type_annotation.as<PointerTypeNode>();
  return Var(pointer->name_hint, PointerType(PrimType(element), type->storage_scope));
}

/*!
 * \brief Replaces memory and variables of narrow types by ones of another type.
 *
 * Derived classes say the type, and which memory.
 */
class NarrowTypeMutator : public BufferMutator {
 public:
  explicit NarrowTypeMutator(TypeTest is_narrow) : is_narrow_(is_narrow) {}

 protected:
  using BufferMutator::VisitExpr_;
  using BufferMutator::VisitStmt_;
  virtual DataType Replaced(DataType narrow) const = 0;
  /*! \brief Whether memory of a narrow type becomes memory of the other one. */
  virtual bool Replaces(const Var& data) const = 0;

  /*! \brief The variable itself, or what it becomes where it is bound. */
  Var Renewed(const Var& var) {
    if (auto it = vars_.find(var.get()); it != vars_.end()) return it->second;
    Var renewed = var;
    if (is_narrow_(var->dtype)) {
      renewed = var.copy_with_dtype(Replaced(var->dtype));
    } else if (is_narrow_(PointedType(var)) && Replaces(var)) {
      renewed = PointerTo(var, Replaced(PointedType(var)));
    } else {
      return var;
    }
    vars_[var.get()] = renewed;
    return renewed;
  }
  Buffer VisitBuffer(const Buffer& buffer) override {
    auto [it, fresh] = buffers_.try_emplace(buffer.get(), buffer);
    if (!fresh || !Replaces(buffer->data)) return it->second;
    Var data = DataOf(buffer);
    if (!data.same_as(buffer->data)) it->second.CopyOnWrite()->data = data;
    if (is_narrow_(buffer->dtype)) it->second.CopyOnWrite()->dtype = Replaced(buffer->dtype);
    return it->second;
  }
  virtual Var DataOf(const Buffer& buffer) { return Renewed(buffer->data); }

  PrimExpr VisitExpr_(const VarNode* op) override {
    auto it = vars_.find(op);
    return it == vars_.end() ? GetRef<PrimExpr>(op) : PrimExpr(it->second);
  }
  Stmt VisitStmt_(const AllocateNode* op) final {
    Stmt stmt = BufferMutator::VisitStmt_(op);
    Var data = Renewed(op->buffer_var);
    if (data.same_as(op->buffer_var)) return stmt;
    op = stmt.as<AllocateNode>();
    return Allocate(data, Replaced(op->dtype), op->extents, op->condition, op->body,
                    op->annotations);
  }
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    Stmt stmt = BufferMutator::VisitStmt_(op);
    ObjectRef node = op->node;
    if (auto it = vars_.find(node.as<VarNode>()); it != vars_.end()) node = it->second;
    if (const auto* buffer = node.as<BufferNode>()) node = VisitBuffer(GetRef<Buffer>(buffer));
    if (node.same_as(op->node)) return stmt;
    op = stmt.as<AttrStmtNode>();
    return AttrStmt(node, op->attr_key, op->value, op->body);
  }

  TypeTest is_narrow_;
  std::unordered_map<const VarNode*, Var> vars_;

 private:
  std::unordered_map<const BufferNode*, Buffer> buffers_;
};

/*! \brief Memory that a function allocates, of which nothing but its accesses knows the type. */
class PrivateMemory final : public StmtExprVisitor {
 public:
  explicit PrivateMemory(const PrimFunc& func) {
    VisitStmt(func->body);
    for (const VarNode* data : opaque_) allocated_.erase(data);
    for (const auto& [data, types] : types_) {
      if (types.second) allocated_.erase(data);
    }
  }
  std::unordered_set<const VarNode*> Take() { return std::move(allocated_); }

 private:
  void Access(const Buffer& buffer) {
    auto [it, fresh] = types_.try_emplace(buffer->data.get(), buffer->dtype, false);
    if (!fresh && it->second.first != buffer->dtype) it->second.second = true;
  }
  void VisitExpr_(const VarNode* op) final { opaque_.insert(op); }
  void VisitExpr_(const BufferLoadNode* op) final {
    Access(op->buffer);
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const CallNode* op) final {
    if (op->op.same_as(builtin::address_of())) {
      if (const auto* load = op->args[0].as<BufferLoadNode>()) {
        opaque_.insert(load->buffer->data.get());
      }
    }
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    Access(op->buffer);
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const AllocateNode* op) final {
    allocated_.insert(op->buffer_var.get());
    types_.try_emplace(op->buffer_var.get(), op->dtype, false);
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const BufferRealizeNode* op) final {
    allocated_.insert(op->buffer->data.get());
    Access(op->buffer);
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const BlockNode* op) final {
    for (const Buffer& buffer : op->alloc_buffers) {
      allocated_.insert(buffer->data.get());
      Access(buffer);
    }
    // A view has the type of what it views.
    for (const MatchBufferRegion& match : op->match_buffers) {
      opaque_.insert(match->source->buffer->data.get());
      opaque_.insert(match->buffer->data.get());
    }
    StmtExprVisitor::VisitStmt_(op);
  }

  std::unordered_set<const VarNode*> allocated_, opaque_;
  /*! \brief Element type of memory by its first access, and whether another one has another. */
  std::unordered_map<const VarNode*, std::pair<DataType, bool>> types_;
};

/*!
 * \brief Expressions of narrow operators are computed in a wider type and rounded once at the end.
 *
 * Conversions that the program asks for stay, so the rounding they do is still done. With
 * `memory`, private memory and variables hold values of the wider type, too.
 */
class ArithmeticWidener final : public NarrowTypeMutator {
 public:
  ArithmeticWidener(TypeTest is_narrow, DataType wide, bool by_bits)
      : NarrowTypeMutator(is_narrow), wide_(wide), by_bits_(by_bits) {}

  PrimFunc Run(PrimFunc func, bool widen_memory) {
    widen_memory_ = widen_memory;
    if (widen_memory) private_ = PrivateMemory(func).Take();
    Stmt body = VisitStmt(func->body);
    return WithBody(std::move(func), body);
  }

 private:
  DataType Replaced(DataType narrow) const final { return LanesOf(wide_, narrow); }
  bool Replaces(const Var& data) const final { return private_.count(data.get()) != 0; }

  /*! \brief The value in the wider type, not yet rounded; undefined if `expr` is no operator. */
  PrimExpr Operator(const PrimExpr& expr) {
    if (!is_narrow_(expr.dtype())) return PrimExpr();
#define TVM_TIR_WIDEN_BINARY(Name) \
  if (const auto* op = expr.as<Name##Node>()) return Name(Wide(op->a), Wide(op->b));
    TVM_TIR_WIDEN_BINARY(Add)
    TVM_TIR_WIDEN_BINARY(Sub)
    TVM_TIR_WIDEN_BINARY(Mul)
    TVM_TIR_WIDEN_BINARY(Div)
    TVM_TIR_WIDEN_BINARY(Mod)
    TVM_TIR_WIDEN_BINARY(Min)
    TVM_TIR_WIDEN_BINARY(Max)
#undef TVM_TIR_WIDEN_BINARY
    if (const auto* op = expr.as<SelectNode>()) {
      return Select(VisitExpr(op->condition), Wide(op->true_value), Wide(op->false_value));
    }
    if (const auto* op = expr.as<BroadcastNode>()) return Broadcast(Wide(op->value), op->lanes);
    if (const auto* op = expr.as<CallNode>()) {
      if (op->op.same_as(builtin::if_then_else())) {
        return Call(Replaced(op->dtype), op->op,
                    {VisitExpr(op->args[0]), Wide(op->args[1]), Wide(op->args[2])});
      }
      if (IsMath(op)) {
        return Call(Replaced(op->dtype), op->op,
                    op->args.Map([this](const PrimExpr& arg) { return Wide(arg); }));
      }
    }
    if (!widen_memory_) return PrimExpr();
    // What is held in the wider type already.
    if (const auto* op = expr.as<VarNode>(); op != nullptr && vars_.count(op) != 0) {
      return vars_.at(op);
    }
    if (const auto* op = expr.as<BufferLoadNode>(); op != nullptr && Replaces(op->buffer->data)) {
      return VisitLeaf(expr);
    }
    if (const auto* op = expr.as<LetNode>()) {
      PrimExpr value = ValueOf(op->var, op->value);
      Var var = Renewed(op->var);
      return Let(var, value, Wide(op->body));
    }
    return PrimExpr();
  }

  /*! \brief A function of numbers that means the same in any floating type. */
  bool IsMath(const CallNode* op) const {
    for (const Op& other : {builtin::reinterpret(), builtin::address_of(), builtin::ret()}) {
      if (op->op.same_as(other)) return false;
    }
    if (!op->op->IsInstance<OpNode>() || op->args.empty()) return false;
    for (const PrimExpr& arg : op->args) {
      if (!is_narrow_(arg.dtype())) return false;
    }
    return true;
  }

  /*! \brief A value of the wide type as one of a narrow type. */
  PrimExpr Rounded(DataType narrow, const PrimExpr& value) const {
    if (!by_bits_) return cast(narrow, value);
    PrimExpr bits = NarrowFloatToBits(cast(Float32Like(narrow), value), narrow);
    return Call(narrow, builtin::reinterpret(), {bits});
  }
  PrimExpr Widened(const PrimExpr& value) const {
    DataType wide = Replaced(value.dtype());
    if (!by_bits_ || value.as<FloatImmNode>()) return cast(wide, value);
    // A value that was rounded from bits has them at hand.
    PrimExpr bits = Call(BitsOfNarrowFloat(value.dtype()), builtin::reinterpret(), {value});
    return cast(wide, NarrowFloatFromBits(bits, value.dtype()));
  }

  PrimExpr Wide(const PrimExpr& expr) {
    if (!is_narrow_(expr.dtype())) return VisitExpr(expr);
    PrimExpr wide = Operator(expr);
    return wide.defined() ? wide : Widened(VisitLeaf(expr));
  }
  /*! \brief The value that `var` is bound to, of the type that it gets. */
  PrimExpr ValueOf(const Var& var, const PrimExpr& value) {
    return widen_memory_ && is_narrow_(var->dtype) ? Wide(value) : VisitExpr(value);
  }

  PrimExpr VisitLeaf(const PrimExpr& expr) { return NarrowTypeMutator::VisitExpr(expr); }
  PrimExpr VisitExpr(const PrimExpr& expr) final {
    PrimExpr wide = Operator(expr);
    return wide.defined() ? Rounded(expr.dtype(), wide) : VisitLeaf(expr);
  }
  PrimExpr VisitExpr_(const CastNode* op) final {
    const bool from = is_narrow_(op->value.dtype()), to = is_narrow_(op->dtype);
    if (!by_bits_ || (!from && !to)) return NarrowTypeMutator::VisitExpr_(op);
    // The operand is rounded to its type before it is converted, as the program says.
    PrimExpr value = VisitExpr(op->value);
    if (from) value = Widened(value);
    return to ? Rounded(op->dtype, value) : cast(op->dtype, value);
  }
  PrimExpr VisitExpr_(const CallNode* op) final {
    // isnan and the like: a bool of narrow operands.
    if (!IsMath(op)) return NarrowTypeMutator::VisitExpr_(op);
    return Call(op->dtype, op->op, op->args.Map([this](const PrimExpr& arg) { return Wide(arg); }));
  }
  PrimExpr VisitExpr_(const LetNode* op) final {
    PrimExpr value = ValueOf(op->var, op->value);
    Var var = widen_memory_ ? Renewed(op->var) : op->var;
    PrimExpr body = VisitExpr(op->body);
    if (value.same_as(op->value) && var.same_as(op->var) && body.same_as(op->body)) {
      return GetRef<PrimExpr>(op);
    }
    return Let(var, value, body);
  }
  Stmt VisitStmt_(const LetStmtNode* op) final {
    PrimExpr value = ValueOf(op->var, op->value);
    Var var = widen_memory_ ? Renewed(op->var) : op->var;
    Stmt body = VisitStmt(op->body);
    if (value.same_as(op->value) && var.same_as(op->var) && body.same_as(op->body)) {
      return GetRef<Stmt>(op);
    }
    return LetStmt(var, value, body);
  }
  Stmt VisitStmt_(const BufferStoreNode* op) final {
    Buffer buffer = VisitBuffer(op->buffer);
    if (buffer.same_as(op->buffer)) return NarrowTypeMutator::VisitStmt_(op);
    return BufferStore(buffer, Wide(op->value), VisitExprs(op->indices));
  }

#define TVM_TIR_WIDEN_COMPARISON(Name)                                        \
  PrimExpr VisitExpr_(const Name##Node* op) final {                           \
    if (!is_narrow_(op->a.dtype())) return NarrowTypeMutator::VisitExpr_(op); \
    return Name(Wide(op->a), Wide(op->b));                                    \
  }
  TVM_TIR_WIDEN_COMPARISON(EQ)
  TVM_TIR_WIDEN_COMPARISON(NE)
  TVM_TIR_WIDEN_COMPARISON(LT)
  TVM_TIR_WIDEN_COMPARISON(LE)
  TVM_TIR_WIDEN_COMPARISON(GT)
  TVM_TIR_WIDEN_COMPARISON(GE)
#undef TVM_TIR_WIDEN_COMPARISON

  /*! \brief The scalar type to compute in. */
  DataType wide_;
  /*! \brief Whether conversions are arithmetic on bits, for targets that have none. */
  bool by_bits_;
  bool widen_memory_ = false;
  std::unordered_set<const VarNode*> private_;
};

/*! \brief Narrow values held as the bits that represent them. */
class StorageLowerer final : public NarrowTypeMutator {
 public:
  using NarrowTypeMutator::NarrowTypeMutator;

  PrimFunc Run(PrimFunc func) {
    // Arrays of the signature stay what callers pass and what is checked; pointers and numbers
    // become those of bits.
    for (const auto& [param, buffer] : func->buffer_map) external_.insert(buffer->data.get());
    Array<Var> params = func->params.Map([this](const Var& param) { return Renewed(param); });
    Stmt body = VisitStmt(func->body);
    if (!params.same_as(func->params)) {
      Map<Var, Buffer> buffer_map;
      for (const auto& [param, buffer] : func->buffer_map) {
        buffer_map.Set(Renewed(param), buffer);
      }
      PrimFuncNode* node = func.CopyOnWrite();
      node->params = params;
      node->buffer_map = buffer_map;
    }
    return WithBody(std::move(func), body);
  }

 private:
  DataType Replaced(DataType narrow) const final { return BitsOfNarrowFloat(narrow); }
  bool Replaces(const Var& data) const final { return true; }
  Var DataOf(const Buffer& buffer) final {
    return external_.count(buffer->data.get()) != 0 ? buffer->data : Renewed(buffer->data);
  }

  static PrimExpr ToBits(const PrimExpr& value, DataType narrow) {
    return NarrowFloatToBits(cast(Float32Like(narrow), value), narrow);
  }

  PrimExpr VisitExpr_(const FloatImmNode* op) final {
    if (!is_narrow_(op->dtype)) return GetRef<PrimExpr>(op);
    return ToBits(FloatImm(DataType::Float(32), op->value), op->dtype);
  }
  PrimExpr VisitExpr_(const CastNode* op) final {
    PrimExpr value = VisitExpr(op->value);
    if (is_narrow_(op->value.dtype())) {
      if (op->dtype == op->value.dtype()) return value;
      value = NarrowFloatFromBits(value, op->value.dtype());
    }
    if (is_narrow_(op->dtype)) return ToBits(value, op->dtype);
    return value.same_as(op->value) ? GetRef<PrimExpr>(op) : cast(op->dtype, value);
  }
  /*! \brief Functions from elsewhere get and give narrow values in registers of floats. */
  void CheckCallee(const CallNode* op) const {
    const bool is_outside = op->op.same_as(builtin::call_extern()) ||
                            op->op.same_as(builtin::call_pure_extern()) ||
                            op->op.same_as(builtin::call_llvm_intrin()) ||
                            op->op.same_as(builtin::call_llvm_pure_intrin());
    if (!is_outside) return;
    bool passes = is_narrow_(op->dtype);
    for (const PrimExpr& arg : op->args) passes = passes || is_narrow_(arg.dtype());
    TVM_CHECK(!passes, ValueError)
        << "the target holds " << (is_narrow_(op->dtype) ? op->dtype : NarrowArgument(op))
        << " as integers, but " << op->args[0]
        << " takes or gives it as floating point; pass float32, or a pointer";
  }
  DataType NarrowArgument(const CallNode* op) const {
    for (const PrimExpr& arg : op->args) {
      if (is_narrow_(arg.dtype())) return arg.dtype();
    }
    return DataType::Void();
  }

  PrimExpr VisitExpr_(const CallNode* op) final {
    CheckCallee(op);
    Array<PrimExpr> args = op->args.Map([this](const PrimExpr& arg) { return VisitExpr(arg); });
    DataType dtype = is_narrow_(op->dtype) ? Replaced(op->dtype) : op->dtype;
    if (op->op.same_as(builtin::reinterpret()) && args[0].dtype() == dtype) return args[0];
    return args.same_as(op->args) && dtype == op->dtype ? GetRef<PrimExpr>(op)
                                                        : Call(dtype, op->op, args);
  }
  PrimExpr VisitExpr_(const LetNode* op) final {
    PrimExpr value = VisitExpr(op->value);
    Var var = Renewed(op->var);
    PrimExpr body = VisitExpr(op->body);
    if (value.same_as(op->value) && var.same_as(op->var) && body.same_as(op->body)) {
      return GetRef<PrimExpr>(op);
    }
    return Let(var, value, body);
  }
  Stmt VisitStmt_(const LetStmtNode* op) final {
    PrimExpr value = VisitExpr(op->value);
    Var var = Renewed(op->var);
    Stmt body = VisitStmt(op->body);
    if (value.same_as(op->value) && var.same_as(op->var) && body.same_as(op->body)) {
      return GetRef<Stmt>(op);
    }
    return LetStmt(var, value, body);
  }

  std::unordered_set<const VarNode*> external_;
};

}  // namespace

namespace transform {
namespace {

Pass ComputePass(const char* name, TypeTest is_narrow, DataType wide, bool by_bits,
                 bool widen_memory) {
  return CreatePrimFuncPass(
      [=](PrimFunc func, IRModule, PassContext) {
        return ArithmeticWidener(is_narrow, wide, by_bits).Run(std::move(func), widen_memory);
      },
      0, name);
}

Pass StoragePass(const char* name, TypeTest is_narrow) {
  return CreatePrimFuncPass(
      [is_narrow](PrimFunc func, IRModule, PassContext) {
        return StorageLowerer(is_narrow).Run(std::move(func));
      },
      0, name);
}

}  // namespace

Pass BF16Legalize() {
  return ComputePass("tir.BF16Legalize", IsNarrowFloat, DataType::Float(32), false, false);
}
Pass BF16ComputeLegalize() {
  return ComputePass("tir.BF16ComputeLegalize", IsBFloat16, DataType::Float(32), true, true);
}
Pass BF16StorageLegalize() { return StoragePass("tir.BF16StorageLegalize", IsBFloat16); }

Pass FP16ComputeLegalize() {
  return ComputePass("tir.FP16ComputeLegalize", IsFloat16, DataType::Float(32), true, true);
}
Pass FP16StorageLegalize() { return StoragePass("tir.FP16StorageLegalize", IsFloat16); }

Pass FP8ComputeLegalize(const String& promote_dtype) {
  DataType wide = DataType::FromString(promote_dtype);
  TVM_CHECK(wide == DataType::Float(16) || wide == DataType::Float(32), ValueError)
      << "FP8ComputeLegalize: expected to compute in \"float16\" or \"float32\", got \""
      << promote_dtype << "\"";
  return ComputePass("tir.FP8ComputeLegalize", IsFloat8, wide, true, true);
}
Pass FP8StorageLegalize() { return StoragePass("tir.FP8StorageLegalize", IsFloat8); }

TVM_REGISTER_GLOBAL("tir.transform.BF16Legalize").set_body_typed(BF16Legalize);
TVM_REGISTER_GLOBAL("tir.transform.BF16ComputeLegalize").set_body_typed(BF16ComputeLegalize);
TVM_REGISTER_GLOBAL("tir.transform.BF16StorageLegalize").set_body_typed(BF16StorageLegalize);
TVM_REGISTER_GLOBAL("tir.transform.FP16ComputeLegalize").set_body_typed(FP16ComputeLegalize);
TVM_REGISTER_GLOBAL("tir.transform.FP16StorageLegalize").set_body_typed(FP16StorageLegalize);
TVM_REGISTER_GLOBAL("tir.transform.FP8ComputeLegalize").set_body_typed(FP8ComputeLegalize);
TVM_REGISTER_GLOBAL("tir.transform.FP8StorageLegalize").set_body_typed(FP8StorageLegalize);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
