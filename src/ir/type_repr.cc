/*!
 * \file src/ir/type_repr.cc
 */
#include <tvm/ir/adt.h>
#include <tvm/ir/tensor_type.h>
#include <tvm/ir/type_repr.h>

namespace tvm {

namespace {

const char* KindName(TypeKind kind) {
  switch (kind) {
    case TypeKind::kType:
      return "Type";
    case TypeKind::kShapeVar:
      return "ShapeVar";
    case TypeKind::kBaseType:
      return "BaseType";
    case TypeKind::kConstraint:
      return "Constraint";
    case TypeKind::kAdtHandle:
      return "AdtHandle";
    case TypeKind::kTypeData:
      return "TypeData";
  }
  return "Type";
}

void PrintNamed(const char* what, const String& name, TypeKind kind, ReprPrinter* p) {
  p->stream << what << "(\"" << std::string(name) << "\", \"" << KindName(kind) << "\")";
}

}  // namespace

void PrintInnerType(const Type& type, ReprPrinter* printer) {
  if (const auto* tensor = type.as<TensorTypeNode>()) {
    printer->stream << "I.TensorType(" << tensor->shape << ", \"" << tensor->dtype << "\")";
  } else {
    printer->Print(type);
  }
}

void PrintInnerTypes(const Array<Type>& types, ReprPrinter* printer) {
  printer->stream << '[';
  for (size_t i = 0; i < types.size(); ++i) {
    if (i != 0) printer->stream << ", ";
    PrintInnerType(types[static_cast<int64_t>(i)], printer);
  }
  printer->stream << ']';
}

TVM_REGISTER_REPR(TensorTypeNode, [](const TensorTypeNode* node, ReprPrinter* p) {
  p->stream << "TensorType(" << node->shape << ", " << node->dtype << ')';
});

TVM_REGISTER_REPR(TypeVarNode, [](const TypeVarNode* node, ReprPrinter* p) {
  PrintNamed("I.TypeVar", node->name_hint, node->kind, p);
});

TVM_REGISTER_REPR(GlobalTypeVarNode, [](const GlobalTypeVarNode* node, ReprPrinter* p) {
  PrintNamed("I.GlobalTypeVar", node->name_hint, node->kind, p);
});

TVM_REGISTER_REPR(FuncTypeNode, [](const FuncTypeNode* node, ReprPrinter* p) {
  p->stream << "I.FuncType(" << node->type_params << ", ";
  PrintInnerTypes(node->arg_types, p);
  p->stream << ", ";
  PrintInnerType(node->ret_type, p);
  p->stream << ')';
});

TVM_REGISTER_REPR(TypeCallNode, [](const TypeCallNode* node, ReprPrinter* p) {
  p->stream << "TypeCall(" << node->func << ", " << node->args << ')';
});

TVM_REGISTER_REPR(ConstructorNode, [](const ConstructorNode* node, ReprPrinter* p) {
  p->stream << "ConstructorNode(" << std::string(node->name_hint) << ", " << node->inputs << ", "
            << node->belong_to << ')';
});

TVM_REGISTER_REPR(TypeDataNode, [](const TypeDataNode* node, ReprPrinter* p) {
  p->stream << "TypeDataNode(" << node->header << ", " << node->type_vars << ", "
            << node->constructors << ')';
});

}  // namespace tvm
