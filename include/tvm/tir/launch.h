/*!
 * \file tvm/tir/launch.h
 * \brief What a host function and the kernels it launches agree on: conventions, threads, scopes.
 */
#ifndef TVM_TIR_LAUNCH_H_
#define TVM_TIR_LAUNCH_H_

#include <tvm/tir/function.h>

#include <string>

namespace tvm {

class Target;

/*! \brief How a function is called; the integer value of its attribute `calling_conv`. */
enum class CallingConv : int {
  /*! \brief Parameters as declared, by functions of the same module. */
  kDefault = 0,
  /*! \brief `(const TVMAny* args, int32 num_args, TVMAny* ret)`. */
  kCPackedFunc = 1,
  /*! \brief By a host, with pointers, then scalars, then the values of the launch parameters. */
  kDeviceKernelLaunch = 2,
};

namespace tir {

/*! \brief The calling convention that the function's attributes state. */
inline CallingConv GetCallingConv(const PrimFunc& func) {
  return static_cast<CallingConv>(
      func->GetAttr<int>(attr::kCallingConv, static_cast<int>(CallingConv::kDefault)));
}

/*! \brief Whether functions for the target are called, not launched on threads. */
bool RunsOnProcessor(const Target& target);

namespace attr {
/*! \brief Of a function: it is called from outside of its module. */
constexpr const char* kIsGlobalFunc = "tir.is_global_func";
/*! \brief Of a function: it is the one that callers begin with. */
constexpr const char* kIsEntryFunc = "tir.is_entry_func";
/*! \brief Of a function: it runs on the target's host; BindTarget reads it. */
constexpr const char* kIsHostFunc = "tir.is_host_func";
/*! \brief Statement around code of a device, without and with threads of a pipeline. */
constexpr const char* device_scope = "device_scope";
constexpr const char* pipeline_exec_scope = "pipeline_exec_scope";
/*!
 * \brief Of a kernel: array of thread tags, one per launch argument after the kernel's own, and at
 * the end kUseDynSharedMemory when that many bytes of dynamic shared memory are an argument too.
 */
constexpr const char* kKernelLaunchParams = "tir.kernel_launch_params";
constexpr const char* kUseDynSharedMemory = "tir.use_dyn_shared_memory";
/*! \brief Statement around host code: allocations of scope "global" are of this device. */
constexpr const char* device_type = "device_type";
constexpr const char* device_id = "device_id";
/*! \brief Stores inside go to the half of a double buffer that is read in the next trip only. */
constexpr const char* double_buffer_write = "double_buffer_write";
}  // namespace attr

/*! \brief Memory by how many threads see it; a smaller rank is seen by more of them. */
enum class StorageRank : int {
  kGlobal = 0,
  /*! \brief One block: "shared" and "shared.dyn". */
  kShared = 1,
  kWarp = 2,
  /*! \brief One thread: "local". */
  kLocal = 3,
  kWMMAMatrixA = 4,
  kWMMAMatrixB = 5,
  kWMMAAccumulator = 6,
};

/*! \brief Rank of a scope's name; a scope that a user made up counts as global. */
StorageRank StorageRankOf(const std::string& scope);
/*! \brief Storage scope of an allocation or buffer by its data pointer; "global" when it has none.
 */
std::string StorageScopeOf(const Var& data);

/*! \brief Which part of a launch a thread tag names. */
enum class ThreadKind : int { kBlock = 0, kThread = 1, kVirtual = 2 };

struct ThreadTag {
  ThreadKind kind;
  /*! \brief 0, 1, 2 for x, y, z. */
  int dim;
};
/*!
 * \brief Meaning of "blockIdx.x", "threadIdx.y", "vthread", "vthread.z", "cthread", ...
 * \throws ValueError for any other text.
 */
ThreadTag ParseThreadTag(const std::string& tag);

}  // namespace tir
}  // namespace tvm
#endif  // TVM_TIR_LAUNCH_H_
