#include <tvm/ir/op.h>
#include <tvm/node/repr_printer.h>

#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>

namespace tvm {

TVM_REGISTER_NODE(OpNode);

/*! \brief All operators. Never destroyed: graphs refer to them until the process ends. */
class OpRegistry {
 public:
  static OpRegistry& Global() {
    static auto* registry = new OpRegistry();
    return *registry;
  }

  OpRegEntry& RegisterOrGet(const std::string& name) {
    std::unique_lock lock(mutex_);
    auto [it, added] = by_name_.try_emplace(name, nullptr);
    if (added) {
      OpRegEntry& entry = entries_.emplace_back();
      auto node = make_object<OpNode>();
      node->name = name;
      entry.op_ = Op(ObjectPtr<Object>(node));
      it->second = &entry;
    }
    return *it->second;
  }

  const OpRegEntry* Find(const std::string& name) {
    std::shared_lock lock(mutex_);
    auto it = by_name_.find(name);
    return it == by_name_.end() ? nullptr : it->second;
  }

  std::vector<std::string> Names() {
    std::shared_lock lock(mutex_);
    std::vector<std::string> names;
    for (const auto& item : by_name_) names.push_back(item.first);
    return names;
  }

  void NoteAttr(const std::string& attr) {
    std::unique_lock lock(mutex_);
    attrs_.insert(attr);
  }
  bool HasAttr(const std::string& attr) {
    std::shared_lock lock(mutex_);
    return attrs_.count(attr) != 0;
  }

 private:
  std::shared_mutex mutex_;
  std::deque<OpRegEntry> entries_;
  std::map<std::string, OpRegEntry*> by_name_;
  std::set<std::string> attrs_;
};

const Op& Op::Get(const String& name) {
  const OpRegEntry* entry = OpRegistry::Global().Find(name);
  if (entry == nullptr) {
    // The last part of the name is what people remember.
    std::string tail = name.str().substr(name.str().rfind('.') + 1);
    std::string similar;
    for (const std::string& known : OpRegistry::Global().Names()) {
      if (known.substr(known.rfind('.') + 1) == tail) similar += "; did you mean \"" + known + "\"";
    }
    TVM_FATAL(ValueError) << "Op: there is no operator \"" << name << '"' << similar;
  }
  return entry->op();
}

bool Op::Exists(const String& name) { return OpRegistry::Global().Find(name) != nullptr; }

bool Op::HasAttrMap(const String& attr) { return OpRegistry::Global().HasAttr(attr); }

Array<String> Op::ListNames() {
  Array<String> names;
  for (const std::string& name : OpRegistry::Global().Names()) names.push_back(name);
  return names;
}

OpRegEntry& OpRegEntry::RegisterOrGet(const String& name) {
  return OpRegistry::Global().RegisterOrGet(name);
}

OpRegEntry& OpRegEntry::describe(const String& text) {
  node()->description = text;
  return *this;
}

OpRegEntry& OpRegEntry::set_num_inputs(int32_t n) {
  node()->num_inputs = n;
  return *this;
}

OpRegEntry& OpRegEntry::add_argument(const String& name, const String& type,
                                     const String& description) {
  node()->arguments.push_back(name);
  return *this;
}

OpRegEntry& OpRegEntry::set_attrs_type_key(const String& key) {
  node()->attrs_type_key = key;
  return *this;
}

OpRegEntry& OpRegEntry::SetAny(const String& attr, Any value) {
  OpRegistry::Global().NoteAttr(attr);
  node()->attr_table.Set(attr, value);
  return *this;
}

namespace {

// The level of attributes set by the compiler itself.
constexpr int kDefaultAttrLevel = 10;

[[maybe_unused]] const bool op_is_saved_by_name = [] {
  NodeReflection* reflection = NodeReflection::Mutable(OpNode::StaticTypeInfo());
  reflection->name_of = [](const Object* node) {
    return static_cast<const OpNode*>(node)->name.str();
  };
  reflection->find_named = [](const std::string& name) { return Op::Get(name).object_ptr(); };
  return true;
}();

}  // namespace

TVM_REGISTER_REPR(OpNode, [](const OpNode* node, ReprPrinter* p) {
  p->stream << "Op(" << node->name << ')';
});

TVM_REGISTER_GLOBAL("ir.GetOp").set_body_typed([](String name) { return Op::Get(name); });

TVM_REGISTER_GLOBAL("ir.OpExists").set_body_typed([](String name) { return Op::Exists(name); });

TVM_REGISTER_GLOBAL("ir.ListOpNames").set_body_typed([]() { return Op::ListNames(); });

TVM_REGISTER_GLOBAL("ir.OpGetAttr").set_body_typed([](Op op, String attr) {
  return op->attr_table.contains(attr) ? op->attr_table.at(attr) : Any();
});

/*! \brief An attribute set at a lower level than the present one changes nothing. */
TVM_REGISTER_GLOBAL("ir.OpSetAttr").set_body_typed([](Op op, String attr, Any value, int level) {
  static std::mutex mutex;
  static std::map<std::pair<const OpNode*, std::string>, int> levels;
  std::lock_guard lock(mutex);
  auto [it, added] = levels.try_emplace({op.get(), attr.str()}, kDefaultAttrLevel);
  if (op->attr_table.contains(attr) && level < it->second) return;
  it->second = level;
  OpRegEntry::RegisterOrGet(op->name).SetAny(attr, value);
});

TVM_REGISTER_GLOBAL("ir.OpResetAttr").set_body_typed([](Op op, String attr) {
  op->attr_table.erase(attr);
});

TVM_REGISTER_GLOBAL("ir.RegisterOp").set_body_typed([](String name, String description) {
  TVM_CHECK(!Op::Exists(name), ValueError) << "Op: \"" << name << "\" is already registered";
  return OpRegEntry::RegisterOrGet(name).describe(description).op();
});

}  // namespace tvm
