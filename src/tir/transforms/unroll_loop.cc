/*!
 * \file src/tir/transforms/unroll_loop.cc
 * \brief Loops written out.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/launch.h>

#include <algorithm>
#include <unordered_set>

#include "pass_common.h"
#include "pass_option.h"

namespace tvm {
namespace tir {
namespace {

/*! \brief Limits of automatic unrolling; an annotation of the schedule overrides the first. */
struct UnrollOptions {
  /*! \brief Unroll a nest of at most this many stores in all. */
  int auto_max_step = 0;
  /*! \brief Unroll at most this many nested loops automatically. */
  int auto_max_depth = 8;
  /*! \brief Unroll any loop of at most this extent. */
  int auto_max_extent = 0;
  /*! \brief Unroll any loop whose variable says where a thread's own memory is accessed. */
  bool unroll_local_access = false;
  /*! \brief Write copies; otherwise only mark the loop for the code generator. */
  bool explicit_unroll = true;

  static UnrollOptions FromContext(const transform::PassContext& ctx) {
    UnrollOptions options;
    for (const auto& [key, value] : ctx->GetConfig<Map<String, Any>>("tir.UnrollLoop", {})) {
      if (key == "auto_max_step") {
        options.auto_max_step = OptionEntry<int>("tir.UnrollLoop", key, value);
      } else if (key == "auto_max_depth") {
        options.auto_max_depth = OptionEntry<int>("tir.UnrollLoop", key, value);
      } else if (key == "auto_max_extent") {
        options.auto_max_extent = OptionEntry<int>("tir.UnrollLoop", key, value);
      } else if (key == "unroll_local_access") {
        options.unroll_local_access = OptionEntry<bool>("tir.UnrollLoop", key, value);
      } else if (key == "explicit_unroll") {
        options.explicit_unroll = OptionEntry<bool>("tir.UnrollLoop", key, value);
      } else {
        TVM_FATAL(ValueError) << "tir.UnrollLoop has no option " << key
                              << "; there are auto_max_step, auto_max_depth, auto_max_extent, "
                                 "explicit_unroll and unroll_local_access";
      }
    }
    return options;
  }
};

class LoopUnroller final : public StmtExprMutator {
 public:
  explicit LoopUnroller(UnrollOptions options) : options_(options) {}

 private:
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    bool max_step = op->attr_key == attr::pragma_auto_unroll_max_step;
    if (!max_step && op->attr_key != attr::pragma_unroll_explicit) {
      return StmtExprMutator::VisitStmt_(op);
    }
    const int64_t* value = as_const_int(op->value);
    TVM_CHECK(value != nullptr, ScheduleError)
        << "UnrollLoop: " << op->attr_key << " must be a constant, got " << op->value;
    UnrollOptions outer = options_;
    if (max_step) {
      options_.auto_max_step = static_cast<int>(*value);
    } else {
      options_.explicit_unroll = *value != 0;
    }
    Stmt body = VisitStmt(op->body);
    options_ = outer;
    return body;
  }

  Stmt VisitStmt_(const ForNode* op) final {
    int64_t outer_steps = steps_;
    int outer_depth = unrolled_depth_;
    bool outer_normal = has_normal_loop_;
    steps_ = 0;
    unrolled_depth_ = 0;
    has_normal_loop_ = false;
    Stmt stmt = StmtExprMutator::VisitStmt_(op);
    op = stmt.as<ForNode>();
    // The extent of a loop inside of an unrolled one is often a constant only after simplification.
    PrimExpr extent = analyzer_.Simplify(op->extent);
    const int64_t* trips = as_const_int(extent);
    TVM_CHECK(trips != nullptr || op->kind != ForKind::kUnrolled, ScheduleError)
        << "UnrollLoop: loop " << op->loop_var << " is to be unrolled but has the extent " << extent
        << ", which is no constant";

    bool wanted = op->kind == ForKind::kUnrolled;
    if (op->kind == ForKind::kSerial && trips != nullptr && !has_normal_loop_ &&
        unrolled_depth_ < options_.auto_max_depth) {
      wanted = *trips <= options_.auto_max_extent ||
               *trips * std::max<int64_t>(steps_, 1) <= options_.auto_max_step;
    }
    // Registers have no addresses, so an index into them has to be a constant.
    if (op->kind == ForKind::kSerial && trips != nullptr &&
        indexes_local_.erase(op->loop_var.get()))
      wanted = true;
    if (wanted && options_.explicit_unroll) {
      TVM_CHECK(*trips * std::max<int64_t>(steps_, 1) <= kMostSteps, ScheduleError)
          << "UnrollLoop: loop " << op->loop_var << " of " << *trips << " trips is to be unrolled, "
          << "which is more code than can be compiled in reasonable time; split it and unroll the "
          << "inner loop";
      steps_ = outer_steps + *trips * steps_;
      unrolled_depth_ = std::max(outer_depth, unrolled_depth_ + 1);
      has_normal_loop_ = outer_normal || has_normal_loop_;
      return WriteOut(op, *trips);
    }
    steps_ = outer_steps + (trips != nullptr ? *trips * steps_ : steps_);
    unrolled_depth_ = std::max(outer_depth, unrolled_depth_);
    has_normal_loop_ = outer_normal || !wanted || has_normal_loop_;
    if (wanted && op->kind != ForKind::kUnrolled) {
      For marked = Downcast<For>(stmt);
      marked.CopyOnWrite()->kind = ForKind::kUnrolled;
      return marked;
    }
    return stmt;
  }

  Stmt VisitStmt_(const BufferStoreNode* op) final {
    ++steps_;
    NoteAccess(op->buffer, op->indices);
    return StmtExprMutator::VisitStmt_(op);
  }
  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    NoteAccess(op->buffer, op->indices);
    return StmtExprMutator::VisitExpr_(op);
  }
  void NoteAccess(const Buffer& buffer, const Array<PrimExpr>& indices) {
    if (!options_.unroll_local_access) return;
    StorageRank rank = StorageRankOf(buffer.scope());
    if (rank != StorageRank::kLocal && rank != StorageRank::kWarp) return;
    for (const PrimExpr& index : indices) {
      PostOrderVisit(index, [this](const ObjectRef& node) {
        if (const auto* var = node.as<VarNode>()) indexes_local_.insert(var);
      });
    }
  }
  Stmt VisitStmt_(const EvaluateNode* op) final {
    ++steps_;
    return StmtExprMutator::VisitStmt_(op);
  }

  static Stmt WriteOut(const ForNode* op, int64_t trips) {
    Array<Stmt> copies;
    for (int64_t i = 0; i < trips; ++i) {
      PrimExpr value = op->min + make_const(op->loop_var->dtype, i);
      Stmt copy = Substitute(op->body, Map<Var, PrimExpr>{{op->loop_var, value}});
      copies.push_back(i == 0 ? copy : RenewBindings(copy));
    }
    return SeqStmt::Flatten(copies);
  }

  // Minutes of compilation; useful programs stay below a hundredth of it.
  static constexpr int64_t kMostSteps = 1 << 17;
  UnrollOptions options_;
  /*! \brief Stores and calls of the statements visited so far in the present loop, all trips. */
  int64_t steps_ = 0;
  int unrolled_depth_ = 0;
  bool has_normal_loop_ = false;
  /*! \brief Variables in indices of local memory. */
  std::unordered_set<const VarNode*> indexes_local_;
  arith::Analyzer analyzer_;
};

}  // namespace

namespace transform {

Pass UnrollLoop() {
  return BodyPass("tir.UnrollLoop", [](const PrimFunc& func, const PassContext& ctx) {
    return LoopUnroller(UnrollOptions::FromContext(ctx))(func->body);
  });
}

using Options = Map<String, Any>;
TVM_REGISTER_PASS_CONFIG_OPTION("tir.UnrollLoop", Options);
TVM_REGISTER_GLOBAL("tir.transform.UnrollLoop").set_body_typed(UnrollLoop);

}  // namespace transform
}  // namespace tir
}  // namespace tvm
