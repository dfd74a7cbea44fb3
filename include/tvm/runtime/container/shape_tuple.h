/*!
 * \file tvm/runtime/container/shape_tuple.h
 * \brief ShapeTuple: the extents of a tensor as an object.
 */
#ifndef TVM_RUNTIME_CONTAINER_SHAPE_TUPLE_H_
#define TVM_RUNTIME_CONTAINER_SHAPE_TUPLE_H_

#include <tvm/runtime/container/array.h>

#include <optional>
#include <vector>

namespace tvm {
namespace runtime {

class ShapeTupleObj final : public Object {
 public:
  using Extent = int64_t;
  std::vector<Extent> data;
  explicit ShapeTupleObj(std::vector<Extent> extents = {}) : data(std::move(extents)) {}
  TVM_DECLARE_OBJECT(ShapeTupleObj, Object, "runtime.ShapeTuple");
};

class ShapeTuple : public ObjectRef {
 public:
  TVM_DEFINE_REF(ShapeTuple, ObjectRef, ShapeTupleObj);
  ShapeTuple(std::vector<int64_t> extents)
      : ObjectRef(make_object<ShapeTupleObj>(std::move(extents))) {}
  /*! \brief A list of integers counts as a shape where one is expected. */
  static std::optional<ShapeTuple> FromAny(const Any& value) {
    auto extents = value.TryCast<Array<int64_t>>();
    if (!extents) return std::nullopt;
    return ShapeTuple(std::vector<int64_t>(extents->begin(), extents->end()));
  }
  size_t size() const { return get()->data.size(); }
  int64_t operator[](size_t i) const { return get()->data.at(i); }
  auto begin() const { return get()->data.begin(); }
  auto end() const { return get()->data.end(); }
  /*! \brief Number of elements of a tensor of this shape. */
  int64_t Product() const {
    int64_t product = 1;
    for (int64_t extent : *this) product *= extent;
    return product;
  }
};

}  // namespace runtime
using runtime::ShapeTuple;
using runtime::ShapeTupleObj;
}  // namespace tvm

#endif  // TVM_RUNTIME_CONTAINER_SHAPE_TUPLE_H_
