#include <tvm/relax/expr.h>
#include <tvm/runtime/registry.h>

namespace tvm {
namespace relax {

TVM_REGISTER_NODE(VarNode);
TVM_REGISTER_NODE(DataflowVarNode);
TVM_REGISTER_NODE(ConstantNode);
TVM_REGISTER_NODE(ShapeExprNode);
TVM_REGISTER_NODE(CallNode);
TVM_REGISTER_NODE(ExternFuncNode);
TVM_REGISTER_NODE(TupleNode);
TVM_REGISTER_NODE(TupleGetItemNode);
TVM_REGISTER_NODE(VarBindingNode);
TVM_REGISTER_NODE(BindingBlockNode);
TVM_REGISTER_NODE(DataflowBlockNode);
TVM_REGISTER_NODE(SeqExprNode);
TVM_REGISTER_NODE(FunctionNode);

StructInfo GetStructInfo(const RelayExpr& expr) {
  return expr->struct_info_.defined() ? Downcast<StructInfo>(expr->struct_info_) : StructInfo();
}

Var::Var(String name_hint, StructInfo struct_info) {
  auto node = make_object<VarNode>();
  node->name_hint = std::move(name_hint);
  node->struct_info_ = std::move(struct_info);
  data_ = std::move(node);
}

DataflowVar::DataflowVar(String name_hint, StructInfo struct_info) {
  auto node = make_object<DataflowVarNode>();
  node->name_hint = std::move(name_hint);
  node->struct_info_ = std::move(struct_info);
  data_ = std::move(node);
}

Constant::Constant(runtime::NDArray data) {
  Array<PrimExpr> shape;
  for (int64_t extent : data.Shape()) shape.push_back(PrimExpr(extent));
  auto node = make_object<ConstantNode>();
  node->struct_info_ = TensorStructInfo(ShapeExpr(shape), data.dtype());
  node->data = std::move(data);
  data_ = std::move(node);
}

ShapeExpr::ShapeExpr(Array<PrimExpr> values) {
  auto node = make_object<ShapeExprNode>();
  node->struct_info_ = ShapeStructInfo(values);
  node->values = std::move(values);
  data_ = std::move(node);
}

Call::Call(RelayExpr op, Array<RelayExpr> args, DictAttrs attrs, Array<StructInfo> sinfo_args,
           StructInfo struct_info) {
  auto node = make_object<CallNode>();
  node->op = std::move(op);
  node->args = std::move(args);
  node->attrs = attrs.defined() ? std::move(attrs) : DictAttrs(Map<String, Any>());
  node->sinfo_args = std::move(sinfo_args);
  node->struct_info_ = std::move(struct_info);
  data_ = std::move(node);
}

ExternFunc::ExternFunc(String global_symbol) {
  auto node = make_object<ExternFuncNode>();
  node->global_symbol = std::move(global_symbol);
  data_ = std::move(node);
}

Tuple::Tuple(Array<RelayExpr> fields) {
  Array<StructInfo> infos;
  for (const RelayExpr& field : fields) {
    if (StructInfo info = GetStructInfo(field); info.defined()) infos.push_back(info);
  }
  auto node = make_object<TupleNode>();
  if (infos.size() == fields.size()) node->struct_info_ = TupleStructInfo(infos);
  node->fields = std::move(fields);
  data_ = std::move(node);
}

TupleGetItem::TupleGetItem(RelayExpr tuple_value, int index) {
  auto node = make_object<TupleGetItemNode>();
  StructInfo of_tuple = GetStructInfo(tuple_value);
  if (const auto* info = of_tuple.as<TupleStructInfoNode>()) {
    const int size = static_cast<int>(info->fields.size());
    TVM_CHECK(index >= 0 && index < size, IndexError)
        << "TupleGetItem: field " << index << " of a tuple of " << size;
    node->struct_info_ = info->fields[index];
  }
  node->tuple_value = std::move(tuple_value);
  node->index = index;
  data_ = std::move(node);
}

VarBinding::VarBinding(Var var, RelayExpr value) {
  auto node = make_object<VarBindingNode>();
  node->var = std::move(var);
  node->value = std::move(value);
  data_ = std::move(node);
}

BindingBlock::BindingBlock(Array<VarBinding> bindings) {
  auto node = make_object<BindingBlockNode>();
  node->bindings = std::move(bindings);
  data_ = std::move(node);
}

DataflowBlock::DataflowBlock(Array<VarBinding> bindings) {
  auto node = make_object<DataflowBlockNode>();
  node->bindings = std::move(bindings);
  data_ = std::move(node);
}

SeqExpr::SeqExpr(Array<BindingBlock> blocks, RelayExpr body) {
  auto node = make_object<SeqExprNode>();
  node->struct_info_ = body->struct_info_;
  node->blocks = std::move(blocks);
  node->body = std::move(body);
  data_ = std::move(node);
}

Function::Function(Array<Var> params, RelayExpr body, StructInfo ret_struct_info, bool is_pure,
                   DictAttrs attrs) {
  auto node = make_object<FunctionNode>();
  node->params = std::move(params);
  node->ret_struct_info = ret_struct_info.defined() ? ret_struct_info : GetStructInfo(body);
  node->body = std::move(body);
  node->is_pure = is_pure;
  node->attrs = attrs.defined() ? std::move(attrs) : DictAttrs(Map<String, Any>());
  data_ = std::move(node);
}

TVM_REGISTER_GLOBAL("relax.Var").set_body_typed([](String name_hint, StructInfo struct_info) {
  return Var(name_hint, struct_info);
});
TVM_REGISTER_GLOBAL("relax.DataflowVar")
    .set_body_typed([](String name_hint, StructInfo struct_info) {
      return DataflowVar(name_hint, struct_info);
    });
TVM_REGISTER_GLOBAL("relax.Constant").set_body_typed([](runtime::NDArray data) {
  return Constant(data);
});
TVM_REGISTER_GLOBAL("relax.ShapeExpr").set_body_typed([](Array<PrimExpr> values) {
  return ShapeExpr(values);
});
TVM_REGISTER_GLOBAL("relax.Call")
    .set_body_typed([](RelayExpr op, Array<RelayExpr> args, DictAttrs attrs,
                       Array<StructInfo> sinfo_args, StructInfo struct_info) {
      return Call(op, args, attrs, sinfo_args, struct_info);
    });
TVM_REGISTER_GLOBAL("relax.ExternFunc").set_body_typed([](String global_symbol) {
  return ExternFunc(global_symbol);
});
TVM_REGISTER_GLOBAL("relax.Tuple").set_body_typed([](Array<RelayExpr> fields) {
  return Tuple(fields);
});
TVM_REGISTER_GLOBAL("relax.TupleGetItem").set_body_typed([](RelayExpr tuple_value, int index) {
  return TupleGetItem(tuple_value, index);
});
TVM_REGISTER_GLOBAL("relax.VarBinding").set_body_typed([](Var var, RelayExpr value) {
  return VarBinding(var, value);
});
TVM_REGISTER_GLOBAL("relax.BindingBlock").set_body_typed([](Array<VarBinding> bindings) {
  return BindingBlock(bindings);
});
TVM_REGISTER_GLOBAL("relax.DataflowBlock").set_body_typed([](Array<VarBinding> bindings) {
  return DataflowBlock(bindings);
});
TVM_REGISTER_GLOBAL("relax.SeqExpr").set_body_typed([](Array<BindingBlock> blocks, RelayExpr body) {
  return SeqExpr(blocks, body);
});
TVM_REGISTER_GLOBAL("relax.Function")
    .set_body_typed([](Array<Var> params, RelayExpr body, StructInfo ret_struct_info, bool is_pure,
                       DictAttrs attrs) {
      return Function(params, body, ret_struct_info, is_pure, attrs);
    });

}  // namespace relax
}  // namespace tvm
