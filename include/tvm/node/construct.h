/*!
 * \file tvm/node/construct.h
 * \brief Making a node of its declared fields: C++ constructors of its references.
 *
 * \code
 *   class Let : public FromFields<PrimExpr, LetNode> {
 *    public:
 *     TVM_DEFINE_NODE_REF(Let, LetNode);  // Let(Var var, PrimExpr value, PrimExpr body)
 *   };
 * \endcode
 *
 * Arguments are the fields that the declaration marks as such, parents' first; those that may be
 * left out come last, and one that is left out keeps its member initialiser. Then every reference
 * that must be there is looked at, an absent list becomes the empty list, and the node's `Init()`
 * runs if it has one. Across the FFI (see TVM_REGISTER_NODE), from JSON and by MakeNode nodes are
 * made by the same steps.
 */
#ifndef TVM_NODE_CONSTRUCT_H_
#define TVM_NODE_CONSTRUCT_H_

#include <tvm/node/reflection.h>
#include <tvm/runtime/container.h>
#include <tvm/runtime/object.h>

namespace tvm {
namespace detail {

template <typename F>
struct Arg {};
template <typename F>
struct DefaultArg {};
/*! \brief The first entry is void, so that a macro can put a comma before every other. */
template <typename, typename... A>
struct ArgList {};

template <typename... A, typename... B>
ArgList<void, A..., B...> operator+(ArgList<void, A...>, ArgList<void, B...>);

/*! \brief Whether the class itself, not one above it, has fields, and a list of arguments. */
template <typename Node>
constexpr bool DeclaresFields() {
  if constexpr (requires { typename Node::_FieldsOf; }) {
    return std::is_same_v<Node, typename Node::_FieldsOf>;
  }
  return false;
}
template <typename Node>
constexpr bool DeclaresArgs() {
  if constexpr (requires { typename Node::_ArgsOf; }) {
    return std::is_same_v<Node, typename Node::_ArgsOf>;
  }
  return false;
}

/*! \brief The arguments of a node's constructor as a list of Arg and DefaultArg. */
template <typename Node>
constexpr auto ArgsOf() {
  if constexpr (std::is_same_v<Node, Object>) {
    return ArgList<void>();
  } else if constexpr (DeclaresArgs<Node>()) {
    return typename Node::_Args();
  } else if constexpr (DeclaresFields<Node>()) {
    return decltype(ArgsOf<typename Node::_Parent>() + typename Node::_OwnArgs())();
  } else {
    return ArgsOf<typename Node::_Parent>();
  }
}

/*! \brief Calls `visit(field, is_default)` for the arguments in the order of declaration. */
template <typename Node, typename Self, typename Visitor>
void VisitArgs(Self* self, Visitor& visit) {
  if constexpr (std::is_same_v<Node, Object>) {
  } else if constexpr (DeclaresArgs<Node>()) {
    Node::VisitArgs(self, visit);
  } else {
    VisitArgs<typename Node::_Parent>(self, visit);
    if constexpr (DeclaresFields<Node>()) Node::VisitOwnArgs(self, visit);
  }
}

/*! \brief The same, those first that cannot be left out: the order of constructors. */
template <typename Node, typename Visitor>
void VisitArgsInOrder(Node* node, Visitor&& visit) {
  for (bool defaults : {false, true}) {
    auto some = [&](auto& field, bool is_default) {
      if (is_default == defaults) visit(field, is_default);
    };
    VisitArgs<Node>(node, some);
  }
}

[[noreturn]] TVM_DLL void ThrowMissing(const char* type_key, const char* field);
/*! \brief ThrowMissing if an element, or a key or value of an entry, is null. */
TVM_DLL void RequireElements(const ArrayNode* array, const char* type_key, const char* field);
TVM_DLL void RequireEntries(const MapNode* map, bool keys, bool values, const char* type_key,
                            const char* field);

/*! \brief A reference that stands for something; a String that is not there is the empty text. */
template <typename T>
constexpr bool kMustBeThere =
    std::is_base_of_v<ObjectRef, T> && !std::is_same_v<T, ObjectRef> && !std::is_same_v<T, String>;
template <typename T>
constexpr bool kMustBeThere<Optional<T>> = false;

struct FieldRequirer {
  const char* type_key;

  template <typename F>
  void operator()(const char* name, FieldRole, bool required, F& field) const {
    if constexpr (kMustBeThere<F>) {
      if (required) Require(name, field);
    }
  }

 private:
  template <typename F>
  void Require(const char* name, F& field) const {
    if (!field.defined()) ThrowMissing(type_key, name);
  }
  template <typename T>
  void Require(const char* name, Array<T>& field) const {
    if (!field.defined()) field = Array<T>();
    if constexpr (kMustBeThere<T>) RequireElements(field.get(), type_key, name);
  }
  template <typename K, typename V>
  void Require(const char* name, Map<K, V>& field) const {
    if (!field.defined()) field = Map<K, V>();
    if constexpr (kMustBeThere<K> || kMustBeThere<V>) {
      RequireEntries(field.get(), kMustBeThere<K>, kMustBeThere<V>, type_key, name);
    }
  }
};

/*! \brief The last step of making a node, however its fields got their values. */
template <typename Node>
void FinishNode(Node* node) {
  Node::VisitFields(node, FieldRequirer{Node::_type_key});
  if constexpr (requires { node->Init(); }) node->Init();
}

/*! \brief A node whose first `count` arguments are moved from `args`, which have their types. */
template <typename Node>
ObjectPtr<Object> MakeFromArgs(void* const* args, size_t count) {
  if constexpr (std::is_abstract_v<Node> || !std::is_default_constructible_v<Node>) {
    TVM_FATAL(InternalError) << Node::_type_key << " is not made of the values of its fields";
  } else {
    ObjectPtr<Node> node = make_object<Node>();
    size_t next = 0;
    VisitArgsInOrder(node.get(), [&](auto& field, bool) {
      if (next < count) field = std::move(*static_cast<std::decay_t<decltype(field)>*>(args[next]));
      ++next;
    });
    FinishNode(node.get());
    return node;
  }
}

/*! \brief The types of the arguments that a constructor needs, or of those it can do without. */
template <typename F>
ArgList<void, F> Needed(Arg<F>);
template <typename F>
ArgList<void> Needed(DefaultArg<F>);
template <typename F>
ArgList<void> Spare(Arg<F>);
template <typename F>
ArgList<void, F> Spare(DefaultArg<F>);

template <typename Parent, typename Node, typename Given, typename Rest>
class Constructors;

/*! \brief The constructor that takes every argument. */
template <typename Parent, typename Node, typename... F>
class Constructors<Parent, Node, ArgList<void, F...>, ArgList<void>> : public Parent {
 public:
  Constructors() = default;
  explicit Constructors(ObjectPtr<Object> data) : Parent(std::move(data)) {}
  explicit(sizeof...(F) == 1) Constructors(F... fields) {
    void* args[] = {&fields...};
    this->data_ = Node::_Make(args, sizeof...(F));
  }
};

/*! \brief In addition one that leaves out `Next` and what follows. */
template <typename Parent, typename Node, typename... F, typename Next, typename... Rest>
class Constructors<Parent, Node, ArgList<void, F...>, ArgList<void, Next, Rest...>>
    : public Constructors<Parent, Node, ArgList<void, F..., Next>, ArgList<void, Rest...>> {
  using Base = Constructors<Parent, Node, ArgList<void, F..., Next>, ArgList<void, Rest...>>;

 public:
  using Base::Base;
  Constructors() = default;
  explicit(sizeof...(F) == 1) Constructors(F... fields)
    requires(sizeof...(F) > 0)
  {
    void* args[] = {&fields...};
    this->data_ = Node::_Make(args, sizeof...(F));
  }
};

template <typename Parent, typename Node, typename... A>
auto FindConstructors(ArgList<void, A...>)
    -> Constructors<Parent, Node, decltype((ArgList<void>() + ... + Needed(A()))),
                    decltype((ArgList<void>() + ... + Spare(A())))>;

}  // namespace detail

/*! \brief Base of the reference to a Node: a Parent with the constructors of the node's fields. */
template <typename Parent, typename Node>
using FromFields = decltype(detail::FindConstructors<Parent, Node>(detail::ArgsOf<Node>()));

/*! \brief A Ref of a node's fields, for references whose own constructors take something else. */
template <typename Ref, typename... F>
Ref Construct(F&&... fields) {
  FromFields<ObjectRef, typename Ref::ContainerType> made(std::forward<F>(fields)...);
  return Ref(std::move(made).MoveObjectPtr());
}

}  // namespace tvm
#endif  // TVM_NODE_CONSTRUCT_H_
