/*!
 * \file test_codegen_llvm.cc
 * \brief Text the LLVM generator writes for small functions.
 */
#include <gtest/gtest.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/ir/module.h>
#include <tvm/runtime/registry.h>
#include <tvm/target/target.h>
#include <tvm/tir/function.h>

#include <string>

namespace tvm {
namespace {

using namespace tir;  // NOLINT(*)

std::string Emit(const PrimFunc& func) {
  IRModule mod = IRModule::FromExpr(WithAttr(func, "global_symbol", String("f")), "f");
  return (*runtime::Registry::Get("target.EmitLLVM"))(mod, Target(String("llvm"))).cast<String>();
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

struct Buffers {
  Buffer a = decl_buffer({1024}, DataType::Float(32), "A");
  Buffer b = decl_buffer({1024}, DataType::Float(32), "B");
  PrimFunc Func(Stmt body) const {
    Var x("x", DataType::Handle()), y("y", DataType::Handle());
    PrimFunc func({x, y}, std::move(body), VoidType(), {{x, a}, {y, b}});
    return WithAttr(func, "tir.noalias", true);
  }
};

TEST(CodeGenLLVM, AddressesThatDifferByAConstantShareARegister) {
  Buffers m;
  Var i("i");
  PrimExpr sum = BufferLoad(m.a, {i * 4 + 1}) + BufferLoad(m.a, {i * 4 + 2});
  std::string text = Emit(m.Func(For(i, 0, 8, ForKind::kSerial, BufferStore(m.b, sum, {i}))));
  EXPECT_EQ(Count(text, "phi ptr"), 1u) << text;
  EXPECT_NE(text.find("i64 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("i64 2\n"), std::string::npos) << text;
}

TEST(CodeGenLLVM, AnInnerLoopCarriesAPointerInsteadOfMultiplying) {
  Buffers m;
  Var i("i"), j("j");
  Stmt store = BufferStore(m.b, BufferLoad(m.a, {i * 8 + j * 3}), {i * 8 + j});
  std::string text =
      Emit(m.Func(For(i, 0, 2, ForKind::kSerial, For(j, 1, 4, ForKind::kSerial, store))));
  // The outer loop multiplies once a trip. Steps of one element are part of a memory operand.
  EXPECT_EQ(Count(text, "phi ptr"), 1u) << text;
  EXPECT_EQ(Count(text, "mul nsw i64"), 1u) << text;
  // The first trip of j is 1: the pointer begins three elements on, and moves by three.
  EXPECT_EQ(Count(text, ", i64 3\n"), 2u) << text;
}

TEST(CodeGenLLVM, AnInvariantValueIsComputedBeforeTheLoop) {
  Buffers m;
  Var i("i"), j("j");
  Stmt store = BufferStore(m.b, BufferLoad(m.a, {i * 16 + j}), {i * 16 + j});
  std::string text =
      Emit(m.Func(For(i, 0, 4, ForKind::kSerial, For(j, 0, 16, ForKind::kSerial, store))));
  size_t product = text.find("mul nsw i64");
  size_t inner = text.find("for_body", text.find("for_body") + 1);
  ASSERT_NE(product, std::string::npos) << text;
  EXPECT_LT(product, text.rfind("phi i64")) << text;
  EXPECT_NE(inner, std::string::npos);
}

TEST(CodeGenLLVM, UnitStrideVectorsAreOneAccess) {
  Buffers m;
  Var i("i");
  PrimExpr place = Ramp(i * 8, 1, 8);
  Stmt body = For(i, 0, 4, ForKind::kSerial, BufferStore(m.b, BufferLoad(m.a, {place}), {place}));
  std::string text = Emit(m.Func(body));
  EXPECT_EQ(Count(text, "load <8 x float>"), 1u) << text;
  EXPECT_EQ(Count(text, "store <8 x float>"), 1u) << text;
  EXPECT_EQ(Count(text, "extractelement"), 0u) << text;
}

TEST(CodeGenLLVM, StridedVectorsAreGatheredByElement) {
  Buffers m;
  Stmt body = BufferStore(m.b, BufferLoad(m.a, {Ramp(0, 2, 4)}), {Ramp(0, 1, 4)});
  std::string text = Emit(m.Func(body));
  EXPECT_EQ(Count(text, "load float"), 4u) << text;
  EXPECT_EQ(Count(text, "insertelement"), 4u) << text;
}

TEST(CodeGenLLVM, ProductsAndSumsMayContract) {
  Buffers m;
  PrimExpr value = BufferLoad(m.a, {0}) * BufferLoad(m.a, {1}) + BufferLoad(m.a, {2});
  std::string text = Emit(m.Func(BufferStore(m.b, value, {0})));
  EXPECT_NE(text.find("fmul contract"), std::string::npos) << text;
  EXPECT_NE(text.find("fadd contract"), std::string::npos) << text;
}

TEST(CodeGenLLVM, BuffersOfANoAliasFunctionAreKeptApart) {
  Buffers m;
  Stmt body = BufferStore(m.b, BufferLoad(m.a, {0}), {0});
  EXPECT_NE(Emit(m.Func(body)).find("!alias.scope"), std::string::npos);
  EXPECT_EQ(Emit(WithoutAttr(m.Func(body), "tir.noalias")).find("!alias.scope"), std::string::npos);
}

TEST(CodeGenLLVM, ExponentialsOfVectorsCallNoLibrary) {
  Buffers m;
  PrimExpr place = Ramp(0, 1, 8);
  std::string text = Emit(m.Func(BufferStore(m.b, exp(BufferLoad(m.a, {place})), {place})));
  EXPECT_EQ(text.find("@exp"), std::string::npos) << text;
  EXPECT_EQ(text.find("llvm.exp"), std::string::npos) << text;
}

TEST(CodeGenLLVM, ARepeatedLoadIsReadOnceUntilItsBufferIsWritten) {
  Buffers m;
  auto twice = [&](Buffer target) {
    PrimExpr value = BufferLoad(m.a, {0});
    return Emit(m.Func(SeqStmt({BufferStore(target, value, {1}), BufferStore(m.b, value, {2})})));
  };
  EXPECT_EQ(Count(twice(m.b), "load float"), 1u);
  EXPECT_EQ(Count(twice(m.a), "load float"), 2u);
}

TEST(CodeGenLLVM, RefusesALoopOverGpuThreads) {
  Buffers m;
  Var i("i");
  IterVar thread(Range(0, 8), i, kThreadIndex, "threadIdx.x");
  Stmt body = For(i, 0, 8, ForKind::kThreadBinding, BufferStore(m.b, 0.0f, {i}), thread);
  try {
    Emit(m.Func(body));
    FAIL() << "expected a refusal";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), "ValueError");
    EXPECT_NE(error.message().find("bound to GPU threads"), std::string::npos) << error.message();
  }
}

TEST(CodeGenLLVM, RefusesAParallelLoopThatCannotReportFailure) {
  Buffers m;
  Var i("i");
  Stmt body = For(i, 0, 8, ForKind::kParallel, BufferStore(m.b, 0.0f, {i}));
  EXPECT_THROW(Emit(m.Func(body)), Error);
}

}  // namespace
}  // namespace tvm
