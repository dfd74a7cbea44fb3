/*!
 * \file container_tuple.cc
 * \brief ShapeTuple and ADT as Python sees them.
 */
#include <tvm/runtime/container/adt.h>
#include <tvm/runtime/container/shape_tuple.h>
#include <tvm/runtime/registry.h>

namespace tvm {
namespace runtime {

TVM_REGISTER_GLOBAL("runtime.ShapeTuple").set_body([](Args args, RetValue* ret) {
  std::vector<int64_t> extents;
  for (int i = 0; i < args.size(); ++i) {
    extents.push_back(ReadArg<int64_t>("runtime.ShapeTuple", args, i));
  }
  *ret = ShapeTuple(std::move(extents));
});

TVM_REGISTER_GLOBAL("runtime.GetShapeTupleSize").set_body_typed([](ShapeTuple shape) {
  return static_cast<int64_t>(shape.size());
});

TVM_REGISTER_GLOBAL("runtime.GetShapeTupleElem").set_body_typed([](ShapeTuple shape, int64_t i) {
  const auto size = static_cast<int64_t>(shape.size());
  if (i < -size || i >= size) ThrowIndexError(i, shape.size());
  return shape[static_cast<size_t>(i < 0 ? i + size : i)];
});

/*! \brief (tag, field...). */
TVM_REGISTER_GLOBAL("runtime.ADT").set_body([](Args args, RetValue* ret) {
  *ret = ADT(ReadArg<int32_t>("runtime.ADT", args, 0), Array<Any>(args.begin() + 1, args.end()));
});

TVM_REGISTER_GLOBAL("runtime.Tuple").set_body([](Args args, RetValue* ret) {
  *ret = ADT::Tuple(Array<Any>(args.begin(), args.end()));
});

TVM_REGISTER_GLOBAL("runtime.GetADTTag").set_body_typed([](ADT adt) { return adt.tag(); });

TVM_REGISTER_GLOBAL("runtime.GetADTSize").set_body_typed([](ADT adt) {
  return static_cast<int64_t>(adt.size());
});

TVM_REGISTER_GLOBAL("runtime.GetADTFields").set_body_typed([](ADT adt, int64_t i) {
  return adt[i];
});

}  // namespace runtime
}  // namespace tvm
