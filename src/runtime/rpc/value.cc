#include "value.h"

#include <tvm/runtime/container.h>
#include <tvm/runtime/container/bytes.h>
#include <tvm/runtime/container/shape_tuple.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tvm {
namespace runtime {
namespace rpc {
namespace {

constexpr const char* kTag = "$";

using json::ArrayValue;
using json::ObjectValue;
using json::Value;

Value Tagged(const char* tag, ObjectValue members) {
  ObjectValue all = {{kTag, Value(std::string(tag))}};
  for (auto& member : members) all.push_back(std::move(member));
  return Value(std::move(all));
}

Value Number(size_t number) { return Value(static_cast<int64_t>(number)); }

Value DeviceOnTheWire(Device device) {
  return Tagged("device", {{"type", Value(static_cast<int64_t>(device.device_type))},
                           {"id", Value(static_cast<int64_t>(device.device_id))}});
}

Device DeviceOf(const Value& value) {
  const int64_t type = IntegerOf(value, "type"), id = IntegerOf(value, "id");
  TVM_CHECK(type > 0 && type < kSessionMask && id >= 0 && id < 1 << 16, ValueError)
      << "rpc: there is no device of type " << type << " and number " << id;
  return Device{static_cast<int32_t>(type), static_cast<int32_t>(id)};
}

std::vector<int64_t> ShapeOf(const Value& value) {
  std::vector<int64_t> shape;
  for (const Value& extent : value.At("shape", "message").Expect<ArrayValue>("shape")) {
    shape.push_back(extent.Expect<int64_t>("shape"));
  }
  return shape;
}

Value ArrayHeader(const char* tag, const NDArray& array, int64_t handle, size_t at) {
  ArrayValue shape;
  for (int64_t extent : array.Shape()) shape.push_back(Value(extent));
  return Tagged(tag, {{"what", Value(std::string("array"))},
                      {"h", Value(handle)},
                      {"at", Number(at)},
                      {"shape", Value(std::move(shape))},
                      {"dtype", Value(array.dtype().ToString())}});
}

}  // namespace

std::vector<Piece> Encoder::pieces() const {
  std::vector<Piece> out;
  for (const String& blob : blobs_) out.push_back({blob.str().data(), blob.str().size()});
  return out;
}

Value Encoder::Encode(const Any& value, int depth) {
  TVM_CHECK(depth < session_->limits_.nesting / 2 - 2, ValueError)
      << "rpc: a value nested more than " << session_->limits_.nesting / 2 - 2
      << " levels deep cannot travel to another process";
  switch (value.type_code()) {
    case kTVMNull:
      return Value();
    case kTVMBool:
      return Value(value.raw().v_int64 != 0);
    case kTVMInt:
      return Value(value.raw().v_int64);
    case kTVMFloat: {
      const double number = value.raw().v_float64;
      if (std::isfinite(number)) return Value(number);
      // JSON has no spelling for these.
      const char* name = std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
      return Tagged("float", {{"value", Value(std::string(name))}});
    }
    case kTVMDataType:
      return Tagged("dtype", {{"name", Value(DataType(value.raw().v_dtype).ToString())}});
    case kTVMDevice: {
      Device device = value.raw().v_device;
      if (device.device_type >= kSessionMask) {
        TVM_CHECK(Session::Of(device).get() == session_, ValueError)
            << "rpc: a device of another session was given to one with " << session_->peer();
        device.device_type %= kSessionMask;
      }
      return DeviceOnTheWire(device);
    }
    case kTVMStr:
      return Value(std::string(value.raw().v_str));
    default:
      break;
  }
  TVM_CHECK(value.is_object(), TypeError)
      << "rpc: a " << value.TypeName() << " cannot travel to another process";
  return EncodeObject(value, depth);
}

Value Encoder::EncodeObject(const Any& value, int depth) {
  if (const auto* bytes = value.as<BytesObj>()) {
    blobs_.push_back(GetRef<String>(bytes));
    return Tagged("bytes", {{"size", Number(blobs_.back().str().size())}});
  }
  if (value.as<StringObj>() != nullptr) return Value(value.cast<std::string>());
  if (const auto* array = value.as<ArrayNode>()) {
    ArrayValue items;
    for (const Any& item : array->data) items.push_back(Encode(item, depth + 1));
    return Value(std::move(items));
  }
  if (const auto* map = value.as<MapNode>()) {
    ArrayValue items;
    for (const auto& [key, item] : map->entries()) {
      items.push_back(Value(ArrayValue{Encode(key, depth + 1), Encode(item, depth + 1)}));
    }
    return Tagged("dict", {{"items", Value(std::move(items))}});
  }
  if (value.as<NDArrayObj>() != nullptr) return EncodeArray(value.cast<NDArray>());
  if (const auto* function = value.as<RemoteFunctionObj>()) {
    return Yours(function->session, function->handle);
  }
  if (const auto* module = value.as<RemoteModuleNode>()) {
    return Yours(module->session, module->handle);
  }
  if (const auto* object = value.as<RemoteObjectObj>()) {
    return Yours(object->session, object->handle);
  }
  if (value.as<PackedFuncObj>() != nullptr) return Mine("function", value.ref());
  const bool serves = session_->find_ != nullptr;
  if (const auto* shape = value.as<ShapeTupleObj>(); shape != nullptr && !serves) {
    ArrayValue extents;
    for (int64_t extent : shape->data) extents.push_back(Value(extent));
    return Tagged("shape", {{"shape", Value(std::move(extents))}});
  }
  TVM_CHECK(serves, TypeError)
      << "rpc: a " << value.TypeName() << " cannot travel to " << session_->peer()
      << (value.as<ModuleNode>() != nullptr
              ? "; export_library it, upload the file and load_module it there"
              : "; pass numbers, texts, bytes, functions, or objects that are there");
  if (value.as<ModuleNode>() != nullptr) return Mine("module", value.ref());
  return Mine("object", value.ref());
}

Value Encoder::EncodeArray(const NDArray& array) {
  const Device device = array.device();
  if (device.device_type >= kSessionMask) {
    const ObjectPtr<Session> owner = Session::Of(device);
    TVM_CHECK(owner.get() == session_, ValueError)
        << "rpc: an array of another session was given to one with " << session_->peer()
        << "; copy it with copyto";
    TVM_CHECK(array.IsContiguous(), ValueError) << "rpc: only a compact array can be passed";
    const Session::Place place = owner->Find(array.data(), array.NumBytes());
    return ArrayHeader("yours", array, place.handle, place.at);
  }
  TVM_CHECK(session_->find_ != nullptr, ValueError)
      << "rpc: an array on " << DeviceName(device.device_type) << "(" << device.device_id
      << ") of this machine was given to a function of " << session_->peer()
      << "; copy it with tvm.nd.array(values, remote.cpu(0))";
  TVM_CHECK(array.IsContiguous(), ValueError) << "rpc: only a compact array can be returned";
  Value header = ArrayHeader("mine", array, session_->Export(array), 0);
  // Members of a value just made can be added to.
  ObjectValue members = *header.as<ObjectValue>();
  members.emplace_back("device", DeviceOnTheWire(device));
  return Value(std::move(members));
}

Value Encoder::Mine(const char* what, ObjectRef object) {
  std::string kind = object->type_info()->key;
  return Tagged("mine", {{"what", Value(std::string(what))},
                         {"h", Value(session_->Export(std::move(object)))},
                         {"type", Value(std::move(kind))}});
}

Value Encoder::Yours(const ObjectPtr<Session>& owner, int64_t handle) const {
  TVM_CHECK(owner.get() == session_, ValueError)
      << "rpc: an object of the session with " << owner->peer() << " was given to one with "
      << session_->peer();
  return Tagged("yours", {{"what", Value(std::string("object"))}, {"h", Value(handle)}});
}

Any Decoder::Decode(const Value& value) {
  if (value.is_null()) return Any();
  if (const bool* flag = value.as<bool>()) return Any(*flag);
  if (const int64_t* number = value.as<int64_t>()) return Any(*number);
  if (const double* number = value.as<double>()) return Any(*number);
  if (const auto* text = value.as<std::string>()) return Any(String(*text));
  if (const auto* items = value.as<ArrayValue>()) {
    auto node = make_object<ArrayNode>();
    for (const Value& item : *items) node->data.push_back(Decode(item));
    return Any(ObjectRef(node));
  }
  return DecodeTagged(value.At(kTag, "message").Expect<std::string>("kind"), value);
}

Any Decoder::DecodeTagged(const std::string& tag, const Value& value) {
  if (tag == "mine") return DecodeMine(value);
  if (tag == "yours") {
    if (value.At("what", "message").Expect<std::string>("what") == "array") {
      return DecodeYourArray(value);
    }
    return Any(session_->Exported(IntegerOf(value, "h")));
  }
  if (tag == "bytes") {
    const int64_t size = IntegerOf(value, "size");
    TVM_CHECK(size >= 0 && static_cast<uint64_t>(size) <= blob_.size(), ValueError)
        << "message: " << size << " bytes are missing";
    Bytes bytes(std::string(blob_.substr(0, static_cast<size_t>(size))));
    blob_.remove_prefix(static_cast<size_t>(size));
    return Any(std::move(bytes));
  }
  if (tag == "tuple") return Decode(value.At("items", "message"));
  if (tag == "dict") {
    auto node = make_object<MapNode>();
    for (const Value& item : value.At("items", "message").Expect<ArrayValue>("items")) {
      const auto& entry = item.Expect<ArrayValue>("item");
      TVM_CHECK(entry.size() == 2, ValueError) << "message: an item of a map is no pair";
      node->Set(Decode(entry[0]), Decode(entry[1]));
    }
    return Any(ObjectRef(node));
  }
  if (tag == "float") {
    const auto& name = value.At("value", "message").Expect<std::string>("value");
    using Double = std::numeric_limits<double>;
    if (name == "nan") return Any(Double::quiet_NaN());
    if (name == "inf") return Any(Double::infinity());
    if (name == "-inf") return Any(-Double::infinity());
  }
  if (tag == "shape") return Any(ShapeTuple(ShapeOf(value)));
  if (tag == "dtype") {
    return Any(DataType::FromString(value.At("name", "message").Expect<std::string>("name")));
  }
  if (tag == "device") {
    // To the end that uses the other's devices, each device named is one of those.
    const Device device = DeviceOf(value);
    return Any(session_->find_ == nullptr ? session_->Mask(device) : device);
  }
  TVM_FATAL(ValueError) << "message: a value of unknown kind \"" << tag << '"';
}

Any Decoder::DecodeMine(const Value& value) {
  const auto& what = value.At("what", "message").Expect<std::string>("what");
  const int64_t handle = IntegerOf(value, "h");
  ObjectPtr<Session> owner(session_);
  if (what == "function") {
    return Any(ObjectRef(make_object<RemoteFunctionObj>(std::move(owner), handle)));
  }
  // The end that serves has all but functions itself.
  TVM_CHECK(session_->find_ == nullptr, ValueError) << "message: unexpected " << what;
  if (what == "module") {
    return Any(ObjectRef(make_object<RemoteModuleNode>(std::move(owner), handle)));
  }
  if (what == "array") {
    const Device device = session_->Mask(DeviceOf(value.At("device", "message")));
    auto node = make_object<NDArrayObj>();
    node->shape = ShapeOf(value);
    node->tensor.dtype =
        DataType::FromString(value.At("dtype", "message").Expect<std::string>("dtype"));
    auto bytes = static_cast<int64_t>(GetElementBytes(node->tensor.dtype));
    int64_t step = 1;
    node->strides.resize(node->shape.size());
    for (size_t i = node->shape.size(); i-- > 0;) {
      const int64_t extent = node->shape[i];
      TVM_CHECK(extent >= 0 && !__builtin_mul_overflow(bytes, std::max<int64_t>(extent, 1), &bytes),
                ValueError)
          << "message: an array has an extent of " << extent;
      node->strides[i] = step;
      step *= extent;
    }
    node->tensor.ndim = static_cast<int32_t>(node->shape.size());
    node->tensor.shape = node->shape.data();
    node->tensor.strides = node->strides.data();
    node->tensor.device = device;
    node->tensor.data = session_->Remember({handle, static_cast<size_t>(bytes)});
    node->owns_data = true;
    return Any(NDArray(ObjectPtr<Object>(node)));
  }
  TVM_CHECK(what == "object", ValueError) << "message: a value of unknown kind \"" << what << '"';
  return Any(ObjectRef(make_object<RemoteObjectObj>(
      std::move(owner), handle, value.At("type", "message").Expect<std::string>("type"))));
}

Any Decoder::DecodeYourArray(const Value& value) {
  const ObjectRef object = session_->Exported(IntegerOf(value, "h"));
  const auto* node = object.as<NDArrayObj>();
  TVM_CHECK(node != nullptr, ValueError) << "message: an array is none";
  const int64_t at = IntegerOf(value, "at");
  TVM_CHECK(at >= 0, ValueError) << "message: an array begins at " << at;
  const DataType dtype =
      DataType::FromString(value.At("dtype", "message").Expect<std::string>("dtype"));
  return Any(GetRef<NDArray>(node).CreateView(ShapeOf(value), dtype, static_cast<size_t>(at)));
}

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
