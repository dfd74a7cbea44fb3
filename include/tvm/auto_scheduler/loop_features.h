/*!
 * \file tvm/auto_scheduler/loop_features.h
 * \brief Per-store features of a lowered program, as expressions in its knobs.
 *
 * The features are a table: groups of columns, each column one row of data. Those that every target
 * has are Ansor's and Felix's (ASPLOS 2024, section 4); a search space adds groups of its own. A
 * program without knobs goes through the same code and gives numbers, so a model sees the same
 * features whether a program was lowered with symbols or with numbers. What must not matter is
 * whether a loop that runs once is there: lowering with numbers drops it.
 */
#ifndef TVM_AUTO_SCHEDULER_LOOP_FEATURES_H_
#define TVM_AUTO_SCHEDULER_LOOP_FEATURES_H_

#include <tvm/auto_scheduler/knob_point.h>
#include <tvm/auto_scheduler/loop_program.h>
#include <tvm/target/machine.h>

#include <array>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tvm {
namespace auto_scheduler {

/*! \brief Kinds of operations that features count. */
enum class OpKind : int {
  kFloatMad,
  kFloatAddSub,
  kFloatMul,
  kFloatDivMod,
  kFloatCmp,
  kFloatMath,
  kFloatOther,
  kIntMad,
  kIntAddSub,
  kIntMul,
  kIntDivMod,
  kIntCmp,
  kIntMath,
  kIntOther,
  kBool,
  kSelect,
  kCount,
};
/*! \brief Operations for one stored element, by kind. */
using OpCounts = std::array<double, static_cast<size_t>(OpKind::kCount)>;
/*! \brief Operations of a stored value, per element; those on indices are left out. */
OpCounts CountOps(const PrimExpr& value);

/*! \brief The buffers of a store that have columns: those with the most traffic. */
constexpr size_t kMaxFeatureBuffers = 5;

/*! \brief How one store uses one buffer. Numbers are float64, conditions bool. */
struct BufferFacts {
  const AccessInfo* access;
  PrimExpr bytes, unique_bytes, lines, unique_lines;
  /*! \brief Which reuse there is: an element in several trips of a loop, by other stores, none. */
  PrimExpr multi_read, serial, none;
  PrimExpr reuse_iters, reuse_bytes, reuse_count, stride;
};

/*! \brief What features of one store are made of. Numbers are float64, conditions bool. */
struct StoreFacts {
  StoreFacts(const LoopProgram& program, const StoreInfo& store, const MachineFacts& machine);

  /*! \brief How often the store runs. */
  PrimExpr trips() const;
  double ops(OpKind kind) const { return op_counts[static_cast<size_t>(kind)]; }

  const LoopProgram& program;
  const StoreInfo& store;
  const MachineFacts& machine;
  std::vector<PrimExpr> runs;     // loop i has more than one trip
  std::vector<PrimExpr> extents;  // trips of loop i
  std::vector<PrimExpr> outer;    // product of the extents of loops before i
  std::vector<PrimExpr> inner;    // product of the extents of loop i and those inside it
  OpCounts op_counts;
  /*! \brief At most kMaxFeatureBuffers buffers, in the order of their columns. */
  std::vector<BufferFacts> slots;
};

/*!
 * \brief What the values of columns mean, of every search space; models of another version are
 *        refused.
 *
 * It is raised whenever a column of the same name gets other values for the same program. A test
 * compares the features of fixed programs with what they were. Files of before last tiles were
 * counted as they run are of the first version too: it is the same for nearly all that they hold.
 */
constexpr int kLoopFeatureVersion = 1;

/*! \brief How a model reads a column: numbers as ln(1 + value), flags as they are. */
enum class FeatureKind { kNumber, kFlag };

/*! \brief One column of features that are computed from `Facts`. */
template <typename Facts>
struct FeatureColumn {
  std::string name;
  FeatureKind kind;
  std::function<PrimExpr(const Facts&)> value;
};

/*! \brief Columns that are computed from the same facts, in order. */
class FeatureGroup {
 public:
  /*! \brief `Facts` is StoreFacts, or is made of it once for each store. */
  template <typename Facts>
  FeatureGroup(std::string name, std::vector<FeatureColumn<Facts>> columns)
      : name_(std::move(name)) {
    for (const FeatureColumn<Facts>& column : columns) {
      column_names_.push_back(column.name);
      kinds_.push_back(column.kind);
    }
    append_ = [columns = std::move(columns)](const StoreFacts& store, std::vector<PrimExpr>* row) {
      if constexpr (std::is_same_v<Facts, StoreFacts>) {
        for (const FeatureColumn<Facts>& column : columns) row->push_back(column.value(store));
      } else {
        const Facts facts(store);
        for (const FeatureColumn<Facts>& column : columns) row->push_back(column.value(facts));
      }
    };
  }

  const std::string& name() const { return name_; }
  const std::vector<std::string>& column_names() const { return column_names_; }
  const std::vector<FeatureKind>& kinds() const { return kinds_; }
  void AppendTo(const StoreFacts& store, std::vector<PrimExpr>* row) const { append_(store, row); }

 private:
  std::string name_;
  std::vector<std::string> column_names_;
  std::vector<FeatureKind> kinds_;
  std::function<void(const StoreFacts&, std::vector<PrimExpr>*)> append_;
};

/*! \brief The columns that every target has. */
std::vector<FeatureGroup> CommonFeatureGroups();

/*! \brief All columns of a search space: those that models learn from, and then the others. */
class FeatureTable {
 public:
  FeatureTable() = default;
  /*!
   * \param groups What models learn from.
   * \param bound_groups What only the bound of a machine reads, so that a model that was trained
   *        takes the same columns when the bound comes to look at more.
   * \throws ValueError if two columns have the same name.
   */
  explicit FeatureTable(std::vector<FeatureGroup> groups,
                        std::vector<FeatureGroup> bound_groups = {});

  const std::vector<FeatureGroup>& groups() const { return groups_; }
  const std::vector<std::string>& names() const { return names_; }
  FeatureKind kind(size_t column) const { return kinds_[column]; }
  size_t size() const { return names_.size(); }
  /*! \brief How many columns models learn from, the first ones. */
  size_t num_learned() const { return num_learned_; }
  std::vector<PrimExpr> Row(const StoreFacts& store) const;

 private:
  std::vector<FeatureGroup> groups_;
  std::vector<std::string> names_;
  std::vector<FeatureKind> kinds_;
  size_t num_learned_ = 0;
};

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
ProgramFeatures ExtractFeatures(const LoopProgram& program, const MachineFacts& machine,
                                const FeatureTable& table, const KnobPoint& reference,
                                const std::vector<std::vector<int>>* order);

// Conditions that fold where they are known.
PrimExpr IsMoreThanOne(const PrimExpr& extent);
PrimExpr BothOf(const PrimExpr& a, const PrimExpr& b);
PrimExpr EitherOf(const PrimExpr& a, const PrimExpr& b);
PrimExpr Opposite(const PrimExpr& a);
/*! \brief `cond ? value : 0`. */
PrimExpr If(const PrimExpr& cond, const PrimExpr& value);

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_LOOP_FEATURES_H_
