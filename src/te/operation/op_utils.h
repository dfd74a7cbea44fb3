/*!
 * \file op_utils.h
 * \brief State of one lowering, construction of loop nests, and rewriting of reads.
 */
#ifndef TVM_TE_OPERATION_OP_UTILS_H_
#define TVM_TE_OPERATION_OP_UTILS_H_

#include <tvm/arith/analyzer.h>
#include <tvm/te/schedule.h>

#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "../schedule/message_passing.h"

namespace tvm {
namespace te {

/*! \brief What the stages of one schedule share while their loops are generated. */
struct LoweringContext {
  RangeMap domains;
  TensorMap<Buffer> buffers;
  /*! \brief Stages computed inside a loop, in schedule order. */
  IterVarMap<std::vector<Stage>> attached;
  /*! \brief For each scan the stages of its starts, in schedule order. */
  std::unordered_map<const Object*, std::vector<Stage>> scan_starts;
  /*! \brief Operations whose results live in the buffers of a scan. */
  std::unordered_set<const Object*> scan_parts;
  /*! \brief Values of loop variables for which no loop is generated. */
  std::unordered_map<const VarNode*, PrimExpr> replaced;
  /*! \brief Knows the domains of all loops. */
  arith::Analyzer analyzer;
  bool keep_trivial_loop = false;
};

using StmtWrapper = std::function<Stmt(Stmt)>;
/*! \brief Per loop the statements to put around its body, outermost first. */
using LoopNest = std::vector<std::vector<StmtWrapper>>;

/*! \brief `reader` preceded by the loops of `stage`, inside the realization of its buffers. */
Stmt MakePipeline(const Stage& stage, LoweringContext* ctx, const Stmt& reader);

/*! \brief `body` inside the realization of all outputs over their whole shapes. */
Stmt RealizeWhole(const Stage& stage, LoweringContext* ctx, const Stmt& body);

/*!
 * \brief The loops of a stage from the `begin`-th on.
 * \param is_init whether this is the nest that initialises a reduction. It has variables of its
 *        own and nothing is attached in it.
 * \param skip loops to leave out.
 * \param values receives the value of each loop.
 */
LoopNest MakeLoopNest(const Stage& stage, LoweringContext* ctx, size_t begin, bool is_init,
                      const IterVarSet& skip, IterVarMap<PrimExpr>* values);

/*! \brief `body` inside levels [begin, end) of the nest. */
Stmt MergeNest(const LoopNest& nest, size_t begin, size_t end, Stmt body);

/*! \brief `body` where all conditions hold, each marked as likely. */
Stmt GuardedBy(const std::vector<PrimExpr>& conditions, Stmt body);

/*! \brief The same with other tensors read; the same object when it reads none of the keys. */
PrimExpr ReplaceTensor(const PrimExpr& expr, const TensorMap<Tensor>& rmap);
Stmt ReplaceTensor(const Stmt& stmt, const TensorMap<Tensor>& rmap);

/*! \brief Adds every tensor that `expr` reads to `reads`, once. */
void CollectReads(const PrimExpr& expr, std::vector<Tensor>* reads);

/*! \brief Value of a storage_alignment attribute. */
PrimExpr StorageAlignment(int axis, const PrimExpr& factor, const PrimExpr& offset);

/*! \brief Variables of axes replaced by their values. */
Map<Var, PrimExpr> VarValues(const Array<IterVar>& axes, const IterVarMap<PrimExpr>& values);

}  // namespace te
}  // namespace tvm
#endif  // TVM_TE_OPERATION_OP_UTILS_H_
