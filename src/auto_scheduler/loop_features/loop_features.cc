/*!
 * \file loop_features.cc
 * \brief From a program and a table of columns to rows.
 */
#include <tvm/auto_scheduler/loop_features.h>
#include <tvm/auto_scheduler/search_space.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <set>

#include "buffer_facts.h"

namespace tvm {
namespace auto_scheduler {

FeatureTable::FeatureTable(std::vector<FeatureGroup> groups, std::vector<FeatureGroup> bound_groups)
    : groups_(std::move(groups)) {
  for (const FeatureGroup& group : groups_) num_learned_ += group.column_names().size();
  std::move(bound_groups.begin(), bound_groups.end(), std::back_inserter(groups_));
  std::set<std::string> seen;
  for (const FeatureGroup& group : groups_) {
    for (const std::string& name : group.column_names()) {
      TVM_CHECK(seen.insert(name).second, ValueError)
          << "features: the group " << group.name() << " has a column " << name
          << ", which another one has already";
      names_.push_back(name);
    }
    kinds_.insert(kinds_.end(), group.kinds().begin(), group.kinds().end());
  }
}

std::vector<PrimExpr> FeatureTable::Row(const StoreFacts& store) const {
  std::vector<PrimExpr> row;
  row.reserve(size());
  for (const FeatureGroup& group : groups_) group.AppendTo(store, &row);
  return row;
}

namespace {

/*! \brief The facts in order of falling traffic at a point. */
std::vector<BufferFacts> ByTraffic(const std::vector<BufferFacts>& facts,
                                   const KnobPoint& reference) {
  std::vector<PrimExpr> traffic;
  for (const BufferFacts& f : facts) {
    traffic.push_back(f.lines);
    traffic.push_back(f.bytes);
  }
  std::vector<double> values = EvaluateAt(traffic, reference);
  std::vector<size_t> places(facts.size());
  std::iota(places.begin(), places.end(), size_t{0});
  std::stable_sort(places.begin(), places.end(), [&](size_t x, size_t y) {
    return std::pair(values[2 * x], values[2 * x + 1]) >
           std::pair(values[2 * y], values[2 * y + 1]);
  });
  std::vector<BufferFacts> sorted;
  for (size_t place : places) sorted.push_back(facts[place]);
  return sorted;
}

}  // namespace

ProgramFeatures ExtractFeatures(const LoopProgram& program, const MachineFacts& machine,
                                const FeatureTable& table, const KnobPoint& reference,
                                const std::vector<std::vector<int>>* order) {
  ProgramFeatures out;
  // One row for each buffer that is stored to. Of several stores, initialisation and update, the
  // last is the one that does the work.
  std::vector<int> row_buffers;
  std::map<int, const StoreInfo*> last_store;
  for (const StoreInfo& store : program.stores) {
    if (!last_store.count(store.buffer)) row_buffers.push_back(store.buffer);
    last_store[store.buffer] = &store;
  }
  TVM_CHECK(!order || order->size() == row_buffers.size(), ValueError)
      << "features: the order of buffers is for " << order->size() << " stores, the program has "
      << row_buffers.size();
  for (size_t r = 0; r < row_buffers.size(); ++r) {
    const StoreInfo& store = *last_store[row_buffers[r]];
    StoreFacts facts(program, store, machine);
    std::vector<BufferFacts> buffers;
    for (const AccessInfo& access : store.accesses) buffers.push_back(FactsOf(facts, access));
    if (order) {
      for (int id : (*order)[r]) {
        for (const BufferFacts& f : buffers) {
          if (f.access->buffer == id) facts.slots.push_back(f);
        }
      }
    } else {
      facts.slots = ByTraffic(buffers, reference);
    }
    if (facts.slots.size() > kMaxFeatureBuffers) facts.slots.resize(kMaxFeatureBuffers);
    std::vector<int> used;
    for (const BufferFacts& f : facts.slots) used.push_back(f.access->buffer);
    out.buffer_order.push_back(std::move(used));
    out.rows.push_back(table.Row(facts));
    out.store_names.push_back(program.buffers[store.buffer]->name);
  }
  return out;
}

TVM_REGISTER_GLOBAL("auto_scheduler.FeatureNames").set_body_typed([](Target target, String space) {
  const std::vector<std::string>& names = SearchSpace::Get(target, space).features().names();
  return Array<String>(names.begin(), names.end());
});

TVM_REGISTER_GLOBAL("auto_scheduler.NumLearnedFeatures")
    .set_body_typed([](Target target, String space) {
      return static_cast<int64_t>(SearchSpace::Get(target, space).features().num_learned());
    });

TVM_REGISTER_GLOBAL("auto_scheduler.LoopFeatureVersion").set_body_typed([]() {
  return kLoopFeatureVersion;
});

/*
 * Features of a program without knobs as a model sees them: float64[stores, features], numbers as
 * ln(1 + value). The order of buffers may be given, from the pack of a sketch, so that the rows
 * agree with it; null to choose it.
 */
TVM_REGISTER_GLOBAL("auto_scheduler.LoopFeatures")
    .set_body_typed([](SearchTask task, tir::PrimFunc func, Optional<Array<Any>> order,
                       String space) {
      std::vector<std::vector<int>> slots;
      if (order.defined()) {
        for (const Any& row : order.value()) {
          Array<int64_t> ids = row.cast<Array<int64_t>>();
          slots.emplace_back(ids.begin(), ids.end());
        }
      }
      const FeatureTable& table = SearchSpace::Get(task->target, space).features();
      ProgramFeatures features =
          ExtractFeatures(ReadLoopProgram(func, arith::VarContext::Make()), task->Machine(), table,
                          {}, order.defined() ? &slots : nullptr);
      std::vector<double> out;
      for (const std::vector<PrimExpr>& row : features.rows) {
        std::vector<double> values = EvaluateAt(row, {});
        for (size_t i = 0; i < values.size(); ++i) {
          bool is_number = table.kind(i) == FeatureKind::kNumber;
          out.push_back(is_number ? std::log1p(values[i]) : values[i]);
        }
      }
      runtime::NDArray array = runtime::NDArray::Empty(
          {static_cast<int64_t>(features.rows.size()), static_cast<int64_t>(table.size())},
          DataType::Float(64), Device{kDLCPU, 0});
      array.CopyFromBytes(out.data(), out.size() * sizeof(double));
      return array;
    });

}  // namespace auto_scheduler
}  // namespace tvm
