/*!
 * \file tvm/runtime/ndarray.h
 * \brief NDArray: a reference-counted tensor on a device.
 */
#ifndef TVM_RUNTIME_NDARRAY_H_
#define TVM_RUNTIME_NDARRAY_H_

#include <tvm/runtime/container/array.h>
#include <tvm/runtime/container/optional.h>
#include <tvm/runtime/container/string.h>

#include <vector>

namespace tvm {
namespace runtime {

/*! \brief Storage of an NDArray: its own memory, a view of another array, or foreign memory. */
class NDArrayObj final : public Object {
 public:
  NDArrayObj() = default;
  NDArrayObj(const NDArrayObj&) = delete;
  TVM_DLL ~NDArrayObj() override;

  DLTensor tensor{};
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  /*! \brief The array whose memory this one looks at. */
  ObjectRef base;
  /*! \brief Foreign owner, released with this object. */
  DLManagedTensor* foreign = nullptr;
  bool owns_data = false;
  TVM_DECLARE_OBJECT(NDArrayObj, Object, "runtime.NDArray");
};

/*! \brief Memory starts at a multiple of this many bytes. */
constexpr size_t kAllocAlignment = 64;

class NDArray : public ObjectRef {
 public:
  TVM_DEFINE_MUTABLE_REF(NDArray, ObjectRef, NDArrayObj);

  /*! \brief Uninitialised compact array. */
  TVM_DLL static NDArray Empty(std::vector<int64_t> shape, DataType dtype, Device device,
                               Optional<String> mem_scope = NullOpt);
  /*! \brief Take over a DLPack tensor without copying; its deleter runs with the last reference. */
  TVM_DLL static NDArray FromDLPack(DLManagedTensor* tensor);
  /*! \brief A DLPack tensor that keeps this array alive until its deleter is called. */
  TVM_DLL DLManagedTensor* ToDLPack() const;

  /*! \brief Same memory under another shape or type that needs no more bytes. */
  TVM_DLL NDArray CreateView(std::vector<int64_t> shape, DataType dtype,
                             size_t byte_offset = 0) const;
  /*! \brief Copy elements; shapes and types must agree, devices may differ. */
  TVM_DLL void CopyFrom(const DLTensor* source) const;
  TVM_DLL void CopyTo(DLTensor* destination) const;
  TVM_DLL NDArray CopyTo(Device device) const;
  /*! \brief Copy from or to compact host memory of exactly `bytes` bytes. */
  TVM_DLL void CopyFromBytes(const void* data, size_t bytes) const;
  TVM_DLL void CopyToBytes(void* data, size_t bytes) const;

  const std::vector<int64_t>& Shape() const { return get()->shape; }
  DataType dtype() const { return DataType(get()->tensor.dtype); }
  Device device() const { return get()->tensor.device; }
  int ndim() const { return get()->tensor.ndim; }
  bool IsContiguous() const;
  int64_t NumElements() const;
  size_t NumBytes() const;
  /*! \brief First element. */
  void* data() const { return static_cast<char*>(get()->tensor.data) + get()->tensor.byte_offset; }
  DLTensor* tensor() const { return &get()->tensor; }
};

/*! \brief Elements of a tensor. */
inline int64_t NumElements(const DLTensor& tensor) {
  int64_t n = 1;
  for (int i = 0; i < tensor.ndim; ++i) n *= tensor.shape[i];
  return n;
}
/*! \brief Bytes of a compact tensor of this shape and type. */
inline size_t NumBytes(const DLTensor& tensor) {
  return static_cast<size_t>(NumElements(tensor)) * GetElementBytes(tensor.dtype);
}
/*! \brief True for row-major tensors without gaps. */
TVM_DLL bool IsContiguous(const DLTensor& tensor);

inline bool NDArray::IsContiguous() const { return runtime::IsContiguous(get()->tensor); }
inline int64_t NDArray::NumElements() const { return runtime::NumElements(get()->tensor); }
inline size_t NDArray::NumBytes() const { return runtime::NumBytes(get()->tensor); }

}  // namespace runtime
using runtime::NDArray;
}  // namespace tvm

#endif  // TVM_RUNTIME_NDARRAY_H_
