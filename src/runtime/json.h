/*!
 * \file json.h
 * \brief JSON values: parsing with positions in errors, and writing.
 */
#ifndef TVM_RUNTIME_JSON_H_
#define TVM_RUNTIME_JSON_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tvm {
namespace json {

class Value;
using ArrayValue = std::vector<Value>;
using ObjectValue = std::vector<std::pair<std::string, Value>>;

/*! \brief One JSON value. Numbers without fraction or exponent are integers. */
class Value {
 public:
  Value() = default;
  explicit Value(bool value) : data_(value) {}
  explicit Value(int64_t value) : data_(value) {}
  explicit Value(double value) : data_(value) {}
  explicit Value(std::string value) : data_(std::move(value)) {}
  explicit Value(ArrayValue value) : data_(std::move(value)) {}
  explicit Value(ObjectValue value) : data_(std::move(value)) {}

  template <typename T>
  const T* as() const {
    return std::get_if<T>(&data_);
  }
  bool is_null() const { return std::holds_alternative<std::monostate>(data_); }
  /*! \brief The value as a T; ValueError that says what `where` should have been. */
  template <typename T>
  const T& Expect(std::string_view where) const {
    if (const T* value = as<T>()) return *value;
    ThrowKind(where, KindName(Value(T())));
  }
  /*! \brief Member of an object, or null. */
  const Value* Find(std::string_view key) const;
  /*! \brief Member of an object; ValueError naming `where` when missing. */
  const Value& At(std::string_view key, std::string_view where) const;

  void Write(std::string* out) const;
  /*! \brief Nesting beyond this is no document of ours and would exhaust the stack. */
  static constexpr int kMaxNesting = 2000;
  /*! \brief Parse a whole text; ValueError with line and column. */
  static Value Parse(std::string_view text, int max_nesting = kMaxNesting);

 private:
  static const char* KindName(const Value& value);
  [[noreturn]] void ThrowKind(std::string_view where, const char* expected) const;
  std::variant<std::monostate, bool, int64_t, double, std::string, ArrayValue, ObjectValue> data_;
};

/*! \brief Append `text` as a JSON string. Bytes that are not UTF-8 pass through unchanged. */
void WriteString(std::string_view text, std::string* out);

}  // namespace json
}  // namespace tvm

#endif  // TVM_RUNTIME_JSON_H_
