/*!
 * \file tvm/tir/stmt_functor.h
 * \brief Dispatch on the class of a statement, visitors, mutators, and substitution.
 */
#ifndef TVM_TIR_STMT_FUNCTOR_H_
#define TVM_TIR_STMT_FUNCTOR_H_

#include <tvm/expr/expr_functor.h>
#include <tvm/expr/substitute.h>
#include <tvm/tir/block.h>
#include <tvm/tir/function.h>
#include <tvm/tir/stmt.h>

#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tvm {
namespace tir {

/*! \brief Applies X to the name of every statement node class, without the suffix Node. */
// clang-format off
#define TVM_TIR_FOR_EACH_STMT(X)                                                                \
  X(LetStmt) X(AttrStmt) X(IfThenElse) X(For) X(While) X(Allocate) X(AllocateConst)             \
  X(DeclBuffer) X(BufferStore) X(BufferRealize) X(AssertStmt) X(SeqStmt) X(Evaluate) X(Prefetch) X(Block) X(BlockRealize) \
  X(ProducerStore) X(ProducerRealize)
// clang-format on

template <typename FType>
class StmtFunctor;

/*! \brief `VisitStmt(s, args...)` calls the `VisitStmt_` of the class of `s`. */
template <typename R, typename... Args>
class StmtFunctor<R(const Stmt& n, Args...)> {
 public:
  virtual ~StmtFunctor() = default;
  R operator()(const Stmt& n, Args... args) { return VisitStmt(n, std::forward<Args>(args)...); }
  virtual R VisitStmt(const Stmt& n, Args... args);

#define TVM_TIR_DECLARE_VISIT(Name)                            \
  virtual R VisitStmt_(const Name##Node* op, Args... args) {   \
    return VisitStmtDefault_(op, std::forward<Args>(args)...); \
  }
  TVM_TIR_FOR_EACH_STMT(TVM_TIR_DECLARE_VISIT)
#undef TVM_TIR_DECLARE_VISIT

  virtual R VisitStmtDefault_(const Object* op, Args...) {
    TVM_FATAL(InternalError) << "this pass does not handle statements of class "
                             << op->GetTypeKey();
    throw;  // unreachable
  }

 private:
  using Dispatch = R (*)(const Object*, StmtFunctor*, Args...);

  template <typename TNode>
  static void Register(std::vector<detail::AnyVisit>* table) {
    Dispatch visit = [](const Object* node, StmtFunctor* self, Args... args) -> R {
      return self->VisitStmt_(static_cast<const TNode*>(node), std::forward<Args>(args)...);
    };
    detail::SetVisit(table, TNode::RuntimeTypeIndex(), reinterpret_cast<detail::AnyVisit>(visit));
  }

  static std::vector<detail::AnyVisit> MakeTable();
};

template <typename R, typename... Args>
R StmtFunctor<R(const Stmt& n, Args...)>::VisitStmt(const Stmt& n, Args... args) {
  static const std::vector<detail::AnyVisit> table = MakeTable();
  ICHECK(n.defined()) << "visit of an undefined statement";
  runtime::CheckStack();
  const Object* node = n.get();
  uint32_t index = node->type_index();
  if (index >= table.size() || table[index] == nullptr) {
    return VisitStmtDefault_(node, std::forward<Args>(args)...);
  }
  return reinterpret_cast<Dispatch>(table[index])(node, this, std::forward<Args>(args)...);
}

template <typename R, typename... Args>
std::vector<detail::AnyVisit> StmtFunctor<R(const Stmt& n, Args...)>::MakeTable() {
  std::vector<detail::AnyVisit> table;
#define TVM_TIR_REGISTER_VISIT(Name) Register<Name##Node>(&table);
  TVM_TIR_FOR_EACH_STMT(TVM_TIR_REGISTER_VISIT)
#undef TVM_TIR_REGISTER_VISIT
  return table;
}

extern template class StmtFunctor<void(const Stmt&)>;
extern template class StmtFunctor<Stmt(const Stmt&)>;

/*! \brief Visits every nested statement in order; expressions go to VisitExpr, which does nothing.
 */
class StmtVisitor : protected StmtFunctor<void(const Stmt&)> {
 public:
  using StmtFunctor::operator();

 protected:
  using StmtFunctor::VisitStmt;
  virtual void VisitExpr(const PrimExpr& e) {}
#define TVM_TIR_DECLARE_VISIT(Name) void VisitStmt_(const Name##Node* op) override;
  TVM_TIR_FOR_EACH_STMT(TVM_TIR_DECLARE_VISIT)
#undef TVM_TIR_DECLARE_VISIT
};

/*!
 * \brief Rebuilds a statement from its mutated parts; expressions go to VisitExpr, the identity.
 *
 * Returns the node it was given when nothing changed. Variables and buffers at binding sites are
 * left alone; a pass that renames them overrides the statements that bind. What takes the place of
 * a statement keeps its span, however a pass makes it.
 */
class StmtMutator : protected StmtFunctor<Stmt(const Stmt&)> {
 public:
  using StmtFunctor::operator();

 protected:
  Stmt VisitStmt(const Stmt& n) override;
  virtual PrimExpr VisitExpr(const PrimExpr& e) { return e; }
#define TVM_TIR_DECLARE_VISIT(Name) Stmt VisitStmt_(const Name##Node* op) override;
  TVM_TIR_FOR_EACH_STMT(TVM_TIR_DECLARE_VISIT)
#undef TVM_TIR_DECLARE_VISIT
  Array<PrimExpr> VisitExprs(const Array<PrimExpr>& exprs);
  Array<Range> VisitRanges(const Array<Range>& ranges);
  Array<BufferRegion> VisitRegions(const Array<BufferRegion>& regions);
};

/*! \brief Visits statements and all their expressions. */
class StmtExprVisitor : public StmtVisitor, public ExprVisitor {
 public:
  using StmtVisitor::operator();
  using ExprVisitor::operator();

 protected:
  using ExprVisitor::VisitExpr;
  using StmtVisitor::VisitStmt;
  void VisitExpr(const PrimExpr& e) override { ExprVisitor::VisitExpr(e); }
};

/*! \brief Mutates statements and all their expressions. */
class StmtExprMutator : public StmtMutator, public ExprMutator {
 public:
  using ExprMutator::operator();
  using StmtMutator::operator();

 protected:
  using ExprMutator::VisitExpr;
  using StmtMutator::VisitStmt;
  PrimExpr VisitExpr(const PrimExpr& e) override { return ExprMutator::VisitExpr(e); }
};

/*! \brief Calls `visit` once on every expression and statement in `node`, operands first. */
void PostOrderVisit(const ObjectRef& node, const std::function<void(const ObjectRef&)>& visit);
/*! \brief Calls `visit` before the operands, and goes into them when it returns true. */
void PreOrderVisit(const ObjectRef& node, const std::function<bool(const ObjectRef&)>& visit);

/*!
 * \brief `stmt` rewritten on the way in by `preorder` and on the way out by `postorder`.
 *
 * A callback that returns an undefined reference leaves the node to the default (for `preorder`:
 * go into it). `only_enable`, unless empty, lists the type keys the callbacks are called for.
 */
Stmt IRTransform(Stmt stmt, const std::function<ObjectRef(const ObjectRef&)>& preorder,
                 const std::function<ObjectRef(const ObjectRef&)>& postorder,
                 const Array<String>& only_enable = {});

/*! \brief The same as for expressions, see tvm/expr/substitute.h. A binding site is left as it is.
 */
Stmt Substitute(Stmt stmt, const std::function<PrimExpr(const Var&)>& vmap);
Stmt Substitute(Stmt stmt, const Map<Var, PrimExpr>& vmap);
Stmt Substitute(Stmt stmt, const std::unordered_map<const VarNode*, PrimExpr>& vmap);

}  // namespace tir
}  // namespace tvm
#endif  // TVM_TIR_STMT_FUNCTOR_H_
