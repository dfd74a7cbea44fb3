/*!
 * \file message_passing.h
 * \brief Carries domains, indices and facts between the roots and the leaves of a stage's loops.
 *
 * "Down" goes from the axes of the operation to the generated loops, "up" the other way.
 */
#ifndef TVM_TE_SCHEDULE_MESSAGE_PASSING_H_
#define TVM_TE_SCHEDULE_MESSAGE_PASSING_H_

#include <tvm/arith/analyzer.h>
#include <tvm/arith/var_context.h>
#include <tvm/te/schedule.h>

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tvm {
namespace te {

template <typename T>
using IterVarMap = std::unordered_map<IterVar, T, ObjectPtrHash, ObjectPtrEqual>;
using IterVarSet = std::unordered_set<IterVar, ObjectPtrHash, ObjectPtrEqual>;

/*!
 * \brief From the domains of the roots to those of all loops.
 * \param var_context knows which symbolic divisions are exact; may be null.
 */
void PassDownDomain(const Stage& stage, RangeMap* domains, arith::Analyzer* analyzer,
                    const arith::VarContext* var_context = nullptr);

/*! \brief From values of the loops to values of the roots; loops without a value are skipped. */
void PassUpIndex(const Stage& stage, const RangeMap& domains, IterVarMap<PrimExpr>* values);

/*! \brief From values of the roots to values of the loops. */
void PassDownIndex(const Stage& stage, const RangeMap& domains, IterVarMap<PrimExpr>* values);

/*! \brief From index sets of the loops to index sets of the roots. */
void PassUpDomain(const Stage& stage, const RangeMap& domains, IterVarMap<arith::IntSet>* sets,
                  arith::Analyzer* analyzer);

/*! \brief Or-combines bit masks from loops to the roots they stem from. */
void PassUpBitMask(const Stage& stage, IterVarMap<int>* bits);

/*! \brief Or-combines bit masks from roots to the loops made of them. */
void PassDownBitMask(const Stage& stage, IterVarMap<int>* bits);

/*! \brief Loops that run over spatial and reduction axes at once, made by fusing both. */
IterVarSet LoopsOfBothKinds(const Stage& stage);

/*! \brief A ScheduleError in the name of `what` if the stage has loops of both kinds. */
void RefuseLoopsOfBothKinds(const Stage& stage, const std::string& what);

/*!
 * \brief Conditions under which `values` lie in the operation's axes and in the wanted domains.
 *
 * Conditions that always hold, as far as the analyzer can tell, are left out.
 *
 * \param values of the roots and loops, as PassUpIndex left them.
 * \param skip_reduce whether reduction axes are of no interest, as when initialising.
 */
std::vector<PrimExpr> MakeBoundCheck(const Stage& stage, const RangeMap& domains,
                                     const IterVarMap<PrimExpr>& values, arith::Analyzer* analyzer,
                                     bool skip_reduce);

/*! \brief Whether a split into these extents covers the parent without excess. */
bool IsExactSplit(const PrimExpr& parent, const PrimExpr& outer, const PrimExpr& inner,
                  arith::Analyzer* analyzer);

}  // namespace te
}  // namespace tvm
#endif  // TVM_TE_SCHEDULE_MESSAGE_PASSING_H_
