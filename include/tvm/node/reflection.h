/*!
 * \file tvm/node/reflection.h
 * \brief What is derived from a node's one declaration: its field table and how to build one.
 */
#ifndef TVM_NODE_REFLECTION_H_
#define TVM_NODE_REFLECTION_H_

#include <tvm/runtime/any.h>

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace tvm {

class ReprPrinter;

/*! \brief The part a field plays in comparison. */
enum class FieldRole : uint8_t {
  /*! \brief Compared and hashed. */
  kValue,
  /*! \brief Introduces variables: equality maps those of one side to those of the other. */
  kBind,
  /*! \brief Not part of the meaning: source spans, caches, display names. */
  kIgnore,
};

/*! \brief One field. `address` below is that of the object plus `offset`. */
struct FieldInfo {
  const char* name;
  FieldRole role;
  /*! \brief The field is an ObjectRef, which may be read in place. */
  bool is_object;
  uint32_t offset;
  Any (*read)(const void* address);
  /*! \brief Convert and store; returns false when the value has the wrong type. */
  bool (*write)(void* address, const Any& value);
  std::string (*type_name)();

  Any Get(const Object* node) const { return read(reinterpret_cast<const char*>(node) + offset); }
  const ObjectRef& GetRef(const Object* node) const {
    return *reinterpret_cast<const ObjectRef*>(reinterpret_cast<const char*>(node) + offset);
  }
  /*! \brief Store a value; TypeError naming type, field, expected and actual type. */
  TVM_DLL void Set(Object* node, const Any& value) const;
};

struct NodeReflection {
  /*! \brief Parents' fields first, then own ones, in the order of declaration. */
  TVM_DLL const std::vector<FieldInfo>& fields() const;
  /*! \brief The field called `name`, or null. */
  TVM_DLL const FieldInfo* Find(std::string_view name) const;

  /*! \brief Null for abstract types. */
  ObjectPtr<Object> (*create)() = nullptr;
  ObjectPtr<Object> (*copy)(const Object*) = nullptr;
  void (*collect_fields)(std::vector<FieldInfo>*) = nullptr;
  /*! \brief A variable: compared by the binding that introduced it, else by identity. */
  bool is_variable = false;
  /*! \brief For objects that exist once under a name (operators): saved and found by it. */
  std::string (*name_of)(const Object*) = nullptr;
  ObjectPtr<Object> (*find_named)(const std::string&) = nullptr;
  std::function<void(const Object*, ReprPrinter*)> repr;
  /*! \brief Raises if the fields do not fit together; asked of nodes made field by field. */
  std::function<void(const Object*)> check;

  /*! \brief The entry of a type, made if missing. Only for registration. */
  TVM_DLL static NodeReflection* Mutable(const runtime::TypeInfo* type);
  /*! \brief The entry of a type; TypeError if the type was not registered with its fields. */
  TVM_DLL static const NodeReflection& Require(const runtime::TypeInfo* type);

 private:
  mutable std::once_flag collected_;
  mutable std::vector<FieldInfo> fields_;
};

/*! \brief Value of a field by name; AttributeError that lists the fields if there is none. */
TVM_DLL Any GetField(const Object* node, std::string_view name);
/*! \brief Names of all fields; empty for types without reflection. */
TVM_DLL std::vector<std::string> ListFieldNames(const Object* node);
/*! \brief A node built from named field values; missing ones keep their default. */
TVM_DLL ObjectRef MakeNode(const std::string& type_key,
                           const std::vector<std::pair<std::string, Any>>& fields);
/*! \brief A shallow copy. */
TVM_DLL ObjectRef CopyNode(const ObjectRef& node);

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
  std::vector<FieldInfo>* out;

  template <typename F>
  void operator()(const char* name, FieldRole role, F& field) const {
    using Type = std::remove_cv_t<F>;
    auto offset = reinterpret_cast<const char*>(&field) - reinterpret_cast<const char*>(base);
    out->push_back(FieldInfo{name, role, std::is_base_of_v<ObjectRef, Type>,
                             static_cast<uint32_t>(offset), &FieldAccess<Type>::Read,
                             &FieldAccess<Type>::Write, &runtime::AnyTraits<Type>::TypeName});
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

template <typename Node>
bool RegisterNode() {
  static_assert(std::is_same_v<Node, typename Node::_Self>,
                "TVM_REGISTER_NODE: the class has no TVM_DECLARE_NODE of its own");
  NodeReflection* reflection = NodeReflection::Mutable(Node::StaticTypeInfo());
  if constexpr (!std::is_abstract_v<Node> && std::is_default_constructible_v<Node>) {
    if constexpr (!IsDeclaredAbstract<Node>()) {
      reflection->create = []() -> ObjectPtr<Object> { return make_object<Node>(); };
    }
    reflection->collect_fields = [](std::vector<FieldInfo>* out) {
      ObjectPtr<Node> prototype = make_object<Node>();
      Node::VisitFields(prototype.get(), FieldCollector{prototype.get(), out});
    };
  }
  if constexpr (!std::is_abstract_v<Node> && std::is_copy_constructible_v<Node>) {
    reflection->copy = [](const Object* node) -> ObjectPtr<Object> {
      return make_object<Node>(*static_cast<const Node*>(node));
    };
  }
  if constexpr (requires { Node::kIsVariable; }) reflection->is_variable = Node::kIsVariable;
  return true;
}

template <typename Node, typename Check>
bool RegisterNodeCheck(Check check) {
  NodeReflection::Mutable(Node::StaticTypeInfo())->check = [check](const Object* node) {
    check(static_cast<const Node*>(node));
  };
  return true;
}

}  // namespace detail
}  // namespace tvm

#endif  // TVM_NODE_REFLECTION_H_
