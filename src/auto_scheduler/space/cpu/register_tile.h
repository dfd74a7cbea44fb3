/*!
 * \file register_tile.h
 * \brief The loops of a store that code generation writes out.
 */
#ifndef TVM_AUTO_SCHEDULER_SPACE_CPU_REGISTER_TILE_H_
#define TVM_AUTO_SCHEDULER_SPACE_CPU_REGISTER_TILE_H_

#include <tvm/auto_scheduler/loop_program.h>

#include <vector>

namespace tvm {
namespace auto_scheduler {

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
  /*! \brief Trips of those unrolled loops that the stored element moves with, float64. */
  const PrimExpr& rows() const { return rows_; }
  /*! \brief Variable of the innermost vector loop; undefined without one. */
  const tir::Var& vector_var() const { return vector_var_; }

 private:
  std::vector<PrimExpr> inside_;  // whether level i belongs to the tile
  PrimExpr vector_length_, unrolled_, rows_;
  tir::Var vector_var_;
};

/*! \brief Whether some index of an access has the variable. */
bool Mentions(const AccessInfo& access, const tir::Var& var);

/*! \brief ceil(extent / n) for an integer extent, float64. */
PrimExpr CeilDivReal(const PrimExpr& extent, int64_t n);

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_SPACE_CPU_REGISTER_TILE_H_
