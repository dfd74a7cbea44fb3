/*!
 * \file schedule_postproc_to_primfunc.cc
 * \brief Arguments bound to the buffers of a lowered schedule.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/arith/pattern.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/te/schedule_pass.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tvm {
namespace te {

namespace {

using BufferSubst = std::unordered_map<const Object*, Buffer>;

/*! \brief The loops around a stage, and what of an array it computes in all their trips. */
class LoopsAround {
 public:
  void Enter(const Var& var, const Range& domain, bool concurrent) {
    loops_.push_back({var, domain, concurrent});
  }
  void Leave() { loops_.pop_back(); }

  /*!
   * \brief Whether a region, which moves with the loops, visits all of an array.
   *
   * Where trips run at the same time the regions must also not overlap: one trip would start a sum
   * over that another has begun.
   */
  bool Cover(const Array<Range>& region, const Array<PrimExpr>& shape) {
    bool whole = true;
    for (size_t axis = 0; axis < region.size() && whole; ++axis) {
      whole = analyzer_.CanProveEqual(region[axis]->min, 0) &&
              analyzer_.CanProve(region[axis]->extent >= shape[axis]);
    }
    if (whole) return true;
    std::unordered_set<const VarNode*> moving;
    for (size_t axis = 0; axis < region.size(); ++axis) {
      if (!CoverAxis(region[axis], shape[axis], &moving)) return false;
    }
    return std::all_of(loops_.begin(), loops_.end(), [&moving](const Loop& loop) {
      return !loop.concurrent || moving.count(loop.var.get());
    });
  }

 private:
  struct Loop {
    Var var;
    Range domain;
    bool concurrent;
  };

  bool CoverAxis(const Range& part, const PrimExpr& extent,
                 std::unordered_set<const VarNode*>* moving) {
    const bool concurrent =
        std::any_of(loops_.begin(), loops_.end(), [](const Loop& loop) { return loop.concurrent; });
    Array<Var> vars;
    for (const Loop& loop : loops_) vars.push_back(loop.var);
    Array<PrimExpr> factors = arith::DetectLinearEquation(part->min, vars);
    if (factors.empty()) return false;
    PrimExpr start = factors.back();
    std::vector<std::pair<int64_t, const Loop*>> steps;
    for (size_t i = 0; i < loops_.size(); ++i) {
      const auto* step = factors[i].as<IntImmNode>();
      if (step == nullptr || step->value < 0) return false;
      if (step->value == 0) continue;
      start = start + factors[i] * loops_[i].domain->min;
      steps.emplace_back(step->value, &loops_[i]);
      moving->insert(loops_[i].var.get());
    }
    if (!analyzer_.CanProve(start <= 0)) return false;
    std::sort(steps.begin(), steps.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    PrimExpr reach = part->extent;
    for (const auto& [step, loop] : steps) {
      PrimExpr distance = tir::make_const(reach.dtype(), step);
      if (!analyzer_.CanProve(concurrent ? distance == reach : distance <= reach)) return false;
      reach = reach + distance * (loop->domain->extent - 1);
    }
    return analyzer_.CanProve(reach >= extent);
  }

  std::vector<Loop> loops_;
  arith::Analyzer analyzer_;
};

/*! \brief Buffers of arguments put in; realizations of arguments dropped, they exist already. */
class ArgumentBinder final : public tir::StmtExprMutator {
 public:
  ArgumentBinder(BufferSubst subst, std::unordered_set<const Object*> args)
      : subst_(std::move(subst)), args_(std::move(args)) {}

 private:
  Stmt VisitStmt_(const tir::BufferRealizeNode* op) override {
    if (!args_.count(op->buffer.get())) {
      realized_.insert(op->buffer.get());
      return StmtExprMutator::VisitStmt_(op);
    }
    TVM_CHECK(loops_.Cover(op->bounds, op->buffer->shape), ValueError)
        << "argument " << op->buffer->name << ": the schedule computes " << op->bounds
        << " of it at a time, which leaves elements out or computes some in two trips that run at "
        << "the same time, so it cannot be a parameter; compute it at the root or leave it out of "
        << "the arguments";
    return VisitStmt(op->body);
  }

  Stmt VisitStmt_(const tir::ForNode* op) override {
    loops_.Enter(op->loop_var, Range::FromMinExtent(op->min, op->extent),
                 op->kind == tir::ForKind::kParallel || op->kind == tir::ForKind::kThreadBinding ||
                     op->kind == tir::ForKind::kVectorized);
    Stmt stmt = StmtExprMutator::VisitStmt_(op);
    loops_.Leave();
    return stmt;
  }

  Stmt VisitStmt_(const tir::AttrStmtNode* op) override {
    // The layout of an argument is the caller's.
    if (op->attr_key == tir::attr::storage_alignment && args_.count(op->node.get())) {
      return VisitStmt(op->body);
    }
    if (op->attr_key == tir::attr::buffer_bind_scope) {
      Array<ObjectRef> pair = Downcast<Array<ObjectRef>>(op->node);
      realized_.insert(pair[0].get());
      pair.Set(1, Use(Downcast<Buffer>(pair[1])));
      return tir::AttrStmt(pair, op->attr_key, VisitExpr(op->value), VisitStmt(op->body));
    }
    const auto* thread =
        op->attr_key == tir::attr::thread_extent || op->attr_key == tir::attr::virtual_thread
            ? op->node.as<IterVarNode>()
            : nullptr;
    if (thread != nullptr) {
      Range domain = Range::FromMinExtent(tir::make_zero(op->value.dtype()), op->value);
      loops_.Enter(thread->var, domain, /*concurrent=*/true);
    }
    Stmt stmt = StmtExprMutator::VisitStmt_(op);
    if (thread != nullptr) loops_.Leave();
    if (op->attr_key != tir::attr::prefetch_scope) return stmt;
    op = stmt.as<tir::AttrStmtNode>();
    return tir::AttrStmt(Use(Downcast<Buffer>(op->node)), op->attr_key, op->value, op->body);
  }

  Stmt VisitStmt_(const tir::AllocateNode* op) override {
    allocated_.insert(op->buffer_var.get());
    return StmtExprMutator::VisitStmt_(op);
  }

  Stmt VisitStmt_(const tir::BufferStoreNode* op) override {
    Stmt stmt = StmtExprMutator::VisitStmt_(op);
    op = stmt.as<tir::BufferStoreNode>();
    Buffer buffer = Use(op->buffer);
    return buffer.same_as(op->buffer) ? stmt : tir::BufferStore(buffer, op->value, op->indices);
  }

  PrimExpr VisitExpr_(const tir::BufferLoadNode* op) override {
    PrimExpr expr = StmtExprMutator::VisitExpr_(op);
    op = expr.as<tir::BufferLoadNode>();
    Buffer buffer = Use(op->buffer);
    return buffer.same_as(op->buffer) ? expr : tir::BufferLoad(buffer, op->indices);
  }

  PrimExpr VisitExpr_(const VarNode* op) override {
    for (const auto& [buffer, bound] : subst_) {
      if (static_cast<const tir::BufferNode*>(buffer)->data.get() == op) return bound->data;
    }
    return GetRef<PrimExpr>(op);
  }

  /*! \brief The buffer to access in place of `buffer`. */
  Buffer Use(const Buffer& buffer) const {
    TVM_CHECK(args_.count(buffer.get()) || realized_.count(buffer.get()) ||
                  allocated_.count(buffer->data.get()),
              ValueError)
        << "tensor " << buffer->name << " is used but neither computed nor an argument; "
        << "add it to the arguments";
    auto it = subst_.find(buffer.get());
    return it == subst_.end() ? buffer : it->second;
  }

  BufferSubst subst_;
  std::unordered_set<const Object*> args_;
  std::unordered_set<const Object*> realized_;
  /*! \brief Pointers to memory that a hand-written body allocates for itself. */
  std::unordered_set<const VarNode*> allocated_;
  LoopsAround loops_;
};

}  // namespace

tir::PrimFunc SchedulePostProcToPrimFunc(const Array<ObjectRef>& args, const Stmt& body,
                                         const Map<Tensor, Buffer>& binds) {
  TensorMap<Buffer> buffers;
  Stmt rest = body;
  for (const auto* attr = rest.as<tir::AttrStmtNode>();
       attr != nullptr && attr->attr_key == attr::tensor_buffer;
       attr = rest.as<tir::AttrStmtNode>()) {
    Array<ObjectRef> pair = Downcast<Array<ObjectRef>>(attr->node);
    buffers.emplace(Downcast<Tensor>(pair[0]), Downcast<Buffer>(pair[1]));
    rest = attr->body;
  }
  TensorMap<Buffer> bound;
  for (const auto& [tensor, buffer] : binds) bound.emplace(tensor, buffer);

  Array<Var> params;
  Map<Var, Buffer> buffer_map;
  BufferSubst subst;
  std::unordered_set<const Object*> arg_buffers;
  auto add_buffer = [&](const Buffer& buffer) {
    Var param(buffer->name, DataType::Handle());
    params.push_back(param);
    buffer_map.Set(param, buffer);
  };
  for (const ObjectRef& arg : args) {
    if (arg.as<TensorNode>()) {
      Tensor tensor = Downcast<Tensor>(arg);
      auto it = buffers.find(tensor);
      auto user = bound.find(tensor);
      if (it == buffers.end()) {
        // Given but not used: the caller still passes it.
        add_buffer(user != bound.end()
                       ? user->second
                       : tir::decl_buffer(tensor->shape, tensor->dtype, tensor->GetNameHint()));
        continue;
      }
      TVM_CHECK(arg_buffers.insert(it->second.get()).second, ValueError)
          << "tensor " << tensor->GetNameHint() << " is an argument twice";
      if (user != bound.end()) subst.emplace(it->second.get(), user->second);
      add_buffer(user != bound.end() ? user->second : it->second);
    } else if (arg.as<tir::BufferNode>()) {
      add_buffer(Downcast<Buffer>(arg));
      arg_buffers.insert(arg.get());
    } else if (arg.as<VarNode>()) {
      params.push_back(Downcast<Var>(arg));
    } else {
      TVM_FATAL(TypeError) << "arguments of a lowered schedule are tensors, buffers and variables, "
                           << "got " << (arg.defined() ? arg->GetTypeKey() : "None");
    }
  }
  // A tensor bound to a buffer argument needs no entry of its own among the arguments.
  for (const auto& [tensor, buffer] : bound) {
    auto it = buffers.find(tensor);
    if (it == buffers.end() || !arg_buffers.count(buffer.get())) continue;
    arg_buffers.insert(it->second.get());
    subst.emplace(it->second.get(), buffer);
  }
  rest = ArgumentBinder(subst, arg_buffers)(rest);
  tir::PrimFunc func(params, rest, VoidType(), buffer_map);
  return WithAttr(std::move(func), tir::attr::kFromLegacyTESchedule, true);
}

TVM_REGISTER_GLOBAL("te.SchedulePostProcToPrimFunc")
    .set_body_typed([](Array<ObjectRef> args, Stmt body, Optional<Map<Tensor, Buffer>> binds) {
      return SchedulePostProcToPrimFunc(args, body,
                                        binds.defined() ? binds.value() : Map<Tensor, Buffer>());
    });

}  // namespace te
}  // namespace tvm
