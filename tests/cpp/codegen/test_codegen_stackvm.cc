// Programs compiled for the stackvm, run, saved and loaded.
#include <gtest/gtest.h>
#include <tvm/codegen/codegen.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/launch.h>
#include <tvm/tir/transform.h>

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace tvm {
namespace tir {
namespace {

using runtime::Module;

Target StackVM(const std::string& options = "") { return Target(String("stackvm" + options)); }

// The C calling convention, then bytecode.
Module BuildHost(const PrimFunc& func, const std::string& name) {
  IRModule mod = IRModule::FromExpr(WithAttr(func, attr::kGlobalSymbol, String(name)));
  Array<transform::Pass> passes{transform::BindTarget(StackVM()), transform::MakePackedAPI(),
                                transform::LowerTVMBuiltin(), transform::LowerIntrin()};
  for (const transform::Pass& pass : passes) mod = pass(mod);
  return codegen::Build(mod, StackVM());
}

NDArray Floats(const std::vector<float>& values) {
  NDArray array =
      NDArray::Empty({static_cast<int64_t>(values.size())}, DataType::Float(32), Device{kDLCPU, 0});
  array.CopyFromBytes(values.data(), values.size() * sizeof(float));
  return array;
}

std::vector<float> ValuesOf(const NDArray& array) {
  std::vector<float> values(array.NumBytes() / sizeof(float));
  array.CopyToBytes(values.data(), array.NumBytes());
  return values;
}

std::string MessageOf(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.kind() + ": " + error.message();
  }
  return "(no error)";
}

// B[i] = A[i] * 2 + 1 for the first `stop` of four elements.
PrimFunc ScaleFunc(int stop = 4) {
  Buffer a = decl_buffer({4}, DataType::Float(32), "A");
  Buffer b = decl_buffer({4}, DataType::Float(32), "B");
  Var x("x", DataType::Handle()), y("y", DataType::Handle()), i("i");
  Stmt body =
      For(i, 0, stop, ForKind::kSerial, BufferStore(b, BufferLoad(a, {i}) * 2.0f + 1.0f, {i}));
  return PrimFunc({x, y}, body, VoidType(), {{x, a}, {y, b}});
}

std::string Bytes(const Module& module) {
  runtime::ByteWriter writer;
  module->SaveToBinary(&writer);
  return writer.bytes;
}

Module Load(const std::string& bytes) {
  return runtime::Registry::Require("runtime.module.loadbinary_stackvm")(bytes).cast<Module>();
}

TEST(CodeGenStackVM, AHostFunctionComputes) {
  Module module = BuildHost(ScaleFunc(), "scale");
  EXPECT_EQ(std::string(module->type_key()), "stackvm");
  NDArray b = Floats({0, 0, 0, 0});
  module.GetFunction("scale")(Floats({1, 2, 3, 4}), b);
  EXPECT_EQ(ValuesOf(b), (std::vector<float>{3, 5, 7, 9}));
  EXPECT_FALSE(module.GetFunction("nosuch").defined());
}

TEST(CodeGenStackVM, ArgumentsAreChecked) {
  PackedFunc scale = BuildHost(ScaleFunc(), "scale").GetFunction("scale");
  NDArray a = Floats({1, 2, 3, 4});
  EXPECT_NE(MessageOf([&] { scale(a); }).find("expected 2 arguments, got 1"), std::string::npos);
  EXPECT_NE(MessageOf([&] { scale(a, Floats({1, 2, 3})); }).find("expected 4, got 3"),
            std::string::npos);
}

TEST(CodeGenStackVM, AnIndexOutsideOfItsBufferIsAnIndexError) {
  PackedFunc scale = BuildHost(ScaleFunc(5), "scale").GetFunction("scale");
  std::string message = MessageOf([&] { scale(Floats({1, 2, 3, 4}), Floats({0, 0, 0, 0})); });
  EXPECT_NE(message.find("IndexError: stackvm: function scale: load of A[4]"), std::string::npos)
      << message;
}

TEST(CodeGenStackVM, AFunctionLoadedFromItsBytesDoesTheSame) {
  Module module = Load(Bytes(BuildHost(ScaleFunc(), "scale")));
  NDArray b = Floats({0, 0, 0, 0});
  module.GetFunction("scale")(Floats({1, 2, 3, 4}), b);
  EXPECT_EQ(ValuesOf(b), (std::vector<float>{3, 5, 7, 9}));
}

// Each block writes its eight elements of A to B in reverse, through shared memory.
PrimFunc ReverseKernel(bool with_barrier) {
  Buffer a = decl_buffer({16}, DataType::Float(32), "A");
  Buffer b = decl_buffer({16}, DataType::Float(32), "B");
  Buffer s = decl_buffer({8}, DataType::Float(32), "s", "shared");
  Var bx("bx"), tx("tx");
  Array<Stmt> steps{BufferStore(s, BufferLoad(a, {bx * 8 + tx}), {tx})};
  if (with_barrier) {
    steps.push_back(
        Evaluate(Call(DataType::Int(32), builtin::tvm_storage_sync(), {StringImm("shared")})));
  }
  steps.push_back(BufferStore(b, BufferLoad(s, {7 - tx}), {bx * 8 + tx}));
  Stmt body = Allocate(s->data, s->dtype, s->shape, const_true(), SeqStmt(steps));
  auto bind = [&](const Var& var, int extent, const char* tag) {
    IterVar axis(Range::FromMinExtent(0, extent), var, kThreadIndex, tag);
    body = AttrStmt(axis, attr::thread_extent, extent, body);
  };
  bind(tx, 8, "threadIdx.x");
  bind(bx, 2, "blockIdx.x");
  PrimFunc func({a->data, b->data}, body);
  func = WithAttr(func, attr::kGlobalSymbol, String("reverse"));
  func = WithAttr(func, attr::kCallingConv, static_cast<int>(CallingConv::kDeviceKernelLaunch));
  return WithAttr(func, attr::kKernelLaunchParams, Array<String>{"blockIdx.x", "threadIdx.x"});
}

Module BuildKernel(bool with_barrier) {
  return codegen::Build(IRModule::FromExpr(ReverseKernel(with_barrier)),
                        StackVM(" -thread_warp_size=4 -max_threads_per_block=8 -check_races=1"));
}

TEST(CodeGenStackVM, ThreadsOfABlockWaitAtABarrier) {
  std::vector<float> values(16), expected(16);
  for (int i = 0; i < 16; ++i) {
    values[i] = static_cast<float>(i);
    expected[i] = static_cast<float>(i / 8 * 8 + 7 - i % 8);
  }
  NDArray b = Floats(std::vector<float>(16));
  BuildKernel(true).GetFunction("reverse")(Floats(values), b, 2, 8);
  EXPECT_EQ(ValuesOf(b), expected);
}

TEST(CodeGenStackVM, AMissingBarrierIsARace) {
  PackedFunc reverse = BuildKernel(false).GetFunction("reverse");
  NDArray a = Floats(std::vector<float>(16)), b = Floats(std::vector<float>(16));
  std::string message = MessageOf([&] { reverse(a, b, 2, 8); });
  EXPECT_NE(message.find("kernel reverse"), std::string::npos) << message;
  EXPECT_NE(message.find("barrier"), std::string::npos) << message;
}

TEST(CodeGenStackVM, ALaunchIsCheckedAgainstTheTarget) {
  PackedFunc reverse = BuildKernel(true).GetFunction("reverse");
  NDArray a = Floats(std::vector<float>(16)), b = Floats(std::vector<float>(16));
  std::string message = MessageOf([&] { reverse(a, b, 1, 16); });
  EXPECT_NE(message.find("the target has at most 8"), std::string::npos) << message;
  EXPECT_NE(MessageOf([&] { reverse(a, b); }).find("TypeError"), std::string::npos);
}

TEST(CodeGenStackVM, ADamagedProgramIsRefusedOrHarmless) {
  const std::string good = Bytes(BuildKernel(true));
  for (size_t size : {size_t{0}, size_t{7}, good.size() / 2, good.size() - 1}) {
    std::string message = MessageOf([&] { Load(good.substr(0, size)); });
    EXPECT_EQ(message.rfind("ValueError: ", 0), 0u) << message;
  }
  EXPECT_NE(MessageOf([&] { Load(good + "x"); }).find("damaged"), std::string::npos);
  std::mt19937 random(0);
  int refused = 0;
  for (int trial = 0; trial < 300; ++trial) {
    std::string bytes = good;
    bytes[random() % bytes.size()] ^= static_cast<char>(1u << (random() % 8));
    std::string message = MessageOf([&] { Load(bytes); });
    refused += message != "(no error)";
    EXPECT_EQ(message.find("InternalError"), std::string::npos) << message;
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace tir
}  // namespace tvm
