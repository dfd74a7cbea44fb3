#include <tvm/runtime/any.h>
#include <tvm/runtime/container/array.h>
#include <tvm/runtime/container/map.h>
#include <tvm/runtime/container/string.h>
#include <tvm/runtime/ndarray.h>

#include <cmath>

namespace tvm {
namespace runtime {

void Any::OwnString() {
  String text(value_.v_str);
  value_.type_code = kTVMObject;
  value_.v_handle = std::move(text).MoveObjectPtr().release();
}

std::string Any::TypeName() const {
  switch (value_.type_code) {
    case kTVMNull:
      return "None";
    case kTVMBool:
      return "bool";
    case kTVMInt:
      return "int";
    case kTVMFloat:
      return "float";
    case kTVMDataType:
      return "DataType";
    case kTVMDevice:
      return "Device";
    case kTVMOpaqueHandle:
      return "handle";
    case kTVMDLTensor:
      return "DLTensor*";
    case kTVMStr:
      return "str";
    default:
      break;
  }
  const Object* node = object();
  if (node->IsInstance<StringObj>()) return "str";
  if (const auto* array = as<ArrayNode>()) {
    // The first element usually tells what went wrong.
    return array->size() == 0 ? "Array[]" : "Array[" + array->at(0).TypeName() + ", ...]";
  }
  if (const auto* map = as<MapNode>()) {
    if (map->size() == 0) return "Map{}";
    const auto& [key, item] = map->entries()[0];
    return "Map{" + key.TypeName() + ": " + item.TypeName() + ", ...}";
  }
  return node->GetTypeKey();
}

std::string ContainerTypeName(const char* container, const std::string& elements) {
  return std::string(container) + "[" + elements + "]";
}
std::string ContainerTypeName(const char* container, const std::string& keys,
                              const std::string& values) {
  return ContainerTypeName(container, keys + ", " + values);
}
std::string IntTypeName(size_t bits) {
  return bits == 64 ? "int" : "int of " + std::to_string(bits) + " bits";
}

void ThrowAnyCastError(const std::string& expected, const Any& actual) {
  TVM_FATAL(TypeError) << "expected " << expected << ", got " << actual.TypeName();
}

namespace {
NumberBoxer number_boxer = nullptr;
}  // namespace

bool RegisterNumberBoxer(NumberBoxer boxer) {
  number_boxer = boxer;
  return true;
}

std::optional<ObjectRef> BoxNumber(const Any& value) {
  bool number = value.type_code() == kTVMBool || value.type_code() == kTVMInt ||
                value.type_code() == kTVMFloat;
  if (!number || number_boxer == nullptr) return std::nullopt;
  return number_boxer(value);
}

bool AnyToInt(const Any& value, int64_t* out) {
  switch (value.type_code()) {
    case kTVMBool:
    case kTVMInt:
      *out = value.raw().v_int64;
      return true;
    case kTVMObject: {
      const TypeInfo* info = value.object()->type_info();
      return info->as_int != nullptr && info->as_int(value.object(), out);
    }
    default:
      return false;
  }
}

bool AnyToFloat(const Any& value, double* out) {
  int64_t number;
  if (value.type_code() == kTVMFloat) {
    *out = value.raw().v_float64;
    return true;
  }
  if (value.is_object()) {
    const TypeInfo* info = value.object()->type_info();
    if (info->as_float != nullptr && info->as_float(value.object(), out)) return true;
  }
  if (!AnyToInt(value, &number)) return false;
  *out = static_cast<double>(number);
  return true;
}

std::optional<DataType> AnyTraits<DataType>::TryConvert(const Any& value) {
  if (value.type_code() == kTVMDataType) return DataType(value.raw().v_dtype);
  if (value.type_code() == kTVMNull) return DataType::Void();
  if (auto text = AnyTraits<std::string>::TryConvert(value)) return DataType::FromString(*text);
  return std::nullopt;
}

void AnyTraits<std::string>::Store(Any* slot, const std::string& value) {
  slot->SetObject(make_object<StringObj>(value));
}

std::optional<std::string> AnyTraits<std::string>::TryConvert(const Any& value) {
  if (value.type_code() == kTVMStr) return std::string(value.raw().v_str);
  if (const auto* text = value.as<StringObj>()) return text->data;
  return std::nullopt;
}

std::optional<DLTensor*> AnyTraits<DLTensor*>::TryConvert(const Any& value) {
  if (value.is_null()) return nullptr;
  if (value.type_code() == kTVMDLTensor) return static_cast<DLTensor*>(value.raw().v_handle);
  if (const auto* array = value.as<NDArrayObj>()) return const_cast<DLTensor*>(&array->tensor);
  return std::nullopt;
}

bool AnyEqual::operator()(const Any& a, const Any& b) const {
  if (a.type_code() == kTVMObject && b.type_code() == kTVMObject) {
    if (a.object() == b.object()) return true;
    const auto* x = a.as<StringObj>();
    const auto* y = b.as<StringObj>();
    return x != nullptr && y != nullptr && x->data == y->data;
  }
  if (a.type_code() == kTVMStr || b.type_code() == kTVMStr) {
    auto x = a.TryCast<std::string>();
    auto y = b.TryCast<std::string>();
    return x && y && *x == *y;
  }
  if (a.type_code() != b.type_code()) return false;
  if (a.type_code() == kTVMFloat) return a.raw().v_float64 == b.raw().v_float64;
  return a.raw().v_int64 == b.raw().v_int64;
}

size_t AnyHash::operator()(const Any& value) const {
  if (value.type_code() == kTVMStr) return std::hash<std::string_view>()(value.raw().v_str);
  if (const auto* text = value.as<StringObj>()) return std::hash<std::string_view>()(text->data);
  if (value.type_code() == kTVMFloat) return std::hash<double>()(value.raw().v_float64);
  return std::hash<int64_t>()(value.raw().v_int64) * 31 + static_cast<size_t>(value.type_code());
}

}  // namespace runtime
}  // namespace tvm
