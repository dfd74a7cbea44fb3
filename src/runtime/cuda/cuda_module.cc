/*!
 * \file cuda_module.cc
 * \brief Loading, launching and saving of kernels.
 */
#include "runtime/cuda/cuda_module.h"

#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/registry.h>

#include <cstring>
#include <fstream>
#include <map>
#include <mutex>

#include "runtime/cuda/driver.h"

namespace tvm {
namespace runtime {
namespace {

using cuda::Driver;

constexpr const char* kMagic = "TVMCUDA1";

/*! \brief Bytes of a scalar argument as the kernel reads it. */
union Slot {
  void* pointer;
  int64_t integer;
  double real;
  float single;
};

void WriteKernels(const std::vector<KernelInfo>& kernels, ByteWriter* writer) {
  writer->Word(static_cast<int64_t>(kernels.size()));
  for (const KernelInfo& kernel : kernels) {
    writer->Text(kernel.name);
    std::vector<std::string> types;
    for (DataType type : kernel.param_types) types.push_back(type.ToString());
    writer->Texts(types);
    writer->Texts(kernel.thread_tags);
    writer->Word(kernel.uses_dynamic_shared);
  }
}

std::vector<KernelInfo> ReadKernels(ByteReader* reader) {
  std::vector<KernelInfo> kernels(reader->Count());
  for (KernelInfo& kernel : kernels) {
    kernel.name = reader->Text();
    for (const std::string& type : reader->Texts()) {
      kernel.param_types.push_back(DataType::FromString(type));
    }
    kernel.thread_tags = reader->Texts();
    kernel.uses_dynamic_shared = reader->Word() != 0;
  }
  return kernels;
}

/*! \brief File beside a binary that says how its kernels are called, which a binary does not. */
std::string KernelsPath(const std::string& path) { return path + ".kernels"; }

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  file.close();
  TVM_CHECK(!file.fail(), RuntimeError) << "Module.save: cannot write \"" << path << '"';
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  TVM_CHECK(!file.fail(), RuntimeError)
      << "load_module: cannot read \"" << path << "\"; saving a CUDA module writes two files, "
      << "which stay together";
  return bytes;
}

class CUDAModuleNode final : public ModuleNode {
 public:
  CUDAModuleNode(std::string binary, std::string source, std::vector<KernelInfo> kernels)
      : binary_(std::move(binary)), source_(std::move(source)), kernels_(std::move(kernels)) {}
  ~CUDAModuleNode() override {
    const Driver* driver = Driver::TryGet();
    for (const auto& [device, loaded] : loaded_) {
      // An error here has no one to go to, and the process may be ending.
      if (driver && driver->CtxSetCurrent(driver->ContextOf(device)) == cuda::kSuccess) {
        driver->ModuleUnload(loaded);
      }
    }
  }

  const char* type_key() const override { return "cuda"; }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) override;
  Array<String> ListFunctionNames() override {
    Array<String> names;
    for (const KernelInfo& kernel : kernels_) names.push_back(kernel.name);
    return names;
  }
  String GetSource(const String& format) override {
    if (format == BinaryFormat()) return binary_;
    TVM_CHECK(format.empty() || format == "cuda" || format == "cu", ValueError)
        << "Module.get_source: a CUDA module has the formats \"cuda\" and \"" << BinaryFormat()
        << "\", not \"" << format << '"';
    return source_;
  }
  String GetFormat() override { return BinaryFormat(); }
  void SaveToFile(const String& path, const String& format) override {
    bool text = format == "cu" || format == "cuda";
    TVM_CHECK(text || format.empty() || format == BinaryFormat(), ValueError)
        << "Module.save(\"" << path << "\"): a CUDA module is written as \"" << BinaryFormat()
        << "\" or \"cu\", not \"" << format << '"';
    WriteFile(path, text ? source_ : binary_);
    if (text) return;
    ByteWriter kernels;
    WriteKernels(kernels_, &kernels);
    WriteFile(KernelsPath(path), kernels.bytes);
  }
  void SaveToBinary(ByteWriter* writer) override {
    writer->Raw(kMagic, std::strlen(kMagic));
    writer->Text(binary_);
    writer->Text(source_);
    WriteKernels(kernels_, writer);
  }

  /*! \brief The kernel on a device, which loads the binary when it is the first one there. */
  cuda::Function Load(const std::string& name, int device_id) {
    std::lock_guard<std::mutex> lock(mutex_);
    const Driver& driver = Driver::Get();
    cuda::LoadedModule& module = loaded_[device_id];
    if (module == nullptr) {
      const std::string what =
          "cuModuleLoadData with a driver of CUDA " + cuda::VersionText(driver.version());
      driver.Check(driver.ModuleLoadData(&module, binary_.c_str()), what.c_str());
    }
    cuda::Function function = nullptr;
    driver.Check(driver.ModuleGetFunction(&function, module, name.c_str()), "cuModuleGetFunction");
    return function;
  }

  const KernelInfo* Find(const std::string& name) const {
    for (const KernelInfo& kernel : kernels_) {
      if (kernel.name == name) return &kernel;
    }
    return nullptr;
  }

  TVM_DECLARE_OBJECT(CUDAModuleNode, ModuleNode, "runtime.CUDAModule");

 private:
  std::string BinaryFormat() const {
    return binary_.compare(0, 4,
                           "\x7f"
                           "ELF") == 0
               ? "cubin"
               : "ptx";
  }

  std::string binary_;
  std::string source_;
  std::vector<KernelInfo> kernels_;
  std::mutex mutex_;
  std::map<int, cuda::LoadedModule> loaded_;
};

/*! \brief Launches one kernel; the extents come from the call. */
class KernelObj final : public PackedFuncObj {
 public:
  KernelObj(const KernelInfo& info, ObjectPtr<Object> owner)
      : info_(info), owner_(std::move(owner)) {}

  void CallPacked(Args args, RetValue* ret) const override {
    size_t num_params = info_.param_types.size();
    size_t expected = num_params + info_.thread_tags.size() + (info_.uses_dynamic_shared ? 1 : 0);
    TVM_CHECK(static_cast<size_t>(args.size()) == expected, TypeError)
        << "kernel " << info_.name << ": expected " << expected << " arguments (" << num_params
        << " parameters and the launch extents), got " << args.size();
    std::vector<Slot> slots(num_params);
    std::vector<void*> pointers(num_params);
    for (size_t i = 0; i < num_params; ++i) {
      SetParam(args[static_cast<int>(i)], info_.param_types[i], &slots[i]);
      pointers[i] = &slots[i];
    }
    unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
    int at = static_cast<int>(num_params);
    for (const std::string& tag : info_.thread_tags) {
      int64_t extent = args[at++].cast<int64_t>();
      // An empty grid is no launch; the driver would call it an error.
      if (extent == 0) return;
      TVM_CHECK(extent > 0 && extent <= 0x7fffffff, ValueError)
          << "kernel " << info_.name << ": extent of " << tag << " must be in [0, 2^31), got "
          << extent;
      bool is_block = tag.rfind("blockIdx.", 0) == 0;
      (is_block ? grid : block)[tag.back() - 'x'] = static_cast<unsigned>(extent);
    }
    int64_t shared = info_.uses_dynamic_shared ? args[at].cast<int64_t>() : 0;
    const Driver& driver = Driver::Get();
    int device_id = DeviceOf(driver, slots);
    driver.Enter(device_id);
    cuda::Function function = Function(device_id, shared);
    cuda::Status status = driver.LaunchKernel(
        function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
        static_cast<unsigned>(shared), cuda::CurrentStream(device_id), pointers.data(), nullptr);
    if (status != cuda::kSuccess) {
      std::string what = "launch of " + info_.name + " with a grid of " + std::to_string(grid[0]) +
                         "x" + std::to_string(grid[1]) + "x" + std::to_string(grid[2]) +
                         " blocks of " + std::to_string(block[0]) + "x" + std::to_string(block[1]) +
                         "x" + std::to_string(block[2]) + " threads and " + std::to_string(shared) +
                         " bytes of dynamic shared memory";
      driver.Check(status, what.c_str());
    }
  }
  using _Self = KernelObj;

 private:
  static void SetParam(const Any& arg, DataType type, Slot* slot) {
    if (type.is_handle()) {
      if (const auto* array = arg.as<NDArrayObj>()) {
        slot->pointer = static_cast<char*>(array->tensor.data) + array->tensor.byte_offset;
      } else if (arg.type_code() == kTVMDLTensor) {
        const auto* tensor = static_cast<const DLTensor*>(arg.raw().v_handle);
        slot->pointer = static_cast<char*>(tensor->data) + tensor->byte_offset;
      } else {
        slot->pointer = arg.cast<void*>();
      }
    } else if (type.is_float() && type.bits() == 64) {
      slot->real = arg.cast<double>();
    } else if (type.is_float() && type.bits() == 32) {
      slot->single = static_cast<float>(arg.cast<double>());
    } else {
      TVM_CHECK(!type.is_float() && !type.is_bfloat16(), TypeError)
          << "kernel: a scalar parameter of type " << type
          << " cannot be passed; pass float32 and convert it in the kernel";
      // Little-endian, so narrower integers are the first bytes.
      slot->integer = arg.cast<int64_t>();
    }
  }

  /*! \brief The device that the kernel's first pointer points into. */
  int DeviceOf(const Driver& driver, const std::vector<Slot>& slots) const {
    int device_id = 0;
    if (driver.num_devices() == 1) return device_id;
    for (size_t i = 0; i < slots.size(); ++i) {
      if (!info_.param_types[i].is_handle()) continue;
      driver.Check(
          driver.PointerGetAttribute(&device_id, cuda::kPointerDeviceOrdinal,
                                     reinterpret_cast<cuda::DevicePointer>(slots[i].pointer)),
          "cuPointerGetAttribute");
      break;
    }
    return device_id;
  }

  cuda::Function Function(int device_id, int64_t shared) const {
    std::lock_guard<std::mutex> lock(mutex_);
    const Driver& driver = Driver::Get();
    auto [it, is_new] = functions_.try_emplace(device_id, nullptr);
    if (is_new) {
      auto* module = static_cast<CUDAModuleNode*>(owner_.get());
      it->second = module->Load(info_.name, device_id);
    }
    // Beyond 48 KiB a kernel has to ask for its dynamic shared memory first.
    constexpr int64_t kGrantedShared = 48 << 10;
    if (shared > kGrantedShared && shared > granted_) {
      driver.Check(driver.FuncSetAttribute(it->second, cuda::kFuncMaxDynamicShared,
                                           static_cast<int>(shared)),
                   "cuFuncSetAttribute(MAX_DYNAMIC_SHARED_SIZE_BYTES)");
      granted_ = shared;
    }
    return it->second;
  }

  KernelInfo info_;
  ObjectPtr<Object> owner_;
  mutable std::mutex mutex_;
  mutable std::map<int, cuda::Function> functions_;
  mutable int64_t granted_ = 0;
};

PackedFunc CUDAModuleNode::GetFunction(const String& name, const ObjectPtr<Object>& self) {
  const KernelInfo* info = Find(name);
  if (info == nullptr) return PackedFunc();
  return PackedFunc(ObjectPtr<Object>(make_object<KernelObj>(*info, self)));
}

}  // namespace

Module CUDAModuleCreate(std::string binary, std::string source, std::vector<KernelInfo> kernels) {
  return Module(ObjectPtr<Object>(
      make_object<CUDAModuleNode>(std::move(binary), std::move(source), std::move(kernels))));
}

TVM_REGISTER_GLOBAL("runtime.module.loadbinary_cuda").set_body_typed([](String bytes) {
  ByteReader reader("CUDA module", bytes.str());
  reader.Expect(kMagic);
  std::string binary = reader.Text();
  std::string source = reader.Text();
  std::vector<KernelInfo> kernels = ReadKernels(&reader);
  return CUDAModuleCreate(std::move(binary), std::move(source), std::move(kernels));
});

Module LoadBinaryFile(std::string path, std::string format) {
  std::string kernels = ReadFile(KernelsPath(path));
  ByteReader reader("kernels of a CUDA module", kernels);
  return CUDAModuleCreate(ReadFile(path), "", ReadKernels(&reader));
}

TVM_REGISTER_GLOBAL("runtime.module.loadfile_cubin").set_body_typed(LoadBinaryFile);
TVM_REGISTER_GLOBAL("runtime.module.loadfile_ptx").set_body_typed(LoadBinaryFile);

/*!
 * \brief (module, kernel, device, threads per block, dynamic shared bytes) -> registers a thread,
 * bytes of static shared and of local memory, and blocks that fit on one multiprocessor.
 */
TVM_REGISTER_GLOBAL("runtime.cuda.KernelResources")
    .set_body_typed([](Module mod, String name, int device_id, int threads, int64_t shared) {
      auto* node = const_cast<CUDAModuleNode*>(mod.as<CUDAModuleNode>());
      TVM_CHECK(node != nullptr && node->Find(name) != nullptr, ValueError)
          << "KernelResources: the module has no CUDA kernel \"" << name << '"';
      const Driver& driver = Driver::Get();
      driver.Enter(device_id);
      cuda::Function function = node->Load(name, device_id);
      auto attribute = [&](int which) {
        int value = 0;
        driver.Check(driver.FuncGetAttribute(&value, which, function), "cuFuncGetAttribute");
        return static_cast<int64_t>(value);
      };
      int blocks = 0;
      driver.Check(
          driver.OccupancyMaxActiveBlocks(&blocks, function, threads, static_cast<size_t>(shared)),
          "cuOccupancyMaxActiveBlocksPerMultiprocessor");
      return Map<String, int64_t>{{"registers", attribute(cuda::kFuncNumRegisters)},
                                  {"shared_bytes", attribute(cuda::kFuncSharedBytes)},
                                  {"local_bytes", attribute(cuda::kFuncLocalBytes)},
                                  {"blocks_per_multiprocessor", static_cast<int64_t>(blocks)}};
    });

}  // namespace runtime
}  // namespace tvm
