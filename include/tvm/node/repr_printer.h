/*!
 * \file tvm/node/repr_printer.h
 * \brief Text form of objects.
 */
#ifndef TVM_NODE_REPR_PRINTER_H_
#define TVM_NODE_REPR_PRINTER_H_

#include <tvm/node/node.h>

#include <ostream>
#include <string>

namespace tvm {

/*!
 * \brief Prints an object with the printer registered for its type or nearest ancestor, or else as
 * `type.key(field=value, ...)` from its fields.
 */
class ReprPrinter {
 public:
  explicit ReprPrinter(std::ostream& stream) : stream(stream) {}

  TVM_DLL void Print(const Any& value);
  void Print(const ObjectRef& ref) { Print(Any(ref)); }
  /*! \brief The form of types without a printer: `type.key(field=value, ...)`. */
  TVM_DLL void PrintFields(const Object* node);
  /*! \brief Spaces up to the current indentation. */
  TVM_DLL void PrintIndent();

  std::ostream& stream;
  /*! \brief In spaces. */
  int indent = 0;

 private:
  // Guards the default printer against cyclic or very deep graphs.
  int depth_ = 0;
};

/*! \brief Text of a value. */
TVM_DLL std::string AsRepr(const Any& value);

namespace detail {
template <typename Node, typename F>
bool RegisterRepr(F print) {
  NodeReflection::Mutable(Node::StaticTypeInfo())->repr =
      [print](const Object* node, ReprPrinter* p) { print(static_cast<const Node*>(node), p); };
  return true;
}
}  // namespace detail
}  // namespace tvm

/*! \brief TVM_REGISTER_REPR(Node, [](const Node* n, ReprPrinter* p) { p->stream << ...; }); */
#define TVM_REGISTER_REPR(NodeName, ...)                                  \
  [[maybe_unused]] static const bool TVM_CONCAT(tvm_repr_, __COUNTER__) = \
      ::tvm::detail::RegisterRepr<NodeName>(__VA_ARGS__)

#endif  // TVM_NODE_REPR_PRINTER_H_
