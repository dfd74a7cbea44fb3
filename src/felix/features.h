/*!
 * \file features.h
 * \brief Per-store features of a lowered program, as expressions in its knobs.
 *
 * The features are those of Ansor and Felix (ASPLOS 2024, section 4) and a group for processors:
 * register tile, work per inner iteration, traffic between cache levels, balance between cores. A
 * program without knobs goes through the same code and gives numbers, so a model sees the same
 * features whether a program was lowered with symbols or with numbers. What must not matter is
 * whether a loop that runs once is there: lowering with numbers drops it.
 */
#ifndef TVM_FELIX_FEATURES_H_
#define TVM_FELIX_FEATURES_H_

#include <tvm/auto_scheduler/search_task.h>

#include <map>
#include <string>
#include <vector>

#include "loop_program.h"

namespace tvm {
namespace felix {

/*! \brief The limits of the machine that features and constraints are relative to. */
struct Machine {
  int num_cores;
  int vector_bytes;
  int num_vector_registers;
  int cache_line_bytes;
  int64_t cache_bytes[3];  // L1, L2, L3 data

  static Machine Of(const auto_scheduler::SearchTask& task);
};

/*! \brief Names of the entries of a row, in order. */
const std::vector<std::string>& FeatureNames();
/*! \brief Whether entry i is a number, which is passed on as ln(1 + value), and not a flag. */
bool IsNumericFeature(size_t i);

/*! \brief Features of one program; values are float64 before the logarithm. */
struct ProgramFeatures {
  /*! \brief Rows are the buffers that are stored to, in order of the first store. */
  std::vector<std::string> store_names;
  std::vector<std::vector<PrimExpr>> rows;
  /*! \brief For each row the numbers of the buffers that its slots describe, in order. */
  std::vector<std::vector<int>> buffer_order;
};

/*!
 * \brief Extract the features of a program.
 * \param reference Values of the knobs at which the traffic of buffers is compared to give them
 *        their slots; empty for a program without knobs.
 * \param order Slots to use instead, so that two programs of one sketch agree; may be null.
 */
ProgramFeatures ExtractFeatures(const LoopProgram& program, const Machine& machine,
                                const std::map<std::string, double>& reference,
                                const std::vector<std::vector<int>>* order);

/*! \brief Central values of the knobs: all parts of an extent equal. */
std::map<std::string, double> ReferencePoint(const arith::VarContext& context);

/*! \brief Values of expressions at a point given by variable names; every variable needs a value.
 */
std::vector<double> EvaluateAt(const std::vector<PrimExpr>& exprs,
                               const std::map<std::string, double>& point);

/*! \brief Innermost loops that are unrolled or vectorised: what code generation writes out. */
class RegisterTile {
 public:
  explicit RegisterTile(const StoreInfo& store);

  /*! \brief The tile's value of something given for every level, as AccessInfo::touched is. */
  PrimExpr At(const std::vector<PrimExpr>& per_level) const;
  /*! \brief Lanes of the innermost vector loop, int; 1 without one. */
  const PrimExpr& vector_length() const { return vector_length_; }
  /*! \brief Trips of the unrolled loops, float64. */
  const PrimExpr& unrolled() const { return unrolled_; }
  /*! \brief Variable of the innermost vector loop; undefined without one. */
  const tir::Var& vector_var() const { return vector_var_; }

 private:
  std::vector<PrimExpr> inside_;  // whether level i belongs to the tile
  PrimExpr vector_length_, unrolled_;
  tir::Var vector_var_;
};

/*! \brief ceil(extent / n) for an integer extent, float64. */
PrimExpr CeilDivReal(const PrimExpr& extent, int64_t n);

/*! \brief lhs <= rhs, both float64 and positive where they do not fold. */
struct Constraint {
  std::string name;
  PrimExpr lhs, rhs;
};

/*! \brief What a schedule for processors must respect. */
std::vector<Constraint> ExtractCpuConstraints(const LoopProgram& program, const Machine& machine,
                                              const arith::VarContext& context);

}  // namespace felix
}  // namespace tvm
#endif  // TVM_FELIX_FEATURES_H_
