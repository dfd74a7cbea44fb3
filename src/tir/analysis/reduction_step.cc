/*!
 * \file src/tir/analysis/reduction_step.cc
 * \brief Reading the operator of a reduction out of the statements of a block.
 */
#include "reduction_step.h"

#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

namespace tvm {
namespace tir {
namespace {

bool IsElement(const PrimExpr& expr, const BufferStore& result) {
  const auto* load = expr.as<BufferLoadNode>();
  if (load == nullptr || !load->buffer.same_as(result->buffer)) return false;
  for (size_t i = 0; i < load->indices.size(); ++i) {
    if (!ExprDeepEqual()(load->indices[i], result->indices[i])) return false;
  }
  return true;
}

std::string AsText(const PrimExpr& expr) {
  std::ostringstream text;
  text << expr;
  return text.str();
}

/*! \brief The two values that an operator takes or that a condition chooses from. */
std::optional<std::pair<PrimExpr, PrimExpr>> Operands(const PrimExpr& value) {
  using Pair = std::pair<PrimExpr, PrimExpr>;
  if (const auto* op = value.as<AddNode>()) return Pair(op->a, op->b);
  if (const auto* op = value.as<MulNode>()) return Pair(op->a, op->b);
  if (const auto* op = value.as<MaxNode>()) return Pair(op->a, op->b);
  if (const auto* op = value.as<MinNode>()) return Pair(op->a, op->b);
  if (const auto* op = value.as<SelectNode>()) return Pair(op->true_value, op->false_value);
  if (const auto* op = value.as<CallNode>(); op && op->op.same_as(builtin::if_then_else())) {
    return Pair(op->args[1], op->args[2]);
  }
  return std::nullopt;
}

/*! \brief Whether a first value may be combined in any number of times. */
bool MayRepeat(const PrimExpr& value, const PrimExpr& first) {
  std::optional<double> neutral;
  if (value.as<AddNode>()) neutral = 0;
  if (value.as<MulNode>()) neutral = 1;
  // The others give one of the two values, so that one and the same twice changes nothing.
  if (!neutral) return true;
  if (const auto* literal = first.as<IntImmNode>()) {
    return static_cast<double>(literal->value) == *neutral;
  }
  const auto* literal = first.as<FloatImmNode>();
  return literal != nullptr && literal->value == *neutral;
}

/*! \brief Puts variables in the place of results so far and of what is combined into them. */
class OperandReplacer final : public ExprMutator {
 public:
  OperandReplacer(const ReductionStep& step, const Array<Var>& lhs, const Array<Var>& rhs)
      : step_(step), lhs_(lhs), rhs_(rhs) {}

  PrimExpr VisitExpr(const PrimExpr& expr) final {
    for (size_t i = 0; i < step_.results.size(); ++i) {
      if (IsElement(expr, step_.results[i])) return lhs_[i];
      if (ExprDeepEqual()(expr, step_.sources[i])) return rhs_[i];
    }
    return ExprMutator::VisitExpr(expr);
  }

 private:
  const ReductionStep& step_;
  const Array<Var>& lhs_;
  const Array<Var>& rhs_;
};

std::vector<BufferStore> StoresIn(const Stmt& stmt) {
  std::vector<BufferStore> stores;
  Array<Stmt> parts = stmt.as<SeqStmtNode>() ? stmt.as<SeqStmtNode>()->seq : Array<Stmt>{stmt};
  for (const Stmt& part : parts) {
    if (!part.as<BufferStoreNode>()) return {};
    stores.push_back(Downcast<BufferStore>(part));
  }
  return stores;
}

/*! \brief The value that an init stores to the buffer of a result. */
PrimExpr FirstOf(const std::vector<BufferStore>& inits, const BufferStore& result) {
  for (const BufferStore& init : inits) {
    if (init->buffer.same_as(result->buffer)) return init->value;
  }
  return PrimExpr();
}

std::string Match(Stmt body, const Stmt& init, ReductionStep* step) {
  const auto* branch = body.as<IfThenElseNode>();
  for (; branch && !branch->else_case.defined(); branch = body.as<IfThenElseNode>()) {
    step->guards.push_back(branch->condition);
    body = branch->then_case;
  }
  Map<Var, PrimExpr> names;
  while (const auto* let = body.as<LetStmtNode>()) {
    names.Set(let->var, Substitute(let->value, names));
    body = let->body;
  }
  step->results = StoresIn(body);
  if (step->results.empty()) return "it does more than to store results";
  Array<PrimExpr> values;
  for (size_t i = 0; i < step->results.size(); ++i) {
    const BufferStore& result = step->results[i];
    bool stale = false;
    PostOrderVisit(result->value, [&](const ObjectRef& node) {
      const auto* load = node.as<BufferLoadNode>();
      for (size_t k = 0; load != nullptr && k < i; ++k) {
        stale |= load->buffer.same_as(step->results[k]->buffer);
      }
    });
    if (stale) {
      return "it reads a result that it has stored already; compute all of them before the first "
             "store";
    }
    values.push_back(Substitute(result->value, names));
  }
  Array<Var> lhs, rhs;
  for (size_t i = 0; i < values.size(); ++i) {
    auto operands = Operands(values[i]);
    if (!operands) return "it combines by " + AsText(values[i]);
    bool first = IsElement(operands->first, step->results[i]);
    if (!first && !IsElement(operands->second, step->results[i])) {
      return "it combines by " + AsText(values[i]);
    }
    step->sources.push_back(first ? operands->second : operands->first);
    std::string number = values.size() == 1 ? "" : std::to_string(i);
    lhs.push_back(Var("x" + number, values[i].dtype()));
    rhs.push_back(Var("y" + number, values[i].dtype()));
  }
  OperandReplacer replace(*step, lhs, rhs);
  Array<PrimExpr> combined, identity;
  std::vector<BufferStore> inits = init.defined() ? StoresIn(init) : std::vector<BufferStore>();
  for (size_t i = 0; i < values.size(); ++i) {
    combined.push_back(replace.VisitExpr(values[i]));
    bool closed = true;
    PostOrderVisit(combined[i], [&](const ObjectRef& node) {
      if (node.as<BufferLoadNode>()) closed = false;
      if (!node.as<VarNode>()) return;
      closed &=
          std::any_of(lhs.begin(), lhs.end(), [&](const Var& v) { return v.same_as(node); }) ||
          std::any_of(rhs.begin(), rhs.end(), [&](const Var& v) { return v.same_as(node); });
    });
    if (!closed) return "it combines by " + AsText(values[i]);
    identity.push_back(FirstOf(inits, step->results[i]));
    if (!identity[i].defined())
      return "its init stores no value to " + std::string(step->results[i]->buffer->name);
    if (!MayRepeat(combined[i], identity[i])) {
      return "its first value " + AsText(identity[i]) +
             " is not neutral, so it cannot start several partial results";
    }
  }
  step->combiner = CommReducer(lhs, rhs, combined, identity);
  return "";
}

}  // namespace

ReductionStep MatchReductionStep(const Stmt& body, const Stmt& init) {
  ReductionStep step;
  step.error = Match(body, init, &step);
  return step;
}

}  // namespace tir
}  // namespace tvm
