/*!
 * \file tvm/ir/attrs.h
 * \brief Attributes of operators and functions.
 */
#ifndef TVM_IR_ATTRS_H_
#define TVM_IR_ATTRS_H_

#include <tvm/ir/expr.h>

namespace tvm {

/*! \brief Base of the attribute records of operators. */
class BaseAttrsNode : public Object {
 public:
  TVM_DECLARE_ABSTRACT_NODE(BaseAttrsNode, Object, "Attrs");
};
class Attrs : public ObjectRef {
 public:
  TVM_DEFINE_REF(Attrs, ObjectRef, BaseAttrsNode);
};

/*! \brief Attributes by name. */
class DictAttrsNode : public BaseAttrsNode {
 public:
  Map<String, Any> dict;
  TVM_DECLARE_NODE(DictAttrsNode, BaseAttrsNode, "DictAttrs", Value(dict));
};
class DictAttrs : public FromFields<Attrs, DictAttrsNode> {
 public:
  /*! \brief The attribute, converted to T, or nothing. */
  template <typename T>
  std::optional<T> GetAttr(const String& key) const {
    if (!defined()) return std::nullopt;
    std::optional<Any> value = get()->dict.Get(key);
    if (!value || value->is_null()) return std::nullopt;
    return value->cast<T>();
  }
  template <typename T>
  T GetAttr(const String& key, T otherwise) const {
    std::optional<T> value = GetAttr<T>(key);
    return value ? *std::move(value) : std::move(otherwise);
  }
  /*! \brief True if the attribute is there and not zero. */
  bool HasNonzeroAttr(const String& key) const { return GetAttr<int64_t>(key, 0) != 0; }

  TVM_DEFINE_NODE_REF_COW(DictAttrs, DictAttrsNode);
};

/*! \brief `attrs` with one attribute set. */
TVM_DLL DictAttrs WithAttr(DictAttrs attrs, const String& key, Any value);
/*! \brief `attrs` without one attribute. */
TVM_DLL DictAttrs WithoutAttr(DictAttrs attrs, const String& key);

}  // namespace tvm

#endif  // TVM_IR_ATTRS_H_
