#include <tvm/runtime/data_type.h>
#include <tvm/runtime/narrow_float.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <ostream>
#include <string_view>

#include "device_name.h"
#include "process_lock.h"

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

// Codes of DLPack 1.1. Programs compute with those of 8 bits that have a format below; tensors of
// the others are moved and viewed.
enum NarrowFloatCode : int {
  kFloat8_e3m4 = 7,
  kFloat8_e4m3 = 8,
  kFloat8_e4m3b11fnuz = 9,
  kFloat8_e4m3fn = 10,
  kFloat8_e4m3fnuz = 11,
  kFloat8_e5m2 = 12,
  kFloat8_e5m2fnuz = 13,
  kFloat8_e8m0fnu = 14,
  kFloat6_e2m3fn = 15,
  kFloat6_e3m2fn = 16,
  kFloat4_e2m1fn = 17,
};

/*! \brief A type of fewer than 16 bits whose name does not follow from its kind and bits. */
struct NarrowFloat {
  const char* name;
  int code;
  int bits;
};

// The first name of a type is the one it prints as: that of TVM where it has one.
constexpr NarrowFloat kNarrowFloats[] = {
    {"e4m3_float8", kFloat8_e4m3fn, 8},
    {"e5m2_float8", kFloat8_e5m2, 8},
    {"float8_e4m3fn", kFloat8_e4m3fn, 8},
    {"float8_e5m2", kFloat8_e5m2, 8},
    {"float8_e3m4", kFloat8_e3m4, 8},
    {"float8_e4m3", kFloat8_e4m3, 8},
    {"float8_e4m3b11fnuz", kFloat8_e4m3b11fnuz, 8},
    {"float8_e4m3fnuz", kFloat8_e4m3fnuz, 8},
    {"float8_e5m2fnuz", kFloat8_e5m2fnuz, 8},
    {"float8_e8m0fnu", kFloat8_e8m0fnu, 8},
    {"float6_e2m3fn", kFloat6_e2m3fn, 6},
    {"float6_e3m2fn", kFloat6_e3m2fn, 6},
    {"float4_e2m1fn", kFloat4_e2m1fn, 4},
};

/*! \brief "", "x4" or "xvscalex4" from `at` to the end; nothing for another text. */
std::optional<int> ReadLanes(const char* at, const char* end) {
  if (at == end) return 1;
  constexpr std::string_view kScalable = "xvscale";
  const bool scalable = std::string_view(at, end - at).substr(0, kScalable.size()) == kScalable;
  if (scalable) at += kScalable.size();
  if (at == end || *at != 'x') return std::nullopt;
  int lanes = 0;
  auto parsed = std::from_chars(at + 1, end, lanes);
  if (parsed.ec != std::errc() || parsed.ptr != end || lanes < 1 || lanes > 32767) {
    return std::nullopt;
  }
  return scalable ? -lanes : lanes;
}

/*! \brief Names that users give to numbers. */
class NameTable {
 public:
  NameTable(const char* what, int first, int last) : what_(what), first_(first), last_(last) {}
  void Add(const std::string& name, int number) {
    TVM_CHECK(number >= first_ && number <= last_, ValueError)
        << what_ << " \"" << name << "\": the number must be from " << first_ << " to " << last_
        << ", got " << number;
    std::lock_guard lock(mutex_);
    auto [by_name, new_name] = numbers_.emplace(name, number);
    auto [by_number, new_number] = names_.emplace(number, name);
    const bool same = by_name->second == number && by_number->second == name;
    if (!same && new_name) numbers_.erase(name);
    if (!same && new_number) names_.erase(number);
    TVM_CHECK(same, ValueError) << what_ << " \"" << name << "\" cannot be number " << number
                                << ": the name or the number is taken";
  }
  /*! \brief The name, which lives as long as the process, or null. */
  const char* NameOf(int number) {
    std::lock_guard lock(mutex_);
    auto entry = names_.find(number);
    return entry == names_.end() ? nullptr : entry->second.c_str();
  }
  int Require(const std::string& name) {
    std::lock_guard lock(mutex_);
    auto entry = numbers_.find(name);
    TVM_CHECK(entry != numbers_.end(), ValueError) << what_ << " \"" << name << "\" is not known";
    return entry->second;
  }

 private:
  const char* what_;
  const int first_, last_;
  std::mutex& mutex_ = ProcessLock<std::mutex, NameTable>::Get();
  std::map<std::string, int> numbers_;
  std::map<int, std::string> names_;
};

// Codes that neither DLPack nor we use.
NameTable& CustomTypes() {
  static auto* table = new NameTable("custom data type", 129, 255);
  return *table;
}

[[noreturn]] void ThrowBadType(const std::string& text) {
  TVM_FATAL(ValueError) << "DataType: cannot read \"" << text
                        << "\"; expected a kind (int, uint, float, bfloat, bool, handle), bits and "
                           "optionally xLANES, for example \"float32\" or \"int8x16\"";
}

}  // namespace

DataType DataType::FromString(const std::string& text) {
  if (text.empty() || text == "void") return DataType::Void();
  if (text.compare(0, 7, "custom[") == 0) {
    // "custom[posit]32x4": the rest is read like that of an integer type.
    const size_t close = text.find(']');
    if (close == std::string::npos) ThrowBadType(text);
    const DataType like = FromString("int" + text.substr(close + 1));
    return DataType(CustomTypes().Require(text.substr(7, close - 7)), like.bits(), like.lanes());
  }
  for (const NarrowFloat& narrow : kNarrowFloats) {
    std::string_view name(narrow.name);
    if (text.compare(0, name.size(), name) != 0) continue;
    // One name may begin like another one.
    if (auto lanes = ReadLanes(text.data() + name.size(), text.data() + text.size())) {
      return DataType(narrow.code, narrow.bits, *lanes);
    }
  }
  for (const Prefix& prefix : kPrefixes) {
    std::string_view kind(prefix.text);
    if (text.compare(0, kind.size(), kind) != 0) continue;
    const char* at = text.data() + kind.size();
    const char* end = text.data() + text.size();
    int bits = prefix.default_bits;
    if (at != end && *at >= '0' && *at <= '9') {
      if (kind == std::string_view("bool")) ThrowBadType(text);
      auto parsed = std::from_chars(at, end, bits);
      if (parsed.ec != std::errc()) ThrowBadType(text);
      at = parsed.ptr;
    }
    std::optional<int> lanes = ReadLanes(at, end);
    if (!lanes || bits < 1 || bits > 128) ThrowBadType(text);
    return DataType(prefix.code, bits, *lanes);
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
  } else if (const NarrowFloat* narrow =
                 std::find_if(std::begin(kNarrowFloats), std::end(kNarrowFloats),
                              [this](const NarrowFloat& type) { return type.code == code(); });
             narrow != std::end(kNarrowFloats)) {
    text = narrow->name;
  } else if (const char* custom = code() > kBFloat ? CustomTypes().NameOf(code()) : nullptr) {
    text = "custom[" + std::string(custom) + "]" + std::to_string(bits());
  } else {
    static constexpr const char* kNames[] = {"int", "uint", "float", "handle", "bfloat"};
    ICHECK(code() <= kBFloat) << "unknown type code " << code();
    text = kNames[code()] + std::to_string(bits());
  }
  if (is_scalable_vector()) {
    text += "xvscalex" + std::to_string(-lanes());
  } else if (lanes() != 1) {
    text += "x" + std::to_string(lanes());
  }
  return text;
}

std::ostream& operator<<(std::ostream& os, DataType dtype) { return os << dtype.ToString(); }

namespace {

/*! \brief Names of the devices users added. Entries stay, so that their text may be handed out. */
struct DeviceNames {
  std::mutex& mutex = ProcessLock<std::mutex, DeviceNames>::Get();
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

TVM_REGISTER_GLOBAL("runtime._datatype_register").set_body_typed([](std::string name, int code) {
  CustomTypes().Add(name, code);
});
TVM_REGISTER_GLOBAL("runtime._datatype_get_type_code").set_body_typed([](std::string name) {
  return CustomTypes().Require(name);
});
TVM_REGISTER_GLOBAL("runtime._datatype_get_type_name").set_body_typed([](int code) {
  const char* name = CustomTypes().NameOf(code);
  TVM_CHECK(name != nullptr, ValueError) << "no custom data type has code " << code;
  return String(name);
});
TVM_REGISTER_GLOBAL("runtime._datatype_get_type_registered").set_body_typed([](int code) {
  return CustomTypes().NameOf(code) != nullptr;
});

double NarrowFloatFormat::Largest() const {
  // The exponent and mantissa of the largest code that is a number.
  int code = (1 << (bits - 1)) - 1;
  if (specials == kIEEE) code = code - (1 << mantissa_bits);
  if (specials == kOnlyNaN) --code;
  const int mantissa = code & ((1 << mantissa_bits) - 1);
  return std::ldexp((1 << mantissa_bits) + mantissa,
                    (code >> mantissa_bits) - bias - mantissa_bits);
}

const NarrowFloatFormat* NarrowFloatFormatOf(DataType dtype) {
  using Format = NarrowFloatFormat;
  static constexpr Format kBFloat16{16, 7, 127, Format::kIEEE}, kE3M4{8, 4, 3, Format::kIEEE},
      kE4M3{8, 3, 7, Format::kIEEE}, kE4M3B11{8, 3, 11, Format::kUnsignedZero},
      kE4M3FN{8, 3, 7, Format::kOnlyNaN}, kE4M3FNUZ{8, 3, 8, Format::kUnsignedZero},
      kE5M2{8, 2, 15, Format::kIEEE}, kE5M2FNUZ{8, 2, 16, Format::kUnsignedZero};
  if (dtype.is_bfloat16()) return &kBFloat16;
  if (dtype.bits() != 8) return nullptr;
  switch (dtype.code()) {
    case kFloat8_e3m4:
      return &kE3M4;
    case kFloat8_e4m3:
      return &kE4M3;
    case kFloat8_e4m3b11fnuz:
      return &kE4M3B11;
    case kFloat8_e4m3fn:
      return &kE4M3FN;
    case kFloat8_e4m3fnuz:
      return &kE4M3FNUZ;
    case kFloat8_e5m2:
      return &kE5M2;
    case kFloat8_e5m2fnuz:
      return &kE5M2FNUZ;
    default:
      return nullptr;
  }
}

}  // namespace runtime
}  // namespace tvm
