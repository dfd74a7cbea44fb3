#include <gtest/gtest.h>
#include <tvm/runtime/logging.h>
#include <tvm/runtime/registry.h>
#include <tvm/runtime/relax_vm/executable.h>

#include <functional>
#include <string>
#include <vector>

namespace tvm {
namespace runtime {
namespace relax_vm {
namespace {

/*! \brief A kernel: adds one to each of its first argument's floats. */
int32_t AddOne(const TVMAny* args, int32_t num_args, TVMAny* ret) {
  const auto* in = static_cast<const DLTensor*>(args[0].v_handle);
  auto* out = static_cast<DLTensor*>(args[1].v_handle);
  for (int64_t i = 0; i < NumElements(*in); ++i) {
    static_cast<float*>(out->data)[i] = static_cast<const float*>(in->data)[i] + 1;
  }
  return 0;
}

int32_t Fail(const TVMAny* args, int32_t num_args, TVMAny* ret) {
  TVMAPISetLastError("RuntimeError: the kernel gave up");
  return -1;
}

constexpr DLDevice kCpu{kDLCPU, 0};

NDArray Floats(const std::vector<float>& values) {
  NDArray array = NDArray::Empty({static_cast<int64_t>(values.size())}, DataType::Float(32), kCpu);
  array.CopyFromBytes(values.data(), values.size() * sizeof(float));
  return array;
}

std::vector<float> Values(const NDArray& array) {
  std::vector<float> out(array.NumElements());
  array.CopyToBytes(out.data(), out.size() * sizeof(float));
  return out;
}

TensorSpec Vector(int64_t size, TensorPlace place, int64_t index) {
  return {DataType::Float(32), {size}, place, index};
}

/*! \brief main(x) = (x + 2, constant), the sum by way of the arena. */
VMFunction AddTwo() {
  VMFunction function;
  function.name = "main";
  function.input_names = {"x"};
  function.tensors = {Vector(3, TensorPlace::kInput, 0), Vector(3, TensorPlace::kArena, 64),
                      Vector(3, TensorPlace::kOutput, 0), Vector(2, TensorPlace::kConstant, 0),
                      Vector(2, TensorPlace::kOutput, 1)};
  function.instructions = {{0, {0, 1}}, {0, {1, 2}}, {kCopy, {3, 4}}};
  function.inputs = {0};
  function.outputs = {2, 4};
  function.returns_tuple = true;
  function.arena_bytes = 128;
  return function;
}

Module MakeExecutable(TVMPackedCFunc kernel) {
  auto node = make_object<ExecutableNode>();
  node->kernels = {"kernel"};
  node->constants = {Floats({7, 8})};
  node->functions = {AddTwo()};
  const Map<String, int64_t> addresses{{"kernel", reinterpret_cast<int64_t>(kernel)}};
  node->Import(ModuleFromAddresses(addresses, ObjectRef()));
  return Module(node);
}

std::string BytesOf(const Module& module) {
  ByteWriter writer;
  module->SaveToBinary(&writer);
  return writer.bytes;
}

std::string ErrorOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(RelaxVM, RunsKernelsInOrderAndReturnsFreshResults) {
  Module machine = CreateVirtualMachine(MakeExecutable(AddOne), kCpu);
  PackedFunc main = machine.GetFunction("main");
  const auto first = main(Floats({1, 2, 3})).cast<Array<NDArray>>();
  const auto second = main(Floats({4, 5, 6})).cast<Array<NDArray>>();
  EXPECT_EQ(Values(first[0]), (std::vector<float>{3, 4, 5}));
  EXPECT_EQ(Values(first[1]), (std::vector<float>{7, 8}));
  EXPECT_EQ(Values(second[0]), (std::vector<float>{6, 7, 8}));
}

TEST(RelaxVM, FunctionOutlivesItsMachine) {
  PackedFunc main = CreateVirtualMachine(MakeExecutable(AddOne), kCpu).GetFunction("main");
  EXPECT_EQ(Values(main(Floats({1, 2, 3})).cast<Array<NDArray>>()[0]),
            (std::vector<float>{3, 4, 5}));
}

TEST(RelaxVM, CopiesAnInputThatIsNotAligned) {
  NDArray wide = Floats({0, 1, 2, 3});
  NDArray shifted = wide.CreateView({3}, DataType::Float(32), sizeof(float));
  Module machine = CreateVirtualMachine(MakeExecutable(AddOne), kCpu);
  const auto result = machine.GetFunction("main")(shifted).cast<Array<NDArray>>();
  EXPECT_EQ(Values(result[0]), (std::vector<float>{3, 4, 5}));
}

TEST(RelaxVM, NamesTheInputOfAnotherShape) {
  Module machine = CreateVirtualMachine(MakeExecutable(AddOne), kCpu);
  const std::string error = ErrorOf([&] { machine.GetFunction("main")(Floats({1, 2})); });
  EXPECT_NE(error.find("input 'x' must be float32 of shape (3,), got float32 of shape (2,)"),
            std::string::npos)
      << error;
}

TEST(RelaxVM, PassesAKernelsErrorOn) {
  Module machine = CreateVirtualMachine(MakeExecutable(Fail), kCpu);
  const std::string error = ErrorOf([&] { machine.GetFunction("main")(Floats({1, 2, 3})); });
  EXPECT_NE(error.find("the kernel gave up"), std::string::npos) << error;
}

TEST(RelaxVM, SavedExecutableRunsAgain) {
  Module original = MakeExecutable(AddOne);
  const std::string bytes = BytesOf(original);
  Module loaded = ExecutableNode::LoadFromBinary(bytes);
  loaded.Import(original->imports()[0]);
  const auto result = CreateVirtualMachine(loaded, kCpu).GetFunction("main")(Floats({1, 2, 3}));
  EXPECT_EQ(Values(result.cast<Array<NDArray>>()[0]), (std::vector<float>{3, 4, 5}));
}

TEST(RelaxVM, RefusesDataCutShortAnywhere) {
  Module original = MakeExecutable(AddOne);
  const std::string bytes = BytesOf(original);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(
        ErrorOf([&] { ExecutableNode::LoadFromBinary(std::string_view(bytes).substr(0, size)); }),
        "")
        << "accepted " << size << " of " << bytes.size() << " bytes";
  }
}

}  // namespace
}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
