/*!
 * \file tensor.cc
 * \brief Tensors and the entry points common to all operations.
 */
#include <tvm/node/repr_printer.h>
#include <tvm/runtime/registry.h>
#include <tvm/te/operation.h>
#include <tvm/te/tensor.h>

namespace tvm {
namespace te {

TVM_REGISTER_NODE(TensorNode);

// By name: an operation would print its inputs, and they theirs.
TVM_REGISTER_REPR(TensorNode, [](const TensorNode* node, ReprPrinter* p) {
  p->stream << "Tensor(shape=" << node->shape << ", op.name=" << std::string(node->op->name);
  if (node->op->num_outputs() > 1) p->stream << ", value_index=" << node->value_index;
  p->stream << ')';
});

String TensorNode::GetNameHint() const {
  if (op->num_outputs() == 1) return op->name;
  return op->name + ".v" + std::to_string(value_index);
}

void TensorNode::Init() {
  TVM_CHECK(value_index >= 0 && value_index < op->num_outputs(), ValueError)
      << "te.Tensor: result " << value_index << " of " << op->name << ", which has "
      << op->num_outputs();
  TVM_CHECK(dtype == op->output_dtype(value_index) &&
                shape.size() == op->output_shape(value_index).size(),
            ValueError)
      << "te.Tensor: " << op->name << " gives another type or number of axes";
}

PrimExpr Tensor::operator()(const Array<PrimExpr>& indices) const {
  TVM_CHECK(indices.size() == ndim(), ValueError)
      << "tensor " << get()->GetNameHint() << " has " << ndim() << " axes, got " << indices.size()
      << " indices " << indices << "; give one index per axis of shape " << get()->shape;
  for (const PrimExpr& index : indices) {
    TVM_CHECK(index.dtype().is_int() || index.dtype().is_uint(), TypeError)
        << "tensor " << get()->GetNameHint() << ": indices must be integers, got " << index
        << " of dtype " << index.dtype();
  }
  return tir::ProducerLoad(*this, indices);
}

bool Tensor::operator==(const Tensor& other) const {
  if (same_as(other)) return true;
  if (!defined() || !other.defined()) return false;
  return get()->op.same_as(other->op) && get()->value_index == other->value_index;
}

size_t TensorHash::operator()(const Tensor& t) const {
  return ObjectPtrHash()(t->op) * 31 + static_cast<size_t>(t->value_index);
}

Tensor Operation::output(size_t i) const {
  TVM_CHECK(i < static_cast<size_t>(get()->num_outputs()), IndexError)
      << "operation " << get()->name << " has " << get()->num_outputs() << " outputs, asked for "
      << "number " << i;
  return Tensor(get()->output_shape(i), get()->output_dtype(i), *this, static_cast<int>(i));
}

TVM_REGISTER_GLOBAL("te.TensorLoad").set_body_typed([](Tensor t, Array<PrimExpr> indices) {
  return t(indices);
});
TVM_REGISTER_GLOBAL("te.TensorEqual").set_body_typed([](Tensor a, Tensor b) { return a == b; });
TVM_REGISTER_GLOBAL("te.TensorHash").set_body_typed([](Tensor t) {
  return static_cast<int64_t>(TensorHash()(t) >> 1);
});
TVM_REGISTER_GLOBAL("te.OpGetOutput").set_body_typed([](Operation op, int64_t i) {
  TVM_CHECK(i >= 0, IndexError) << "output of " << op->name << ": index " << i << " is negative";
  return op.output(static_cast<size_t>(i));
});
TVM_REGISTER_GLOBAL("te.OpNumOutputs").set_body_typed([](Operation op) {
  return op->num_outputs();
});
TVM_REGISTER_GLOBAL("te.OpInputTensors").set_body_typed([](Operation op) {
  return op->InputTensors();
});

}  // namespace te
}  // namespace tvm
