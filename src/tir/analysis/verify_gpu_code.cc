/*!
 * \file src/tir/analysis/verify_gpu_code.cc
 * \brief Whether kernels stay within the limits of a device.
 */
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/launch.h>
#include <tvm/tir/stmt_functor.h>
#include <tvm/tir/transform.h>

#include <algorithm>
#include <string>
#include <unordered_map>

namespace tvm {
namespace tir {
namespace {

const char* const kLimits[] = {"max_threads_per_block",
                               "max_shared_memory_per_block",
                               "max_local_memory_per_block",
                               "max_thread_x",
                               "max_thread_y",
                               "max_thread_z",
                               "max_vthread",
                               "max_vector_bytes"};

/*! \brief Adds up what each kernel uses and compares it with the limits. */
class LimitChecker final : public StmtExprVisitor {
 public:
  explicit LimitChecker(const Map<String, Integer>& limits) {
    for (const auto& [name, value] : limits) {
      bool known = std::any_of(std::begin(kLimits), std::end(kLimits),
                               [&](const char* limit) { return name == limit; });
      TVM_CHECK(known, ValueError)
          << "VerifyGPUCode: there is no limit called " << name << "; the limits are "
          << "max_threads_per_block, max_shared_memory_per_block, max_local_memory_per_block, "
          << "max_thread_x, max_thread_y, max_thread_z, max_vthread and max_vector_bytes";
      limits_[name] = value->value;
    }
  }

  /*! \brief The first limit that is exceeded, with both numbers; empty when there is none. */
  std::string problem;

 private:
  void VisitStmt_(const AttrStmtNode* op) final {
    bool virtual_scope = op->attr_key == attr::virtual_thread;
    if (op->attr_key != attr::thread_extent && !virtual_scope) {
      StmtExprVisitor::VisitStmt_(op);
      return;
    }
    bool launch = depth_ == 0 && !virtual_scope;
    if (launch) {
      extents_.clear();
      vthreads_ = 1;
      shared_ = 0;
      local_ = 0;
    }
    if (!virtual_scope) ++depth_;
    Enter(Downcast<IterVar>(op->node), op->value, virtual_scope);
    StmtExprVisitor::VisitStmt_(op);
    if (!virtual_scope) --depth_;
    if (!launch) return;
    int64_t threads = 1;
    for (const auto& [tag, extent] : extents_) threads *= extent;
    Check("max_threads_per_block", threads);
    Check("max_vthread", vthreads_);
    Check("max_shared_memory_per_block", shared_);
    Check("max_local_memory_per_block", local_ * threads);
  }

  void Enter(const IterVar& axis, const PrimExpr& value, bool virtual_scope) {
    const int64_t* extent = as_const_int(value);
    std::string tag = axis->thread_tag;
    if (virtual_scope || ParseThreadTag(tag).kind == ThreadKind::kVirtual) {
      if (extent != nullptr) vthreads_ *= *extent;
      return;
    }
    if (ParseThreadTag(tag).kind != ThreadKind::kThread) return;
    if (extent == nullptr) {
      Report("the extent of " + tag + " is not constant");
      return;
    }
    auto [it, fresh] = extents_.emplace(tag, *extent);
    if (!fresh && it->second != *extent) {
      Report(tag + " has extents " + std::to_string(it->second) + " and " +
             std::to_string(*extent));
    }
    Check("max_thread_" + tag.substr(tag.size() - 1), *extent);
  }

  void VisitStmt_(const AllocateNode* op) final {
    int64_t bytes =
        op->ConstantAllocationSize() * op->dtype.bytes() * static_cast<int64_t>(op->dtype.lanes());
    StorageRank rank = StorageRankOf(StorageScopeOf(op->buffer_var));
    if (rank == StorageRank::kShared) shared_ += bytes;
    if (rank == StorageRank::kLocal) local_ += bytes;
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    CheckVector(op->value.dtype());
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitExpr_(const BufferLoadNode* op) final {
    CheckVector(op->dtype);
    StmtExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const CastNode* op) final {
    CheckVector(op->dtype);
    StmtExprVisitor::VisitExpr_(op);
  }

  void CheckVector(DataType dtype) {
    if (dtype.is_vector()) Check("max_vector_bytes", dtype.bytes() * dtype.lanes());
  }
  void Check(const std::string& limit, int64_t used) {
    auto it = limits_.find(limit);
    if (it == limits_.end() || used <= it->second) return;
    Report(limit + " is " + std::to_string(it->second) + ", used are " + std::to_string(used));
  }
  void Report(const std::string& text) {
    if (problem.empty()) problem = text;
  }

  std::unordered_map<std::string, int64_t> limits_;
  int depth_ = 0;
  std::unordered_map<std::string, int64_t> extents_;
  int64_t vthreads_ = 1;
  int64_t shared_ = 0;
  /*! \brief Bytes of one thread. */
  int64_t local_ = 0;
};

std::string ExceededLimit(const PrimFunc& func, const Map<String, Integer>& limits) {
  LimitChecker checker(limits);
  checker(func->body);
  return checker.problem;
}

}  // namespace

bool VerifyGPUCode(const PrimFunc& func, const Map<String, Integer>& limits) {
  return ExceededLimit(func, limits).empty();
}

namespace transform {

Pass VerifyGPUCode(const Map<String, Integer>& limits) {
  return CreatePrimFuncPass(
      [limits](PrimFunc func, IRModule, PassContext) {
        std::string problem = ExceededLimit(func, limits);
        TVM_CHECK(problem.empty(), ValueError)
            << "VerifyGPUCode: function " << func->GetAttr<String>(attr::kGlobalSymbol, "main")
            << ": " << problem << "; choose smaller tiles";
        return func;
      },
      0, "tir.VerifyGPUCode");
}

TVM_REGISTER_GLOBAL("tir.transform.VerifyGPUCode").set_body_typed(VerifyGPUCode);

}  // namespace transform

TVM_REGISTER_GLOBAL("tir.analysis.verify_gpu_code")
    .set_body_typed([](PrimFunc func, Map<String, Integer> limits) {
      return VerifyGPUCode(func, limits);
    });

}  // namespace tir
}  // namespace tvm
