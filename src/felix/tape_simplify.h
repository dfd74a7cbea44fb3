/*!
 * \file tape_simplify.h
 * \brief Simplification of tapes by the crate egg_simpl.
 */
#ifndef TVM_FELIX_TAPE_SIMPLIFY_H_
#define TVM_FELIX_TAPE_SIMPLIFY_H_

#include <tvm/felix/tape.h>

namespace tvm {
namespace felix {

/*! \brief Limits of equality saturation, for each subterm it is run on. */
struct TapeSimplifyOptions {
  int iterations = 8;
  int node_limit = 2000;
};

/*!
 * \brief A tape whose roots have the same values at every point inside the variables' ranges, with
 *        shared subexpressions merged. The variable table is kept. ValueError for a malformed tape.
 */
TapeData SimplifyTape(const TapeData& tape, const TapeSimplifyOptions& options = {});

}  // namespace felix
}  // namespace tvm
#endif  // TVM_FELIX_TAPE_SIMPLIFY_H_
