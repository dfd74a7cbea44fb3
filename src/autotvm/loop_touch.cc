/*!
 * \file loop_touch.cc
 * \brief Walks a program and notes its accesses in every loop around them.
 */
#include "loop_touch.h"

#include <tvm/arith/analyzer.h>
#include <tvm/expr/op.h>
#include <tvm/expr/substitute.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>
#include <unordered_map>

namespace tvm {
namespace autotvm {

using namespace tir;

namespace {

int64_t ConstantOr(const PrimExpr& value, int64_t otherwise) {
  const auto* number = value.as<IntImmNode>();
  return number != nullptr ? number->value : otherwise;
}

LoopKind KindOfThread(const std::string& tag) {
  static const std::unordered_map<std::string, LoopKind> kinds = {
      {"blockIdx.x", LoopKind::kBlockX},   {"blockIdx.y", LoopKind::kBlockY},
      {"blockIdx.z", LoopKind::kBlockZ},   {"threadIdx.x", LoopKind::kThreadX},
      {"threadIdx.y", LoopKind::kThreadY}, {"threadIdx.z", LoopKind::kThreadZ},
  };
  auto found = kinds.find(tag);
  // vthread, cthread and what users number themselves.
  return found != kinds.end() ? found->second : LoopKind::kVirtualThread;
}

LoopKind KindOfLoop(const ForNode* loop) {
  switch (loop->kind) {
    case ForKind::kParallel:
      return LoopKind::kParallel;
    case ForKind::kVectorized:
      return LoopKind::kVectorized;
    case ForKind::kUnrolled:
      return LoopKind::kUnrolled;
    case ForKind::kThreadBinding:
      return KindOfThread(loop->thread_binding.value()->thread_tag);
    default:
      return LoopKind::kSerial;
  }
}

bool IsThread(LoopKind kind) { return kind >= LoopKind::kThreadX && kind <= LoopKind::kThreadZ; }

class LoopAnalyzer : public StmtExprVisitor {
 public:
  std::vector<LoopTouch> Run(const Stmt& body) {
    VisitStmt(body);
    return std::move(loops_);
  }

 private:
  using StmtExprVisitor::VisitExpr_;
  using StmtExprVisitor::VisitStmt_;

  void VisitStmt_(const ForNode* op) final {
    VisitExpr(op->min);
    VisitExpr(op->extent);
    Enter(op->loop_var, op->extent, KindOfLoop(op));
    VisitStmt(op->body);
    Leave();
  }

  void VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key != tir::attr::thread_extent && op->attr_key != tir::attr::virtual_thread) {
      StmtExprVisitor::VisitStmt_(op);
      return;
    }
    auto axis = Downcast<IterVar>(op->node);
    // Stages that share a thread are launched once.
    bool open = std::any_of(stack_.begin(), stack_.end(),
                            [&](size_t number) { return loops_[number].var.same_as(axis->var); });
    if (open) {
      VisitStmt(op->body);
      return;
    }
    Enter(axis->var, op->value, KindOfThread(axis->thread_tag));
    VisitStmt(op->body);
    Leave();
  }

  void VisitStmt_(const BufferStoreNode* op) final {
    Access(op->buffer, op->indices);
    StmtExprVisitor::VisitStmt_(op);
  }

  void VisitExpr_(const BufferLoadNode* op) final {
    Access(op->buffer, op->indices);
    StmtExprVisitor::VisitExpr_(op);
  }

#define TVM_COUNT_ARITHMETIC(Node, field)               \
  void VisitExpr_(const Node* op) final {               \
    if (!stack_.empty()) ++loops_[stack_.back()].field; \
    StmtExprVisitor::VisitExpr_(op);                    \
  }
  TVM_COUNT_ARITHMETIC(AddNode, add)
  TVM_COUNT_ARITHMETIC(SubNode, add)
  TVM_COUNT_ARITHMETIC(MulNode, mul)
  TVM_COUNT_ARITHMETIC(DivNode, div)
  TVM_COUNT_ARITHMETIC(ModNode, div)
  TVM_COUNT_ARITHMETIC(FloorDivNode, div)
#undef TVM_COUNT_ARITHMETIC

  void VisitExpr_(const FloorModNode* op) final {
    if (!stack_.empty()) ++loops_[stack_.back()].div;
    StmtExprVisitor::VisitExpr_(op);
  }

  void Enter(const Var& var, const PrimExpr& extent, LoopKind kind) {
    LoopTouch loop;
    loop.var = var;
    loop.kind = kind;
    loop.length = std::max<int64_t>(ConstantOr(analyzer_.Simplify(extent), 1), 1);
    loop.nest_level = static_cast<int64_t>(stack_.size()) + 1;
    loop.topdown = loop.length * (stack_.empty() ? 1 : loops_[stack_.back()].topdown);
    stack_.push_back(loops_.size());
    loops_.push_back(std::move(loop));
  }

  /*! \brief An access below a loop is complete when the loop ends: spread its length upwards. */
  void Leave() {
    const LoopTouch& left = loops_[stack_.back()];
    const int64_t length = left.length;
    const bool thread = IsThread(left.kind);
    for (const auto& [name, touch] : left.touches) {
      const bool moves = touch.stride != 0;
      for (size_t number : stack_) {
        Touch& seen = loops_[number].touches[name];
        (moves ? seen.count : seen.reuse) *= length;
        if (!thread) continue;
        seen.thread_count = std::max<int64_t>(seen.thread_count, 1) * (moves ? length : 1);
        seen.thread_reuse = std::max<int64_t>(seen.thread_reuse, 1) * (moves ? 1 : length);
      }
    }
    int64_t bottomup = -1;
    for (const auto& [name, touch] : left.touches) {
      bottomup = std::max(bottomup, touch.count * touch.reuse);
    }
    loops_[stack_.back()].bottomup = bottomup;
    stack_.pop_back();
  }

  void Access(const Buffer& buffer, const Array<PrimExpr>& indices) {
    const std::string name =
        std::string(buffer->name) + "_" + std::to_string(accesses_[buffer->data.get()]++);
    PrimExpr flat = make_const(DataType::Int(64), 0);
    for (size_t axis = 0; axis < indices.size(); ++axis) {
      PrimExpr extent = cast(DataType::Int(64), buffer->shape[axis]);
      flat = flat * extent + cast(DataType::Int(64), indices[axis]);
    }
    for (size_t number : stack_) {
      LoopTouch& loop = loops_[number];
      Touch touch;
      touch.stride = Step(flat, loop.var);
      touch.mod = Modulus(flat, loop.var);
      loop.touches[name] = touch;
    }
  }

  /*! \brief What a step from zero adds to the index while all other loops stand at zero. */
  int64_t Step(const PrimExpr& index, const Var& moving) {
    auto at = [&](int64_t position) {
      Map<Var, PrimExpr> values;
      for (size_t number : stack_) {
        const Var& var = loops_[number].var;
        values.Set(var, make_const(var.dtype(), var.same_as(moving) ? position : 0));
      }
      return ConstantOr(analyzer_.Simplify(Substitute(index, values)), 0);
    };
    return at(1) - at(0);
  }

  static int64_t Modulus(const PrimExpr& index, const Var& var) {
    int64_t found = -1;
    PostOrderVisit(index, [&](const ObjectRef& node) {
      const auto* mod = node.as<FloorModNode>();
      if (mod == nullptr) return;
      bool uses = false;
      PostOrderVisit(mod->a, [&](const ObjectRef& leaf) { uses = uses || leaf.same_as(var); });
      if (uses) found = ConstantOr(mod->b, -1);
    });
    return found;
  }

  std::vector<LoopTouch> loops_;
  /*! \brief Numbers of the loops around, outermost first. */
  std::vector<size_t> stack_;
  std::unordered_map<const Object*, int> accesses_;
  arith::Analyzer analyzer_;
};

}  // namespace

std::vector<LoopTouch> AnalyzeLoops(const Stmt& body) { return LoopAnalyzer().Run(body); }

}  // namespace autotvm
}  // namespace tvm
