/*!
 * \file placeholder_binder.cc
 * \brief Hand-written bodies made to access the buffers of tensors.
 */
#include "placeholder_binder.h"

#include <tvm/arith/int_set.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tir/ir/buffer_mutator.h"

namespace tvm {
namespace te {

namespace {

/*! \brief The body's own buffers exchanged for those of the tensors. */
class PlaceholderBinder final : public tir::BufferMutator {
 public:
  void Bind(const Buffer& placeholder, const Buffer& actual) {
    buffers_.emplace(placeholder.get(), actual);
    pointers_.emplace(placeholder->data.get(), actual->data);
  }

 private:
  using tir::BufferMutator::VisitExpr_;

  Buffer VisitBuffer(const Buffer& buffer) override {
    auto it = buffers_.find(buffer.get());
    if (it != buffers_.end()) return it->second;
    Buffer view = buffer;
    if (auto data = pointers_.find(buffer->data.get()); data != pointers_.end()) {
      view.CopyOnWrite()->data = data->second;
    }
    buffers_.emplace(buffer.get(), view);
    return view;
  }
  PrimExpr VisitExpr_(const VarNode* op) override {
    auto it = pointers_.find(op);
    return it == pointers_.end() ? GetRef<PrimExpr>(op) : PrimExpr(it->second);
  }
  std::unordered_map<const Object*, Buffer> buffers_;
  std::unordered_map<const VarNode*, Var> pointers_;
};

}  // namespace

Stmt BindPlaceholders(const Operation& op, const TensorMap<Buffer>& buffers,
                      const Array<Tensor>& inputs, const Array<Buffer>& input_placeholders,
                      const Array<Buffer>& output_placeholders, const Stmt& body) {
  PlaceholderBinder binder;
  std::vector<std::pair<Buffer, Buffer>> described;
  auto bind = [&](const Buffer& placeholder, const Buffer& actual) {
    if (DescribesLayout(placeholder)) {
      described.emplace_back(placeholder, actual);
    } else {
      binder.Bind(placeholder, actual);
    }
  };
  for (size_t i = 0; i < inputs.size(); ++i) bind(input_placeholders[i], buffers.at(inputs[i]));
  for (size_t i = 0; i < output_placeholders.size(); ++i) {
    bind(output_placeholders[i], buffers.at(op.output(static_cast<int>(i))));
  }
  Stmt bound = binder(body);
  for (const auto& [placeholder, actual] : described) {
    // How the tensor is laid out is known once it is flat; the whole of it is meant.
    Array<PrimExpr> corners;
    for (const PrimExpr& extent : actual->shape) {
      corners.push_back(tir::make_zero(extent.dtype()));
      corners.push_back(extent);
    }
    bound = tir::AttrStmt(Array<ObjectRef>{placeholder, actual}, tir::attr::buffer_bind_scope,
                          tir::Call(DataType::Handle(), tir::builtin::tvm_tuple(), corners), bound);
  }
  return bound;
}

bool DescribesLayout(const Buffer& placeholder) {
  return !placeholder->strides.empty() || !tir::is_zero(placeholder->elem_offset);
}

void RequestWhole(const Array<Tensor>& inputs, TensorMap<TensorDom>* out) {
  for (const Tensor& input : inputs) {
    auto it = out->find(input);
    if (it == out->end()) continue;
    it->second.resize(input.ndim());
    for (size_t i = 0; i < input.ndim(); ++i) {
      const PrimExpr& extent = input->shape[i];
      it->second[i].push_back(arith::IntSet::FromMinExtent(tir::make_zero(extent.dtype()), extent));
    }
  }
}

Array<Tensor> UniqueTensors(const Array<Tensor>& tensors) {
  std::vector<Tensor> unique;
  for (const Tensor& tensor : tensors) {
    if (std::find(unique.begin(), unique.end(), tensor) == unique.end()) unique.push_back(tensor);
  }
  return Array<Tensor>(unique.begin(), unique.end());
}

Array<Tensor> ReplaceTensors(const Array<Tensor>& inputs, const TensorMap<Tensor>& rmap) {
  return inputs.Map([&](const Tensor& input) {
    auto it = rmap.find(input);
    return it == rmap.end() ? input : it->second;
  });
}

}  // namespace te
}  // namespace tvm
