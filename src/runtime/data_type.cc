#include <tvm/runtime/data_type.h>

#include <charconv>
#include <map>
#include <mutex>
#include <ostream>

#include "device_name.h"

namespace tvm {
namespace runtime {
namespace {

struct Prefix {
  const char* text;
  int code;
  int default_bits;
};

// "uint" before "int" and "bfloat" before "float" does not matter: the match is at the start.
constexpr Prefix kPrefixes[] = {
    {"int", DataType::kInt, 32},       {"uint", DataType::kUInt, 32},
    {"float", DataType::kFloat, 32},   {"bfloat", DataType::kBFloat, 16},
    {"handle", DataType::kHandle, 64}, {"bool", DataType::kUInt, 1},
};

[[noreturn]] void ThrowBadType(const std::string& text) {
  TVM_FATAL(ValueError) << "DataType: cannot read \"" << text
                        << "\"; expected a kind (int, uint, float, bfloat, bool, handle), bits and "
                           "optionally xLANES, for example \"float32\" or \"int8x16\"";
}

}  // namespace

DataType DataType::FromString(const std::string& text) {
  if (text.empty() || text == "void") return DataType::Void();
  for (const Prefix& prefix : kPrefixes) {
    std::string_view kind(prefix.text);
    if (text.compare(0, kind.size(), kind) != 0) continue;
    const char* at = text.data() + kind.size();
    const char* end = text.data() + text.size();
    int bits = prefix.default_bits;
    int lanes = 1;
    if (at != end && *at >= '0' && *at <= '9') {
      if (kind == "bool") ThrowBadType(text);
      auto parsed = std::from_chars(at, end, bits);
      if (parsed.ec != std::errc()) ThrowBadType(text);
      at = parsed.ptr;
    }
    if (at != end && *at == 'x') {
      auto parsed = std::from_chars(at + 1, end, lanes);
      if (parsed.ec != std::errc()) ThrowBadType(text);
      at = parsed.ptr;
    }
    if (at != end || bits < 1 || bits > 128 || lanes < 1 || lanes > 32767) ThrowBadType(text);
    return DataType(prefix.code, bits, lanes);
  }
  ThrowBadType(text);
}

std::string DataType::ToString() const {
  if (is_void()) return "void";
  std::string text;
  if (is_bool()) {
    text = "bool";
  } else if (code() == kHandle) {
    text = "handle";
    if (bits() != 64) text += std::to_string(bits());
  } else {
    static constexpr const char* kNames[] = {"int", "uint", "float", "handle", "bfloat"};
    ICHECK(code() <= kBFloat) << "unknown type code " << code();
    text = kNames[code()] + std::to_string(bits());
  }
  if (lanes() != 1) text += "x" + std::to_string(lanes());
  return text;
}

std::ostream& operator<<(std::ostream& os, DataType dtype) { return os << dtype.ToString(); }

namespace {

/*! \brief Names of the devices users added. Entries stay, so that their text may be handed out. */
struct DeviceNames {
  std::mutex mutex;
  std::map<int, std::string> names;

  static DeviceNames& Global() {
    static DeviceNames names;
    return names;
  }
};

}  // namespace

const char* DeviceName(int device_type) {
  switch (device_type) {
    case kDLCPU:
      return "cpu";
    case kDLCUDA:
      return "cuda";
    case kDLCUDAHost:
      return "cuda_host";
    case kDLOpenCL:
      return "opencl";
    case kDLVulkan:
      return "vulkan";
    case kDLMetal:
      return "metal";
    case kDLVPI:
      return "vpi";
    case kDLROCM:
      return "rocm";
    case kDLROCMHost:
      return "rocm_host";
    case kDLExtDev:
      return "ext_dev";
    default:
      break;
  }
  DeviceNames& names = DeviceNames::Global();
  std::lock_guard<std::mutex> lock(names.mutex);
  auto it = names.names.find(device_type);
  TVM_CHECK(it != names.names.end(), ValueError)
      << "unknown device type " << device_type
      << "; add one of your own with tvm.runtime.register_device";
  return it->second.c_str();
}

void RegisterDeviceName(int device_type, const std::string& name) {
  DeviceNames& names = DeviceNames::Global();
  std::lock_guard<std::mutex> lock(names.mutex);
  auto [it, inserted] = names.names.emplace(device_type, name);
  TVM_CHECK(inserted || it->second == name, ValueError)
      << "device " << name << ": number " << device_type << " is taken by " << it->second;
}

}  // namespace runtime
}  // namespace tvm
