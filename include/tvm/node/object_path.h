/*!
 * \file tvm/node/object_path.h
 * \brief Places in an object graph: the fields, elements and keys that lead there from a root.
 */
#ifndef TVM_NODE_OBJECT_PATH_H_
#define TVM_NODE_OBJECT_PATH_H_

#include <tvm/node/node.h>

#include <string>

namespace tvm {

class ObjectPath;

/*! \brief One step of a path, after those of its parent. */
class ObjectPathNode : public Object {
 public:
  /*! \brief The path without its last step; null for a root. */
  ObjectRef parent;
  /*! \brief Number of steps, the root included. */
  int length = 1;
  /*! \brief What follows the text of the parent: `.body`, `[2]`. */
  virtual std::string StepText() const = 0;
  /*! \brief The value this step leads to from `value`; null if it leads nowhere. */
  virtual Any Step(const Any& value) const { return Any(); }
  TVM_DECLARE_ABSTRACT_NODE(ObjectPathNode, Object, "ObjectPath", Maybe(parent), Value(length));
};

/*! \brief A place in an object graph. Paths are values: those of equal steps are equal. */
class ObjectPath : public ObjectRef {
 public:
  static ObjectPath Root(Optional<String> name = Optional<String>());
  ObjectPath Attr(const String& field) const;
  /*! \brief A field that differs, it is not known which. */
  ObjectPath UnknownAttr() const;
  ObjectPath ArrayIndex(int64_t index) const;
  /*! \brief The place of an element that another array has and this one does not. */
  ObjectPath MissingArrayElement(int64_t index) const;
  ObjectPath MapValue(const Any& key) const;
  ObjectPath MissingMapEntry() const;

  /*! \brief `<root>.body.seq[2]`. */
  TVM_DLL std::string ToText() const;
  TVM_DLL bool Equal(const ObjectPath& other) const;
  TVM_DLL bool IsPrefixOf(const ObjectPath& other) const;
  /*! \brief The first `length` steps; IndexError if there are not as many. */
  TVM_DLL ObjectPath Prefix(int64_t length) const;
  TVM_DEFINE_REF(ObjectPath, ObjectRef, ObjectPathNode);
};

}  // namespace tvm
#endif  // TVM_NODE_OBJECT_PATH_H_
