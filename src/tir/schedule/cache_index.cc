/*!
 * \file cache_index.cc
 * \brief The primitive that computes what a block derives from its variables in tables before it.
 */
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>

#include <algorithm>

#include "buffers.h"
#include "primitives.h"

namespace tvm {
namespace tir {
namespace sched {
namespace {

/*! \brief An expression of a block and how often it is computed in one instance. */
struct Computation {
  PrimExpr expr;
  int64_t times;
};

size_t SizeOf(const PrimExpr& expr) {
  size_t size = 0;
  PostOrderVisit(expr, [&](const ObjectRef& node) { size += node->IsInstance<PrimExprNode>(); });
  return size;
}

/*! \brief Whether a division has a divisor that is a number and not 0. */
bool DividesSafely(const PrimExpr& a_divisor) {
  const int64_t* divisor = as_const_int(a_divisor);
  return divisor != nullptr && *divisor != 0;
}

/*! \brief Whether a value can be computed for all values of the variables, wherever it is used. */
bool IsTotal(const PrimExpr& expr, const VarSet& own) {
  bool total = true, moves = false;
  PreOrderVisit(expr, [&](const ObjectRef& node) {
    if (const auto* var = node.as<VarNode>()) {
      total = total && own.Contains(var);
      moves = true;
    } else if (const auto* call = node.as<CallNode>()) {
      total = total && SideEffect(GetRef<PrimExpr>(call)) <= CallEffectKind::kPure;
    } else if (const auto* quotient = node.as<FloorDivNode>()) {
      total = total && DividesSafely(quotient->b);
    } else if (const auto* rest = node.as<FloorModNode>()) {
      total = total && DividesSafely(rest->b);
    } else if (const auto* ratio = node.as<DivNode>()) {
      total = total && (ratio->dtype.is_float() || DividesSafely(ratio->b));
    } else if (const auto* left = node.as<ModNode>()) {
      total = total && DividesSafely(left->b);
    } else {
      total = total && !node->IsInstance<BufferLoadNode>() && !node->IsInstance<LetNode>() &&
              !node->IsInstance<ReduceNode>() && !node->IsInstance<RampNode>() &&
              !node->IsInstance<BroadcastNode>();
    }
    return total;
  });
  return total && moves && !expr->IsInstance<VarNode>();
}

/*! \brief The largest parts that can be computed before, those that come first first. */
class PartFinder final : public StmtExprVisitor {
 public:
  explicit PartFinder(const VarSet& own) : own_(own) {}
  /*! \param whole An expression that is no part of itself. */
  Array<PrimExpr> Below(const PrimExpr& whole) {
    whole_ = whole.get();
    VisitExpr(whole);
    return found_;
  }
  Array<PrimExpr> In(const Stmt& stmt) {
    VisitStmt(stmt);
    return found_;
  }

 private:
  void VisitExpr(const PrimExpr& expr) final {
    if (expr.get() != whole_ && IsTotal(expr, own_)) {
      found_.push_back(expr);
    } else {
      StmtExprVisitor::VisitExpr(expr);
    }
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    // Where a result goes is what tells instances apart.
    VisitExpr(op->value);
  }

  const VarSet& own_;
  const Object* whole_ = nullptr;
  Array<PrimExpr> found_;
};

void Count(const Array<PrimExpr>& parts, int64_t times, std::vector<Computation>* found) {
  for (const PrimExpr& part : parts) {
    auto known = std::find_if(found->begin(), found->end(), [&](const Computation& other) {
      return ExprDeepEqual()(other.expr, part);
    });
    if (known == found->end()) {
      found->push_back({part, times});
    } else {
      known->times += times;
    }
  }
}

/*! \brief What a block computes of its variables `threshold` times or more, the largest first. */
std::vector<PrimExpr> FindComputations(const Stmt& body, const VarSet& own, int64_t threshold) {
  std::vector<Computation> open;
  Count(PartFinder(own).In(body), 1, &open);
  std::vector<PrimExpr> chosen;
  // What is not computed often enough may hold what is.
  while (true) {
    auto rare =
        std::max_element(open.begin(), open.end(), [&](const Computation& a, const Computation& b) {
          bool keeps_a = a.times >= threshold, keeps_b = b.times >= threshold;
          return keeps_a != keeps_b ? keeps_a : SizeOf(a.expr) < SizeOf(b.expr);
        });
    if (rare == open.end() || rare->times >= threshold) break;
    Computation whole = *rare;
    open.erase(rare);
    Count(PartFinder(own).Below(whole.expr), whole.times, &open);
  }
  for (const Computation& item : open) chosen.push_back(item.expr);
  std::stable_sort(chosen.begin(), chosen.end(),
                   [](const PrimExpr& a, const PrimExpr& b) { return SizeOf(a) > SizeOf(b); });
  return chosen;
}

/*! \brief Loads from a table in the place of what the table holds. */
class TableReader final : public StmtExprMutator {
 public:
  TableReader(PrimExpr expr, PrimExpr load) : expr_(std::move(expr)), load_(std::move(load)) {}

 private:
  PrimExpr VisitExpr(const PrimExpr& expr) final {
    return ExprDeepEqual()(expr, expr_) ? load_ : StmtExprMutator::VisitExpr(expr);
  }
  Stmt VisitStmt_(const BufferStoreNode* op) final {
    PrimExpr value = VisitExpr(op->value);
    return value.same_as(op->value) ? GetRef<Stmt>(op)
                                    : BufferStore(op->buffer, value, op->indices);
  }

  PrimExpr expr_, load_;
};

}  // namespace

Ids CacheIndex(Tree* tree, Id id, const std::string& memory, int64_t threshold) {
  CheckScope(memory);
  TVM_CHECK(tree->IsLeafBlock(id), ScheduleError)
      << "block " << tree->NameOf(id) << " holds other blocks; give one of these";
  Id scope = tree->ScopeOf(id);
  const Array<IterVar> iters = tree->block(id).iter_vars;
  VarSet own;
  for (const IterVar& iv : iters) {
    if (is_zero(iv->dom->min)) own.Add(iv->var);
  }
  Stmt body = tree->Body(id);
  Ids made;
  for (const PrimExpr& expr : FindComputations(body, own, threshold)) {
    std::string number = std::to_string(made.size());
    Array<PrimExpr> shape, place, at, values;
    Array<IterVar> table_iters;
    Ids loops;
    VarMap renamed;
    for (const Var& var : VarsOf(expr)) {
      auto iv = std::find_if(iters.begin(), iters.end(),
                             [&](const IterVar& other) { return other->var.same_as(var); });
      const PrimExpr& extent = (*iv)->dom->extent;
      std::string axis = std::to_string(loops.size());
      shape.push_back(extent);
      place.push_back(var);
      loops.push_back(tree->AddLoop("ax" + axis, var.dtype(), extent));
      values.push_back(tree->loop(loops.back()).var);
      table_iters.push_back(IterVar((*iv)->dom, Var("v" + axis, var.dtype()), kDataPar));
      at.push_back(table_iters.back()->var);
      renamed[var.get()] = at.back();
    }
    Buffer table =
        decl_buffer(shape, expr->dtype, tree->NewBufferName("index_var_" + number), memory);
    Id block = tree->AddBlock(
        std::make_shared<BlockItem>(tree->NewBlockName("index_" + number), table_iters, values),
        BufferStore(table, Substitute(expr, renamed), at));
    tree->Insert(scope, tree->IndexOf(scope, id), tree->Nest(loops, {block}));
    tree->Allocate(table, scope);
    body = TableReader(expr, BufferLoad(table, place))(body);
    made.push_back(block);
  }
  if (!made.empty()) tree->SetBody(id, body, tree->block(id).init);
  return made;
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
