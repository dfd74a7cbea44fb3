/*!
 * \file tvm/tir/analysis.h
 * \brief Questions about statements and functions, and the variables they use.
 */
#ifndef TVM_TIR_ANALYSIS_H_
#define TVM_TIR_ANALYSIS_H_

#include <tvm/expr/analysis.h>
#include <tvm/ir/module.h>
#include <tvm/tir/block.h>
#include <tvm/tir/function.h>
#include <tvm/tir/stmt.h>

#include <functional>
#include <unordered_set>

namespace tvm {
namespace tir {

/*! \brief Whether any variable accepted by the predicate occurs. */
bool UsesVar(const PrimExpr& expr, const std::function<bool(const VarNode*)>& predicate);
bool UsesVar(const Stmt& stmt, const std::function<bool(const VarNode*)>& predicate);

/*! \brief Whether a reducer adds one value up, from zero. */
bool IsSum(const CommReducer& combiner);

/*! \brief Variables used but not bound inside, in order of first use. */
Array<Var> UndefinedVars(const PrimExpr& expr);
/*! \brief The same for a statement; variables in `defs` count as bound. */
Array<Var> UndefinedVars(const Stmt& stmt, const Array<Var>& defs);

/*! \brief What a block reads and what it writes, each buffer once, in order of first access. */
struct AccessRegions {
  Array<BufferRegion> reads;
  Array<BufferRegion> writes;
};

/*!
 * \brief One range per dimension that holds every element of `buffer` read or written in `body`.
 *
 * Loops inside `body` run over all their values; other variables stay free.
 */
Array<Range> DomainTouched(const Stmt& body, const Buffer& buffer, bool consider_loads,
                           bool consider_stores);

/*!
 * \brief Regions a statement accesses, relaxed over the loops inside of it.
 *
 * Accesses of buffers allocated inside do not count. Where a statement loads what it also stores,
 * as a reduction its own result, only the store counts.
 */
AccessRegions DetectAccessRegions(const Stmt& body, const Stmt& init = Stmt());

/*!
 * \brief How many trips of the loop around ahead of its use a buffer is filled by copies that go on
 *        meanwhile (pragma_async_copy); undefined if `filling` has none.
 */
PrimExpr AsyncTripsAhead(const Stmt& filling);

/*! \brief Number of expression and statement nodes, shared ones counted at each use. */
int64_t CountNodes(const ObjectRef& node);

/*! \brief Whether every variable is bound at most once. */
bool VerifySSA(const PrimFunc& func);

/*!
 * \brief Whether every variable is bound before its use, every buffer access has as many indices
 * as the buffer has axes, and vector lanes of stored values and indices agree.
 *
 * \param assert_mode Raise ValueError with the first violation instead of returning false.
 */
bool VerifyWellFormed(const PrimFunc& func, bool assert_mode = true);

/*! \brief Whether a function for a GPU accesses its arrays inside of kernels only. */
bool VerifyMemory(const PrimFunc& func);

/*! \brief Whether kernels stay within limits; see transform::VerifyGPUCode for their names. */
bool VerifyGPUCode(const PrimFunc& func, const Map<String, Integer>& limits);

}  // namespace tir
}  // namespace tvm
#endif  // TVM_TIR_ANALYSIS_H_
