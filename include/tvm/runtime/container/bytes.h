/*!
 * \file tvm/runtime/container/bytes.h
 * \brief Bytes: a String whose content need not be text. In Python it is a `bytes`.
 */
#ifndef TVM_RUNTIME_CONTAINER_BYTES_H_
#define TVM_RUNTIME_CONTAINER_BYTES_H_

#include <tvm/runtime/container/string.h>

namespace tvm {
namespace runtime {

class BytesObj final : public StringObj {
 public:
  using StringObj::StringObj;
  TVM_DECLARE_OBJECT(BytesObj, StringObj, "runtime.Bytes");
};

/*! \brief Accepted wherever a String is. */
class Bytes : public String {
 public:
  explicit Bytes(std::string bytes) : String(make_object<BytesObj>(std::move(bytes))) {}
};

template <>
struct AnyTraits<Bytes> {
  static void Store(Any* slot, Bytes value) { slot->SetObject(std::move(value).MoveObjectPtr()); }
};

}  // namespace runtime
using runtime::Bytes;
using runtime::BytesObj;
}  // namespace tvm

#endif  // TVM_RUNTIME_CONTAINER_BYTES_H_
