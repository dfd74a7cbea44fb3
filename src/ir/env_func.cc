/*!
 * \file env_func.cc
 */
#include <tvm/ir/env_func.h>
#include <tvm/runtime/registry.h>

namespace tvm {

TVM_REGISTER_NODE(EnvFuncNode, "ir.EnvFunc");

void EnvFuncNode::Init() {
  TVM_CHECK(runtime::Registry::Get(std::string(name)) != nullptr, ValueError)
      << "EnvFunc: there is no global function \"" << name
      << "\"; register it with tvm.register_func first";
}

}  // namespace tvm
