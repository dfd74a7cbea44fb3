/*!
 * \file per_store_features.h
 * \brief Ansor's per-store features (OSDI 2020, section 5.2) of a program without free sizes.
 *
 * One row of numbers describes one buffer that is stored to. The columns are a table: what a column
 * is called, which group it belongs to, whether it is scaled, and how its value follows from the
 * numbers of a store. Departures from Ansor's implementation, whose results depended on the order
 * of an unordered map in places: rows are in order of the first store; of a run of skipped loops
 * all extents count, not the innermost one's; contiguity is that of the buffer itself; a loop that
 * runs once is no loop; multiplications that feed additions count as one operation, and index
 * arithmetic not at all. kPerStoreFeatureVersion changes whenever values change.
 */
#ifndef TVM_AUTO_SCHEDULER_PER_STORE_FEATURES_H_
#define TVM_AUTO_SCHEDULER_PER_STORE_FEATURES_H_

#include <tvm/auto_scheduler/loop_program.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tvm {
namespace auto_scheduler {

constexpr int kPerStoreFeatureVersion = 1;
/*! \brief Buffers of a store that are described unless a caller wants another number. */
constexpr int kDefaultMaxBuffers = 5;

/*! \brief Names of the columns, in order; 164 for five buffers. */
std::vector<std::string> PerStoreFeatureNames(int max_n_bufs);

/*! \brief One row for each buffer that is stored to; of several stores the last one counts. */
std::vector<std::vector<float>> PerStoreFeatures(const LoopProgram& program, int cache_line_bytes,
                                                 int max_n_bufs);

/*! \brief An extent that is a number; any other counts as one trip. */
double KnownTrips(const PrimExpr& extent);

/*! \brief Value of an index where `var` is `value` and others are 0; none for what is read. */
std::optional<int64_t> IndexAt(const PrimExpr& index, const tir::VarNode* var, int64_t value);

}  // namespace auto_scheduler
}  // namespace tvm
#endif  // TVM_AUTO_SCHEDULER_PER_STORE_FEATURES_H_
