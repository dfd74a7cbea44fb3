/*!
 * \file range.cc
 * \brief Ranges from a begin and an end, which need the arithmetic of tir.
 */
#include <tvm/expr/op.h>
#include <tvm/ir/expr.h>
#include <tvm/runtime/registry.h>

namespace tvm {

Range::Range(PrimExpr begin, PrimExpr end, Span span)
    : Range(FromMinExtent(begin, end - begin, std::move(span))) {}

TVM_REGISTER_GLOBAL("ir.Range")
    .set_body_typed([](PrimExpr begin, Optional<PrimExpr> end, Span span) {
      // One argument is the end, as in Python.
      return end ? Range(begin, end.value(), span) : Range::FromMinExtent(0, begin, span);
    });

}  // namespace tvm
