/*!
 * \file tvm/relax/type.h
 * \brief Types of graph values: what remains of struct info when shapes and values are left out.
 */
#ifndef TVM_RELAX_TYPE_H_
#define TVM_RELAX_TYPE_H_

#include <tvm/ir/type.h>
#include <tvm/node/node.h>

namespace tvm {
namespace relax {

/*! \brief A shape of `ndim` extents, -1 if their number is unknown. */
class ShapeTypeNode : public TypeNode {
 public:
  int ndim = -1;
  TVM_DECLARE_NODE(ShapeTypeNode, TypeNode, "relax.ShapeType", Value(ndim));
};

/*! \brief A tensor of `ndim` dimensions, -1 if unknown; an unknown element type is void. */
class DynTensorTypeNode : public TypeNode {
 public:
  int ndim = -1;
  DataType dtype;
  TVM_DECLARE_NODE(DynTensorTypeNode, TypeNode, "relax.DynTensorType", Value(ndim), Value(dtype));
};

/*! \brief Any value at all. */
class ObjectTypeNode : public TypeNode {
 public:
  TVM_DECLARE_NODE(ObjectTypeNode, TypeNode, "relax.ObjectType");
};

/*! \brief A function of the runtime. */
class PackedFuncTypeNode : public TypeNode {
 public:
  TVM_DECLARE_NODE(PackedFuncTypeNode, TypeNode, "relax.PackedFuncType");
};

}  // namespace relax
}  // namespace tvm
#endif  // TVM_RELAX_TYPE_H_
