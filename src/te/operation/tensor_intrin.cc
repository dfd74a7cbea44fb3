/*!
 * \file tensor_intrin.cc
 * \brief Construction of tensor intrinsics and of calls of them.
 */
#include <tvm/runtime/registry.h>
#include <tvm/te/tensor_intrin.h>

#include <string>
#include <utility>

namespace tvm {
namespace te {

TVM_REGISTER_NODE(TensorIntrinNode);
TVM_REGISTER_NODE(TensorIntrinCallNode);

void TensorIntrinNode::Init() {
  Array<Tensor> tensors = inputs;
  for (int i = 0; i < op->num_outputs(); ++i) tensors.push_back(op.output(i));
  TVM_CHECK(buffers.size() == tensors.size(), ValueError)
      << "tensor intrinsic " << name << ": " << inputs.size() << " inputs and " << op->num_outputs()
      << " outputs need one buffer each, got " << buffers.size();
  for (size_t i = 0; i < tensors.size(); ++i) {
    TVM_CHECK(buffers[i]->dtype == tensors[i]->dtype, ValueError)
        << "tensor intrinsic " << name << ": buffer " << buffers[i]->name << " has dtype "
        << buffers[i]->dtype << ", its tensor " << tensors[i]->GetNameHint() << " has "
        << tensors[i]->dtype;
    TVM_CHECK(buffers[i]->shape.size() == tensors[i].ndim(), ValueError)
        << "tensor intrinsic " << name << ": buffer " << buffers[i]->name << " has "
        << buffers[i]->shape.size() << " axes, its tensor " << tensors[i]->GetNameHint() << " has "
        << tensors[i].ndim();
  }
  TVM_CHECK(body.defined() || reduce_update.defined(), ValueError)
      << "tensor intrinsic " << name << ": give a body, an update of a reduction, or both";
}

void TensorIntrinCallNode::Init() {
  TVM_CHECK(tensors.size() == intrin->inputs.size() && regions.size() == tensors.size(), ValueError)
      << "call of tensor intrinsic " << intrin->name << ": it reads " << intrin->inputs.size()
      << " tensors, got " << tensors.size();
  TVM_CHECK(scalar_inputs.size() == intrin->scalar_params.size(), ValueError)
      << "call of tensor intrinsic " << intrin->name << ": it takes "
      << intrin->scalar_params.size() << " scalars, got " << scalar_inputs.size();
  for (size_t i = 0; i < tensors.size(); ++i) {
    TVM_CHECK(regions[i].size() == tensors[i].ndim(), ValueError)
        << "call of tensor intrinsic " << intrin->name << ": tensor " << tensors[i]->GetNameHint()
        << " has " << tensors[i].ndim() << " axes, got a region of " << regions[i].size();
  }
}

}  // namespace te
}  // namespace tvm
