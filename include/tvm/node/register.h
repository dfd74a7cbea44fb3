/*!
 * \file tvm/node/register.h
 * \brief Filling a node's entry of the reflection table from its declaration.
 */
#ifndef TVM_NODE_REGISTER_H_
#define TVM_NODE_REGISTER_H_

#include <tvm/node/construct.h>

namespace tvm {
namespace detail {

template <typename F>
struct FieldAccess {
  static Any Read(const void* address) { return Any(*static_cast<const F*>(address)); }
  static bool Write(void* address, const Any& value) {
    std::optional<F> converted = runtime::AnyTraits<F>::TryConvert(value);
    if (!converted) return false;
    *static_cast<F*>(address) = *std::move(converted);
    return true;
  }
};

struct FieldCollector {
  const Object* base;
  FieldTable* out;

  template <typename F>
  void operator()(const char* name, FieldRole role, bool, F& field) const {
    using Type = std::remove_cv_t<F>;
    out->fields.push_back(FieldInfo{name, role, std::is_base_of_v<ObjectRef, Type>, Offset(&field),
                                    &FieldAccess<Type>::Read, &FieldAccess<Type>::Write,
                                    &runtime::AnyTraits<Type>::TypeName});
  }
  template <typename F>
  void operator()(F& field, bool is_default) const {
    out->arg_offsets.push_back(Offset(&field));
    if (!is_default) ++out->num_required;
  }

 private:
  uint32_t Offset(const void* field) const {
    return static_cast<uint32_t>(static_cast<const char*>(field) -
                                 reinterpret_cast<const char*>(base));
  }
};

/*! \brief Whether the class itself, not one above it, says TVM_DECLARE_ABSTRACT_NODE. */
template <typename Node>
constexpr bool IsDeclaredAbstract() {
  if constexpr (requires { typename Node::_Abstract; }) {
    return std::is_same_v<Node, typename Node::_Abstract>;
  }
  return false;
}

/*! \brief Enter the global function `name`, which makes a node of the arguments it is given. */
TVM_DLL void RegisterConstructor(const NodeReflection* reflection, const char* name);

template <typename Node>
bool RegisterNode(const char* constructor = Node::_type_key) {
  static_assert(std::is_same_v<Node, typename Node::_Self>,
                "TVM_REGISTER_NODE: the class has no TVM_DECLARE_NODE of its own");
  NodeReflection* reflection = NodeReflection::Mutable(Node::StaticTypeInfo());
  if constexpr (!std::is_abstract_v<Node> && std::is_default_constructible_v<Node>) {
    if constexpr (!IsDeclaredAbstract<Node>()) {
      reflection->create = []() -> ObjectPtr<Object> { return make_object<Node>(); };
      if constexpr (!std::is_same_v<decltype(ArgsOf<Node>()), ArgList<void>>) {
        RegisterConstructor(reflection, constructor);
      }
    }
    reflection->collect = [](FieldTable* out) {
      ObjectPtr<Node> prototype = make_object<Node>();
      FieldCollector collector{prototype.get(), out};
      Node::VisitFields(prototype.get(), collector);
      VisitArgsInOrder(prototype.get(), collector);
    };
    reflection->finish = [](Object* node) { FinishNode(static_cast<Node*>(node)); };
  }
  if constexpr (!std::is_abstract_v<Node> && std::is_copy_constructible_v<Node>) {
    reflection->copy = [](const Object* node) -> ObjectPtr<Object> {
      return make_object<Node>(*static_cast<const Node*>(node));
    };
  }
  if constexpr (requires { Node::kIsVariable; }) reflection->is_variable = Node::kIsVariable;
  return true;
}

}  // namespace detail
}  // namespace tvm
#endif  // TVM_NODE_REGISTER_H_
