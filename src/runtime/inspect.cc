/*!
 * \file inspect.cc
 * \brief What the runtime knows about types and objects, for people who look into it.
 */
#include <tvm/runtime/registry.h>

#include <sstream>

namespace tvm {
namespace runtime {

TVM_REGISTER_GLOBAL("runtime.ObjectPtrHash").set_body_typed([](ObjectRef object) {
  return static_cast<int64_t>(std::hash<const Object*>()(object.get()));
});

/*! \brief All types with at least `min_children` derived types, one a line, as a text. */
TVM_REGISTER_GLOBAL("runtime.DumpTypeTable").set_body_typed([](int64_t min_children) {
  const uint32_t count = TypeInfo::Count();
  std::vector<int64_t> children(count, 0);
  for (uint32_t i = 0; i < count; ++i) {
    const TypeInfo* parent = TypeInfo::FromIndex(i)->parent;
    if (parent != nullptr && parent->index < count) ++children[parent->index];
  }
  std::ostringstream os;
  for (uint32_t i = 0; i < count; ++i) {
    const TypeInfo* type = TypeInfo::FromIndex(i);
    if (children[i] < min_children) continue;
    os << '[' << i << "] " << type->key;
    if (type->parent != nullptr) os << "\tparent=" << type->parent->key;
    os << "\tchildren=" << children[i] << '\n';
  }
  return String(os.str());
});

}  // namespace runtime
}  // namespace tvm
