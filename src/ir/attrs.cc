#include <tvm/ir/attrs.h>
#include <tvm/ir/function.h>
#include <tvm/node/repr_printer.h>

namespace tvm {

TVM_REGISTER_NODE(BaseAttrsNode);
TVM_REGISTER_NODE(DictAttrsNode, "ir.DictAttrs");
TVM_REGISTER_NODE(BaseFuncNode);

DictAttrs WithAttr(DictAttrs attrs, const String& key, Any value) {
  if (!attrs.defined()) return DictAttrs({{key, std::move(value)}});
  attrs.CopyOnWrite()->dict.Set(key, value);
  return attrs;
}

DictAttrs WithoutAttr(DictAttrs attrs, const String& key) {
  if (!attrs.defined() || !attrs->dict.contains(key)) return attrs;
  attrs.CopyOnWrite()->dict.erase(key);
  return attrs;
}

TVM_REGISTER_REPR(DictAttrsNode,
                  [](const DictAttrsNode* node, ReprPrinter* p) { p->Print(node->dict); });

namespace {

// A copy of any function with other attributes, whatever its concrete type.
ObjectRef WithAttrs(const BaseFunc& func, DictAttrs attrs) {
  ObjectRef copy = CopyNode(func);
  auto* node = static_cast<BaseFuncNode*>(const_cast<Object*>(copy.get()));
  node->attrs = std::move(attrs);
  return copy;
}

}  // namespace

TVM_REGISTER_GLOBAL("ir.DictAttrsGetDict").set_body_typed([](DictAttrs attrs) {
  return attrs.defined() ? attrs->dict : Map<String, Any>();
});

TVM_REGISTER_GLOBAL("ir.BaseFuncWithAttr").set_body_typed([](BaseFunc func, String key, Any value) {
  return WithAttrs(func, WithAttr(func->attrs, key, value));
});

TVM_REGISTER_GLOBAL("ir.BaseFuncWithoutAttr").set_body_typed([](BaseFunc func, String key) {
  return WithAttrs(func, WithoutAttr(func->attrs, key));
});

}  // namespace tvm
