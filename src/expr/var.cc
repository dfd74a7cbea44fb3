/*!
 * \file src/expr/var.cc
 * \brief Constructors of variables and axes.
 */
#include <tvm/expr/op.h>
#include <tvm/expr/var.h>
#include <tvm/runtime/registry.h>

namespace tvm {
namespace tir {

TVM_REGISTER_NODE(VarNode);
TVM_REGISTER_NODE(SizeVarNode);
TVM_REGISTER_NODE(IterVarNode);

Var::Var(String name_hint, DataType dtype) {
  auto n = make_object<VarNode>();
  n->name_hint = std::move(name_hint);
  n->type_annotation = PrimType(dtype);
  n->dtype = dtype;
  data_ = std::move(n);
}

Var::Var(String name_hint, Type type_annotation) {
  auto n = make_object<VarNode>();
  n->name_hint = std::move(name_hint);
  n->dtype = GetRuntimeDataType(type_annotation);
  n->type_annotation = std::move(type_annotation);
  data_ = std::move(n);
}

namespace {
Var CopyAs(const VarNode* var, String name_hint, DataType dtype, Type type_annotation) {
  if (const auto* size =
          var->IsInstance<SizeVarNode>() ? static_cast<const SizeVarNode*>(var) : nullptr) {
    return SizeVar(std::move(name_hint), dtype, size->kind);
  }
  return Var(std::move(name_hint), std::move(type_annotation));
}
}  // namespace

Var Var::copy_with_suffix(const String& suffix) const {
  const VarNode* var = get();
  return CopyAs(var, std::string(var->name_hint) + std::string(suffix), var->dtype,
                var->type_annotation);
}

Var Var::copy_with_dtype(DataType dtype) const {
  const VarNode* var = get();
  return CopyAs(var, var->name_hint, dtype, PrimType(dtype));
}

SizeVar::SizeVar(String name_hint, DataType dtype, SizeVarKind kind) {
  TVM_CHECK(dtype.is_int() && dtype.is_scalar(), TypeError)
      << "SizeVar(" << name_hint << "): a size is a signed integer scalar, got " << dtype;
  auto n = make_object<SizeVarNode>();
  n->name_hint = std::move(name_hint);
  n->type_annotation = PrimType(dtype);
  n->dtype = dtype;
  n->kind = kind;
  data_ = std::move(n);
}

const char* IterVarTypeToString(IterVarType type) {
  switch (type) {
    case kDataPar:
      return "DataPar";
    case kThreadIndex:
      return "ThreadIndex";
    case kCommReduce:
      return "CommReduce";
    case kOrdered:
      return "Ordered";
    case kOpaque:
      return "Opaque";
    case kUnrolled:
      return "Unrolled";
    case kVectorized:
      return "Vectorized";
    case kParallelized:
      return "Parallelized";
    case kTensorized:
      return "Tensorized";
  }
  return "Unknown";
}

IterVar::IterVar(Range dom, Var var, IterVarType iter_type, String thread_tag) {
  TVM_CHECK(!dom.defined() || dom->extent.dtype().is_int(), TypeError)
      << "IterVar(" << var->name_hint << "): extent must be an integer, got "
      << dom->extent.dtype();
  TVM_CHECK(!dom.defined() || dom->extent.dtype() == var->dtype, TypeError)
      << "IterVar(" << var->name_hint << "): the variable is " << var->dtype
      << " but the extent of its domain is " << dom->extent.dtype();
  auto n = make_object<IterVarNode>();
  n->dom = std::move(dom);
  n->var = std::move(var);
  n->iter_type = iter_type;
  n->thread_tag = std::move(thread_tag);
  data_ = std::move(n);
}

IterVar::operator PrimExpr() const { return get()->var; }

[[maybe_unused]] const bool axis_is_expression = PrimExpr::RegisterConversion(
    IterVarNode::StaticTypeInfo(),
    [](const Object* axis) -> PrimExpr { return static_cast<const IterVarNode*>(axis)->var; });

TVM_REGISTER_GLOBAL("tir.Var").set_body_typed([](String name, DataType dtype) {
  return Var(name, dtype);
});
TVM_REGISTER_GLOBAL("tir.VarTyped").set_body_typed([](String name, Type type) {
  return Var(name, type);
});
TVM_REGISTER_GLOBAL("tir.SizeVar").set_body_typed([](String name, DataType dtype, int kind) {
  TVM_CHECK(kind >= 0 && kind <= static_cast<int>(SizeVarKind::kOther), ValueError)
      << "SizeVar(" << name << "): kind must be in [0, 4], got " << kind;
  return SizeVar(name, dtype, static_cast<SizeVarKind>(kind));
});
TVM_REGISTER_GLOBAL("tir.IterVar")
    .set_body_typed([](Range dom, Var var, int iter_type, String thread_tag) {
      return IterVar(dom, var, static_cast<IterVarType>(iter_type), thread_tag);
    });

}  // namespace tir
}  // namespace tvm
