/*!
 * \file feature.cc
 * \brief Feature vectors of a program's loops for the cost models of templates.
 */
#include <tvm/runtime/container/bytes.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "loop_touch.h"

namespace tvm {
namespace autotvm {

using runtime::Any;
using runtime::Array;

namespace {

/*! \brief log2 that keeps the sign and leaves zero alone. */
double Compress(double value, bool take_log) {
  if (!take_log) return value;
  return std::copysign(std::log2(std::abs(value) + 1), value);
}

std::vector<double> Attributes(const LoopTouch& loop, bool take_log) {
  std::vector<double> row = {Compress(static_cast<double>(loop.length), take_log),
                             static_cast<double>(loop.nest_level),
                             Compress(static_cast<double>(loop.topdown), take_log),
                             Compress(static_cast<double>(loop.bottomup), take_log)};
  for (int kind = 0; kind < static_cast<int>(LoopKind::kCount); ++kind) {
    row.push_back(static_cast<int>(loop.kind) == kind ? 1 : 0);
  }
  return row;
}

std::vector<double> Arithmetic(const LoopTouch& loop, bool take_log) {
  return {Compress(static_cast<double>(loop.add), take_log),
          Compress(static_cast<double>(loop.mul), take_log),
          Compress(static_cast<double>(loop.div), take_log)};
}

std::vector<double> Columns(const Touch& touch, bool take_log) {
  std::vector<double> row;
  for (int64_t value : {touch.stride, touch.mod, touch.count, touch.reuse, touch.thread_count,
                        touch.thread_reuse}) {
    row.push_back(Compress(static_cast<double>(value), take_log));
  }
  return row;
}

Array<Any> Named(const Any& name, const std::vector<double>& values, bool take_log) {
  Array<Any> row;
  row.push_back(name);
  for (double value : values) {
    if (take_log) {
      row.push_back(Any(value));
    } else {
      row.push_back(Any(static_cast<int64_t>(value)));
    }
  }
  return row;
}

runtime::Bytes Raw(const std::vector<float>& values) {
  return runtime::Bytes(
      std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
}

/*!
 * \brief A curve through points as `samples` pairs: over the points left of a threshold and right
 * of it, the largest height. Thresholds double, so that programs of any depth give equally many.
 */
void SampleCurve(const std::vector<std::pair<double, double>>& points, int samples,
                 std::vector<float>* out) {
  for (int i = 0; i < samples; ++i) {
    double left = 0, right = 0;
    for (const auto& [place, height] : points) {
      (place <= i ? left : right) = std::max(place <= i ? left : right, height);
    }
    out->push_back(static_cast<float>(left));
    out->push_back(static_cast<float>(right));
  }
}

}  // namespace

TVM_REGISTER_GLOBAL("autotvm.feature.GetItervarFeature")
    .set_body_typed([](const tir::Stmt& body, bool take_log) {
      Array<Any> rows;
      for (const LoopTouch& loop : AnalyzeLoops(body)) {
        Array<Any> row;
        Array<Any> head;
        head.push_back(Any(runtime::String("_itervar_")));
        head.push_back(Any(loop.var));
        row.push_back(Any(head));
        row.push_back(
            Any(Named(Any(runtime::String("_attr_")), Attributes(loop, take_log), take_log)));
        row.push_back(
            Any(Named(Any(runtime::String("_arith_")), Arithmetic(loop, take_log), take_log)));
        for (const auto& [name, touch] : loop.touches) {
          row.push_back(Any(Named(Any(runtime::String(name)), Columns(touch, take_log), take_log)));
        }
        rows.push_back(Any(row));
      }
      return rows;
    });

TVM_REGISTER_GLOBAL("autotvm.feature.GetItervarFeatureFlatten")
    .set_body_typed([](const tir::Stmt& body, bool take_log) {
      std::vector<float> values;
      auto append = [&](const std::vector<double>& row) {
        values.insert(values.end(), row.begin(), row.end());
      };
      for (const LoopTouch& loop : AnalyzeLoops(body)) {
        append(Attributes(loop, take_log));
        append(Arithmetic(loop, take_log));
        for (const auto& [name, touch] : loop.touches) append(Columns(touch, take_log));
      }
      return Raw(values);
    });

TVM_REGISTER_GLOBAL("autotvm.feature.GetCurveSampleFeatureFlatten")
    .set_body_typed([](const tir::Stmt& body, int samples, bool take_log) {
      // By buffer: the accesses to it, each seen from every loop around it.
      std::map<std::string, std::vector<std::pair<const LoopTouch*, const Touch*>>> buffers;
      const std::vector<LoopTouch> loops = AnalyzeLoops(body);
      for (const LoopTouch& loop : loops) {
        for (const auto& [name, touch] : loop.touches) {
          buffers[name.substr(0, name.rfind('_'))].emplace_back(&loop, &touch);
        }
      }
      std::vector<float> values;
      for (const auto& [name, seen] : buffers) {
        std::vector<std::pair<double, double>> reuse, count, topdown, bottomup;
        for (const auto& [loop, touch] : seen) {
          auto log = [](int64_t value) { return std::log2(std::max<double>(value, 1)); };
          auto height = [&](int64_t value) {
            return take_log ? log(value) : static_cast<double>(value);
          };
          reuse.emplace_back(log(touch->count), height(touch->reuse));
          count.emplace_back(log(touch->reuse), height(touch->count));
          topdown.emplace_back(log(touch->count), height(loop->topdown));
          bottomup.emplace_back(log(touch->count), height(loop->bottomup));
        }
        for (const auto* curve : {&reuse, &count, &topdown, &bottomup}) {
          SampleCurve(*curve, samples, &values);
        }
      }
      return Raw(values);
    });

}  // namespace autotvm
}  // namespace tvm
