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

PrimFunc::PrimFunc(Array<Var> params, Stmt body, Type ret_type, Map<Var, Buffer> buffer_map,
                   DictAttrs attrs) {
  TVM_CHECK(body.defined(), ValueError) << "PrimFunc: the body is undefined";
  for (const auto& [param, buffer] : buffer_map) {
    TVM_CHECK(param->dtype.is_handle(), TypeError)
        << "PrimFunc: parameter " << param << " of buffer " << buffer->name
        << " must be a handle, got " << param->dtype;
  }
  auto n = make_object<PrimFuncNode>();
  n->params = std::move(params);
  n->body = std::move(body);
  n->ret_type = ret_type.defined() ? std::move(ret_type) : Type(VoidType());
  n->buffer_map = std::move(buffer_map);
  n->attrs = attrs.defined() ? std::move(attrs) : DictAttrs(Map<String, Any>());
  data_ = std::move(n);
}

TVM_REGISTER_GLOBAL("tir.PrimFunc")
    .set_body_typed([](Array<Var> params, Stmt body, Type ret_type, Map<Var, Buffer> buffer_map,
                       DictAttrs attrs) {
      return PrimFunc(params, body, ret_type, buffer_map, attrs);
    });

}  // namespace tir
}  // namespace tvm
