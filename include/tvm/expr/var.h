/*!
 * \file tvm/expr/var.h
 * \brief Variables: plain ones, sizes known to be at least one, and loop axes.
 */
#ifndef TVM_EXPR_VAR_H_
#define TVM_EXPR_VAR_H_

#include <tvm/ir/expr.h>
#include <tvm/ir/type.h>

namespace tvm {
namespace tir {

/*!
 * \brief A variable. Identity is the node's address: two variables of one name are different.
 *
 * Bound exactly once, by a Let, LetStmt, For, Allocate, buffer or function parameter.
 */
class VarNode : public PrimExprNode {
 public:
  /*! \brief Name to print; need not be unique. */
  String name_hint;
  /*! \brief Type in full; a pointer to buffer data says the element type and the memory scope. */
  Type type_annotation;
  static constexpr bool kIsVariable = true;
  /*! \brief The dtype follows from the type; TypeError for a type that no value can have. */
  void Init();
  TVM_DECLARE_NODE(VarNode, PrimExprNode, "tir.Var", Ignore(name_hint), Maybe(type_annotation));
  TVM_NODE_ARGS(Value(name_hint), Value(type_annotation));
};

class Var : public FromFields<PrimExpr, VarNode> {
 public:
  explicit Var(String name_hint, DataType dtype = DataType::Int(32))
      : Var(std::move(name_hint), PrimType(dtype)) {}
  /*! \brief A fresh variable of the same type, named `name_hint + suffix`. */
  Var copy_with_suffix(const String& suffix) const;
  /*! \brief A fresh variable of the same name and lanes, of another type. */
  Var copy_with_dtype(DataType dtype) const;
  TVM_DEFINE_NODE_REF(Var, VarNode);
};

/*! \brief What a size variable stands for in a schedule that is still symbolic. */
enum class SizeVarKind : int {
  /*! \brief Extent of a tensor axis. */
  kShape = 0,
  /*! \brief Tile size that the search will choose. */
  kKnob = 1,
  /*! \brief Name for an expression over other size variables. */
  kShorthand = 2,
  /*! \brief What is left of an extent after all knobs of its split group are divided out. */
  kQuotient = 3,
  kOther = 4,
};

/*! \brief An integer variable that is always at least one. */
class SizeVarNode : public VarNode {
 public:
  SizeVarKind kind = SizeVarKind::kOther;
  SizeVarNode() { dtype = DataType::Int(32); }
  /*! \brief The type follows from the dtype; TypeError unless that is a signed integer scalar. */
  void Init();
  TVM_DECLARE_NODE(SizeVarNode, VarNode, "tir.SizeVar", Value(kind));
  TVM_NODE_ARGS(Value(name_hint), Default(dtype), Default(kind));
};

class SizeVar : public FromFields<Var, SizeVarNode> {
 public:
  TVM_DEFINE_NODE_REF(SizeVar, SizeVarNode);
};

/*! \brief How the values of an axis may be visited. */
enum IterVarType : int {
  /*! \brief Iterations write different elements, in any order. */
  kDataPar = 0,
  /*! \brief Bound to a hardware thread index. */
  kThreadIndex = 1,
  /*! \brief Iterations combine into one element with a commutative operator. */
  kCommReduce = 2,
  /*! \brief Iterations run in order. */
  kOrdered = 3,
  /*! \brief The loop belongs to an external operator and cannot be changed. */
  kOpaque = 4,
  kUnrolled = 5,
  kVectorized = 6,
  kParallelized = 7,
  kTensorized = 8,
};

const char* IterVarTypeToString(IterVarType type);

/*! \brief An axis of a computation: a variable with its domain and its iteration type. */
class IterVarNode : public Object {
 public:
  /*! \brief Values of `var`; undefined for a thread axis whose extent is not fixed yet. */
  Range dom;
  Var var;
  IterVarType iter_type = kDataPar;
  /*! \brief For example "threadIdx.x"; empty unless the axis is a thread axis. */
  String thread_tag;
  /*! \brief TypeError when the domain's type is not that of the variable. */
  void Init();
  TVM_DECLARE_NODE(IterVarNode, Object, "tir.IterVar", Maybe(dom), Bind(var), Value(iter_type),
                   Default(thread_tag));
};

class IterVar : public FromFields<ObjectRef, IterVarNode> {
 public:
  /*! \brief The axis used as an index is its variable. */
  operator PrimExpr() const;  // NOLINT(*)
  TVM_DEFINE_NODE_REF(IterVar, IterVarNode);
};

}  // namespace tir
}  // namespace tvm
#endif  // TVM_EXPR_VAR_H_
