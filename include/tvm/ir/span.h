/*!
 * \file tvm/ir/span.h
 * \brief Where in a source text something was written.
 */
#ifndef TVM_IR_SPAN_H_
#define TVM_IR_SPAN_H_

#include <tvm/node/node.h>

namespace tvm {

/*! \brief A stretch of text; lines and columns count from 1, ends are included. */
class SpanNode : public Object {
 public:
  String source_name;
  int line = 0, end_line = 0, column = 0, end_column = 0;
  TVM_DECLARE_NODE(SpanNode, Object, "Span", Value(source_name), Value(line), Value(end_line),
                   Value(column), Value(end_column));
};
class Span : public FromFields<ObjectRef, SpanNode> {
 public:
  TVM_DEFINE_NODE_REF(Span, SpanNode);
};

}  // namespace tvm

#endif  // TVM_IR_SPAN_H_
