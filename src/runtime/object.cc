#include <tvm/runtime/object.h>

#include <deque>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "process_lock.h"

namespace tvm {
namespace runtime {
namespace {

class TypeTable {
 public:
  // Never destroyed: objects may outlive every static destructor.
  static TypeTable& Global() {
    static TypeTable* table = new TypeTable();
    return *table;
  }

  const TypeInfo* GetOrAlloc(const char* key, const TypeInfo* parent) {
    std::unique_lock lock(mutex_);
    if (auto it = by_key_.find(key); it != by_key_.end()) {
      ICHECK(it->second->parent == parent)
          << "the type key \"" << key << "\" is declared with two different parents";
      return it->second;
    }
    TypeInfo& info = types_.emplace_back();
    info.key = key;
    info.index = static_cast<uint32_t>(types_.size() - 1);
    info.parent = parent;
    if (parent != nullptr) {
      info.depth = parent->depth + 1;
      info.ancestors = parent->ancestors;
    }
    info.ancestors.push_back(&info);
    by_key_.emplace(info.key, &info);
    return &info;
  }

  const TypeInfo* Find(std::string_view key) {
    std::shared_lock lock(mutex_);
    auto it = by_key_.find(key);
    return it == by_key_.end() ? nullptr : it->second;
  }

  const TypeInfo* FromIndex(uint32_t index) {
    std::shared_lock lock(mutex_);
    ICHECK(index < types_.size()) << "no type has index " << index;
    return &types_[index];
  }

  uint32_t Count() {
    std::shared_lock lock(mutex_);
    return static_cast<uint32_t>(types_.size());
  }

 private:
  std::shared_mutex& mutex_ = ProcessLock<std::shared_mutex, TypeTable>::Get();
  // A deque keeps addresses valid while it grows.
  std::deque<TypeInfo> types_;
  std::unordered_map<std::string_view, const TypeInfo*> by_key_;
};

}  // namespace

const TypeInfo* TypeInfo::GetOrAlloc(const char* key, const TypeInfo* parent) {
  return TypeTable::Global().GetOrAlloc(key, parent);
}

void ThrowNullReference(const char* type_key) {
  TVM_FATAL(ValueError) << "None where an object of type " << type_key << " is needed";
}

void Object::Destroy() const {
  // The owner of a long chain would delete it by recursion. Beyond this depth objects wait for
  // the outermost deletion; the list lives only as long as it is needed, because objects are
  // also deleted while a thread ends.
  constexpr int kMaxNested = 256;
  struct Nesting {
    int depth;
    std::vector<const Object*>* waiting;
  };
  thread_local Nesting nesting{0, nullptr};
  if (nesting.depth >= kMaxNested) {
    if (nesting.waiting == nullptr) nesting.waiting = new std::vector<const Object*>();
    nesting.waiting->push_back(this);
    return;
  }
  ++nesting.depth;
  delete this;
  --nesting.depth;
  if (nesting.depth != 0 || nesting.waiting == nullptr) return;
  nesting.depth = 1;
  while (!nesting.waiting->empty()) {
    const Object* next = nesting.waiting->back();
    nesting.waiting->pop_back();
    delete next;
  }
  delete std::exchange(nesting.waiting, nullptr);
  nesting.depth = 0;
}

const TypeInfo* TypeInfo::Find(std::string_view key) { return TypeTable::Global().Find(key); }

const TypeInfo* TypeInfo::FromIndex(uint32_t index) { return TypeTable::Global().FromIndex(index); }

uint32_t TypeInfo::Count() { return TypeTable::Global().Count(); }

const TypeInfo* Object::StaticTypeInfo() {
  static const TypeInfo* const info = TypeInfo::GetOrAlloc(_type_key, nullptr);
  return info;
}

void ThrowDowncastError(const char* expected, const Object* actual) {
  TVM_FATAL(TypeError) << "Downcast: expected " << expected << ", got " << actual->GetTypeKey();
}

}  // namespace runtime
}  // namespace tvm
