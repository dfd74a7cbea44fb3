/*!
 * \file workspace_pool.h
 * \brief Scratch memory that a thread takes and gives back in any order.
 */
#ifndef TVM_RUNTIME_WORKSPACE_POOL_H_
#define TVM_RUNTIME_WORKSPACE_POOL_H_

#include <tvm/runtime/device_api.h>

#include <vector>

namespace tvm {
namespace runtime {

/*! \brief Blocks of one thread on one device. Given-back blocks wait for the next request. */
class WorkspacePool {
 public:
  WorkspacePool(DeviceAPI* api, Device device) : api_(api), device_(device) {}
  ~WorkspacePool();
  void* Alloc(size_t bytes);
  void Free(void* data);

 private:
  struct Block {
    void* data;
    size_t bytes;
  };
  DeviceAPI* api_;
  Device device_;
  std::vector<Block> used_;
  // Ascending size, so that the first fit is the best fit.
  std::vector<Block> free_;
};

}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_WORKSPACE_POOL_H_
