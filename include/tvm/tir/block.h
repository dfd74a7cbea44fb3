/*!
 * \file tvm/tir/block.h
 * \brief Blocks: units of computation that say which values they take and which regions they touch.
 */
#ifndef TVM_TIR_BLOCK_H_
#define TVM_TIR_BLOCK_H_

#include <tvm/tir/stmt.h>

namespace tvm {
namespace tir {

/*! \brief The box `region` of `buffer`, one range per axis. */
class BufferRegionNode : public Object {
 public:
  Buffer buffer;
  Array<Range> region;
  void Init();
  TVM_DECLARE_NODE(BufferRegionNode, Object, "tir.BufferRegion", Value(buffer), Value(region));
};

class BufferRegion : public FromFields<ObjectRef, BufferRegionNode> {
 public:
  /*! \brief All of a buffer. */
  static BufferRegion FullRegion(Buffer buffer);
  /*! \brief One element. */
  static BufferRegion FromPoint(Buffer buffer, const Array<PrimExpr>& indices);
  TVM_DEFINE_NODE_REF_COW(BufferRegion, BufferRegionNode);
};

/*! \brief Inside of a block, `buffer` is a view of the region `source`. */
class MatchBufferRegionNode : public Object {
 public:
  Buffer buffer;
  BufferRegion source;
  /*! \brief ValueError unless the view has the source's element type and last extents. */
  void Init();
  TVM_DECLARE_NODE(MatchBufferRegionNode, Object, "tir.MatchBufferRegion", Value(source),
                   Bind(buffer));
  TVM_NODE_ARGS(Value(buffer), Value(source));
};

class MatchBufferRegion : public FromFields<ObjectRef, MatchBufferRegionNode> {
 public:
  TVM_DEFINE_NODE_REF_COW(MatchBufferRegion, MatchBufferRegionNode);
};

/*!
 * \brief A computation over its own variables, which a BlockRealize gives values.
 *
 * An axis of type kDataPar writes different elements in every iteration; with axes of type
 * kCommReduce, `init` runs in the first iteration over those axes.
 */
class BlockNode : public StmtNode {
 public:
  Array<IterVar> iter_vars;
  Array<BufferRegion> reads;
  Array<BufferRegion> writes;
  String name_hint;
  /*! \brief Buffers that live as long as the block runs. */
  Array<Buffer> alloc_buffers;
  Array<MatchBufferRegion> match_buffers;
  /*! \brief May be undefined. */
  Stmt init;
  Stmt body;
  Map<String, ObjectRef> annotations;
  TVM_DECLARE_NODE(BlockNode, StmtNode, "tir.Block", Value(iter_vars), Bind(alloc_buffers),
                   Value(match_buffers), Value(reads), Value(writes), Maybe(init), Value(body),
                   Value(annotations), Ignore(name_hint));
  TVM_NODE_ARGS(Value(iter_vars), Value(reads), Value(writes), Value(name_hint), Value(body),
                Default(init), Default(alloc_buffers), Default(match_buffers),
                Default(annotations));
};

class Block : public FromFields<Stmt, BlockNode> {
 public:
  TVM_DEFINE_NODE_REF_COW(Block, BlockNode);
};

/*! \brief Runs `block` with `iter_values` for its variables, if `predicate` holds. */
class BlockRealizeNode : public StmtNode {
 public:
  Array<PrimExpr> iter_values;
  PrimExpr predicate;
  Block block;
  void Init();
  TVM_DECLARE_NODE(BlockRealizeNode, StmtNode, "tir.BlockRealize", Value(iter_values),
                   Value(predicate), Value(block));
};

class BlockRealize : public FromFields<Stmt, BlockRealizeNode> {
 public:
  TVM_DEFINE_NODE_REF_COW(BlockRealize, BlockRealizeNode);
};

}  // namespace tir
}  // namespace tvm
#endif  // TVM_TIR_BLOCK_H_
