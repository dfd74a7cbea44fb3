/*!
 * \file src/tir/transforms/dead_store.cc
 * \brief Removing stores that are overwritten, or that store what is there.
 */
#include "dead_store.h"

#include <tvm/arith/analyzer.h>
#include <tvm/expr/analysis.h>
#include <tvm/expr/op.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace tvm {
namespace tir {
namespace {

/*! \brief A store, with the loops and conditions inside of one statement that lead to it. */
struct StoreInfo {
  const BufferStoreNode* store;
  std::vector<const ForNode*> loops;
  std::vector<PrimExpr> conditions;
};

/*! \brief The stores of a statement, and the buffers it uses in any other way. */
class StoreCollector final : public StmtExprVisitor {
 public:
  std::vector<StoreInfo> stores;
  std::vector<const VarNode*> used;

  bool Uses(const VarNode* data) const {
    return std::find(used.begin(), used.end(), data) != used.end();
  }

 private:
  void VisitStmt_(const BufferStoreNode* op) final {
    if (opaque_ == 0) {
      stores.push_back({op, loops_, conditions_});
    } else {
      used.push_back(op->buffer->data.get());
    }
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const ForNode* op) final {
    loops_.push_back(op);
    StmtExprVisitor::VisitStmt_(op);
    loops_.pop_back();
  }
  void VisitStmt_(const IfThenElseNode* op) final {
    VisitExpr(op->condition);
    conditions_.push_back(op->condition);
    VisitStmt(op->then_case);
    conditions_.pop_back();
    if (!op->else_case.defined()) return;
    conditions_.push_back(Not(op->condition));
    VisitStmt(op->else_case);
    conditions_.pop_back();
  }
  // How often these run what is in them is not looked at.
  void VisitStmt_(const WhileNode* op) final {
    ++opaque_;
    StmtExprVisitor::VisitStmt_(op);
    --opaque_;
  }
  void VisitStmt_(const BlockRealizeNode* op) final {
    ++opaque_;
    StmtExprVisitor::VisitStmt_(op);
    --opaque_;
  }
  void VisitStmt_(const AttrStmtNode* op) final {
    ++opaque_;
    StmtExprVisitor::VisitStmt_(op);
    --opaque_;
  }
  void VisitExpr_(const BufferLoadNode* op) final {
    used.push_back(op->buffer->data.get());
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const VarNode* op) final {
    if (op->dtype.is_handle()) used.push_back(op);
  }

  std::vector<const ForNode*> loops_;
  std::vector<PrimExpr> conditions_;
  int opaque_ = 0;
};

/*! \brief Whether an expression has the same value wherever it stands: it reads no memory. */
bool IsTimeless(const PrimExpr& expr) { return SideEffect(expr) <= CallEffectKind::kPure; }

/*!
 * \brief Assigns to the loop variables of `at` the values for which it stores element `indices`.
 *
 * \return Whether it does store that element, for all values that `analyzer` knows of.
 */
bool Reaches(const StoreInfo& at, const Array<PrimExpr>& indices, arith::Analyzer* analyzer,
             Map<Var, PrimExpr>* values) {
  auto is_free = [&](const VarNode* var) {
    for (const ForNode* loop : at.loops) {
      if (loop->loop_var.get() == var) return !values->count(loop->loop_var);
    }
    return false;
  };
  std::vector<size_t> rest;
  for (size_t i = 0; i < indices.size(); ++i) {
    const PrimExpr& index = at.store->indices[i];
    if (!index.dtype().is_scalar() || !indices[i].dtype().is_scalar() || !IsTimeless(index)) {
      return false;
    }
    const VarNode* var = nullptr;
    int free = 0;
    PostOrderVisit(index, [&](const ObjectRef& node) {
      const auto* found = node.as<VarNode>();
      if (found == nullptr || !is_free(found)) return;
      var = found;
      ++free;
    });
    if (free == 1 && index.dtype() == var->dtype) {
      // The rest of the index must not depend on the variable: then it is a plain sum.
      Var loop_var = GetRef<Var>(var);
      PrimExpr at_zero = Substitute(index, Map<Var, PrimExpr>{{loop_var, make_zero(var->dtype)}});
      if (analyzer->CanProveEqual(index - loop_var, at_zero)) {
        values->Set(loop_var, analyzer->Simplify(indices[i] - at_zero));
        continue;
      }
    }
    rest.push_back(i);
  }
  for (size_t i : rest) {
    if (!analyzer->CanProveEqual(Substitute(at.store->indices[i], *values), indices[i])) {
      return false;
    }
  }
  for (const ForNode* loop : at.loops) {
    Optional<PrimExpr> value = values->Get(loop->loop_var);
    PrimExpr min = Substitute(loop->min, *values);
    PrimExpr extent = Substitute(loop->extent, *values);
    if (!IsTimeless(extent) || !IsTimeless(min)) return false;
    // A loop that the element does not depend on has to run at all.
    bool runs = value ? analyzer->CanProve(value.value() >= min) &&
                            analyzer->CanProve(value.value() < min + extent)
                      : analyzer->CanProve(extent > 0);
    if (!runs) return false;
  }
  for (const PrimExpr& condition : at.conditions) {
    if (!IsTimeless(condition) || !analyzer->CanProve(Substitute(condition, *values))) return false;
  }
  return true;
}

/*! \brief Replaces one store by the evaluation of its value. */
class StoreDropper final : public StmtMutator {
 public:
  explicit StoreDropper(const BufferStoreNode* store) : store_(store) {}

 private:
  Stmt VisitStmt_(const BufferStoreNode* op) final {
    if (op != store_) return GetRef<Stmt>(op);
    Array<Stmt> effects;
    for (const PrimExpr& index : op->indices) {
      if (SideEffect(index) > CallEffectKind::kReadState) effects.push_back(Evaluate(index));
    }
    if (SideEffect(op->value) > CallEffectKind::kReadState) effects.push_back(Evaluate(op->value));
    return SeqStmt::Flatten(effects);
  }

  const BufferStoreNode* store_;
};

class DeadStoreRemover final : public StmtMutator {
 private:
  Stmt VisitStmt_(const SeqStmtNode* op) final {
    Stmt inner = StmtMutator::VisitStmt_(op);
    const auto* seq = inner.as<SeqStmtNode>();
    if (seq == nullptr) return inner;
    std::vector<Stmt> parts(seq->seq.begin(), seq->seq.end());
    // What is left is judged anew after every removal: a proof may rest on a store that went.
    bool changed = false;
    while (RemoveOne(&parts)) changed = true;
    return changed ? SeqStmt::Flatten(Array<Stmt>(parts)) : inner;
  }
  Stmt VisitStmt_(const ForNode* op) final {
    around_.push_back(op);
    Stmt stmt = StmtMutator::VisitStmt_(op);
    around_.pop_back();
    return stmt;
  }

  bool RemoveOne(std::vector<Stmt>* parts) {
    std::vector<StoreCollector> found(parts->size());
    for (size_t i = 0; i < parts->size(); ++i) found[i]((*parts)[i]);
    for (size_t i = 0; i < parts->size(); ++i) {
      for (const StoreInfo& info : found[i].stores) {
        if (!IsOverwritten(found, i, info) && !IsKnown(found, i, info)) continue;
        (*parts)[i] = StoreDropper(info.store)((*parts)[i]);
        return true;
      }
    }
    return false;
  }

  /*! \brief What holds where the store is made. */
  template <typename F>
  bool Where(const StoreInfo& info, F ask) {
    arith::Analyzer analyzer;
    for (const ForNode* loop : around_) {
      analyzer.Bind(loop->loop_var, Range::FromMinExtent(loop->min, loop->extent), true);
    }
    for (const ForNode* loop : info.loops) {
      analyzer.Bind(loop->loop_var, Range::FromMinExtent(loop->min, loop->extent), true);
    }
    return Under(info.conditions, 0, &analyzer, ask);
  }
  template <typename F>
  static bool Under(const std::vector<PrimExpr>& conditions, size_t i, arith::Analyzer* analyzer,
                    F ask) {
    if (i == conditions.size()) return ask(analyzer);
    arith::ConstraintContext holds(analyzer, conditions[i]);
    return Under(conditions, i + 1, analyzer, ask);
  }

  bool IsOverwritten(const std::vector<StoreCollector>& found, size_t i, const StoreInfo& info) {
    const VarNode* data = info.store->buffer->data.get();
    for (const PrimExpr& index : info.store->indices) {
      if (!IsTimeless(index)) return false;
    }
    if (found[i].Uses(data)) return false;
    for (size_t j = i + 1; j < found.size(); ++j) {
      if (found[j].Uses(data)) return false;
      for (const StoreInfo& later : found[j].stores) {
        if (!later.store->buffer.same_as(info.store->buffer)) continue;
        bool covers = Where(info, [&](arith::Analyzer* analyzer) {
          Map<Var, PrimExpr> values;
          return Reaches(later, info.store->indices, analyzer, &values);
        });
        if (covers) return true;
      }
    }
    return false;
  }

  bool IsKnown(const std::vector<StoreCollector>& found, size_t i, const StoreInfo& info) {
    const VarNode* data = info.store->buffer->data.get();
    if (!IsTimeless(info.store->value) || !info.store->value.dtype().is_scalar()) return false;
    // Only a store that is alone in its statement: others could change the element before it.
    for (const StoreInfo& other : found[i].stores) {
      if (other.store != info.store && other.store->buffer->data.get() == data) return false;
    }
    for (size_t j = i; j-- > 0;) {
      std::vector<const StoreInfo*> writes;
      for (const StoreInfo& earlier : found[j].stores) {
        if (earlier.store->buffer->data.get() == data) writes.push_back(&earlier);
      }
      const bool uses = found[j].Uses(data);
      if (writes.empty() && !uses) continue;
      if (uses || writes.size() != 1 || !writes[0]->store->buffer.same_as(info.store->buffer) ||
          !IsTimeless(writes[0]->store->value)) {
        return false;
      }
      return Where(info, [&](arith::Analyzer* analyzer) {
        Map<Var, PrimExpr> values;
        if (!Reaches(*writes[0], info.store->indices, analyzer, &values)) return false;
        // Every trip that stores the element has to store the value: the trip is known.
        for (const ForNode* loop : writes[0]->loops) {
          if (!values.count(loop->loop_var)) return false;
        }
        return analyzer->CanProveEqual(Substitute(writes[0]->store->value, values),
                                       info.store->value);
      });
    }
    return false;
  }

  std::vector<const ForNode*> around_;
};

}  // namespace

Stmt RemoveDeadStores(const Stmt& stmt) { return DeadStoreRemover()(stmt); }

}  // namespace tir
}  // namespace tvm
