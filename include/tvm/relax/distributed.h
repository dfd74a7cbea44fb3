/*!
 * \file tvm/relax/distributed.h
 * \brief Tensors of which each device of a mesh has a part, or a copy.
 */
#ifndef TVM_RELAX_DISTRIBUTED_H_
#define TVM_RELAX_DISTRIBUTED_H_

#include <tvm/ir/global_info.h>
#include <tvm/relax/struct_info.h>
#include <tvm/relax/type.h>

#include <string>

namespace tvm {
namespace relax {
namespace distributed {

/*! \brief Devices by their numbers, as the points of a grid of one or more dimensions. */
class DeviceMeshNode : public GlobalInfoNode {
 public:
  Array<IntImm> shape;
  /*! \brief Number of the device at each point, the last dimension fastest. */
  Array<IntImm> device_ids;
  /*! \brief The numbers as a range, if they were given as one. */
  Optional<Range> device_range;
  /*!
   * \brief Fills in `device_ids` from the range. ValueError unless there is one for each point.
   */
  void Init();
  TVM_DECLARE_NODE(DeviceMeshNode, GlobalInfoNode, "relax.distributed.DeviceMesh", Value(shape),
                   Value(device_ids), Default(device_range));
};

class DeviceMesh : public FromFields<GlobalInfo, DeviceMeshNode> {
 public:
  TVM_DEFINE_NODE_REF(DeviceMesh, DeviceMeshNode);
};

enum class PlacementSpecKind : int { kSharding = 0, kReplica = 1 };

/*! \brief What the devices along one dimension of a mesh have of a tensor. */
class PlacementSpecNode : public Object {
 public:
  /*! \brief Dimension of the tensor that is divided among them; -1 where each has all of it. */
  int axis = -1;
  int kind = static_cast<int>(PlacementSpecKind::kReplica);
  void Init();
  TVM_DECLARE_NODE(PlacementSpecNode, Object, "relax.distributed.PlacementSpec", Value(axis),
                   Value(kind));
};

class PlacementSpec : public FromFields<ObjectRef, PlacementSpecNode> {
 public:
  TVM_DEFINE_NODE_REF(PlacementSpec, PlacementSpecNode);
};

/*! \brief What the devices of a mesh have of a tensor, for each dimension of the mesh. */
class PlacementNode : public Object {
 public:
  Array<PlacementSpec> dim_specs;
  /*! \brief "S[0], R": divided along the first dimension, replicated. */
  std::string ToString() const;
  TVM_DECLARE_NODE(PlacementNode, Object, "relax.distributed.Placement", Value(dim_specs));
};

class Placement : public FromFields<ObjectRef, PlacementNode> {
 public:
  TVM_DEFINE_NODE_REF(Placement, PlacementNode);
};

/*! \brief A tensor on the devices of a mesh. Shape and type are those of the whole tensor. */
class DTensorStructInfoNode : public StructInfoNode {
 public:
  TensorStructInfo tensor_sinfo;
  DeviceMesh device_mesh;
  Placement placement;
  /*! \brief ValueError unless the placement fits mesh and tensor. */
  void Init();
  TVM_DECLARE_NODE(DTensorStructInfoNode, StructInfoNode, "relax.DTensorStructInfo",
                   Value(tensor_sinfo), Value(device_mesh), Value(placement));
};

class DTensorStructInfo : public FromFields<StructInfo, DTensorStructInfoNode> {
 public:
  TVM_DEFINE_NODE_REF(DTensorStructInfo, DTensorStructInfoNode);
};

/*! \brief A tensor on several devices; an unknown element type is void, an unknown rank -1. */
class DTensorTypeNode : public TypeNode {
 public:
  int ndim = -1;
  DataType dtype;
  TVM_DECLARE_NODE(DTensorTypeNode, TypeNode, "relax.DTensorType", Value(ndim), Value(dtype));
};

}  // namespace distributed
}  // namespace relax
}  // namespace tvm
#endif  // TVM_RELAX_DISTRIBUTED_H_
