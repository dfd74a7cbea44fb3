/*!
 * \file tvm/ir/op.h
 * \brief Operators, registered by name with open attributes.
 *
 * \code
 *   TVM_REGISTER_OP("tir.exp").set_num_inputs(1).set_attr<Integer>("TCallEffectKind", 0);
 *   bool known = Op::HasAttrMap("TCallEffectKind");
 *   int64_t kind = Op::Get("tir.exp").GetAttr<int64_t>("TCallEffectKind", 3);
 * \endcode
 */
#ifndef TVM_IR_OP_H_
#define TVM_IR_OP_H_

#include <tvm/ir/expr.h>

#include <string>

namespace tvm {

class OpNode : public RelayExprNode {
 public:
  String name;
  String description;
  /*! \brief -1 means any number. */
  int32_t num_inputs = -1;
  /*! \brief Names of the arguments, in order. */
  Array<String> arguments;
  /*! \brief Type key of the attribute record, or empty. */
  String attrs_type_key;
  TVM_DECLARE_NODE(OpNode, RelayExprNode, "Op", Value(name), Ignore(description),
                   Ignore(num_inputs), Ignore(arguments), Ignore(attrs_type_key));
  TVM_NODE_ARGS();

  /*! \brief Attributes by name. Registered at load time, read-only afterwards. */
  mutable Map<String, Any> attr_table;
};

class Op : public RelayExpr {
 public:
  /*! \brief The operator; ValueError with similar names when unknown. One object per name. */
  TVM_DLL static const Op& Get(const String& name);
  TVM_DLL static bool Exists(const String& name);
  /*! \brief True if some operator has this attribute. */
  TVM_DLL static bool HasAttrMap(const String& attr);
  TVM_DLL static Array<String> ListNames();

  template <typename T>
  T GetAttr(const String& key, T otherwise) const {
    std::optional<Any> value = get()->attr_table.Get(key);
    return value ? value->cast<T>() : std::move(otherwise);
  }
  bool HasAttr(const String& key) const { return get()->attr_table.contains(key); }

  TVM_DEFINE_REF(Op, RelayExpr, OpNode);
};

/*! \brief Fills in one operator; what TVM_REGISTER_OP returns. */
class TVM_DLL OpRegEntry {
 public:
  /*! \brief The entry of an operator, made if missing. */
  static OpRegEntry& RegisterOrGet(const String& name);
  OpRegEntry& describe(const String& text);
  OpRegEntry& set_num_inputs(int32_t n);
  OpRegEntry& add_argument(const String& name, const String& type, const String& description);
  OpRegEntry& set_attrs_type_key(const String& key);
  template <typename AttrsNode>
  OpRegEntry& set_attrs_type() {
    return set_attrs_type_key(AttrsNode::_type_key);
  }
  template <typename T>
  OpRegEntry& set_attr(const String& attr, const T& value) {
    return SetAny(attr, Any(T(value)));
  }
  OpRegEntry& SetAny(const String& attr, Any value);
  const Op& op() const { return op_; }

 private:
  friend class OpRegistry;
  Op op_;
  OpNode* node() { return const_cast<OpNode*>(op_.get()); }
};

}  // namespace tvm

#define TVM_REGISTER_OP(Name)                                                   \
  [[maybe_unused]] static ::tvm::OpRegEntry& TVM_CONCAT(tvm_op_, __COUNTER__) = \
      ::tvm::OpRegEntry::RegisterOrGet(Name)

#endif  // TVM_IR_OP_H_
