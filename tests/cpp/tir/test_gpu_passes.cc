// What the passes between lowering and code generation make of kernels written by hand.
#include <gtest/gtest.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/target/target.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/launch.h>
#include <tvm/tir/stmt_functor.h>
#include <tvm/tir/transform.h>

#include <string>
#include <utility>

namespace tvm {
namespace tir {
namespace {

// One block of `threads` threads over the arrays A and B.
struct Kernel {
  explicit Kernel(int threads) : threads(threads) {}

  int threads;
  Buffer a = decl_buffer({1024}, DataType::Float(32), "A");
  Buffer b = decl_buffer({1024}, DataType::Float(32), "B");
  Buffer shared = decl_buffer({64}, DataType::Float(32), "s", "shared");
  Var tx{"tx"};

  PrimExpr Load(const Buffer& buffer, const PrimExpr& index) const {
    return BufferLoad(buffer, {index});
  }
  Stmt Store(const Buffer& buffer, const PrimExpr& index, const PrimExpr& value) const {
    return BufferStore(buffer, value, {index});
  }
  Stmt Launch(Stmt body) const {
    IterVar axis(Range::FromMinExtent(0, threads), tx, kThreadIndex, "threadIdx.x");
    return AttrStmt(axis, attr::thread_extent, threads, body);
  }
  Stmt LaunchWithShared(Stmt body) const {
    return Launch(Allocate(shared->data, shared->dtype, shared->shape, const_true(), body));
  }
  PrimFunc Func(Stmt body, const std::string& target = "cuda") const {
    Var x("x", DataType::Handle()), y("y", DataType::Handle());
    PrimFunc func({x, y}, std::move(body), VoidType(), {{x, a}, {y, b}});
    func = WithAttr(func, attr::kTarget, Target(Target(String(target)), Target(String("stackvm"))));
    return WithAttr(func, attr::kGlobalSymbol, String("f"));
  }
};

PrimFunc Apply(const transform::Pass& pass, const PrimFunc& func) {
  return Downcast<PrimFunc>(pass(IRModule::FromExpr(func))->Lookup("f"));
}

std::string MessageOf(const transform::Pass& pass, const PrimFunc& func) {
  try {
    Apply(pass, func);
  } catch (const Error& error) {
    return error.kind() + ": " + error.message();
  }
  return "accepted";
}

// Counts by place: a statement that the tree holds twice counts twice.
struct CallCounter : public StmtExprVisitor {
  explicit CallCounter(Op op) : op(std::move(op)) {}
  void VisitExpr_(const CallNode* call) override {
    if (call->op.same_as(op)) ++count;
    StmtExprVisitor::VisitExpr_(call);
  }
  Op op;
  int count = 0;
};

int CountCalls(const Stmt& body, const Op& op) {
  CallCounter counter(op);
  counter(body);
  return counter.count;
}

int CountAllocations(const Stmt& body, const std::string& scope) {
  int count = 0;
  PostOrderVisit(body, [&](const ObjectRef& node) {
    const auto* allocate = node.as<AllocateNode>();
    if (allocate != nullptr && StorageScopeOf(allocate->buffer_var) == scope) ++count;
  });
  return count;
}

int Barriers(const PrimFunc& func) { return CountCalls(func->body, builtin::tvm_storage_sync()); }

TEST(ThreadSync, AThreadThatReadsItsOwnElementDoesNotWait) {
  Kernel k(32);
  Stmt body = SeqStmt(
      {k.Store(k.shared, k.tx, k.Load(k.a, k.tx)), k.Store(k.b, k.tx, k.Load(k.shared, k.tx))});
  PrimFunc func = k.Func(k.LaunchWithShared(body));
  EXPECT_TRUE(Apply(transform::ThreadSync("shared"), func)->body.same_as(func->body));
}

TEST(ThreadSync, TheBarrierIsBetweenAStoreAndALoadByAnotherThread) {
  Kernel k(32);
  Stmt store = k.Store(k.shared, k.tx, k.Load(k.a, k.tx));
  Stmt load = k.Store(k.b, k.tx, k.Load(k.shared, 31 - k.tx));
  PrimFunc func =
      Apply(transform::ThreadSync("shared"), k.Func(k.LaunchWithShared(SeqStmt({store, load}))));
  const SeqStmtNode* steps = nullptr;
  PostOrderVisit(func->body, [&](const ObjectRef& node) {
    if (const auto* seq = node.as<SeqStmtNode>()) steps = seq;
  });
  ASSERT_NE(steps, nullptr);
  ASSERT_EQ(steps->seq.size(), 3u);
  EXPECT_TRUE(steps->seq[0].same_as(store));
  EXPECT_EQ(CountCalls(steps->seq[1], builtin::tvm_storage_sync()), 1);
  EXPECT_TRUE(steps->seq[2].same_as(load));
}

TEST(ThreadSync, ALoopWaitsForTheReadersOfItsLastTrip) {
  Kernel k(32);
  Var i("i");
  Stmt body = SeqStmt({k.Store(k.shared, k.tx, k.Load(k.a, k.tx + i)),
                       k.Store(k.b, k.tx + i, k.Load(k.shared, 31 - k.tx))});
  auto barriers = [&](int trips) {
    Stmt loop = For(i, 0, trips, ForKind::kSerial, body);
    return Barriers(Apply(transform::ThreadSync("shared"), k.Func(k.LaunchWithShared(loop))));
  };
  EXPECT_EQ(barriers(4), 2);
  EXPECT_EQ(barriers(1), 1);
}

TEST(ThreadSync, MemoryOfOneScopeWaitsForBarriersOfThatScopeOnly) {
  Kernel k(32);
  Stmt body = SeqStmt({k.Store(k.shared, k.tx, k.Load(k.a, k.tx)),
                       k.Store(k.b, k.tx, k.Load(k.shared, 31 - k.tx))});
  EXPECT_EQ(Barriers(Apply(transform::ThreadSync("warp"), k.Func(k.LaunchWithShared(body)))), 0);
}

TEST(ThreadSync, RefusesABarrierThatSomeThreadsWouldSkip) {
  Kernel k(32);
  Stmt body = SeqStmt(
      {k.Store(k.shared, k.tx, k.Load(k.a, k.tx)), k.Store(k.b, k.tx, k.Load(k.shared, 6 - k.tx))});
  PrimFunc func = k.Func(k.LaunchWithShared(IfThenElse(k.tx < 7, body)));
  std::string message = MessageOf(transform::ThreadSync("shared"), func);
  EXPECT_NE(message.find("ValueError: ThreadSync(\"shared\")"), std::string::npos) << message;
  EXPECT_NE(message.find("condition that differs between threads"), std::string::npos) << message;
}

// B[0] = sum of A over the threads of the block.
PrimFunc SumOverThreads(const Kernel& k, const std::string& target = "cuda") {
  Buffer total = decl_buffer({1}, DataType::Float(32), "total", "local");
  Var x("x", DataType::Float(32)), y("y", DataType::Float(32));
  CommReducer sum({x}, {y}, {x + y}, {make_const(DataType::Float(32), 0)});
  PrimExpr call = Call(DataType::Int(32), builtin::tvm_thread_allreduce(),
                       {1, k.Load(k.a, k.tx), const_true(), k.Load(total, 0), k.tx});
  Stmt reduce = AttrStmt(sum, attr::reduce_scope, 0, Evaluate(call));
  Stmt body = SeqStmt({reduce, k.Store(k.b, 0, k.Load(total, 0))});
  return k.Func(k.Launch(Allocate(total->data, total->dtype, total->shape, const_true(), body)),
                target);
}

TEST(LowerThreadAllreduce, ThreadsOfOneWarpShuffle) {
  PrimFunc func = Apply(transform::LowerThreadAllreduce(), SumOverThreads(Kernel(32)));
  EXPECT_EQ(CountCalls(func->body, builtin::tvm_thread_allreduce()), 0);
  // Distances 16, 8, 4, 2 and 1, then everyone takes the value of the first.
  EXPECT_EQ(CountCalls(func->body, builtin::tvm_warp_shuffle_down()), 5);
  EXPECT_EQ(CountCalls(func->body, builtin::tvm_warp_shuffle()), 1);
  EXPECT_EQ(CountAllocations(func->body, "shared"), 0);
  EXPECT_EQ(Barriers(func), 0);
}

TEST(LowerThreadAllreduce, ThreadsOfSeveralWarpsMeetInSharedMemory) {
  PrimFunc func = Apply(transform::LowerThreadAllreduce(), SumOverThreads(Kernel(64)));
  EXPECT_EQ(CountCalls(func->body, builtin::tvm_thread_allreduce()), 0);
  // Five distances within each warp, and one between what the two warps found.
  EXPECT_EQ(CountCalls(func->body, builtin::tvm_warp_shuffle_down()), 6);
  // What the warps found, and the total, which stays where it is.
  EXPECT_EQ(CountAllocations(func->body, "shared"), 2);
  EXPECT_EQ(Barriers(func), 2);
}

TEST(LowerThreadAllreduce, ThreadsThatFillNoWarpsHalveInSharedMemory) {
  PrimFunc func = Apply(transform::LowerThreadAllreduce(), SumOverThreads(Kernel(48)));
  EXPECT_EQ(CountCalls(func->body, builtin::tvm_warp_shuffle_down()), 0);
  EXPECT_EQ(CountAllocations(func->body, "shared"), 1);
  // After filling, after the 16 beyond the power of two, after each of the five halvings, and
  // after reading the total.
  EXPECT_EQ(Barriers(func), 8);
}

TEST(LowerThreadAllreduce, TheWarpIsThatOfTheTarget) {
  Kernel k(32);
  PrimFunc func =
      Apply(transform::LowerThreadAllreduce(), SumOverThreads(k, "cuda -thread_warp_size=16"));
  EXPECT_EQ(CountCalls(func->body, builtin::tvm_warp_shuffle_down()), 5);
  EXPECT_EQ(CountAllocations(func->body, "shared"), 2);
}

TEST(LowerThreadAllreduce, OneThreadHasTheTotalAlready) {
  PrimFunc func = Apply(transform::LowerThreadAllreduce(), SumOverThreads(Kernel(1)));
  EXPECT_EQ(CountCalls(func->body, builtin::tvm_thread_allreduce()), 0);
  EXPECT_EQ(CountCalls(func->body, builtin::tvm_warp_shuffle()), 0);
  EXPECT_EQ(Barriers(func), 0);
}

IRModule SplitOnly(const PrimFunc& func) {
  IRModule mod = transform::AnnotateDeviceRegions()(IRModule::FromExpr(func));
  mod = transform::SplitHostDevice()(mod);
  // MakePackedAPI, which comes between, makes what calls kernels a function of the host.
  GlobalVar var = mod->GetGlobalVar("f");
  PrimFunc host = Downcast<PrimFunc>(mod->Lookup("f"));
  Target target = *host->GetAttr<Target>(attr::kTarget);
  mod->Update(var, WithAttr(host, attr::kTarget, target->GetHost()));
  return mod;
}

IRModule Split(const PrimFunc& func) {
  return transform::LowerDeviceKernelLaunch()(SplitOnly(func));
}

TEST(SplitHostDevice, ALaunchBecomesAKernelAndACallOfIt) {
  Kernel k(32);
  SizeVar n("n");
  Stmt body = k.Store(k.b, k.tx + n, k.Load(k.a, k.tx));
  PrimFunc func = k.Func(LetStmt(n, 2, k.Launch(body)));
  IRModule mod = Split(func);
  ASSERT_EQ(mod->functions.size(), 2u);

  PrimFunc kernel = Downcast<PrimFunc>(mod->Lookup("f_kernel"));
  EXPECT_EQ(GetCallingConv(kernel), CallingConv::kDeviceKernelLaunch);
  auto tags = kernel->GetAttr<Array<String>>(attr::kKernelLaunchParams);
  ASSERT_TRUE(tags.has_value());
  ASSERT_EQ(tags->size(), 1u);
  EXPECT_EQ((*tags)[0], "threadIdx.x");
  ASSERT_EQ(kernel->params.size(), 3u);
  EXPECT_TRUE(kernel->params[0]->dtype.is_handle());
  EXPECT_TRUE(kernel->params[1]->dtype.is_handle());
  // A variable of the kernel's own, so that neither function refers to the other.
  EXPECT_EQ(kernel->params[2]->name_hint, "n");
  EXPECT_FALSE(kernel->params[2].same_as(n));
  EXPECT_TRUE(UndefinedVars(kernel->body, kernel->params).empty());
  auto target = kernel->GetAttr<Target>(attr::kTarget);
  ASSERT_TRUE(target.has_value());
  EXPECT_EQ((*target)->kind->name, "cuda");
  EXPECT_FALSE((*target)->GetHost().defined());

  PrimFunc host = Downcast<PrimFunc>(mod->Lookup("f"));
  const CallNode* launch = nullptr;
  PostOrderVisit(host->body, [&](const ObjectRef& node) {
    if (const auto* call = node.as<CallNode>()) launch = call;
  });
  ASSERT_NE(launch, nullptr);
  EXPECT_TRUE(launch->op.same_as(builtin::tvm_call_packed()));
  // The name, what the kernel takes, and one extent.
  ASSERT_EQ(launch->args.size(), 5u);
  EXPECT_EQ(Downcast<StringImm>(launch->args[0])->value, "f_kernel");
  EXPECT_TRUE(launch->args[3].same_as(n));
  EXPECT_EQ(*as_const_int(launch->args[4]), 32);
}

TEST(SplitHostDevice, DynamicSharedMemoryIsTheLastLaunchParameter) {
  Kernel k(32);
  k.shared = decl_buffer({64}, DataType::Float(32), "s", "shared.dyn");
  Stmt body = SeqStmt(
      {k.Store(k.shared, k.tx, k.Load(k.a, k.tx)), k.Store(k.b, k.tx, k.Load(k.shared, k.tx))});
  IRModule mod = Split(k.Func(k.LaunchWithShared(body)));
  auto tags = Downcast<PrimFunc>(mod->Lookup("f_kernel"))
                  ->GetAttr<Array<String>>(attr::kKernelLaunchParams);
  ASSERT_EQ(tags->size(), 2u);
  EXPECT_EQ((*tags)[1], attr::kUseDynSharedMemory);
  PostOrderVisit(Downcast<PrimFunc>(mod->Lookup("f"))->body, [&](const ObjectRef& node) {
    if (const auto* call = node.as<CallNode>()) {
      EXPECT_EQ(*as_const_int(call->args.back()), 256);
    }
  });
}

TEST(SplitHostDevice, EachLaunchHasAKernelOfItsOwn) {
  Kernel k(32);
  Stmt launch = k.Launch(k.Store(k.b, k.tx, k.Load(k.a, k.tx)));
  IRModule mod = Split(k.Func(SeqStmt({launch, launch})));
  EXPECT_EQ(mod->functions.size(), 3u);
  EXPECT_TRUE(mod->ContainGlobalVar("f_kernel"));
  EXPECT_TRUE(mod->ContainGlobalVar("f_kernel_1"));
}

TEST(SplitHostDevice, AFunctionWithoutLaunchesStaysWhole) {
  Kernel k(1);
  IRModule mod = Split(k.Func(k.Store(k.b, 0, k.Load(k.a, 0))));
  EXPECT_EQ(mod->functions.size(), 1u);
}

TEST(SplitHostDevice, RefusesTwoExtentsOfOneAxis) {
  Kernel outer(32), inner(16);
  Stmt body = outer.Launch(inner.Launch(outer.Store(outer.b, inner.tx, 0.0f)));
  IRModule mod = SplitOnly(outer.Func(body));
  std::string message;
  try {
    transform::LowerDeviceKernelLaunch()(mod);
  } catch (const std::exception& error) {
    message = error.what();
  }
  EXPECT_NE(message.find("ValueError: LowerDeviceKernelLaunch: f_kernel uses threadIdx.x with "
                         "extent 32 and with extent 16"),
            std::string::npos)
      << message;
}

}  // namespace
}  // namespace tir
}  // namespace tvm
