/*!
 * \file src/tir/analysis/verify_memory.cc
 * \brief Programs for a device access their arrays inside of kernels only.
 */
#include <tvm/runtime/registry.h>
#include <tvm/target/target.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/launch.h>
#include <tvm/tir/stmt_functor.h>
#include <tvm/tir/transform.h>

#include <algorithm>
#include <string>

namespace tvm {
namespace tir {
namespace {

class HostAccessFinder final : public StmtExprVisitor {
 public:
  /*! \brief The first buffer that host code accesses; empty when there is none. */
  std::string buffer;
  bool write = false;

 private:
  void VisitStmt_(const AttrStmtNode* op) final {
    if (op->attr_key != attr::thread_extent) StmtExprVisitor::VisitStmt_(op);
  }
  void VisitStmt_(const BufferStoreNode* op) final {
    Report(op->buffer, true);
    StmtExprVisitor::VisitStmt_(op);
  }
  void VisitExpr_(const BufferLoadNode* op) final {
    Report(op->buffer, false);
    StmtExprVisitor::VisitExpr_(op);
  }
  void Report(const Buffer& accessed, bool is_write) {
    if (!buffer.empty()) return;
    buffer = accessed->name;
    write = is_write;
  }
};

HostAccessFinder FindHostAccess(const PrimFunc& func) {
  HostAccessFinder finder;
  auto target = func->GetAttr<Target>(attr::kTarget);
  // An emulated GPU has the memory of the processor, but the rules of the GPU.
  bool device = target && ((*target)->GetTargetDeviceType() != kDLCPU ||
                           std::any_of((*target)->keys.begin(), (*target)->keys.end(),
                                       [](const String& key) { return key == "gpu"; }));
  // What has a calling convention already was split before.
  if (device && GetCallingConv(func) == CallingConv::kDefault) finder(func->body);
  return finder;
}

}  // namespace

bool VerifyMemory(const PrimFunc& func) { return FindHostAccess(func).buffer.empty(); }

namespace transform {

Pass VerifyMemory() {
  return CreatePrimFuncPass(
      [](PrimFunc func, IRModule, PassContext) {
        HostAccessFinder found = FindHostAccess(func);
        TVM_CHECK(found.buffer.empty(), ValueError)
            << "VerifyMemory: function " << func->GetAttr<String>(attr::kGlobalSymbol, "main")
            << (found.write ? " writes " : " reads ") << found.buffer
            << " on the host, which cannot access memory of the device. Did you forget to bind a "
            << "loop to blockIdx or threadIdx?";
        return func;
      },
      0, "tir.VerifyMemory");
}

TVM_REGISTER_GLOBAL("tir.transform.VerifyMemory").set_body_typed(VerifyMemory);

}  // namespace transform

TVM_REGISTER_GLOBAL("tir.analysis.verify_memory").set_body_typed([](PrimFunc func) {
  return VerifyMemory(func);
});

}  // namespace tir
}  // namespace tvm
