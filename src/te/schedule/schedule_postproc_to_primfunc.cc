/*!
 * \file schedule_postproc_to_primfunc.cc
 * \brief Arguments bound to the buffers of a lowered schedule.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/runtime/registry.h>
#include <tvm/te/schedule_pass.h>
#include <tvm/tir/builtin.h>
#include <tvm/tir/op.h>
#include <tvm/tir/stmt_functor.h>

#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace tvm {
namespace te {

namespace {

using BufferSubst = std::unordered_map<const Object*, Buffer>;

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
    for (size_t i = 0; i < op->bounds.size(); ++i) {
      const Range& bound = op->bounds[i];
      const PrimExpr& extent = op->buffer->shape[i];
      TVM_CHECK(
          analyzer_.CanProveEqual(bound->min, 0) && analyzer_.CanProve(bound->extent >= extent),
          ValueError)
          << "argument " << op->buffer->name << ": the schedule computes only " << op->bounds
          << " of it at a time, so it cannot be a parameter; compute it at the root or leave it "
          << "out of the arguments";
    }
    return VisitStmt(op->body);
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
    Stmt stmt = StmtExprMutator::VisitStmt_(op);
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
  arith::Analyzer analyzer_;
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
  return tir::PrimFunc(params, rest, VoidType(), buffer_map);
}

TVM_REGISTER_GLOBAL("te.SchedulePostProcToPrimFunc")
    .set_body_typed([](Array<ObjectRef> args, Stmt body, Optional<Map<Tensor, Buffer>> binds) {
      return SchedulePostProcToPrimFunc(args, body,
                                        binds.defined() ? binds.value() : Map<Tensor, Buffer>());
    });

}  // namespace te
}  // namespace tvm
