/*!
 * \file tvm/tir/stmt.h
 * \brief Statements: stores, allocations, loops, branches and attributes of scopes.
 */
#ifndef TVM_TIR_STMT_H_
#define TVM_TIR_STMT_H_

#include <tvm/expr/expr.h>
#include <tvm/runtime/ndarray.h>

namespace tvm {
namespace tir {

class StmtNode : public Object {
 public:
  mutable Span span;
  TVM_DECLARE_ABSTRACT_NODE(StmtNode, Object, "tir.Stmt", Ignore(span));
};

class Stmt : public ObjectRef {
 public:
  TVM_DEFINE_REF(Stmt, ObjectRef, StmtNode);
};

/*! \brief `body` with `var` bound to `value`. */
class LetStmtNode : public StmtNode {
 public:
  Var var;
  PrimExpr value;
  Stmt body;
  void Init();
  TVM_DECLARE_NODE(LetStmtNode, StmtNode, "tir.LetStmt", Value(value), Bind(var), Value(body));
  TVM_NODE_ARGS(Value(var), Value(value), Value(body));
};

class LetStmt : public FromFields<Stmt, LetStmtNode> {
 public:
  TVM_DEFINE_NODE_REF_COW(LetStmt, LetStmtNode);
};

/*! \brief A fact about `body`: `attr_key` of `node` is `value`. Keys are in namespace attr. */
class AttrStmtNode : public StmtNode {
 public:
  /*! \brief What the fact is about: a variable, an IterVar, a buffer; may be undefined. */
  ObjectRef node;
  String attr_key;
  PrimExpr value;
  Stmt body;
  TVM_DECLARE_NODE(AttrStmtNode, StmtNode, "tir.AttrStmt", Maybe(node), Value(attr_key),
                   Value(value), Value(body));
};

class AttrStmt : public FromFields<Stmt, AttrStmtNode> {
 public:
  TVM_DEFINE_NODE_REF_COW(AttrStmt, AttrStmtNode);
};

/*! \brief Fails with `message` unless `condition`; `body` may rely on it. */
class AssertStmtNode : public StmtNode {
 public:
  PrimExpr condition;
  /*! \brief A StringImm, or a Call of tir.error_text whose values are put into its text. */
  PrimExpr message;
  Stmt body;
  void Init();
  TVM_DECLARE_NODE(AssertStmtNode, StmtNode, "tir.AssertStmt", Value(condition), Value(message),
                   Value(body));
};

class AssertStmt : public FromFields<Stmt, AssertStmtNode> {
 public:
  TVM_DEFINE_NODE_REF_COW(AssertStmt, AssertStmtNode);
};

/*! \brief buffer[indices] = value; a vector index in the last place stores a vector. */
class BufferStoreNode : public StmtNode {
 public:
  Buffer buffer;
  PrimExpr value;
  Array<PrimExpr> indices;
  void Init();
  TVM_DECLARE_NODE(BufferStoreNode, StmtNode, "tir.BufferStore", Value(buffer), Value(value),
                   Value(indices));
};

class BufferStore : public FromFields<Stmt, BufferStoreNode> {
 public:
  TVM_DEFINE_NODE_REF_COW(BufferStore, BufferStoreNode);
};

/*! \brief `bounds` of `buffer` exist while `body` runs, if `condition`; StorageFlatten allocates.
 */
class BufferRealizeNode : public StmtNode {
 public:
  Buffer buffer;
  Array<Range> bounds;
  PrimExpr condition;
  Stmt body;
  void Init();
  TVM_DECLARE_NODE(BufferRealizeNode, StmtNode, "tir.BufferRealize", Bind(buffer), Value(bounds),
                   Value(condition), Value(body));
};

class BufferRealize : public FromFields<Stmt, BufferRealizeNode> {
 public:
  TVM_DEFINE_NODE_REF_COW(BufferRealize, BufferRealizeNode);
};

/*! \brief An element of a tensor written, before the tensor is a buffer; te makes stores of it. */
class ProducerStoreNode : public StmtNode {
 public:
  DataProducer producer;
  PrimExpr value;
  Array<PrimExpr> indices;
  void Init();
  TVM_DECLARE_NODE(ProducerStoreNode, StmtNode, "tir.ProducerStore", Value(producer), Value(value),
                   Value(indices));
};

class ProducerStore : public FromFields<Stmt, ProducerStoreNode> {
 public:
  TVM_DEFINE_NODE_REF_COW(ProducerStore, ProducerStoreNode);
};

/*!
 * \brief `bounds` of `producer` exist while `body` runs, if `condition`; te makes buffers of them,
 * in memory of `storage_scope`.
 */
class ProducerRealizeNode : public StmtNode {
 public:
  DataProducer producer;
  Array<Range> bounds;
  PrimExpr condition;
  Stmt body;
  String storage_scope;
  void Init();
  TVM_DECLARE_NODE(ProducerRealizeNode, StmtNode, "tir.ProducerRealize", Value(producer),
                   Value(bounds), Value(condition), Value(body), Default(storage_scope));
};

class ProducerRealize : public FromFields<Stmt, ProducerRealizeNode> {
 public:
  TVM_DEFINE_NODE_REF_COW(ProducerRealize, ProducerRealizeNode);
};

/*! \brief Memory for product(extents) elements of `dtype`, alive while `body` runs. */
class AllocateNode : public StmtNode {
 public:
  Var buffer_var;
  DataType dtype;
  Array<PrimExpr> extents;
  PrimExpr condition;
  Stmt body;
  Map<String, ObjectRef> annotations;
  /*! \brief Product of the extents when all are constant, else 0. */
  int64_t ConstantAllocationSize() const;
  void Init();
  TVM_DECLARE_NODE(AllocateNode, StmtNode, "tir.Allocate", Bind(buffer_var), Value(dtype),
                   Value(extents), Value(condition), Value(body), Default(annotations));
};

class Allocate : public FromFields<Stmt, AllocateNode> {
 public:
  TVM_DEFINE_NODE_REF_COW(Allocate, AllocateNode);
};

/*! \brief `buffer` views memory that exists already, while `body` runs. */
class DeclBufferNode : public StmtNode {
 public:
  Buffer buffer;
  Stmt body;
  TVM_DECLARE_NODE(DeclBufferNode, StmtNode, "tir.DeclBuffer", Bind(buffer), Value(body));
};

class DeclBuffer : public FromFields<Stmt, DeclBufferNode> {
 public:
  TVM_DEFINE_NODE_REF_COW(DeclBuffer, DeclBufferNode);
};

/*!
 * \brief Memory that holds `data` from the start and is only read, while `body` runs.
 *
 * The constant may stand here, or in the attribute `constants` of the module, where
 * `irmod_storage_idx` counts; generators need it here.
 */
class AllocateConstNode : public StmtNode {
 public:
  Var buffer_var;
  DataType dtype;
  Array<PrimExpr> extents;
  Optional<runtime::NDArray> data;
  Optional<Integer> irmod_storage_idx;
  Stmt body;
  Map<String, ObjectRef> annotations;
  /*! \brief Product of the extents when all are constant, else 0. */
  int64_t ConstantAllocationSize() const;
  /*! \brief ValueError unless there is exactly one of the constant and its index, and it fits. */
  void Init();
  TVM_DECLARE_NODE(AllocateConstNode, StmtNode, "tir.AllocateConst", Bind(buffer_var), Value(dtype),
                   Value(extents), Default(data), Default(irmod_storage_idx), Value(body),
                   Default(annotations));
};

class AllocateConst : public FromFields<Stmt, AllocateConstNode> {
 public:
  TVM_DEFINE_NODE_REF_COW(AllocateConst, AllocateConstNode);
};

/*! \brief Statements in order; never empty, never directly nested. */
class SeqStmtNode : public StmtNode {
 public:
  Array<Stmt> seq;
  void Init();
  TVM_DECLARE_NODE(SeqStmtNode, StmtNode, "tir.SeqStmt", Value(seq));
};

class SeqStmt : public FromFields<Stmt, SeqStmtNode> {
 public:
  /*! \brief One statement for all of `seq`: nested sequences spliced, no-ops dropped. */
  static Stmt Flatten(const Array<Stmt>& seq);
  TVM_DEFINE_NODE_REF_COW(SeqStmt, SeqStmtNode);
};

/*! \brief `else_case` may be undefined. */
class IfThenElseNode : public StmtNode {
 public:
  PrimExpr condition;
  Stmt then_case;
  Stmt else_case;
  void Init();
  TVM_DECLARE_NODE(IfThenElseNode, StmtNode, "tir.IfThenElse", Value(condition), Value(then_case),
                   Default(else_case));
};

class IfThenElse : public FromFields<Stmt, IfThenElseNode> {
 public:
  TVM_DEFINE_NODE_REF_COW(IfThenElse, IfThenElseNode);
};

/*! \brief An expression for its effect; Evaluate(0) is the empty statement. */
class EvaluateNode : public StmtNode {
 public:
  PrimExpr value;
  TVM_DECLARE_NODE(EvaluateNode, StmtNode, "tir.Evaluate", Value(value));
};

class Evaluate : public FromFields<Stmt, EvaluateNode> {
 public:
  // Evaluate(0) would otherwise be the null reference, as for a pointer.
  explicit Evaluate(int value) : Evaluate(PrimExpr(value)) {}
  TVM_DEFINE_NODE_REF_COW(Evaluate, EvaluateNode);
};

enum class ForKind : int {
  kSerial = 0,
  /*! \brief Iterations may run at the same time on the threads of the pool. */
  kParallel = 1,
  /*! \brief Iterations become lanes. */
  kVectorized = 2,
  /*! \brief The body is written out for every iteration. */
  kUnrolled = 3,
  /*! \brief Iterations are the threads of a launch; see `thread_binding`. */
  kThreadBinding = 4,
};

const char* ForKindToString(ForKind kind);

/*! \brief `body` for loop_var = min .. min + extent - 1. */
class ForNode : public StmtNode {
 public:
  Var loop_var;
  PrimExpr min;
  PrimExpr extent;
  ForKind kind = ForKind::kSerial;
  Stmt body;
  /*! \brief Defined only for kThreadBinding. */
  Optional<IterVar> thread_binding;
  Map<String, ObjectRef> annotations;
  void Init();
  TVM_DECLARE_NODE(ForNode, StmtNode, "tir.For", Bind(loop_var), Value(min), Value(extent),
                   Value(kind), Value(body), Default(thread_binding), Default(annotations));
};

class For : public FromFields<Stmt, ForNode> {
 public:
  TVM_DEFINE_NODE_REF_COW(For, ForNode);
};

class WhileNode : public StmtNode {
 public:
  PrimExpr condition;
  Stmt body;
  void Init();
  TVM_DECLARE_NODE(WhileNode, StmtNode, "tir.While", Value(condition), Value(body));
};

class While : public FromFields<Stmt, WhileNode> {
 public:
  TVM_DEFINE_NODE_REF_COW(While, WhileNode);
};

/*! \brief A hint that `bounds` of `buffer` will be read soon. */
class PrefetchNode : public StmtNode {
 public:
  Buffer buffer;
  Array<Range> bounds;
  TVM_DECLARE_NODE(PrefetchNode, StmtNode, "tir.Prefetch", Value(buffer), Value(bounds));
};

class Prefetch : public FromFields<Stmt, PrefetchNode> {
 public:
  TVM_DEFINE_NODE_REF_COW(Prefetch, PrefetchNode);
};

/*! \brief Whether the statement is Evaluate of a constant, and so nothing. */
bool is_no_op(const Stmt& stmt);

/*! \brief Keys of AttrStmt and of loop annotations. */
namespace attr {
/*! \brief Unroll loops inside whose total trip count is at most the value. */
constexpr const char* pragma_auto_unroll_max_step = "pragma_auto_unroll_max_step";
/*! \brief Whether unrolling writes the copies out (1) or leaves it to the code generator (0). */
constexpr const char* pragma_unroll_explicit = "pragma_unroll_explicit";
/*! \brief Prefix of all attributes that come from a schedule's pragma. */
constexpr const char* pragma_scope_prefix = "pragma_";
constexpr const char* thread_extent = "thread_extent";
constexpr const char* virtual_thread = "virtual_thread";
/*!
 * \brief Around the BufferRealize of `node`, a buffer: a call with arguments (axis, factor, offset)
 * makes the stride of the axis congruent to `offset` modulo `factor` elements.
 */
constexpr const char* storage_alignment = "storage_alignment";
/*! \brief The loop nest that computes a tensor's reduction; for readers, without meaning. */
constexpr const char* reduce_scope = "reduce_scope";
/*! \brief Marks the scope in which `node` (an operation) is computed. */
constexpr const char* compute_scope = "compute_scope";
/*!
 * \brief What the body reads of `node`, a buffer, is to be fetched as many trips of the innermost
 * loop ahead as the value says.
 */
constexpr const char* prefetch_scope = "prefetch_scope";
/*! \brief Of a loop: everything its body only reads is prefetched that many trips ahead. */
constexpr const char* pragma_prefetch = "pragma_prefetch";
/*! \brief Of a loop: partition it whatever its extent, at all conditions and not only likely ones.
 */
constexpr const char* pragma_loop_partition_hint = "pragma_loop_partition_hint";
/*! \brief `node`, the data pointer of a buffer, may be filled while its other half is read. */
constexpr const char* double_buffer_scope = "double_buffer_scope";
/*!
 * \brief Around a copy that goes on while the program does. Inside of double_buffer_scope the value
 *        is how many trips of the loop around ahead of its use the copy is made; true is one.
 */
constexpr const char* pragma_async_copy = "pragma_async_copy";
/*! \brief `node`, a data pointer, gives access to as many elements as the value says. */
constexpr const char* buffer_bound = "buffer_bound";
/*! \brief Name of the external function into which the body is compiled. */
constexpr const char* extern_scope = "extern_scope";
}  // namespace attr

}  // namespace tir
}  // namespace tvm
#endif  // TVM_TIR_STMT_H_
