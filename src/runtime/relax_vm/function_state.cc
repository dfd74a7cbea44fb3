#include "function_state.h"

#include <tvm/runtime/device_api.h>
#include <tvm/runtime/logging.h>
#include <tvm/runtime/threading_backend.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

namespace tvm {
namespace runtime {
namespace relax_vm {
namespace {

std::string ShapeText(const int64_t* shape, int ndim) {
  std::ostringstream os;
  os << "(";
  for (int i = 0; i < ndim; ++i) os << (i ? ", " : "") << shape[i];
  os << (ndim == 1 ? ",)" : ")");
  return os.str();
}

}  // namespace

FunctionState::FunctionState(const ExecutableNode& executable, const VMFunction& function,
                             DLDevice device)
    : function_(function), device_(device), staging_(function.inputs.size()) {
  arena_ = NDArray::Empty({function.arena_bytes}, DataType::UInt(8), device);
  for (const NDArray& constant : executable.constants) {
    const bool here = device.device_type == kDLCPU;
    constants_.push_back(here ? constant : constant.CopyTo(device));
  }
  tensors_.reserve(function.tensors.size());
  for (const TensorSpec& spec : function.tensors) {
    tensors_.push_back(MakeTensor(spec));
  }
  for (const Instruction& instruction : function.instructions) {
    calls_.push_back(MakeCall(executable, instruction));
  }
}

void FunctionState::Run(Args args, RetValue* ret) {
  std::lock_guard<std::mutex> lock(mutex_);
  Array<Any> outputs = Bind(args);
  LaunchAll();
  if (function_.returns_tuple) {
    *ret = outputs;
  } else {
    *ret = outputs[0];
  }
}

profiling::Report FunctionState::Profile(Array<profiling::MetricCollector> collectors, Args args) {
  std::lock_guard<std::mutex> lock(mutex_);
  profiling::Profiler profiler(
      {device_}, std::move(collectors),
      {{"Executor", Any(String("relax VM"))}, {"Function", Any(String(function_.name))}});
  Array<Any> outputs = Bind(args);
  profiler.Start();
  for (size_t i = 0; i < calls_.size(); ++i) {
    profiler.StartCall(calls_[i].name, device_,
                       {{"Argument Shapes", Any(ArgumentShapes(static_cast<int64_t>(i)))}});
    Launch(calls_[i]);
    profiler.StopCall();
  }
  profiler.Stop();
  return profiler.Report();
}

DLTensor FunctionState::MakeTensor(const TensorSpec& spec) const {
  DLTensor tensor{};
  tensor.device = device_;
  tensor.dtype = spec.dtype;
  tensor.ndim = static_cast<int32_t>(spec.shape.size());
  tensor.shape = const_cast<int64_t*>(spec.shape.data());
  if (spec.place == TensorPlace::kConstant) {
    tensor.data = constants_[spec.index].data();
  } else if (spec.place == TensorPlace::kArena) {
    TVM_CHECK(spec.index >= 0 &&
                  static_cast<int64_t>(spec.index + NumBytes(tensor)) <= function_.arena_bytes,
              ValueError)
        << "relax executable: a tensor of '" << function_.name << "' lies outside its memory; "
        << "the file is damaged, export it again";
    tensor.data = static_cast<char*>(arena_.data()) + spec.index;
  }
  return tensor;
}

FunctionState::KernelCall FunctionState::MakeCall(const ExecutableNode& executable,
                                                  const Instruction& instruction) {
  KernelCall call;
  if (instruction.kernel == kCopy) {
    call.name = "copy";
  } else {
    call.name = executable.kernels[instruction.kernel];
    for (const Module& library : executable.imports()) {
      call.kernel = library.GetFunction(call.name, true);
      if (call.kernel.defined()) break;
    }
    TVM_CHECK(call.kernel.defined(), ValueError)
        << "VirtualMachine: '" << function_.name << "' calls '" << call.name
        << "', which the library does not have";
  }
  for (int64_t arg : instruction.args) {
    TVMAny value{};
    value.type_code = kTVMDLTensor;
    value.v_handle = &tensors_[arg];
    call.args.push_back(value);
  }
  return call;
}

void FunctionState::Launch(const KernelCall& call) const {
  if (call.kernel.defined()) {
    Any ignored;
    call.kernel.CallPacked(Args(reinterpret_cast<const Any*>(call.args.data()),
                                static_cast<int32_t>(call.args.size())),
                           &ignored);
  } else {
    const auto* from = static_cast<const DLTensor*>(call.args[0].v_handle);
    auto* to = static_cast<DLTensor*>(call.args[1].v_handle);
    CopyBytes(from->data, to->data, NumBytes(*to));
  }
}

Array<Any> FunctionState::Bind(Args args) {
  TVM_CHECK(args.size() == static_cast<int>(function_.inputs.size()), TypeError)
      << function_.name << ": takes " << function_.inputs.size() << " inputs" << InputList()
      << ", got " << args.size();
  inputs_.assign(args.size(), nullptr);
  for (int i = 0; i < args.size(); ++i) inputs_[i] = InputData(i, args[i]);
  Array<Any> outputs;
  outputs_.clear();
  for (int64_t id : function_.outputs) {
    const TensorSpec& spec = function_.tensors[id];
    NDArray output = NDArray::Empty(spec.shape, DataType(spec.dtype), device_);
    outputs_.push_back(output.data());
    outputs.push_back(output);
  }
  for (size_t id = 0; id < tensors_.size(); ++id) {
    const TensorSpec& spec = function_.tensors[id];
    if (spec.place == TensorPlace::kInput) {
      tensors_[id].data = inputs_[spec.index];
    } else if (spec.place == TensorPlace::kOutput) {
      tensors_[id].data = outputs_[spec.index];
    }
  }
  return outputs;
}

void FunctionState::CopyBytes(const void* from, void* to, size_t bytes) const {
  DeviceAPI::Get(device_)->CopyBytes(from, device_, to, device_, bytes, nullptr);
}

std::string FunctionState::InputList() const {
  std::ostringstream os;
  const char* separator = " (";
  for (const std::string& name : function_.input_names) {
    os << separator << name;
    separator = ", ";
  }
  if (!function_.input_names.empty()) os << ")";
  return os.str();
}

void* FunctionState::InputData(int i, const Any& value) {
  const TensorSpec& spec = function_.tensors[function_.inputs[i]];
  const int ndim = static_cast<int>(spec.shape.size());
  std::optional<DLTensor*> given = value.TryCast<DLTensor*>();
  TVM_CHECK(given.has_value() && *given != nullptr, TypeError)
      << function_.name << ": input '" << function_.input_names[i] << "' must be a tensor, got "
      << value.TypeName();
  const DLTensor& tensor = **given;
  const bool same_shape =
      tensor.ndim == ndim && std::equal(tensor.shape, tensor.shape + ndim, spec.shape.begin());
  const bool same_type = DataType(tensor.dtype) == DataType(spec.dtype);
  TVM_CHECK(same_shape && same_type, ValueError)
      << function_.name << ": input '" << function_.input_names[i] << "' must be "
      << DataType(spec.dtype) << " of shape " << ShapeText(spec.shape.data(), ndim) << ", got "
      << DataType(tensor.dtype) << " of shape " << ShapeText(tensor.shape, tensor.ndim);
  TVM_CHECK(tensor.device.device_type == device_.device_type &&
                tensor.device.device_id == device_.device_id,
            ValueError)
      << function_.name << ": input '" << function_.input_names[i]
      << "' is on another device than the virtual machine; copy it first";
  TVM_CHECK(IsContiguous(tensor), ValueError)
      << function_.name << ": input '" << function_.input_names[i]
      << "' must be contiguous in row-major order; copy it into a contiguous array first";
  char* data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  if (reinterpret_cast<uintptr_t>(data) % kAllocAlignment == 0) return data;
  // Kernels load whole vectors and rely on the alignment of memory that the runtime allocates.
  NDArray& staging = staging_[i];
  if (!staging.defined()) staging = NDArray::Empty(spec.shape, DataType(spec.dtype), device_);
  CopyBytes(data, staging.data(), NumBytes(tensor));
  return staging.data();
}

void FunctionState::LaunchAll() const {
  threading::RunOfRegions run;
  for (const KernelCall& call : calls_) Launch(call);
}

String FunctionState::ArgumentShapes(int64_t call) const {
  const std::vector<TVMAny>& args = calls_[call].args;
  return profiling::ShapeText(
      Args(reinterpret_cast<const Any*>(args.data()), static_cast<int32_t>(args.size())));
}

NDArray FunctionState::TensorValue(int64_t tensor) const {
  const TensorSpec& spec = function_.tensors[tensor];
  NDArray copy = NDArray::Empty(spec.shape, DataType(spec.dtype), device_);
  CopyBytes(tensors_[tensor].data, copy.data(), NumBytes(tensors_[tensor]));
  return copy;
}

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
