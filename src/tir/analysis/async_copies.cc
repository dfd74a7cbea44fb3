/*!
 * \file src/tir/analysis/async_copies.cc
 * \brief How far ahead of their use copies are made that go on while the program does.
 */
#include <tvm/expr/op.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/stmt_functor.h>

namespace tvm {
namespace tir {

PrimExpr AsyncTripsAhead(const Stmt& filling) {
  PrimExpr ahead;
  PostOrderVisit(filling, [&ahead](const ObjectRef& node) {
    const auto* attr = node.as<AttrStmtNode>();
    if (attr == nullptr || attr->attr_key != attr::pragma_async_copy) return;
    ahead = attr->value.dtype().is_bool() ? make_const(DataType::Int(32), 1) : attr->value;
  });
  return ahead;
}

}  // namespace tir
}  // namespace tvm
