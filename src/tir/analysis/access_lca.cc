/*!
 * \file src/tir/analysis/access_lca.cc
 * \brief The innermost loop or block around all accesses of a buffer.
 */
#include <tvm/runtime/registry.h>
#include <tvm/tir/function.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace tvm {
namespace tir {
namespace {

class CommonAncestors final : public StmtExprVisitor {
 public:
  /*! \brief Buffers in order of their first access. */
  std::vector<Buffer> order;
  /*! \brief Loops and blocks around all accesses, outermost first. */
  std::unordered_map<const BufferNode*, std::vector<Stmt>> around;

  void Declare(const Buffer& buffer) { by_data_[buffer->data.get()].push_back(buffer); }

 private:
  void VisitStmt_(const ForNode* op) final {
    VisitExpr(op->min);
    VisitExpr(op->extent);
    Inside(GetRef<Stmt>(op), [&] { VisitStmt(op->body); });
  }
  void VisitStmt_(const BlockNode* op) final {
    for (const Buffer& buffer : op->alloc_buffers) Declare(buffer);
    Inside(GetRef<Stmt>(op), [&] {
      for (const MatchBufferRegion& match : op->match_buffers) {
        Access(match->source->buffer);
        Declare(match->buffer);
      }
      StmtExprVisitor::VisitStmt_(op);
    });
  }
  void VisitStmt_(const BufferRealizeNode* op) final {
    Declare(op->buffer);
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    Access(op->buffer);
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitExpr_(const BufferLoadNode* op) final {
    Access(op->buffer);
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const VarNode* op) final {
    // A pointer passed on by itself may be used for anything in its buffer.
    auto it = by_data_.find(op);
    if (it == by_data_.end()) return;
    for (const Buffer& buffer : it->second) Access(buffer);
  }

  template <typename F>
  void Inside(const Stmt& stmt, F visit) {
    path_.push_back(stmt);
    visit();
    path_.pop_back();
  }
  /*! \brief How much of the path may hold the buffer: all blocks of a launch see global memory. */
  size_t Reach(const Buffer& buffer) const {
    if (buffer.scope() != "global") return path_.size();
    for (size_t i = 0; i < path_.size(); ++i) {
      const auto* loop = path_[i].as<ForNode>();
      if (loop == nullptr || loop->kind != ForKind::kThreadBinding) continue;
      if (loop->thread_binding.value()->thread_tag.str().rfind("blockIdx", 0) == 0) return i + 1;
    }
    return path_.size();
  }
  void Access(const Buffer& buffer) {
    std::vector<Stmt> path(path_.begin(), path_.begin() + static_cast<int64_t>(Reach(buffer)));
    auto [it, fresh] = around.try_emplace(buffer.get(), path);
    if (fresh) {
      order.push_back(buffer);
      return;
    }
    std::vector<Stmt>& common = it->second;
    size_t length = 0;
    while (length < std::min(common.size(), path.size()) && common[length].same_as(path[length])) {
      ++length;
    }
    common.resize(length);
  }

  std::vector<Stmt> path_;
  std::unordered_map<const VarNode*, std::vector<Buffer>> by_data_;
};

}  // namespace

TVM_REGISTER_GLOBAL("tir.analysis.detect_buffer_access_lca").set_body_typed([](PrimFunc func) {
  CommonAncestors ancestors;
  for (const Var& param : func->params) {
    if (auto it = func->buffer_map.find(param); it != func->buffer_map.end()) {
      ancestors.Declare((*it).second);
    }
  }
  ancestors(func->body);
  Map<Buffer, Any> result;
  for (const Buffer& buffer : ancestors.order) {
    const std::vector<Stmt>& path = ancestors.around[buffer.get()];
    result.Set(buffer, path.empty() ? Any() : Any(path.back()));
  }
  return result;
});

}  // namespace tir
}  // namespace tvm
