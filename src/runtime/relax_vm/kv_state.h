/*!
 * \file kv_state.h
 * \brief What sequences of tokens leave behind for the tokens after them, and how they are run.
 */
#ifndef TVM_RUNTIME_RELAX_VM_KV_STATE_H_
#define TVM_RUNTIME_RELAX_VM_KV_STATE_H_

#include <tvm/runtime/container/shape_tuple.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/object.h>

#include <string>
#include <utility>
#include <vector>

namespace tvm {
namespace runtime {
namespace relax_vm {

/*!
 * \brief State of several sequences, each with a number of its own.
 *
 * A step of a network is between BeginForward, which says how many tokens of which sequences it
 * takes, and EndForward. Functions raise a ValueError for a sequence that is not there.
 */
class KVStateObj : public Object {
 public:
  virtual ~KVStateObj() = default;
  virtual void Clear() = 0;
  virtual void AddSequence(int64_t sequence) = 0;
  virtual void RemoveSequence(int64_t sequence) = 0;
  /*! \brief Begin `child` with the first `position` tokens of `parent`, all of them for -1. */
  virtual void ForkSequence(int64_t parent, int64_t child, int64_t position) = 0;
  /*! \brief Forget the last `count` tokens. */
  virtual void PopN(int64_t sequence, int64_t count) = 0;
  virtual void BeginForward(const ShapeTuple& sequences, const ShapeTuple& lengths) = 0;
  virtual void EndForward() = 0;

  TVM_DECLARE_OBJECT(KVStateObj, Object, "relax.vm.KVState");
};

class KVState : public ObjectRef {
 public:
  TVM_DEFINE_MUTABLE_REF(KVState, ObjectRef, KVStateObj);
};

/*! \brief Numbers as a tensor on a device. */
NDArray IntsOn(Device device, const std::vector<int32_t>& numbers);

/*! \brief Check what a step is told: a length of at least one for each sequence, no sequence twice.
 */
void CheckStep(const std::string& who, const ShapeTuple& sequences, const ShapeTuple& lengths);

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_RELAX_VM_KV_STATE_H_
