/*!
 * \file tvm/node/node.h
 * \brief Declaring a node: its type key, parent and fields, once.
 *
 * \code
 *   class LetNode : public PrimExprNode {
 *    public:
 *     Var var;
 *     PrimExpr value, body;
 *     TVM_DECLARE_NODE(LetNode, PrimExprNode, "tir.Let", Bind(var), Value(value), Value(body));
 *   };
 *   // in one source file
 *   TVM_REGISTER_NODE(LetNode);
 * \endcode
 *
 * Python attributes, printing, structural equality and hash, JSON and copying follow from it. A
 * field is a reference, a number, an enum, a bool, a DataType or an Any. A class lists only its
 * own fields. A node class must be default constructible. A class whose objects are variables says
 * `static constexpr bool kIsVariable = true;` and lists its name with Ignore: two variables are
 * equal if they were bound at corresponding places and their Value fields agree.
 */
#ifndef TVM_NODE_NODE_H_
#define TVM_NODE_NODE_H_

#include <tvm/node/reflection.h>
#include <tvm/runtime/container.h>
#include <tvm/runtime/object.h>
#include <tvm/runtime/registry.h>

#include <iosfwd>

// Applies `macro##entry` to up to 64 entries by re-scanning; see "Recursive macros with C++20".
#define TVM_PARENS_ ()
#define TVM_EXPAND_(...) TVM_EXPAND3_(TVM_EXPAND3_(TVM_EXPAND3_(TVM_EXPAND3_(__VA_ARGS__))))
#define TVM_EXPAND3_(...) TVM_EXPAND2_(TVM_EXPAND2_(TVM_EXPAND2_(TVM_EXPAND2_(__VA_ARGS__))))
#define TVM_EXPAND2_(...) TVM_EXPAND1_(TVM_EXPAND1_(TVM_EXPAND1_(TVM_EXPAND1_(__VA_ARGS__))))
#define TVM_EXPAND1_(...) __VA_ARGS__
#define TVM_FIELDS_(...) __VA_OPT__(TVM_EXPAND_(TVM_FIELDS_STEP_(__VA_ARGS__)))
#define TVM_FIELDS_STEP_(entry, ...) \
  TVM_FIELD_##entry __VA_OPT__(TVM_FIELDS_AGAIN_ TVM_PARENS_(__VA_ARGS__))
#define TVM_FIELDS_AGAIN_() TVM_FIELDS_STEP_

#define TVM_FIELD_Value(field) visit(#field, ::tvm::FieldRole::kValue, self->field);
#define TVM_FIELD_Bind(field) visit(#field, ::tvm::FieldRole::kBind, self->field);
#define TVM_FIELD_Ignore(field) visit(#field, ::tvm::FieldRole::kIgnore, self->field);

#define TVM_DECLARE_NODE(NodeName, ParentName, Key, ...)   \
  TVM_DECLARE_OBJECT(NodeName, ParentName, Key)            \
  template <typename Self_, typename Visitor_>             \
  static void VisitFields(Self_* self, Visitor_&& visit) { \
    _Parent::VisitFields(self, visit);                     \
    TVM_FIELDS_(__VA_ARGS__)                               \
  }

/*! \brief A base class that is never itself the type of an object. */
#define TVM_DECLARE_ABSTRACT_NODE(NodeName, ParentName, Key, ...)        \
  TVM_DECLARE_NODE(NodeName, ParentName, Key __VA_OPT__(, ) __VA_ARGS__) \
  using _Abstract = NodeName;

/*! \brief Enter a node's fields in the reflection table. In one source file. */
#define TVM_REGISTER_NODE(NodeName)                                       \
  [[maybe_unused]] static const bool TVM_CONCAT(tvm_node_, __COUNTER__) = \
      ::tvm::detail::RegisterNode<NodeName>()

/*!
 * \brief What constructors demand of a node, for nodes that are made from JSON or by MakeNode: a
 * function of the node that raises. Usually it calls the constructor.
 */
#define TVM_REGISTER_NODE_CHECK(NodeName, ...)                             \
  [[maybe_unused]] static const bool TVM_CONCAT(tvm_check_, __COUNTER__) = \
      ::tvm::detail::RegisterNodeCheck<NodeName>(__VA_ARGS__)

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
