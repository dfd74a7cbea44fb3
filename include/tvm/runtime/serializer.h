/*!
 * \file tvm/runtime/serializer.h
 * \brief Values as bytes and back, for modules and executables that are saved.
 *
 * Numbers are written as this machine stores them. A reader never goes past the end of its data and
 * says which file is damaged, since what it reads may come from anywhere.
 */
#ifndef TVM_RUNTIME_SERIALIZER_H_
#define TVM_RUNTIME_SERIALIZER_H_

#include <tvm/runtime/data_type.h>
#include <tvm/runtime/logging.h>

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tvm {
namespace runtime {

/*! \brief Appends values to a string of bytes. */
class ByteWriter {
 public:
  void Raw(const void* data, size_t size) { bytes.append(static_cast<const char*>(data), size); }
  /*! \brief A number or another value without pointers, such as a DLDataType. */
  template <typename T>
    requires(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>)
  void Value(const T& value) {
    Raw(&value, sizeof(value));
  }
  /*! \brief A signed 64-bit number; counts and sizes are written like this. */
  void Word(int64_t value) { Value(value); }
  void Text(std::string_view text) {
    Word(static_cast<int64_t>(text.size()));
    Raw(text.data(), text.size());
  }
  void Words(const std::vector<int64_t>& words) {
    Word(static_cast<int64_t>(words.size()));
    Raw(words.data(), words.size() * sizeof(int64_t));
  }
  void Texts(const std::vector<std::string>& texts) {
    Word(static_cast<int64_t>(texts.size()));
    for (const std::string& text : texts) Text(text);
  }

  std::string bytes;
};

/*! \brief Takes values off bytes that a ByteWriter wrote; ValueError when they do not fit. */
class ByteReader {
 public:
  /*! \param what What is read, to begin messages with: "relax executable". Outlives the reader. */
  ByteReader(std::string_view what, std::string_view data) : what_(what), data_(data) {}

  const char* Raw(size_t size) {
    if (size > data_.size() - position_) {
      Refuse("the data ends after " + std::to_string(data_.size()) + " bytes");
    }
    const char* at = data_.data() + position_;
    position_ += size;
    return at;
  }
  template <typename T>
    requires(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>)
  T Value() {
    T value;
    std::memcpy(&value, Raw(sizeof(value)), sizeof(value));
    return value;
  }
  int64_t Word() { return Value<int64_t>(); }
  /*! \brief A count of items of which each takes at least `item_bytes`. */
  size_t Count(size_t item_bytes = 1) {
    const int64_t value = Word();
    const size_t most = (data_.size() - position_) / item_bytes;
    if (value < 0 || static_cast<uint64_t>(value) > most) {
      Refuse(std::to_string(value) + " items do not fit the data");
    }
    return static_cast<size_t>(value);
  }
  std::string Text() {
    const size_t size = Count();
    return std::string(Raw(size), size);
  }
  std::vector<int64_t> Words() {
    std::vector<int64_t> words(Count(sizeof(int64_t)));
    for (int64_t& word : words) word = Word();
    return words;
  }
  std::vector<std::string> Texts() {
    std::vector<std::string> texts(Count(sizeof(int64_t)));
    for (std::string& text : texts) text = Text();
    return texts;
  }
  /*! \brief ValueError unless the data begins with `magic` here. */
  void Expect(std::string_view magic) {
    if (data_.substr(position_, magic.size()) != magic) {
      Refuse("the data does not begin with one of this version");
    }
    position_ += magic.size();
  }
  bool AtEnd() const { return position_ == data_.size(); }
  /*! \brief ValueError saying what is wrong with the data. */
  [[noreturn]] void Refuse(const std::string& problem) const {
    TVM_FATAL(ValueError) << what_ << ": " << problem << "; the file is damaged, export it again";
  }

 private:
  std::string_view what_;
  std::string_view data_;
  size_t position_ = 0;
};

}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_SERIALIZER_H_
