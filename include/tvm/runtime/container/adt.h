/*!
 * \file tvm/runtime/container/adt.h
 * \brief ADT: a value of an algebraic data type, which is a constructor's tag and its fields.
 */
#ifndef TVM_RUNTIME_CONTAINER_ADT_H_
#define TVM_RUNTIME_CONTAINER_ADT_H_

#include <tvm/runtime/container/array.h>

namespace tvm {
namespace runtime {

class ADTObj final : public Object {
 public:
  int32_t tag = 0;
  Array<Any> fields;
  TVM_DECLARE_OBJECT(ADTObj, Object, "runtime.ADT");
};

class ADT : public ObjectRef {
 public:
  TVM_DEFINE_REF(ADT, ObjectRef, ADTObj);
  ADT(int32_t tag, Array<Any> fields) {
    auto node = make_object<ADTObj>();
    node->tag = tag;
    node->fields = std::move(fields);
    data_ = std::move(node);
  }
  /*! \brief A tuple: tag 0. */
  static ADT Tuple(Array<Any> fields) { return ADT(0, std::move(fields)); }
  int32_t tag() const { return get()->tag; }
  size_t size() const { return get()->fields.size(); }
  Any operator[](int64_t i) const { return get()->fields[i]; }
};

}  // namespace runtime
using runtime::ADT;
using runtime::ADTObj;
}  // namespace tvm

#endif  // TVM_RUNTIME_CONTAINER_ADT_H_
