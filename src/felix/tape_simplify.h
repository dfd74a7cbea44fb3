/*!
 * \file tape_simplify.h
 * \brief Simplification of tapes by the crate egg_simpl.
 */
#ifndef TVM_FELIX_TAPE_SIMPLIFY_H_
#define TVM_FELIX_TAPE_SIMPLIFY_H_

#include <tvm/felix/tape.h>

#include <string>

namespace tvm {
namespace felix {

/*! \brief Limits of equality saturation; without iterations only the normal form is computed. */
struct TapeSimplifyOptions {
  int iterations = 4;
  int node_limit = 20000;
};

/*! \brief How simplification went. */
struct TapeSimplifyReport {
  std::string stop_reason;  // saturated, iteration limit, or node limit
  int64_t nodes = 0;        // of the e-graph, at its largest
};

/*!
 * \brief A tape whose roots have the same values at every point inside the variables' ranges, to a
 *        relative error of 1e-9, at no more cost. The variable table is kept. ValueError for a
 *        malformed tape.
 */
TapeData SimplifyTape(const TapeData& tape, const TapeSimplifyOptions& options = {},
                      TapeSimplifyReport* report = nullptr);

}  // namespace felix
}  // namespace tvm
#endif  // TVM_FELIX_TAPE_SIMPLIFY_H_
