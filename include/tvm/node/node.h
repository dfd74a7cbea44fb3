/*!
 * \file tvm/node/node.h
 * \brief Declaring a node: its type key, parent and fields, once.
 *
 * \code
 *   class LetNode : public PrimExprNode {
 *    public:
 *     Var var;
 *     PrimExpr value, body;
 *     void Init();  // dtype = body.dtype(), and TypeError unless var and value have one type
 *     TVM_DECLARE_NODE(LetNode, PrimExprNode, "tir.Let", Value(value), Bind(var), Value(body));
 *     TVM_NODE_ARGS(Value(var), Value(value), Value(body));
 *   };
 *   class Let : public FromFields<PrimExpr, LetNode> {
 *    public:
 *     TVM_DEFINE_NODE_REF(Let, LetNode);
 *   };
 *   // in one source file
 *   TVM_REGISTER_NODE(LetNode);
 * \endcode
 *
 * Constructors in C++ and across the FFI, Python attributes, printing, structural equality and
 * hash, JSON and copying follow from it. A field is a reference, a number, an enum, a bool, a
 * DataType or an Any. A class lists only its own fields, each in one role:
 *
 * - Value: compared; an argument of the constructor; a reference must not be null.
 * - Bind: the same, and introduces variables.
 * - Maybe, MaybeBind: a Value or Bind that may be null.
 * - Default: a Maybe that constructors may leave out; it then keeps its member initialiser.
 * - Derived: a Value that is no argument: Init() sets it.
 * - Ignore: neither compared nor an argument.
 *
 * Arguments are those of the parent, then the class's own, in this order, Defaults last. A class
 * with other arguments, or another order, says TVM_NODE_ARGS; one that is not made of the values of
 * its fields, TVM_NODE_ARGS().
 *
 * `void Init()`, if there is one, is called when the fields have their values, whoever gave them:
 * it sets those that follow from others, and raises if they do not fit together. On a node that is
 * complete it changes nothing; a node from JSON is refused if it changes a type or a number.
 *
 * A node class must be default constructible. A class whose objects are variables says
 * `static constexpr bool kIsVariable = true;` and lists its name with Ignore: two variables are
 * equal if they were bound at corresponding places and their Value fields agree.
 */
#ifndef TVM_NODE_NODE_H_
#define TVM_NODE_NODE_H_

#include <tvm/node/construct.h>
#include <tvm/node/register.h>
#include <tvm/runtime/registry.h>

#include <iosfwd>

// Expands to `op##entry` for each of up to 32 entries by re-scanning; see "Recursive macros with
// C++20".
#define TVM_PARENS_ ()
#define TVM_EXPAND_(...) TVM_EXPAND1_(TVM_EXPAND1_(TVM_EXPAND1_(TVM_EXPAND1_(__VA_ARGS__))))
#define TVM_EXPAND1_(...) TVM_EXPAND2_(TVM_EXPAND2_(TVM_EXPAND2_(TVM_EXPAND2_(__VA_ARGS__))))
#define TVM_EXPAND2_(...) TVM_EXPAND3_(TVM_EXPAND3_(__VA_ARGS__))
#define TVM_EXPAND3_(...) __VA_ARGS__
#define TVM_FOR_EACH_(op, ...) __VA_OPT__(TVM_EXPAND_(TVM_FOR_EACH_STEP_(op, __VA_ARGS__)))
#define TVM_FOR_EACH_STEP_(op, entry, ...) \
  op##entry __VA_OPT__(TVM_FOR_EACH_AGAIN_ TVM_PARENS_(op, __VA_ARGS__))
#define TVM_FOR_EACH_AGAIN_() TVM_FOR_EACH_STEP_

#define TVM_FIELD_(role, required, field) \
  visit(#field, ::tvm::FieldRole::role, required, self->field);
#define TVM_FIELD_Value(field) TVM_FIELD_(kValue, true, field)
#define TVM_FIELD_Bind(field) TVM_FIELD_(kBind, true, field)
#define TVM_FIELD_Maybe(field) TVM_FIELD_(kValue, false, field)
#define TVM_FIELD_MaybeBind(field) TVM_FIELD_(kBind, false, field)
#define TVM_FIELD_Default(field) TVM_FIELD_(kValue, false, field)
#define TVM_FIELD_Derived(field) TVM_FIELD_(kValue, false, field)
#define TVM_FIELD_Ignore(field) TVM_FIELD_(kIgnore, false, field)

#define TVM_ARG_TYPE_Value(field) , ::tvm::detail::Arg<decltype(field)>
#define TVM_ARG_TYPE_Bind(field) , ::tvm::detail::Arg<decltype(field)>
#define TVM_ARG_TYPE_Maybe(field) , ::tvm::detail::Arg<decltype(field)>
#define TVM_ARG_TYPE_MaybeBind(field) , ::tvm::detail::Arg<decltype(field)>
#define TVM_ARG_TYPE_Default(field) , ::tvm::detail::DefaultArg<decltype(field)>
#define TVM_ARG_TYPE_Derived(field)
#define TVM_ARG_TYPE_Ignore(field)

#define TVM_ARG_Value(field) visit(self->field, false);
#define TVM_ARG_Bind(field) visit(self->field, false);
#define TVM_ARG_Maybe(field) visit(self->field, false);
#define TVM_ARG_MaybeBind(field) visit(self->field, false);
#define TVM_ARG_Default(field) visit(self->field, true);
#define TVM_ARG_Derived(field)
#define TVM_ARG_Ignore(field)

#define TVM_DECLARE_NODE(NodeName, ParentName, Key, ...)                                       \
  TVM_DECLARE_OBJECT(NodeName, ParentName, Key)                                                \
  template <typename Self_, typename Visitor_>                                                 \
  static void VisitFields(Self_* self, Visitor_&& visit) {                                     \
    _Parent::VisitFields(self, visit);                                                         \
    TVM_FOR_EACH_(TVM_FIELD_, __VA_ARGS__)                                                     \
  }                                                                                            \
  using _FieldsOf = NodeName;                                                                  \
  using _OwnArgs = ::tvm::detail::ArgList<void TVM_FOR_EACH_(TVM_ARG_TYPE_, __VA_ARGS__)>;     \
  template <typename Self_, typename Visitor_>                                                 \
  static void VisitOwnArgs([[maybe_unused]] Self_* self, [[maybe_unused]] Visitor_& visit) {   \
    TVM_FOR_EACH_(TVM_ARG_, __VA_ARGS__)                                                       \
  }                                                                                            \
  /* Behind a signature without types, so that only the node's own source file compiles it. */ \
  static ::tvm::ObjectPtr<::tvm::Object> _Make(void* const* args, size_t count);

/*! \brief What the constructors take, in this order; roles are Value and Default. */
#define TVM_NODE_ARGS(...)                                                                \
  using _ArgsOf = _Self;                                                                  \
  using _Args = ::tvm::detail::ArgList<void TVM_FOR_EACH_(TVM_ARG_TYPE_, __VA_ARGS__)>;   \
  template <typename Self_, typename Visitor_>                                            \
  static void VisitArgs([[maybe_unused]] Self_* self, [[maybe_unused]] Visitor_& visit) { \
    TVM_FOR_EACH_(TVM_ARG_, __VA_ARGS__)                                                  \
  }

/*! \brief A base class that is never itself the type of an object. */
#define TVM_DECLARE_ABSTRACT_NODE(NodeName, ParentName, Key, ...)        \
  TVM_DECLARE_NODE(NodeName, ParentName, Key __VA_OPT__(, ) __VA_ARGS__) \
  using _Abstract = NodeName;

/*! \brief As TVM_DEFINE_REF, in a class below FromFields; with its constructors. */
#define TVM_DEFINE_NODE_REF(TypeName, NodeType)    \
  TVM_DEFINE_REF(TypeName, Constructors, NodeType) \
  using Constructors::Constructors;
/*! \brief The same with CopyOnWrite(). */
#define TVM_DEFINE_NODE_REF_COW(TypeName, NodeType)    \
  TVM_DEFINE_REF_COW(TypeName, Constructors, NodeType) \
  using Constructors::Constructors;

/*!
 * \brief TVM_REGISTER_NODE(NodeName), in one source file: enter a node's fields in the reflection
 * table, and its constructor, if it has arguments, in the table of global functions. The function
 * is named by the type key unless a second argument says another name; one that is registered by
 * hand under that name stands in its place.
 */
#define TVM_REGISTER_NODE(NodeName, ...)                                             \
  ::tvm::ObjectPtr<::tvm::Object> NodeName::_Make(void* const* args, size_t count) { \
    return ::tvm::detail::MakeFromArgs<NodeName>(args, count);                       \
  }                                                                                  \
  [[maybe_unused]] static const bool TVM_CONCAT(tvm_node_, __COUNTER__) =            \
      ::tvm::detail::RegisterNode<NodeName>(__VA_ARGS__)

namespace tvm {

/*! \brief Prints as ReprPrinter does (tvm/node/repr_printer.h). */
TVM_DLL std::ostream& operator<<(std::ostream& os, const ObjectRef& ref);
TVM_DLL std::ostream& operator<<(std::ostream& os, const Any& value);
namespace runtime {
// Found by argument-dependent lookup: ObjectRef and Any live here.
using tvm::operator<<;
}  // namespace runtime

}  // namespace tvm

#endif  // TVM_NODE_NODE_H_
