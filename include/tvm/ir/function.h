/*!
 * \file tvm/ir/function.h
 * \brief Base of all functions a module can hold.
 */
#ifndef TVM_IR_FUNCTION_H_
#define TVM_IR_FUNCTION_H_

#include <tvm/ir/attrs.h>

namespace tvm {

class BaseFuncNode : public RelayExprNode {
 public:
  DictAttrs attrs;

  template <typename T>
  std::optional<T> GetAttr(const String& key) const {
    return attrs.GetAttr<T>(key);
  }
  template <typename T>
  T GetAttr(const String& key, T otherwise) const {
    return attrs.GetAttr<T>(key, std::move(otherwise));
  }
  bool HasNonzeroAttr(const String& key) const { return attrs.HasNonzeroAttr(key); }

  TVM_DECLARE_ABSTRACT_NODE(BaseFuncNode, RelayExprNode, "BaseFunc", Maybe(attrs));
};
class BaseFunc : public RelayExpr {
 public:
  TVM_DEFINE_REF(BaseFunc, RelayExpr, BaseFuncNode);
};

/*! \brief A copy of `func` with one attribute set. */
template <typename Func>
  requires std::is_base_of_v<BaseFunc, Func>
Func WithAttr(Func func, const String& key, Any value) {
  using Node = typename Func::ContainerType;
  auto node = make_object<Node>(*static_cast<const Node*>(func.get()));
  node->attrs = WithAttr(node->attrs, key, std::move(value));
  return Func(ObjectPtr<Object>(node));
}
template <typename Func>
  requires std::is_base_of_v<BaseFunc, Func>
Func WithoutAttr(Func func, const String& key) {
  using Node = typename Func::ContainerType;
  auto node = make_object<Node>(*static_cast<const Node*>(func.get()));
  node->attrs = WithoutAttr(node->attrs, key);
  return Func(ObjectPtr<Object>(node));
}

/*! \brief Well-known function attributes. */
namespace attr {
/*! \brief Symbol under which the function is exported. */
constexpr const char* kGlobalSymbol = "global_symbol";
constexpr const char* kTarget = "target";
constexpr const char* kCallingConv = "calling_conv";
constexpr const char* kNoAlias = "tir.noalias";
}  // namespace attr

}  // namespace tvm

#endif  // TVM_IR_FUNCTION_H_
