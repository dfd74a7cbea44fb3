/*!
 * \file tvm/runtime/container/string.h
 * \brief String: immutable text as an object.
 */
#ifndef TVM_RUNTIME_CONTAINER_STRING_H_
#define TVM_RUNTIME_CONTAINER_STRING_H_

#include <tvm/runtime/any.h>

#include <ostream>
#include <string>
#include <string_view>

namespace tvm {
namespace runtime {

class TVM_DLL StringObj : public Object {
 public:
  StringObj() = default;
  explicit StringObj(std::string text) : data(std::move(text)) {}
  ~StringObj();
  std::string data;
  TVM_DECLARE_OBJECT(StringObj, Object, "runtime.String");
};

class String : public ObjectRef {
 public:
  String() = default;
  String(std::nullptr_t) {}
  explicit String(ObjectPtr<Object> data) : ObjectRef(std::move(data)) {}
  String(std::string text) : ObjectRef(make_object<StringObj>(std::move(text))) {}
  // Literals are everywhere, and making a std::string and an object of one is much code.
  TVM_DLL String(const char* text);
  String(std::string_view text) : String(std::string(text)) {}
  using ContainerType = StringObj;

  const StringObj* get() const { return static_cast<const StringObj*>(data_.get()); }
  const StringObj* operator->() const { return get(); }
  /*! \brief The text; a null String reads as the empty text. */
  const std::string& str() const { return defined() ? get()->data : Empty(); }
  operator const std::string&() const { return str(); }
  const char* c_str() const { return str().c_str(); }
  const char* data() const { return str().data(); }
  size_t size() const { return str().size(); }
  size_t length() const { return size(); }
  bool empty() const { return str().empty(); }
  char at(size_t i) const { return str().at(i); }
  int compare(const String& other) const { return str().compare(other.str()); }

 private:
  static const std::string& Empty() {
    static const std::string empty;
    return empty;
  }
};

inline bool operator==(const String& a, const String& b) { return a.str() == b.str(); }
inline bool operator==(const String& a, const std::string& b) { return a.str() == b; }
inline bool operator==(const String& a, const char* b) { return a.str() == b; }
inline bool operator!=(const String& a, const String& b) { return a.str() != b.str(); }
inline bool operator!=(const String& a, const std::string& b) { return a.str() != b; }
inline bool operator!=(const String& a, const char* b) { return a.str() != b; }
inline bool operator<(const String& a, const String& b) { return a.str() < b.str(); }
inline std::string operator+(const String& a, const String& b) { return a.str() + b.str(); }
inline std::string operator+(const String& a, const std::string& b) { return a.str() + b; }
inline std::string operator+(const String& a, const char* b) { return a.str() + b; }
inline std::string operator+(const std::string& a, const String& b) { return a + b.str(); }
inline std::string operator+(const char* a, const String& b) { return a + b.str(); }
inline std::ostream& operator<<(std::ostream& os, const String& s) { return os << s.str(); }

template <>
struct AnyTraits<String> {
  static void Store(Any* slot, String value) { slot->SetObject(std::move(value).MoveObjectPtr()); }
  static std::optional<String> TryConvert(const Any& value) {
    if (value.is_null()) return String();
    if (value.type_code() == kTVMStr) return String(value.raw().v_str);
    const Object* object = value.object();
    if (object == nullptr || !object->IsInstance<StringObj>()) return std::nullopt;
    return String(ObjectPtr<Object>(const_cast<Object*>(object)));
  }
  static std::string TypeName() { return "str"; }
};

}  // namespace runtime
using runtime::String;
using runtime::StringObj;
}  // namespace tvm

template <>
struct std::hash<tvm::runtime::String> {
  size_t operator()(const tvm::runtime::String& s) const {
    return std::hash<std::string>()(s.str());
  }
};

#endif  // TVM_RUNTIME_CONTAINER_STRING_H_
