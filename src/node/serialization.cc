/*!
 * \file serialization.cc
 * \brief The JSON form of object graphs.
 *
 * A document is `{"version": 1, "root": VALUE, "nodes": [NODE, ...]}`. Nodes come before those that
 * refer to them, so a reader needs one pass and a reference can never form a cycle. A VALUE is
 * null, a boolean, a number, a string, or one of `{"node": index}`, `{"dtype": "float32"}`,
 * `{"device": [type, id]}` and `{"float": "inf" | "-inf" | "nan"}`. A NODE is
 * `{"type": key, "fields": {name: VALUE}}`, or has "items" (arrays), "entries" (maps), "name"
 * (objects that exist once under a name) or "tensor" in place of "fields".
 */
#include <tvm/node/serialization.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/stack_guard.h>

#include <cmath>
#include <limits>
#include <unordered_map>

#include "runtime/json.h"

namespace tvm {
namespace {

using json::ArrayValue;
using json::ObjectValue;
using json::Value;
using runtime::NDArray;
using runtime::NDArrayObj;
using runtime::TypeInfo;

constexpr int64_t kFormatVersion = 1;

Value Tagged(const char* tag, Value value) {
  ObjectValue members;
  members.emplace_back(tag, std::move(value));
  return Value(std::move(members));
}

std::string ToHex(const void* data, size_t bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * bytes);
  for (size_t i = 0; i < bytes; ++i) {
    auto byte = static_cast<const unsigned char*>(data)[i];
    out.push_back(kDigits[byte >> 4]);
    out.push_back(kDigits[byte & 15]);
  }
  return out;
}

std::string FromHex(const std::string& text, const std::string& where) {
  auto digit = [&](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    TVM_FATAL(ValueError) << "LoadJSON: " << where << " is not hexadecimal";
  };
  TVM_CHECK(text.size() % 2 == 0, ValueError) << "LoadJSON: " << where << " has half a byte";
  std::string out;
  for (size_t i = 0; i < text.size(); i += 2) {
    out.push_back(static_cast<char>(digit(text[i]) * 16 + digit(text[i + 1])));
  }
  return out;
}

class Saver {
 public:
  std::string Save(const Any& root) {
    ObjectValue document;
    document.emplace_back("version", Value(kFormatVersion));
    document.emplace_back("root", SaveValue(root));
    document.emplace_back("nodes", Value(std::move(nodes_)));
    std::string out;
    Value(std::move(document)).Write(&out);
    return out;
  }

 private:
  Value SaveValue(const Any& value) {
    switch (value.type_code()) {
      case kTVMNull:
        return Value();
      case kTVMBool:
        return Value(value.raw().v_int64 != 0);
      case kTVMInt:
        return Value(value.raw().v_int64);
      case kTVMFloat: {
        double number = value.raw().v_float64;
        if (std::isfinite(number)) return Value(number);
        const char* name = std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
        return Tagged("float", Value(std::string(name)));
      }
      case kTVMDataType:
        return Tagged("dtype", Value(DataType(value.raw().v_dtype).ToString()));
      case kTVMDevice: {
        Device device = value.raw().v_device;
        ArrayValue pair;
        pair.emplace_back(static_cast<int64_t>(device.device_type));
        pair.emplace_back(static_cast<int64_t>(device.device_id));
        return Tagged("device", Value(std::move(pair)));
      }
      case kTVMStr:
        return Value(std::string(value.raw().v_str));
      case kTVMObject:
        break;
      default:
        TVM_FATAL(TypeError) << "SaveJSON: a " << value.TypeName() << " cannot be saved";
    }
    if (const auto* text = value.as<StringObj>()) return Value(text->data);
    return Tagged("node", Value(SaveNode(value.object())));
  }

  int64_t SaveNode(const Object* node) {
    if (auto it = index_.find(node); it != index_.end()) {
      TVM_CHECK(it->second != kUnfinished, ValueError)
          << "SaveJSON: the graph has a cycle through an object of type " << node->GetTypeKey();
      return it->second;
    }
    if (runtime::IsStackUsedUp()) {
      return runtime::ResultOnNewStack([&] { return SaveNode(node); });
    }
    index_.emplace(node, kUnfinished);
    ObjectValue out;
    out.emplace_back("type", Value(node->GetTypeKey()));
    if (node->IsInstance<ArrayNode>()) {
      ArrayValue items;
      for (const Any& item : static_cast<const ArrayNode*>(node)->data) {
        items.push_back(SaveValue(item));
      }
      out.emplace_back("items", Value(std::move(items)));
    } else if (node->IsInstance<MapNode>()) {
      ArrayValue entries;
      for (const auto& [key, value] : static_cast<const MapNode*>(node)->entries()) {
        ArrayValue entry;
        entry.push_back(SaveValue(key));
        entry.push_back(SaveValue(value));
        entries.emplace_back(std::move(entry));
      }
      out.emplace_back("entries", Value(std::move(entries)));
    } else if (node->IsInstance<NDArrayObj>()) {
      out.emplace_back("tensor", SaveTensor(static_cast<const NDArrayObj*>(node)));
    } else {
      const NodeReflection* reflection = node->type_info()->reflection;
      if (reflection != nullptr && reflection->name_of != nullptr) {
        out.emplace_back("name", Value(reflection->name_of(node)));
      } else {
        ObjectValue fields;
        for (const FieldInfo& field : NodeReflection::Require(node->type_info()).fields()) {
          fields.emplace_back(field.name, SaveValue(field.Get(node)));
        }
        out.emplace_back("fields", Value(std::move(fields)));
      }
    }
    // After its children: what a node refers to always has a lower index.
    nodes_.emplace_back(std::move(out));
    auto index = static_cast<int64_t>(nodes_.size() - 1);
    index_[node] = index;
    return index;
  }

  static Value SaveTensor(const NDArrayObj* node) {
    NDArray array = GetRef<NDArray>(node).CopyTo(Device{kDLCPU, 0});
    ArrayValue shape;
    for (int64_t extent : array.Shape()) shape.emplace_back(extent);
    ObjectValue out;
    out.emplace_back("dtype", Value(array.dtype().ToString()));
    out.emplace_back("shape", Value(std::move(shape)));
    out.emplace_back("bytes", Value(ToHex(array.data(), array.NumBytes())));
    return Value(std::move(out));
  }

  // Index of a node whose children are being saved.
  static constexpr int64_t kUnfinished = -1;
  ArrayValue nodes_;
  std::unordered_map<const Object*, int64_t> index_;
};

class Loader {
 public:
  Any Load(const std::string& text) {
    Value document = Value::Parse(text);
    // Other writers of node graphs put a version of their own elsewhere, or none.
    TVM_CHECK(document.as<ObjectValue>() == nullptr || document.Find("version") != nullptr,
              ValueError)
        << "LoadJSON: the text says no format \"version\": it was written by another program or an "
        << "older one; this build reads version " << kFormatVersion;
    int64_t version = document.At("version", "the document").Expect<int64_t>("\"version\"");
    TVM_CHECK(version == kFormatVersion, ValueError)
        << "LoadJSON: the text has format version " << version << ", this build reads version "
        << kFormatVersion;
    const auto& nodes = document.At("nodes", "the document").Expect<ArrayValue>("\"nodes\"");
    nodes_.reserve(nodes.size());
    for (const Value& node : nodes) {
      where_ = "node " + std::to_string(nodes_.size());
      try {
        nodes_.push_back(LoadNode(node));
      } catch (const Error& error) {
        // Constructors and conversions do not know which node they were called for.
        if (error.message().find("JSON: ") < 5) throw;
        TVM_FATAL(ValueError) << "LoadJSON: " << where_ << ": " << error.message();
      }
    }
    where_ = "\"root\"";
    return LoadValue(document.At("root", "the document"));
  }

 private:
  Any LoadValue(const Value& value) {
    if (value.is_null()) return Any();
    if (const bool* flag = value.as<bool>()) return Any(*flag);
    if (const int64_t* integer = value.as<int64_t>()) return Any(*integer);
    if (const double* number = value.as<double>()) return Any(*number);
    if (const auto* text = value.as<std::string>()) return Any(*text);
    const auto& members = value.Expect<ObjectValue>(where_);
    TVM_CHECK(members.size() == 1, ValueError)
        << "LoadJSON: " << where_ << ": expected a value with one tag";
    const auto& [tag, payload] = members[0];
    if (tag == "node") {
      int64_t index = payload.Expect<int64_t>(where_);
      TVM_CHECK(index >= 0 && static_cast<size_t>(index) < nodes_.size(), ValueError)
          << "LoadJSON: " << where_ << " refers to node " << index
          << ", which does not come before it";
      return nodes_[static_cast<size_t>(index)];
    }
    if (tag == "dtype") return Any(LoadDataType(payload));
    if (tag == "device") {
      const auto& pair = payload.Expect<ArrayValue>(where_);
      TVM_CHECK(pair.size() == 2, ValueError) << "LoadJSON: " << where_ << ": bad device";
      int32_t numbers[2];
      for (int i = 0; i < 2; ++i) {
        int64_t number = pair[i].Expect<int64_t>(where_);
        TVM_CHECK(number >= 0 && number <= std::numeric_limits<int32_t>::max(), ValueError)
            << "LoadJSON: " << where_ << ": " << number << " is no part of a device";
        numbers[i] = static_cast<int32_t>(number);
      }
      return Any(Device{numbers[0], numbers[1]});
    }
    if (tag == "float") {
      const auto& name = payload.Expect<std::string>(where_);
      double infinity = std::numeric_limits<double>::infinity();
      if (name == "inf") return Any(infinity);
      if (name == "-inf") return Any(-infinity);
      if (name == "nan") return Any(std::numeric_limits<double>::quiet_NaN());
    }
    TVM_FATAL(ValueError) << "LoadJSON: " << where_ << ": cannot read a value tagged \"" << tag
                          << '"';
  }

  DataType LoadDataType(const Value& value) const {
    const auto& name = value.Expect<std::string>(where_);
    try {
      return DataType::FromString(name);
    } catch (const Error& error) {
      TVM_FATAL(ValueError) << "LoadJSON: " << where_ << ": " << error.message();
    }
  }

  Any LoadNode(const Value& value) {
    const auto& key = value.At("type", where_).Expect<std::string>(where_ + ": \"type\"");
    where_ += " (" + key + ")";
    if (key == ArrayNode::_type_key) {
      Array<Any> array;
      for (const Value& item : value.At("items", where_).Expect<ArrayValue>(where_)) {
        array.push_back(LoadValue(item));
      }
      return array;
    }
    if (key == MapNode::_type_key) {
      Map<Any, Any> map;
      for (const Value& item : value.At("entries", where_).Expect<ArrayValue>(where_)) {
        const auto& entry = item.Expect<ArrayValue>(where_);
        TVM_CHECK(entry.size() == 2, ValueError) << "LoadJSON: " << where_ << ": bad entry";
        map.Set(LoadValue(entry[0]), LoadValue(entry[1]));
      }
      return map;
    }
    if (key == NDArrayObj::_type_key) return LoadTensor(value.At("tensor", where_));
    const TypeInfo* type = TypeInfo::Find(key);
    TVM_CHECK(type != nullptr && type->reflection != nullptr, ValueError)
        << "LoadJSON: " << where_ << ": this build has no such node type";
    if (type->reflection->find_named != nullptr) {
      const auto& name = value.At("name", where_).Expect<std::string>(where_);
      return ObjectRef(type->reflection->find_named(name));
    }
    TVM_CHECK(type->reflection->create != nullptr, ValueError)
        << "LoadJSON: " << where_ << ": the type is abstract";
    return LoadFields(type, value.At("fields", where_).Expect<ObjectValue>(where_));
  }

  Any LoadFields(const TypeInfo* type, const ObjectValue& fields) {
    ObjectPtr<Object> node = type->reflection->create();
    std::vector<const FieldInfo*> given;
    for (const FieldInfo& field : type->reflection->fields()) {
      const Value* value = nullptr;
      for (const auto& [name, candidate] : fields) {
        if (name == field.name) value = &candidate;
      }
      TVM_CHECK(value != nullptr, ValueError)
          << "LoadJSON: " << where_ << " lacks the field \"" << field.name << '"';
      bool written = field.write(field.Address(node.get()), LoadValue(*value));
      TVM_CHECK(written, ValueError) << "LoadJSON: " << where_ << ": the field \"" << field.name
                                     << "\" should be " << field.type_name();
      given.push_back(&field);
    }
    TVM_CHECK(given.size() == fields.size(), ValueError)
        << "LoadJSON: " << where_ << " has fields this build does not know";
    type->reflection->Finish(node.get(), given);
    return ObjectRef(node);
  }

  Any LoadTensor(const Value& value) {
    std::vector<int64_t> shape;
    for (const Value& extent : value.At("shape", where_).Expect<ArrayValue>(where_)) {
      shape.push_back(extent.Expect<int64_t>(where_));
    }
    DataType dtype = LoadDataType(value.At("dtype", where_));
    std::string bytes = FromHex(value.At("bytes", where_).Expect<std::string>(where_), where_);
    // Before allocating: a wrong shape must not ask for more memory than the text has data.
    size_t expected = runtime::GetElementBytes(dtype);
    for (int64_t extent : shape) {
      TVM_CHECK(extent >= 0 && !__builtin_mul_overflow(expected, extent, &expected), ValueError)
          << "LoadJSON: " << where_ << ": the shape does not match the data";
    }
    TVM_CHECK(expected == bytes.size(), ValueError)
        << "LoadJSON: " << where_ << ": the shape does not match the data";
    NDArray array = NDArray::Empty(shape, dtype, Device{kDLCPU, 0});
    array.CopyFromBytes(bytes.data(), bytes.size());
    return array;
  }

  std::vector<Any> nodes_;
  // What is being read, for messages.
  std::string where_;
};

}  // namespace

std::string SaveJSON(const Any& root) { return Saver().Save(root); }

Any LoadJSON(const std::string& text) { return Loader().Load(text); }

TVM_REGISTER_GLOBAL("node.SaveJSON").set_body_typed([](Any root) { return SaveJSON(root); });

TVM_REGISTER_GLOBAL("node.LoadJSON").set_body_typed([](std::string text) {
  return LoadJSON(text);
});

}  // namespace tvm
