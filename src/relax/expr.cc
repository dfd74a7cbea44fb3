#include <tvm/relax/expr.h>
#include <tvm/runtime/registry.h>

namespace tvm {
namespace relax {

TVM_REGISTER_NODE(VarNode, "relax.Var");
TVM_REGISTER_NODE(DataflowVarNode, "relax.DataflowVar");
TVM_REGISTER_NODE(ConstantNode, "relax.Constant");
TVM_REGISTER_NODE(ShapeExprNode, "relax.ShapeExpr");
TVM_REGISTER_NODE(PrimValueNode, "relax.PrimValue");
TVM_REGISTER_NODE(StringImmNode, "relax.StringImm");
TVM_REGISTER_NODE(DataTypeImmNode, "relax.DataTypeImm");
TVM_REGISTER_NODE(CallNode, "relax.Call");
TVM_REGISTER_NODE(IfNode, "relax.If");
TVM_REGISTER_NODE(ExternFuncNode, "relax.ExternFunc");
TVM_REGISTER_NODE(TupleNode, "relax.Tuple");
TVM_REGISTER_NODE(TupleGetItemNode, "relax.TupleGetItem");
TVM_REGISTER_NODE(VarBindingNode, "relax.VarBinding");
TVM_REGISTER_NODE(MatchCastNode, "relax.MatchCast");
TVM_REGISTER_NODE(BindingBlockNode, "relax.BindingBlock");
TVM_REGISTER_NODE(DataflowBlockNode, "relax.DataflowBlock");
TVM_REGISTER_NODE(SeqExprNode, "relax.SeqExpr");
TVM_REGISTER_NODE(FunctionNode, "relax.Function");

StructInfo GetStructInfo(const RelayExpr& expr) {
  if (const auto* sequence = expr.as<SeqExprNode>()) return GetStructInfo(sequence->body);
  return expr->struct_info_.defined() ? Downcast<StructInfo>(expr->struct_info_) : StructInfo();
}

void VarNode::Init() { Downcast<StructInfo>(struct_info_); }

// What is known already may be more than what follows from the parts, so it stays.

void ConstantNode::Init() {
  if (struct_info_.defined()) return;
  Array<PrimExpr> shape;
  for (int64_t extent : data.Shape()) shape.push_back(PrimExpr(extent));
  struct_info_ = TensorStructInfo(ShapeExpr(shape), data.dtype());
}

void ShapeExprNode::Init() {
  ShapeStructInfo known(values);
  values = known->values.value();
  if (!struct_info_.defined()) struct_info_ = known;
}

void PrimValueNode::Init() {
  if (!struct_info_.defined()) struct_info_ = PrimStructInfo(value->dtype, value);
}

void StringImmNode::Init() {
  if (!struct_info_.defined()) struct_info_ = ObjectStructInfo::Create();
}

void DataTypeImmNode::Init() {
  if (!struct_info_.defined()) struct_info_ = ObjectStructInfo::Create();
}

void ExternFuncNode::Init() {
  if (!struct_info_.defined()) struct_info_ = FuncStructInfo::OpaqueFunc();
  if (!attrs.defined()) attrs = DictAttrs(Map<String, Any>());
}

Var Binding::var() const {
  if (const auto* binding = as<VarBindingNode>()) return binding->var;
  return Downcast<MatchCast>(*this)->var;
}

void CallNode::Init() {
  Downcast<StructInfo>(struct_info_);
  StructInfo callee = GetStructInfo(op);
  TVM_CHECK(!callee.defined() || op->IsInstance<GlobalVarNode>() ||
                callee->IsInstance<FuncStructInfoNode>() ||
                callee->IsInstance<ObjectStructInfoNode>(),
            ValueError)
      << "relax.Call: what is called must be a function, but " << op << " is " << callee;
  if (!attrs.defined()) attrs = DictAttrs(Map<String, Any>());
}

void TupleNode::Init() {
  if (struct_info_.defined()) return;
  Array<StructInfo> infos;
  for (const RelayExpr& field : fields) {
    if (StructInfo info = GetStructInfo(field); info.defined()) infos.push_back(info);
  }
  if (infos.size() == fields.size()) struct_info_ = TupleStructInfo(infos);
}

void TupleGetItemNode::Init() {
  StructInfo of_tuple = GetStructInfo(tuple_value);
  const auto* info = of_tuple.as<TupleStructInfoNode>();
  if (info == nullptr) return;
  const int size = static_cast<int>(info->fields.size());
  TVM_CHECK(index >= 0 && index < size, IndexError)
      << "TupleGetItem: field " << index << " of a tuple of " << size;
  if (!struct_info_.defined()) struct_info_ = info->fields[index];
}

void FunctionNode::Init() {
  if (!ret_struct_info.defined()) ret_struct_info = GetStructInfo(body);
  if (!attrs.defined()) attrs = DictAttrs(Map<String, Any>());
}

// Struct info is a note on an expression: inference may fill it in or replace it.
TVM_REGISTER_GLOBAL("relax.UpdateStructInfo")
    .set_body_typed([](RelayExpr expr, Optional<StructInfo> info) {
      expr->struct_info_ = info.defined() ? ObjectRef(info.value()) : ObjectRef();
    });

}  // namespace relax
}  // namespace tvm
