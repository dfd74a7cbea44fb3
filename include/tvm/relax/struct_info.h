/*!
 * \file tvm/relax/struct_info.h
 * \brief What is known about a graph value before it is computed: its kind, shape and type.
 */
#ifndef TVM_RELAX_STRUCT_INFO_H_
#define TVM_RELAX_STRUCT_INFO_H_

#include <tvm/ir/expr.h>
#include <tvm/ir/global_info.h>
#include <tvm/node/node.h>

namespace tvm {
namespace relax {

class StructInfoNode : public Object {
 public:
  TVM_DECLARE_ABSTRACT_NODE(StructInfoNode, Object, "relax.StructInfo");
};

class StructInfo : public ObjectRef {
 public:
  TVM_DEFINE_REF(StructInfo, ObjectRef, StructInfoNode);
};

/*! \brief Any value at all. */
class ObjectStructInfoNode : public StructInfoNode {
 public:
  TVM_DECLARE_NODE(ObjectStructInfoNode, StructInfoNode, "relax.ObjectStructInfo");
};

class ObjectStructInfo : public StructInfo {
 public:
  static ObjectStructInfo Create();
  TVM_DEFINE_REF(ObjectStructInfo, StructInfo, ObjectStructInfoNode);
};

/*! \brief A scalar that is not a tensor; `value` is what it is known to be, if that is known. */
class PrimStructInfoNode : public StructInfoNode {
 public:
  DataType dtype;
  Optional<PrimExpr> value;
  /*! \brief ValueError unless `dtype` is that of `value`. */
  void Init();
  TVM_DECLARE_NODE(PrimStructInfoNode, StructInfoNode, "relax.PrimStructInfo", Value(dtype),
                   Default(value));
};

class PrimStructInfo : public FromFields<StructInfo, PrimStructInfoNode> {
 public:
  TVM_DEFINE_NODE_REF(PrimStructInfo, PrimStructInfoNode);
};

/*! \brief A shape as a value. `values` is undefined when only the rank is known. */
class ShapeStructInfoNode : public StructInfoNode {
 public:
  Optional<Array<PrimExpr>> values;
  /*! \brief Number of dimensions, -1 if unknown. */
  int ndim = -1;
  /*!
   * \brief ValueError unless `ndim` is the number of values, or -1, which then becomes it, and the
   * values are int64; literals become that.
   */
  void Init();
  TVM_DECLARE_NODE(ShapeStructInfoNode, StructInfoNode, "relax.ShapeStructInfo", Value(values),
                   Value(ndim));
};

class ShapeStructInfo : public FromFields<StructInfo, ShapeStructInfoNode> {
 public:
  explicit ShapeStructInfo(Array<PrimExpr> values) : ShapeStructInfo(std::move(values), -1) {}
  explicit ShapeStructInfo(int ndim) : ShapeStructInfo(NullOpt, ndim) {}
  TVM_DEFINE_NODE_REF(ShapeStructInfo, ShapeStructInfoNode);
};

/*!
 * \brief A tensor. `shape` is a ShapeExpr, a variable that holds a shape, or undefined when only
 * the rank is known; an unknown element type is void.
 */
class TensorStructInfoNode : public StructInfoNode {
 public:
  Optional<RelayExpr> shape;
  DataType dtype;
  /*! \brief Number of dimensions, -1 if unknown. */
  int ndim = -1;
  /*! \brief Where the tensor lives, if that is decided. */
  Optional<VDevice> vdevice;
  /*! \brief ValueError unless `shape` is a shape of `ndim` extents; an `ndim` of -1 becomes that.
   */
  void Init();
  TVM_DECLARE_NODE(TensorStructInfoNode, StructInfoNode, "relax.TensorStructInfo", Value(shape),
                   Value(dtype), Value(ndim), Default(vdevice));
};

class TensorStructInfo : public FromFields<StructInfo, TensorStructInfoNode> {
 public:
  TensorStructInfo(RelayExpr shape, DataType dtype)
      : TensorStructInfo(Optional<RelayExpr>(std::move(shape)), dtype, -1) {}
  TensorStructInfo(DataType dtype, int ndim) : TensorStructInfo(NullOpt, dtype, ndim) {}
  TVM_DEFINE_NODE_REF(TensorStructInfo, TensorStructInfoNode);
};

class TupleStructInfoNode : public StructInfoNode {
 public:
  Array<StructInfo> fields;
  TVM_DECLARE_NODE(TupleStructInfoNode, StructInfoNode, "relax.TupleStructInfo", Value(fields));
};

class TupleStructInfo : public FromFields<StructInfo, TupleStructInfoNode> {
 public:
  TVM_DEFINE_NODE_REF(TupleStructInfo, TupleStructInfoNode);
};

/*!
 * \brief A function value: what it takes and gives.
 *
 * `params` is undefined for an opaque function, of which only the result is known: `ret`, or what
 * the registered function named `derive_func` says of a call.
 */
class FuncStructInfoNode : public StructInfoNode {
 public:
  Optional<Array<StructInfo>> params;
  StructInfo ret;
  /*! \brief Whether calls have no effect beside their result. */
  bool purity = true;
  Optional<String> derive_func;
  TVM_DECLARE_NODE(FuncStructInfoNode, StructInfoNode, "relax.FuncStructInfo", MaybeBind(params),
                   Value(ret), Value(purity), Default(derive_func));
};

class FuncStructInfo : public FromFields<StructInfo, FuncStructInfoNode> {
 public:
  /*! \brief A function of the runtime: it takes anything, gives anything and may have effects. */
  static FuncStructInfo OpaqueFunc();
  TVM_DEFINE_NODE_REF(FuncStructInfo, FuncStructInfoNode);
};

}  // namespace relax
}  // namespace tvm
#endif  // TVM_RELAX_STRUCT_INFO_H_
