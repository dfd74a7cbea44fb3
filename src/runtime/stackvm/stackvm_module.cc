#include "runtime/stackvm/stackvm_module.h"

#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/registry.h>
#include <tvm/runtime/serializer.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "runtime/c_arguments.h"
#include "runtime/stackvm/machine.h"
#include "runtime/stackvm/scalar_types.h"

namespace tvm {
namespace runtime {
namespace stackvm {
namespace {

/*! \brief Put a number or pointer into a parameter, for all threads. */
void SetParameter(Machine& m, const Parameter& param, int position, const Any& value) {
  DispatchLane(param.type, [&](auto lane) {
    using Lane = decltype(lane);
    using T = typename Lane::Register;
    T number = 0;
    int64_t integer = 0;
    double real = 0;
    if (param.type == ScalarType::kHandle) {
      if (std::optional<DLTensor*> tensor = value.TryCast<DLTensor*>(); tensor && *tensor) {
        number =
            static_cast<T>(reinterpret_cast<uintptr_t>((*tensor)->data) + (*tensor)->byte_offset);
      } else {
        TVM_CHECK(value.type_code() == kTVMOpaqueHandle || value.is_null(), TypeError)
            << "stackvm: kernel " << m.function.name << ": argument " << position << " ("
            << param.name << "): expected a data pointer or an array, got " << value.TypeName();
        number = static_cast<T>(reinterpret_cast<uintptr_t>(value.raw().v_handle));
      }
    } else if (AnyToInt(value, &integer)) {
      number = Lane::Round(static_cast<T>(integer));
    } else {
      TVM_CHECK(std::is_floating_point_v<T> && AnyToFloat(value, &real), TypeError)
          << "stackvm: kernel " << m.function.name << ": argument " << position << " ("
          << param.name << "): expected a number of type " << ScalarTypeName(param.type) << ", got "
          << value.TypeName();
      number = Lane::Round(static_cast<T>(real));
    }
    std::fill_n(m.Reg<T>(param.slot), m.threads, number);
  });
}

void Launch(const Program& program, const Function& kernel, Args args) {
  const int num_params = static_cast<int>(kernel.params.size());
  const int expected = num_params + static_cast<int>(kernel.launch_params.size());
  TVM_CHECK(args.size() == expected, TypeError)
      << "stackvm: kernel " << kernel.name << " takes " << num_params << " arguments and "
      << kernel.launch_params.size() << " extents of the launch, got " << args.size() << " values";
  int64_t extents[6] = {1, 1, 1, 1, 1, 1};
  int64_t dynamic_bytes = -1;
  for (int i = num_params; i < expected; ++i) {
    const std::string& tag = kernel.launch_params[i - num_params];
    const int64_t value = args[i].cast<int64_t>();
    TVM_CHECK(value >= 0, ValueError)
        << "stackvm: kernel " << kernel.name << ": " << tag << " must be >= 0, got " << value;
    if (int axis = ThreadAxis(tag); axis >= 0) {
      extents[axis] = value;
    } else {
      dynamic_bytes = value;
    }
  }
  for (int64_t extent : extents) {
    if (extent == 0) return;
  }
  const DeviceLimits& limits = program.limits;
  // Registers of all threads are kept at once; no device has blocks near this bound.
  constexpr int64_t kMaxThreads = 1 << 16;
  const int64_t allowed =
      limits.max_threads_per_block > 0 ? limits.max_threads_per_block : kMaxThreads;
  const int64_t threads = extents[3] * extents[4] * extents[5];
  TVM_CHECK(threads <= allowed, ValueError)
      << "stackvm: kernel " << kernel.name << ": a block of " << extents[3] << " x " << extents[4]
      << " x " << extents[5] << " threads; the target has at most " << allowed
      << " (option max_threads_per_block)";
  TVM_CHECK(limits.max_shared_memory_per_block == 0 ||
                dynamic_bytes <= limits.max_shared_memory_per_block,
            ValueError)
      << "stackvm: kernel " << kernel.name << ": " << dynamic_bytes
      << " bytes of dynamic shared memory; the target has " << limits.max_shared_memory_per_block
      << " (option max_shared_memory_per_block)";

  Machine m(program, kernel, static_cast<int>(threads));
  m.warp_size = static_cast<int>(limits.warp_size);
  m.dynamic_shared_bytes = dynamic_bytes;
  std::copy(extents + 3, extents + 6, m.thread_extent);
  for (int i = 0; i < num_params; ++i) SetParameter(m, kernel.params[i], i, args[i]);
  for (m.block[2] = 0; m.block[2] < extents[2]; ++m.block[2]) {
    for (m.block[1] = 0; m.block[1] < extents[1]; ++m.block[1]) {
      for (m.block[0] = 0; m.block[0] < extents[0]; ++m.block[0]) {
        m.shared.Reset(m.threads, m.warp_size);
        m.global.BeginBlock();
        m.under_way.clear();
        m.Run();
      }
    }
  }
}

class StackVMModuleNode final : public ModuleNode {
 public:
  explicit StackVMModuleNode(Program program) : program_(std::move(program)) {}

  const char* type_key() const override { return "stackvm"; }
  String GetFormat() override { return "stackvm"; }
  String GetSource(const String& format) override {
    TVM_CHECK(format.empty() || format == "stackvm", ValueError)
        << "Module.get_source: format \"" << format
        << "\" is not \"stackvm\", the only one of this kind of module";
    return Listing(program_);
  }
  void SaveToFile(const String& path, const String& format) override {
    TVM_CHECK(format.empty() || format == "stackvm", ValueError)
        << "Module.save(\"" << path << "\"): cannot write format \"" << format
        << "\"; name the file *.stackvm";
    const std::string bytes = Serialize(program_);
    std::ofstream file(path.str(), std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.flush();
    TVM_CHECK(file.good(), ValueError) << "Module.save(\"" << path << "\"): cannot write the file";
  }

  void SaveToBinary(ByteWriter* writer) override {
    const std::string bytes = Serialize(program_);
    writer->Raw(bytes.data(), bytes.size());
  }

  Array<String> ListFunctionNames() override {
    Array<String> names;
    for (const Function& function : program_.functions) {
      if (function.kind != CallKind::kInternal) names.push_back(function.name);
    }
    return names;
  }

  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) override {
    const Function* function = Find(name);
    if (function == nullptr) return PackedFunc();
    if (function->kind == CallKind::kKernel) {
      return PackedFunc(
          [this, self, function](Args args, RetValue*) { Launch(program_, *function, args); });
    }
    return PackedFunc(
        [this, self, function](Args args, RetValue* ret) { CallHost(*function, args, ret); });
  }

  TVM_DECLARE_OBJECT(StackVMModuleNode, ModuleNode, "runtime.StackVMModule");

 private:
  const Function* Find(const std::string& name) const {
    const Function* only = nullptr;
    int packed = 0;
    for (const Function& function : program_.functions) {
      if (function.kind == CallKind::kInternal) continue;
      if (function.name == name) return &function;
      if (function.kind == CallKind::kPacked) {
        ++packed;
        only = &function;
      }
    }
    return name == kModuleMain && packed == 1 ? only : nullptr;
  }

  PackedFunc FindCallee(const std::string& name) {
    if (const Function* own = Find(name)) {
      // The caller keeps this module alive while it runs.
      return GetFunction(own->name, nullptr);
    }
    for (const Module& imported : imports()) {
      if (PackedFunc found = imported.GetFunction(name, true); found.defined()) return found;
    }
    return Registry::Require(name);
  }

  void CallHost(const Function& function, Args args, RetValue* ret) {
    CArguments values(args);
    TVMAny result{kTVMNull, 0, {0}};
    Machine m(program_, function, 1);
    m.find_packed = [this](const std::string& name) { return FindCallee(name); };
    m.At<const TVMAny*>(function.params[0].slot, 0) = values.data();
    m.At<int32_t>(function.params[1].slot, 0) = args.size();
    m.At<TVMAny*>(function.params[2].slot, 0) = &result;
    m.Run();
    // As in compiled code: the status says whether the last error is to be raised.
    if (m.return_value != 0) ThrowLastError();
    SetResult(result, ret);
  }

  Program program_;
};

}  // namespace

Module CreateModule(Program program) {
  for (const Function& function : program.functions) {
    TVM_CHECK(function.kind != CallKind::kPacked || function.params.size() == 3, ValueError)
        << "stackvm: packed function " << function.name << " has " << function.params.size()
        << " parameters instead of 3; the program is damaged, build it again";
  }
  Link(&program);
  return Module(ObjectPtr<Object>(make_object<StackVMModuleNode>(std::move(program))));
}

TVM_REGISTER_GLOBAL("runtime.module.loadbinary_stackvm").set_body_typed([](std::string bytes) {
  return CreateModule(Deserialize(bytes));
});

TVM_REGISTER_GLOBAL("runtime.module.loadfile_stackvm")
    .set_body_typed([](std::string path, std::string format) {
      std::ifstream file(path, std::ios::binary);
      TVM_CHECK(file.good(), ValueError) << "load_module: cannot read \"" << path << '"';
      return CreateModule(Deserialize(
          std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>())));
    });

}  // namespace stackvm
}  // namespace runtime
}  // namespace tvm
