/*!
 * \file src/expr/var.cc
 * \brief Constructors of variables and axes.
 */
#include <tvm/expr/op.h>
#include <tvm/expr/var.h>
#include <tvm/runtime/registry.h>

#include "check_dtype.h"

namespace tvm {
namespace tir {

TVM_REGISTER_NODE(VarNode);
TVM_REGISTER_NODE(SizeVarNode);
TVM_REGISTER_NODE(IterVarNode);

// Negative lanes and widths that no machine has reach arithmetic on types otherwise.
void CheckPlausible(const char* where, DataType dtype) {
  TVM_CHECK(dtype.lanes() != 0 && dtype.bits() <= 64, TypeError)
      << where << ": cannot work with values of type " << dtype;
}

void VarNode::Init() {
  TVM_CHECK(type_annotation.defined(), ValueError) << "tir.Var " << name_hint << " has no type";
  dtype = GetRuntimeDataType(type_annotation);
  // A binding of what a call gives back may be of nothing.
  if (!dtype.is_void()) CheckPlausible("tir.Var", dtype);
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

void SizeVarNode::Init() {
  TVM_CHECK((dtype.is_int() || dtype.is_uint() || dtype.is_float()) && dtype.is_scalar(), TypeError)
      << "SizeVar(" << name_hint << "): a size is a scalar number, got " << dtype;
  TVM_CHECK(kind >= SizeVarKind::kShape && kind <= SizeVarKind::kOther, ValueError)
      << "SizeVar(" << name_hint << "): kind must be in [0, 4], got " << static_cast<int>(kind);
  const auto* said = type_annotation.as<PrimTypeNode>();
  if (said == nullptr || said->dtype != dtype) type_annotation = PrimType(dtype);
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

void IterVarNode::Init() {
  TVM_CHECK(!dom.defined() || dom->extent.dtype().is_int(), TypeError)
      << "IterVar(" << var->name_hint << "): extent must be an integer, got "
      << dom->extent.dtype();
  TVM_CHECK(!dom.defined() || dom->extent.dtype() == var->dtype, TypeError)
      << "IterVar(" << var->name_hint << "): the variable is " << var->dtype
      << " but the extent of its domain is " << dom->extent.dtype();
  TVM_CHECK(iter_type >= kDataPar && iter_type <= kTensorized, ValueError)
      << "IterVar(" << var->name_hint << "): iter_type must be in [0, 8], got "
      << static_cast<int>(iter_type);
  if (!thread_tag.defined()) thread_tag = "";
}

IterVar::operator PrimExpr() const { return get()->var; }

[[maybe_unused]] const bool axis_is_expression = PrimExpr::RegisterConversion(
    IterVarNode::StaticTypeInfo(),
    [](const Object* axis) -> PrimExpr { return static_cast<const IterVarNode*>(axis)->var; });

}  // namespace tir
}  // namespace tvm
