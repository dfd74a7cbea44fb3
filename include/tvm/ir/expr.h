/*!
 * \file tvm/ir/expr.h
 * \brief Base classes of all expressions, integer and float literals, and ranges.
 */
#ifndef TVM_IR_EXPR_H_
#define TVM_IR_EXPR_H_

#include <tvm/ir/type.h>

#include <concepts>
#include <limits>
#include <string>

namespace tvm {

class BaseExprNode : public Object {
 public:
  mutable Span span;
  TVM_DECLARE_ABSTRACT_NODE(BaseExprNode, Object, "BaseExpr", Ignore(span));
};
class BaseExpr : public ObjectRef {
 public:
  TVM_DEFINE_REF(BaseExpr, ObjectRef, BaseExprNode);
};

/*! \brief Expression over scalars and short vectors, whose type is a DataType. */
class PrimExprNode : public BaseExprNode {
 public:
  DataType dtype;
  TVM_DECLARE_ABSTRACT_NODE(PrimExprNode, BaseExprNode, "PrimExpr", Derived(dtype));
};

/*!
 * \brief Reference to a PrimExprNode. Literals convert: a bool to a bool, an integer to int32, or
 * int64 when it does not fit, a floating-point number to float32.
 */
class PrimExpr : public BaseExpr {
 public:
  template <std::integral T>
  PrimExpr(T value)
      : PrimExpr(std::is_same_v<T, bool> ? FromBool(value != 0)
                                         : FromInt(static_cast<int64_t>(value))) {}
  template <std::floating_point T>
  PrimExpr(T value) : PrimExpr(FromFloat(static_cast<double>(value))) {}

  DataType dtype() const { return (*this)->dtype; }

  /*! \brief Literals, and objects that stand for an expression (see RegisterConversion). */
  TVM_DLL static std::optional<PrimExpr> FromAny(const Any& value);
  using Converter = PrimExpr (*)(const Object*);
  /*! \brief Let objects of a type (and its subtypes) be given where an expression is expected. */
  TVM_DLL static bool RegisterConversion(const runtime::TypeInfo* type, Converter convert);

  TVM_DEFINE_REF(PrimExpr, BaseExpr, PrimExprNode);

 private:
  TVM_DLL static PrimExpr FromBool(bool value);
  TVM_DLL static PrimExpr FromInt(int64_t value);
  TVM_DLL static PrimExpr FromFloat(double value);
};

class IntImmNode : public PrimExprNode {
 public:
  int64_t value = 0;
  TVM_DLL void Init();
  TVM_DECLARE_NODE(IntImmNode, PrimExprNode, "IntImm", Value(value));
  TVM_NODE_ARGS(Value(dtype), Value(value), Default(span));
};
/*! \brief Integer literal; ValueError if the value does not fit the type. */
class IntImm : public FromFields<PrimExpr, IntImmNode> {
 public:
  TVM_DEFINE_NODE_REF_COW(IntImm, IntImmNode);
};

class FloatImmNode : public PrimExprNode {
 public:
  double value = 0;
  TVM_DLL void Init();
  TVM_DECLARE_NODE(FloatImmNode, PrimExprNode, "FloatImm", Value(value));
  TVM_NODE_ARGS(Value(dtype), Value(value), Default(span));
};
/*! \brief Floating-point literal, rounded to the type it is given. */
class FloatImm : public FromFields<PrimExpr, FloatImmNode> {
 public:
  TVM_DEFINE_NODE_REF_COW(FloatImm, FloatImmNode);
};

/*! \brief Boolean literal. */
class Bool : public IntImm {
 public:
  explicit Bool(bool value, Span span = Span()) : IntImm(DataType::Bool(), value, span) {}
  Bool() = default;
  explicit Bool(ObjectPtr<Object> data) : IntImm(std::move(data)) {}
  using ContainerType = IntImmNode;
  operator bool() const { return get()->value != 0; }
};

/*! \brief An int32 literal used as a number. */
class Integer : public IntImm {
 public:
  Integer() = default;
  explicit Integer(ObjectPtr<Object> data) : IntImm(std::move(data)) {}
  Integer(int value, Span span = Span()) : IntImm(DataType::Int(32), value, span) {}
  Integer(IntImm other) : IntImm(std::move(other)) {}
  using ContainerType = IntImmNode;
  int64_t IntValue() const {
    ICHECK(defined());
    return get()->value;
  }
};

/*! \brief The integers from `min` to `min + extent - 1`. */
class RangeNode : public Object {
 public:
  PrimExpr min, extent;
  mutable Span span;
  TVM_DECLARE_NODE(RangeNode, Object, "Range", Value(min), Value(extent), Ignore(span));
  TVM_NODE_ARGS(Value(min), Value(extent), Default(span));
};
class Range : public ObjectRef {
 public:
  /*! \brief From `begin` inclusive to `end` exclusive. */
  TVM_DLL Range(PrimExpr begin, PrimExpr end, Span span = Span());
  TVM_DLL static Range FromMinExtent(PrimExpr min, PrimExpr extent, Span span = Span());
  TVM_DEFINE_REF(Range, ObjectRef, RangeNode);
};

/*! \brief Expression of a graph-level program. */
class RelayExprNode : public BaseExprNode {
 public:
  mutable Type checked_type_;
  /*! \brief Shape and type as deduced by the graph layer. */
  mutable ObjectRef struct_info_;
  const Type& checked_type() const {
    TVM_CHECK(checked_type_.defined(), ValueError)
        << GetTypeKey() << ": its type has not been inferred yet";
    return checked_type_;
  }
  TVM_DECLARE_ABSTRACT_NODE(RelayExprNode, BaseExprNode, "RelayExpr", Ignore(checked_type_),
                            Derived(struct_info_));
};
class RelayExpr : public BaseExpr {
 public:
  TVM_DEFINE_REF(RelayExpr, BaseExpr, RelayExprNode);
};

/*! \brief Name of a function of a module. Two are equal if the names are. */
class GlobalVarNode : public RelayExprNode {
 public:
  String name_hint;
  TVM_DECLARE_NODE(GlobalVarNode, RelayExprNode, "GlobalVar", Value(name_hint));
  TVM_NODE_ARGS(Value(name_hint), Default(checked_type_));
};
class GlobalVar : public FromFields<RelayExpr, GlobalVarNode> {
 public:
  TVM_DEFINE_NODE_REF(GlobalVar, GlobalVarNode);
};

}  // namespace tvm

#endif  // TVM_IR_EXPR_H_
