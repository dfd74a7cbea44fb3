#include "runtime/cuda/driver.h"

#include <dlfcn.h>

#include <map>
#include <mutex>
#include <vector>

namespace tvm {
namespace runtime {
namespace cuda {

namespace {

struct RetainedContexts {
  std::mutex mutex;
  std::vector<Context> contexts;
};

RetainedContexts& Retained() {
  // Never destroyed: device memory may be freed by static destructors.
  static auto* retained = new RetainedContexts;
  return *retained;
}

// The first driver that has every function of the list; launching graphs came last.
constexpr int kOldestVersion = 11040;

}  // namespace

std::string VersionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Driver::Driver() {
  constexpr const char* kLibrary = "libcuda.so.1";
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    reason_ = dlerror();
    return;
  }
  // Asked for first: an old driver lacks others.
  auto version_of = reinterpret_cast<Status (*)(int*)>(dlsym(library, "cuDriverGetVersion"));
  if (version_of != nullptr && version_of(&version_) == kSuccess && version_ < kOldestVersion) {
    reason_ = std::string(kLibrary) + " is a driver of CUDA " + VersionText(version_) +
              ", and CUDA " + VersionText(kOldestVersion) +
              " or later is needed; update the NVIDIA driver";
    return;
  }
#define TVM_CUDA_FIND_FUNCTION(Member, Symbol, Params)                                    \
  Member = reinterpret_cast<Status(*) Params>(dlsym(library, #Symbol));                   \
  if (Member == nullptr) {                                                                \
    reason_ = std::string(kLibrary) + " has no function " #Symbol "; a driver of CUDA " + \
              VersionText(kOldestVersion) + " or later has it";                           \
    return;                                                                               \
  }
  TVM_CUDA_DRIVER_FUNCTIONS(TVM_CUDA_FIND_FUNCTION)
#undef TVM_CUDA_FIND_FUNCTION
  Status status = Init(0);
  if (status == kSuccess) status = DeviceGetCount(&num_devices_);
  if (status != kSuccess) {
    const char* text = nullptr;
    GetErrorString(status, &text);
    reason_ = std::string(kLibrary) + " cannot start: " + (text ? text : "unknown error");
    num_devices_ = 0;
  } else if (num_devices_ == 0) {
    reason_ = std::string(kLibrary) + " finds no device";
  }
}

const Driver& Driver::Instance() {
  static const Driver* driver = new Driver();
  return *driver;
}

const Driver* Driver::TryGet() {
  const Driver& driver = Instance();
  return driver.num_devices_ > 0 ? &driver : nullptr;
}

std::string Driver::WhyUnusable() { return Instance().reason_; }

const Driver& Driver::Get() {
  const Driver& driver = Instance();
  TVM_CHECK(driver.num_devices_ > 0, RuntimeError)
      << "cuda: no usable GPU, since libcuda could not be used (" << driver.reason_
      << "). Run on a machine with an NVIDIA driver, or build for another target";
  return driver;
}

void Driver::Check(Status status, const char* what) const {
  // At exit the driver is gone before the last arrays are; there is nothing left to free then.
  if (status == kSuccess || status == kErrorDeinitialized) return;
  const char* name = nullptr;
  const char* text = nullptr;
  GetErrorName(status, &name);
  GetErrorString(status, &text);
  TVM_FATAL(RuntimeError) << "cuda: " << what << " failed: " << (name ? name : "unknown error")
                          << " (" << (text ? text : "no description") << ")";
}

Context Driver::ContextOf(int device_id) const {
  TVM_CHECK(device_id >= 0 && device_id < num_devices_, ValueError)
      << "cuda(" << device_id << "): this machine has " << num_devices_ << " CUDA device(s)";
  RetainedContexts& retained = Retained();
  std::lock_guard<std::mutex> lock(retained.mutex);
  retained.contexts.resize(static_cast<size_t>(num_devices_), nullptr);
  Context& context = retained.contexts[static_cast<size_t>(device_id)];
  if (context == nullptr) {
    DeviceOrdinal device;
    Check(DeviceGet(&device, device_id), "cuDeviceGet");
    Check(PrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  }
  return context;
}

void Driver::Enter(int device_id) const {
  Check(CtxSetCurrent(ContextOf(device_id)), "cuCtxSetCurrent");
}

int Driver::Attribute(int device_id, int attribute) const {
  TVM_CHECK(device_id >= 0 && device_id < num_devices_, ValueError)
      << "cuda(" << device_id << "): this machine has " << num_devices_ << " CUDA device(s)";
  DeviceOrdinal device;
  int value = 0;
  Check(DeviceGet(&device, device_id), "cuDeviceGet");
  Check(DeviceGetAttribute(&value, attribute, device), "cuDeviceGetAttribute");
  return value;
}

namespace {
std::map<int, Stream>& ThreadStreams() {
  thread_local std::map<int, Stream> streams;
  return streams;
}
}  // namespace

Stream CurrentStream(int device_id) {
  auto it = ThreadStreams().find(device_id);
  return it == ThreadStreams().end() ? nullptr : it->second;
}

void SetCurrentStream(int device_id, Stream stream) { ThreadStreams()[device_id] = stream; }

}  // namespace cuda
}  // namespace runtime
}  // namespace tvm
