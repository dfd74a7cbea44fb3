/*!
 * \file src/relay/value.cc
 * \brief What interpreted programs give that runtime containers do not say: how a value of a
 * defined type was made, and cells.
 */
#include <tvm/ir/adt.h>
#include <tvm/runtime/registry.h>

namespace tvm {
namespace relay {

/*! \brief A value of a defined type: by which constructor it was made, and of what. */
class ConstructorValueNode : public Object {
 public:
  /*! \brief That of the constructor. */
  int tag = 0;
  Array<ObjectRef> fields;
  /*! \brief Null where only the tag is known. */
  Constructor constructor;
  TVM_DECLARE_NODE(ConstructorValueNode, Object, "relay.ConstructorValue", Value(tag),
                   Value(fields), Maybe(constructor));
  TVM_NODE_ARGS(Value(tag), Value(fields), Default(constructor));
};
TVM_REGISTER_NODE(ConstructorValueNode, "relay.ConstructorValue");

/*! \brief A cell, known by identity, with what it holds. */
class RefValueNode : public Object {
 public:
  static constexpr bool kIsVariable = true;
  mutable ObjectRef value;
  TVM_DECLARE_NODE(RefValueNode, Object, "relay.RefValue", Ignore(value));
  TVM_NODE_ARGS(Value(value));
};
TVM_REGISTER_NODE(RefValueNode, "relay.RefValue");

TVM_REGISTER_GLOBAL("relay.SetRefValue").set_body_typed([](const ObjectRef& ref, ObjectRef value) {
  const auto* cell = ref.as<RefValueNode>();
  ICHECK(cell != nullptr) << "relay.SetRefValue: not a cell";
  cell->value = std::move(value);
});

}  // namespace relay
}  // namespace tvm
