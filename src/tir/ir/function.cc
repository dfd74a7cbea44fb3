/*!
 * \file src/tir/ir/function.cc
 * \brief Constructor of PrimFunc.
 */
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/function.h>

namespace tvm {
namespace tir {

TVM_REGISTER_NODE(PrimFuncNode);

void PrimFuncNode::Init() {
  for (const auto& [param, buffer] : buffer_map) {
    TVM_CHECK(param->dtype.is_handle(), TypeError)
        << "PrimFunc: parameter " << param << " of buffer " << buffer->name
        << " must be a handle, got " << param->dtype;
  }
  if (!ret_type.defined()) ret_type = VoidType();
  if (!attrs.defined()) attrs = DictAttrs(Map<String, Any>());
}

}  // namespace tir
}  // namespace tvm
