/*!
 * \file feat_transform.cc
 * \brief From the features and constraints of a symbolic program to a pack the search evaluates.
 */
#include <tvm/auto_scheduler/search_space.h>
#include <tvm/expr/op.h>
#include <tvm/felix/feature_pack.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "smooth.h"
#include "tape_builder.h"
#include "tape_simplify.h"

namespace tvm {
namespace felix {

using auto_scheduler::CentralPoint;
using auto_scheduler::Constraint;
using auto_scheduler::ExtractFeatures;
using auto_scheduler::FeatureKind;
using auto_scheduler::FeatureTable;
using auto_scheduler::LoopProgram;
using auto_scheduler::ProgramFeatures;
using auto_scheduler::ReadLoopProgram;
using auto_scheduler::SearchSpace;
using auto_scheduler::SearchTask;

TVM_REGISTER_NODE(LinearExprNode);
TVM_REGISTER_NODE(FeaturePackNode);

namespace {

// Rounding of logarithms that should cancel.
constexpr double kTolerance = 1e-9;

/*! \brief The tape over knobs of all feature values, then of both sides of all constraints. */
TapeData KnobTape(const ProgramFeatures& features, const std::vector<Constraint>& constraints,
                  const ExponentSpace& space) {
  std::unordered_map<std::string, TapeVar> ranges;
  for (const ExponentSpace::Group& group : space.groups()) {
    auto extent = static_cast<double>(group.extent);
    for (int knob : group.tiles) {
      const std::string& name = space.knobs()[knob].name;
      ranges[name] = {name, true, 1, extent};
    }
    const std::string& name = space.knobs()[group.quotient].name;
    ranges[name] = {name, true, 1, extent};
  }
  TapeBuilder builder;
  ExprToTape convert(&builder, &ranges);
  for (const std::vector<PrimExpr>& row : features.rows) {
    for (const PrimExpr& value : row) builder.AddRoot(convert.Convert(value));
  }
  for (const Constraint& constraint : constraints) {
    builder.AddRoot(convert.Convert(constraint.lhs));
    builder.AddRoot(convert.Convert(constraint.rhs));
  }
  return builder.Finish();
}

class PackMaker {
 public:
  PackMaker(const ExponentSpace& space, TapeBuilder* out, FeaturePackNode* pack)
      : space_(space), out_(out), pack_(pack), smoother_(space, out) {}

  void AddBounds() {
    for (const Exponent& e : space_.exponents()) {
      AddLinear(0, {{e.name, -1.0}});
    }
    for (const ExponentSpace::Group& group : space_.groups()) {
      if (group.tiles.empty()) continue;
      size_t num_primes = space_.knobs()[group.tiles[0]].exponents.size();
      for (size_t k = 0; k < num_primes; ++k) {
        std::vector<std::pair<std::string, double>> terms;
        int upper = 0;
        for (int tile : group.tiles) {
          const Exponent& e = space_.exponents()[space_.knobs()[tile].exponents[k]];
          terms.emplace_back(e.name, 1.0);
          upper = e.upper;
        }
        AddLinear(-upper, terms);
      }
    }
  }

  void AddRows(std::vector<Smoother::Smooth>* values, const TapeData& tape, size_t num_rows,
               const FeatureTable& table) {
    values_ = values;
    tape_ = &tape;
    next_root_ = num_rows * table.size();
    for (size_t i = 0; i < next_root_; ++i) {
      Smoother::Smooth* value = Root(i);
      bool is_number = table.kind(i % table.size()) == FeatureKind::kNumber;
      out_->AddRoot(is_number ? smoother_.EmitLogSize(value) : smoother_.Emit(value));
    }
  }

  void AddConstraint(const Constraint& constraint) {
    Smoother::Smooth* lhs = Root(next_root_++);
    Smoother::Smooth* rhs = Root(next_root_++);
    auto left = smoother_.LogLinear(*lhs), right = smoother_.LogLinear(*rhs);
    if (left && right) {
      std::vector<std::pair<std::string, double>> terms;
      for (size_t e = 0; e < space_.exponents().size(); ++e) {
        double coef = left->first[e] - right->first[e];
        if (std::fabs(coef) > kTolerance) terms.emplace_back(space_.exponents()[e].name, coef);
      }
      double constant = left->second - right->second;
      if (!terms.empty()) {
        AddLinear(constant, terms);
      } else {
        TVM_CHECK(constant <= kTolerance, ValueError)
            << "features: the constraint " << constraint.name
            << " cannot be met: " << constraint.lhs << " <= " << constraint.rhs
            << " is false for every tile size";
      }
      return;
    }
    TapeBuilder::Index log_left = smoother_.EmitLog(lhs);
    TapeBuilder::Index value = out_->Op(TapeOp::kSub, log_left, smoother_.EmitLog(rhs));
    if (out_->IsConst(value)) {
      TVM_CHECK(out_->ConstValue(value) <= kTolerance, ValueError)
          << "features: the constraint " << constraint.name << " cannot be met";
      return;
    }
    // Initialisation and update of one buffer often have the same limit.
    const std::vector<int32_t>& roots = out_->tape().roots;
    if (std::find(roots.begin(), roots.end(), value) != roots.end()) return;
    out_->AddRoot(value);
    pack_->constraint_names.push_back(constraint.name);
  }

  Smoother& smoother() { return smoother_; }

 private:
  Smoother::Smooth* Root(size_t i) { return &(*values_)[tape_->roots[i]]; }

  void AddLinear(double constant, const std::vector<std::pair<std::string, double>>& terms) {
    Map<String, Any> coefficients;
    for (const auto& [name, coef] : terms) coefficients.Set(name, coef);
    pack_->linear_cons.push_back(LinearExpr(constant, coefficients));
  }

  const ExponentSpace& space_;
  TapeBuilder* out_;
  FeaturePackNode* pack_;
  Smoother smoother_;
  std::vector<Smoother::Smooth>* values_ = nullptr;
  const TapeData* tape_ = nullptr;
  size_t next_root_ = 0;
};

Array<Any> OrderAsArrays(const std::vector<std::vector<int>>& order) {
  Array<Any> out;
  for (const std::vector<int>& row : order) {
    Array<Any> ids;
    for (int id : row) ids.push_back(static_cast<int64_t>(id));
    out.push_back(ids);
  }
  return out;
}

}  // namespace

FeaturePack GetFeaturePack(const SearchTask& task, const tir::PrimFunc& func,
                           const arith::VarContext& context, const std::string& space_name,
                           int iterations, int node_limit) {
  const SearchSpace& space = SearchSpace::Get(task->target, space_name);
  const FeatureTable& table = space.features();
  const MachineFacts machine = task->Machine();
  LoopProgram program = ReadLoopProgram(func, context);
  ProgramFeatures features =
      ExtractFeatures(program, machine, table, CentralPoint(context), /*order=*/nullptr);
  std::vector<Constraint> constraints = space.Constraints(program, machine, context);

  ExponentSpace exponents(context);
  // Still over integers, where divisions can be exact. The normal form is enough: saturation found
  // nothing to add to it on any operator tried, and takes seconds.
  TapeData knob_tape = SimplifyTape(KnobTape(features, constraints, exponents), {.iterations = 0});
  auto pack = make_object<FeaturePackNode>();
  TapeBuilder builder;
  PackMaker maker(exponents, &builder, pack.get());
  std::vector<Smoother::Smooth> values = maker.smoother().Translate(knob_tape);
  maker.AddBounds();
  maker.AddRows(&values, knob_tape, features.rows.size(), table);
  for (const Constraint& constraint : constraints) maker.AddConstraint(constraint);

  for (const std::string& name : table.names()) pack->feature_names.push_back(name);
  for (const std::string& name : features.store_names) pack->store_names.push_back(name);
  pack->n_stores = static_cast<int>(features.rows.size());
  TapeData tape = builder.Finish();
  if (iterations > 0) tape = SimplifyTape(tape, {iterations, node_limit});
  pack->tape = Tape(tape);
  for (const ExponentSpace::Knob& knob : exponents.knobs()) {
    if (knob.is_quotient) continue;
    Array<Any> factors;
    for (int e : knob.exponents) {
      const Exponent& exponent = exponents.exponents()[e];
      factors.push_back(Array<Any>{exponent.prime, String(exponent.name)});
    }
    pack->var_factors.Set(knob.name, factors);
    pack->fixed_factors.Set(knob.name, knob.scale);
  }
  pack->buffer_order = OrderAsArrays(features.buffer_order);
  return FeaturePack(ObjectPtr<Object>(pack));
}

TVM_REGISTER_GLOBAL("felix.GetFeaturePack")
    .set_body_typed([](SearchTask task, tir::PrimFunc func, arith::VarContext context, String space,
                       int iterations, int node_limit) {
      return GetFeaturePack(task, func, context, space, iterations, node_limit);
    });

TVM_REGISTER_GLOBAL("felix.LinearExprAsPrimExpr").set_body_typed([](LinearExpr linear) {
  PrimExpr sum = FloatImm(DataType::Float(64), linear->constant);
  for (const auto& [name, coef] : linear->coefficients) {
    tir::Var var(name, DataType::Float(64));
    sum = sum + var * FloatImm(DataType::Float(64), coef.cast<double>());
  }
  return sum;
});

/* Expressions over variables as a tape. */
TVM_REGISTER_GLOBAL("felix.ExprsToTape").set_body_typed([](Array<PrimExpr> exprs) {
  TapeBuilder builder;
  ExprToTape convert(&builder);
  for (const PrimExpr& e : exprs) builder.AddRoot(convert.Convert(e));
  return Tape(builder.Finish());
});

}  // namespace felix
}  // namespace tvm
