/*!
 * \file tvm/relax/struct_info.h
 * \brief What is known about a graph value before it is computed: its kind, shape and type.
 */
#ifndef TVM_RELAX_STRUCT_INFO_H_
#define TVM_RELAX_STRUCT_INFO_H_

#include <tvm/ir/expr.h>
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

/*! \brief A scalar that is not a tensor. */
class PrimStructInfoNode : public StructInfoNode {
 public:
  DataType dtype;
  TVM_DECLARE_NODE(PrimStructInfoNode, StructInfoNode, "relax.PrimStructInfo", Value(dtype));
};

class PrimStructInfo : public StructInfo {
 public:
  explicit PrimStructInfo(DataType dtype);
  TVM_DEFINE_REF(PrimStructInfo, StructInfo, PrimStructInfoNode);
};

/*! \brief A shape as a value. `values` is undefined when only the rank is known. */
class ShapeStructInfoNode : public StructInfoNode {
 public:
  Optional<Array<PrimExpr>> values;
  /*! \brief Number of dimensions, -1 if unknown. */
  int ndim = -1;
  TVM_DECLARE_NODE(ShapeStructInfoNode, StructInfoNode, "relax.ShapeStructInfo", Value(values),
                   Value(ndim));
};

class ShapeStructInfo : public StructInfo {
 public:
  explicit ShapeStructInfo(Array<PrimExpr> values);
  explicit ShapeStructInfo(int ndim);
  TVM_DEFINE_REF(ShapeStructInfo, StructInfo, ShapeStructInfoNode);
};

/*! \brief A tensor. `shape` is a ShapeExpr, or undefined when only the rank is known. */
class TensorStructInfoNode : public StructInfoNode {
 public:
  Optional<RelayExpr> shape;
  DataType dtype;
  /*! \brief Number of dimensions, -1 if unknown. */
  int ndim = -1;
  TVM_DECLARE_NODE(TensorStructInfoNode, StructInfoNode, "relax.TensorStructInfo", Value(shape),
                   Value(dtype), Value(ndim));
};

class TensorStructInfo : public StructInfo {
 public:
  /*! \brief With a shape; ValueError unless it is a ShapeExpr. */
  TensorStructInfo(RelayExpr shape, DataType dtype);
  TensorStructInfo(DataType dtype, int ndim);
  TVM_DEFINE_REF(TensorStructInfo, StructInfo, TensorStructInfoNode);
};

class TupleStructInfoNode : public StructInfoNode {
 public:
  Array<StructInfo> fields;
  TVM_DECLARE_NODE(TupleStructInfoNode, StructInfoNode, "relax.TupleStructInfo", Value(fields));
};

class TupleStructInfo : public StructInfo {
 public:
  explicit TupleStructInfo(Array<StructInfo> fields);
  TVM_DEFINE_REF(TupleStructInfo, StructInfo, TupleStructInfoNode);
};

}  // namespace relax
}  // namespace tvm
#endif  // TVM_RELAX_STRUCT_INFO_H_
