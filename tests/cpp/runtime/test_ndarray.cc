#include <gtest/gtest.h>
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>

namespace {

using namespace tvm;
using namespace tvm::runtime;

constexpr Device kCPU{kDLCPU, 0};

TEST(NDArray, MemoryIsAligned) {
  for (int64_t n : {0, 1, 100}) {
    NDArray array = NDArray::Empty({n}, DataType::Float(32), kCPU);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(array.data()) % kAllocAlignment, 0u);
    EXPECT_EQ(array.NumBytes(), static_cast<size_t>(4 * n));
  }
}

TEST(NDArray, DLPackSharesMemoryAndKeepsItAlive) {
  DLManagedTensor* managed = nullptr;
  {
    NDArray array = NDArray::Empty({4}, DataType::Int(32), kCPU);
    static_cast<int32_t*>(array.data())[2] = 7;
    managed = array.ToDLPack();
  }
  NDArray back = NDArray::FromDLPack(managed);
  EXPECT_EQ(static_cast<int32_t*>(back.data())[2], 7);
}

TEST(NDArray, BooleansHaveDLPacksOwnCode) {
  DLManagedTensor* managed = NDArray::Empty({3}, DataType::Bool(), kCPU).ToDLPack();
  EXPECT_EQ(managed->dl_tensor.dtype.code, kDLBool);
  EXPECT_EQ(managed->dl_tensor.dtype.bits, 8);
  EXPECT_TRUE(NDArray::FromDLPack(managed).dtype().is_bool());
}

TEST(NDArray, CopiesFromStridedTensors) {
  float values[6] = {0, 1, 2, 3, 4, 5};
  int64_t shape[2] = {3, 2}, strides[2] = {1, 3};
  DLTensor transposed{values, kCPU, 2, DataType::Float(32), shape, strides, 0};
  NDArray array = NDArray::Empty({3, 2}, DataType::Float(32), kCPU);
  array.CopyFrom(&transposed);
  const float expected[6] = {0, 3, 1, 4, 2, 5};
  EXPECT_EQ(std::memcmp(array.data(), expected, sizeof(expected)), 0);
}

TEST(NDArray, CopyRefusesAnotherShape) {
  NDArray a = NDArray::Empty({2, 3}, DataType::Float(32), kCPU);
  NDArray b = NDArray::Empty({3, 2}, DataType::Float(32), kCPU);
  try {
    a.CopyFrom(b.tensor());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "NDArray: cannot copy float32(3, 2) to float32(2, 3); shapes and types must agree");
  }
}

TEST(Workspace, IsReusedAfterItIsGivenBack) {
  DeviceAPI* api = DeviceAPI::Get(kCPU);
  void* a = api->AllocWorkspace(kCPU, 1000);
  void* b = api->AllocWorkspace(kCPU, 100000);
  api->FreeWorkspace(kCPU, a);
  EXPECT_EQ(api->AllocWorkspace(kCPU, 2000), a);
  api->FreeWorkspace(kCPU, b);
  api->FreeWorkspace(kCPU, a);
  EXPECT_EQ(TVMBackendFreeWorkspace(kDLCPU, 0, a), -1);
}

int32_t SumKernel(const TVMAny* args, int32_t num_args, TVMAny* ret) {
  if (num_args != 1 || args[0].type_code != kTVMDLTensor) {
    TVMAPISetLastError("TypeError: sum: expected a tensor");
    return -1;
  }
  const auto* tensor = static_cast<const DLTensor*>(args[0].v_handle);
  double sum = 0;
  for (int64_t i = 0; i < tensor->shape[0]; ++i) sum += static_cast<float*>(tensor->data)[i];
  ret->type_code = kTVMFloat;
  ret->v_float64 = sum;
  return 0;
}

TEST(Module, WrapsFunctionsInMemory) {
  Module mod = ModuleFromAddresses({{"sum", reinterpret_cast<int64_t>(&SumKernel)}}, ObjectRef());
  NDArray array = NDArray::Empty({3}, DataType::Float(32), kCPU);
  for (int i = 0; i < 3; ++i) static_cast<float*>(array.data())[i] = static_cast<float>(i);
  PackedFunc sum = mod.GetFunction("sum");
  EXPECT_EQ(sum(array).cast<double>(), 3.0);
  EXPECT_TRUE(mod.GetFunction(kModuleMain).defined());
  EXPECT_FALSE(mod.GetFunction("missing").defined());
  try {
    sum(1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "TypeError: sum: expected a tensor");
  }
}

TEST(Module, RefusesImportCycles) {
  Module a = ModuleFromAddresses({}, ObjectRef());
  Module b = ModuleFromAddresses({}, ObjectRef());
  a.Import(b);
  EXPECT_THROW(b.Import(a), Error);
}

TEST(TimeEvaluator, RunsAtLeastAsLongAsAsked) {
  int64_t calls = 0;
  PackedFunc count([&](Args, RetValue*) { ++calls; });
  PackedFunc evaluator = Registry::Require("runtime.TimeEvaluator")(count, Device{kDLCPU, 0}, 10, 3,
                                                                    2.0, 100, 0.0, 1, 0, nullptr);
  Array<double> seconds = evaluator();
  EXPECT_EQ(seconds.size(), 3u);
  for (double s : seconds) EXPECT_GT(s, 0.0);
  // Three repeats of at least two milliseconds of an almost empty call.
  EXPECT_GT(calls, 1000);
}

}  // namespace
