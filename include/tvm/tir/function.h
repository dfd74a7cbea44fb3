/*!
 * \file tvm/tir/function.h
 * \brief Functions over buffers and scalars.
 */
#ifndef TVM_TIR_FUNCTION_H_
#define TVM_TIR_FUNCTION_H_

#include <tvm/ir/function.h>
#include <tvm/tir/stmt.h>

namespace tvm {
namespace tir {

/*!
 * \brief A function whose body is a statement.
 *
 * A parameter in `buffer_map` is a handle to an array argument that is checked against the buffer,
 * and that binds the variables of the buffer's shape. Results are buffers written by the body.
 */
class PrimFuncNode : public BaseFuncNode {
 public:
  Array<Var> params;
  Type ret_type;
  Map<Var, Buffer> buffer_map;
  Stmt body;
  void Init();
  TVM_DECLARE_NODE(PrimFuncNode, BaseFuncNode, "tir.PrimFunc", Bind(params), Bind(buffer_map),
                   Maybe(ret_type), Value(body));
  TVM_NODE_ARGS(Value(params), Value(body), Default(ret_type), Default(buffer_map), Default(attrs));
};

class PrimFunc : public FromFields<BaseFunc, PrimFuncNode> {
 public:
  TVM_DEFINE_NODE_REF_COW(PrimFunc, PrimFuncNode);
};

/*! \brief Keys of function attributes. */
namespace attr {
using tvm::attr::kCallingConv;
using tvm::attr::kGlobalSymbol;
/*! \brief The body may assume that no two buffer arguments overlap. */
using tvm::attr::kNoAlias;
using tvm::attr::kTarget;
/*! \brief Indices of parameters whose values are constant, so that a schedule may lay them out. */
constexpr const char* kLayoutFreeBuffers = "layout_free_buffers";
/*! \brief Whether a function is what a schedule of te was lowered to, for passes of users. */
constexpr const char* kFromLegacyTESchedule = "from_legacy_te_schedule";
}  // namespace attr

}  // namespace tir
}  // namespace tvm
#endif  // TVM_TIR_FUNCTION_H_
