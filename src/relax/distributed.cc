#include <tvm/ir/script_printer.h>
#include <tvm/node/repr_printer.h>
#include <tvm/relax/distributed.h>

#include <sstream>

namespace tvm {
namespace relax {
namespace distributed {

TVM_REGISTER_NODE(DeviceMeshNode);
TVM_REGISTER_NODE(PlacementSpecNode);
TVM_REGISTER_NODE(PlacementNode);
TVM_REGISTER_NODE(DTensorStructInfoNode, "relax.distributed.DTensorStructInfo");
TVM_REGISTER_NODE(DTensorTypeNode, "relax.distributed.DTensorType");

void DeviceMeshNode::Init() {
  int64_t points = 1;
  for (const IntImm& extent : shape) {
    TVM_CHECK(extent->value >= 1, ValueError)
        << "DeviceMesh: extents are 1 or more, got " << extent->value;
    points *= extent->value;
  }
  if (device_range.defined()) {
    const auto* begin = device_range.value()->min.as<IntImmNode>();
    const auto* count = device_range.value()->extent.as<IntImmNode>();
    TVM_CHECK(begin != nullptr && count != nullptr, ValueError)
        << "DeviceMesh: the range of device numbers must be of constants, got "
        << device_range.value();
    Array<IntImm> ids;
    for (int64_t i = 0; i < count->value; ++i) {
      ids.push_back(IntImm(DataType::Int(64), begin->value + i));
    }
    if (device_ids.size() != ids.size()) device_ids = ids;
  }
  TVM_CHECK(static_cast<int64_t>(device_ids.size()) == points, ValueError)
      << "DeviceMesh: " << device_ids.size() << " devices for a mesh of " << points << " points";
}

void PlacementSpecNode::Init() {
  const bool sharded = kind == static_cast<int>(PlacementSpecKind::kSharding);
  TVM_CHECK(sharded || kind == static_cast<int>(PlacementSpecKind::kReplica), ValueError)
      << "PlacementSpec: there is no kind " << kind;
  TVM_CHECK(sharded ? axis >= 0 : axis == -1, ValueError)
      << "PlacementSpec: " << (sharded ? "the dimension divided is 0 or more" : "a replica's is -1")
      << ", got " << axis;
}

std::string PlacementNode::ToString() const {
  std::ostringstream os;
  for (size_t i = 0; i < dim_specs.size(); ++i) {
    os << (i == 0 ? "" : ", ");
    if (dim_specs[i]->kind == static_cast<int>(PlacementSpecKind::kReplica)) {
      os << 'R';
    } else {
      os << "S[" << dim_specs[i]->axis << ']';
    }
  }
  return os.str();
}

void DTensorStructInfoNode::Init() {
  TVM_CHECK(device_mesh->shape.size() == placement->dim_specs.size(), ValueError)
      << "DTensorStructInfo: the device mesh and placement must have the same dimension size, got "
      << device_mesh->shape.size() << " and " << placement->dim_specs.size();
  for (const PlacementSpec& spec : placement->dim_specs) {
    TVM_CHECK(spec->axis < tensor_sinfo->ndim, ValueError)
        << "DTensorStructInfo: the sharding dimension should be smaller than the tensor's ndim, "
        << "got " << spec->axis << " of " << tensor_sinfo;
  }
}

TVM_REGISTER_REPR(DeviceMeshNode, [](const DeviceMeshNode* node, ReprPrinter* p) {
  p->stream << "R.device_mesh((";
  for (size_t i = 0; i < node->shape.size(); ++i) {
    p->stream << (i == 0 ? "" : ", ") << node->shape[i]->value;
  }
  p->stream << (node->shape.size() == 1 ? ",), " : "), ");
  if (node->device_range.defined()) {
    const Range& range = node->device_range.value();
    int64_t begin = range->min.as<IntImmNode>()->value;
    int64_t count = range->extent.as<IntImmNode>()->value;
    p->stream << "I.Range(" << begin << ", " << begin + count << "))";
    return;
  }
  p->stream << '[';
  for (size_t i = 0; i < node->device_ids.size(); ++i) {
    p->stream << (i == 0 ? "" : ", ") << node->device_ids[i]->value;
  }
  p->stream << "])";
});
TVM_REGISTER_REPR(PlacementNode, [](const PlacementNode* node, ReprPrinter* p) {
  PrintScriptText(p->stream, node->ToString());
});
TVM_REGISTER_REPR(DTensorTypeNode, [](const DTensorTypeNode* node, ReprPrinter* p) {
  p->stream << "R.DTensor(ndim=" << node->ndim;
  if (!node->dtype.is_void()) p->stream << ", dtype=\"" << node->dtype << '"';
  p->stream << ')';
});

TVM_REGISTER_GLOBAL("relax.distributed.PlacementToText").set_body_typed([](Placement placement) {
  return String(placement->ToString());
});

}  // namespace distributed
}  // namespace relax
}  // namespace tvm
