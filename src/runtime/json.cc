#include "json.h"

#include <tvm/runtime/logging.h>

#include <charconv>
#include <cmath>
#include <cstdio>

namespace tvm {
namespace json {
namespace {

class Parser {
 public:
  Parser(std::string_view text, int max_nesting) : text_(text), max_nesting_(max_nesting) {}

  Value ParseDocument() {
    Value value = ParseValue(0);
    SkipSpace();
    if (at_ != text_.size()) Fail("text after the end of the value");
    return value;
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) {
      column = text_[i] == '\n' ? 1 : column + 1;
      line += text_[i] == '\n';
    }
    TVM_FATAL(ValueError) << "JSON: " << what << " at line " << line << ", column " << column;
  }
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void SkipSpace() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) {
      ++at_;
    }
  }
  void Expect(char c) {
    SkipSpace();
    if (Peek() != c) Fail(std::string("expected '") + c + "'");
    ++at_;
  }
  bool Accept(char c) {
    SkipSpace();
    if (Peek() != c) return false;
    ++at_;
    return true;
  }
  bool AcceptWord(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  Value ParseValue(int depth) {
    if (depth > max_nesting_) Fail("nesting too deep");
    SkipSpace();
    switch (Peek()) {
      case '{':
        return ParseObject(depth);
      case '[':
        return ParseArray(depth);
      case '"':
        return Value(ParseString());
      default:
        break;
    }
    if (AcceptWord("null")) return Value();
    if (AcceptWord("true")) return Value(true);
    if (AcceptWord("false")) return Value(false);
    return ParseNumber();
  }

  Value ParseObject(int depth) {
    ObjectValue members;
    Expect('{');
    if (Accept('}')) return Value(std::move(members));
    do {
      SkipSpace();
      if (Peek() != '"') Fail("expected a member name");
      std::string key = ParseString();
      Expect(':');
      members.emplace_back(std::move(key), ParseValue(depth + 1));
    } while (Accept(','));
    Expect('}');
    return Value(std::move(members));
  }

  Value ParseArray(int depth) {
    ArrayValue items;
    Expect('[');
    if (Accept(']')) return Value(std::move(items));
    do {
      items.push_back(ParseValue(depth + 1));
    } while (Accept(','));
    Expect(']');
    return Value(std::move(items));
  }

  Value ParseNumber() {
    size_t end = text_.find_first_not_of("+-0123456789.eE", at_);
    std::string_view token = text_.substr(at_, end == std::string_view::npos ? end : end - at_);
    const char* last = token.data() + token.size();
    if (token.find_first_of(".eE") == std::string_view::npos) {
      int64_t value = 0;
      auto [stop, error] = std::from_chars(token.data(), last, value);
      if (token.empty() || error != std::errc() || stop != last) Fail("expected a value");
      at_ += token.size();
      return Value(value);
    }
    double value = 0;
    auto [stop, error] = std::from_chars(token.data(), last, value);
    if (error != std::errc() || stop != last) Fail("expected a number");
    at_ += token.size();
    return Value(value);
  }

  unsigned ParseHex4() {
    unsigned code = 0;
    auto [stop, error] = std::from_chars(text_.data() + at_,
                                         text_.data() + std::min(at_ + 4, text_.size()), code, 16);
    if (error != std::errc() || stop != text_.data() + at_ + 4) Fail("bad \\u escape");
    at_ += 4;
    return code;
  }

  static void AppendUtf8(unsigned code, std::string* out) {
    auto put = [out](unsigned byte) { out->push_back(static_cast<char>(byte)); };
    if (code < 0x80) {
      put(code);
    } else if (code < 0x800) {
      put(0xc0 | code >> 6);
      put(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
      put(0xe0 | code >> 12);
      put(0x80 | (code >> 6 & 0x3f));
      put(0x80 | (code & 0x3f));
    } else {
      put(0xf0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3f));
      put(0x80 | (code >> 6 & 0x3f));
      put(0x80 | (code & 0x3f));
    }
  }

  std::string ParseString() {
    std::string out;
    ++at_;
    for (;;) {
      if (at_ >= text_.size()) Fail("string without end");
      char c = text_[at_++];
      if (c == '"') return out;
      if (c != '\\') {
        out.push_back(c);
        continue;
      }
      char escape = Peek();
      ++at_;
      switch (escape) {
        case '"':
        case '\\':
        case '/':
          out.push_back(escape);
          break;
        case 'b':
          out.push_back('\b');
          break;
        case 'f':
          out.push_back('\f');
          break;
        case 'n':
          out.push_back('\n');
          break;
        case 'r':
          out.push_back('\r');
          break;
        case 't':
          out.push_back('\t');
          break;
        case 'u': {
          unsigned code = ParseHex4();
          // Characters beyond the basic plane come as two halves, which alone are no character.
          if (code >= 0xd800 && code < 0xe000) {
            bool paired = code < 0xdc00 && AcceptWord("\\u");
            unsigned low = paired ? ParseHex4() : 0;
            if (low < 0xdc00 || low >= 0xe000) Fail("half of a character in a string");
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
          }
          AppendUtf8(code, &out);
          break;
        }
        default:
          Fail("unknown escape in a string");
      }
    }
  }

  std::string_view text_;
  int max_nesting_;
  size_t at_ = 0;
};

}  // namespace

const char* Value::KindName(const Value& value) {
  static constexpr const char* kNames[] = {"null",     "a boolean", "an integer", "a number",
                                           "a string", "an array",  "an object"};
  return kNames[value.data_.index()];
}

void Value::ThrowKind(std::string_view where, const char* expected) const {
  TVM_FATAL(ValueError) << "JSON: " << where << " should be " << expected << ", not "
                        << KindName(*this);
}

const Value* Value::Find(std::string_view key) const {
  const auto* members = as<ObjectValue>();
  if (members == nullptr) return nullptr;
  for (const auto& [name, value] : *members) {
    if (std::string_view(name) == key) return &value;
  }
  return nullptr;
}

const Value& Value::At(std::string_view key, std::string_view where) const {
  const Value* found = Find(key);
  TVM_CHECK(found != nullptr, ValueError) << "JSON: " << where << " has no member \"" << key << '"';
  return *found;
}

void WriteString(std::string_view text, std::string* out) {
  out->push_back('"');
  for (char c : text) {
    switch (c) {
      case '"':
        *out += "\\\"";
        break;
      case '\\':
        *out += "\\\\";
        break;
      case '\n':
        *out += "\\n";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          char buffer[8];
          std::snprintf(buffer, sizeof(buffer), "\\u%04x", c);
          *out += buffer;
        } else {
          out->push_back(c);
        }
    }
  }
  out->push_back('"');
}

void Value::Write(std::string* out) const {
  if (is_null()) {
    *out += "null";
  } else if (const bool* flag = as<bool>()) {
    *out += *flag ? "true" : "false";
  } else if (const int64_t* integer = as<int64_t>()) {
    *out += std::to_string(*integer);
  } else if (const double* number = as<double>()) {
    ICHECK(std::isfinite(*number)) << "JSON has no spelling for " << *number;
    char buffer[40];
    auto end = std::to_chars(buffer, buffer + sizeof(buffer), *number).ptr;
    std::string_view text(buffer, static_cast<size_t>(end - buffer));
    *out += text;
    if (text.find_first_of(".e") == std::string_view::npos) *out += ".0";
  } else if (const auto* text = as<std::string>()) {
    WriteString(*text, out);
  } else if (const auto* items = as<ArrayValue>()) {
    out->push_back('[');
    for (size_t i = 0; i < items->size(); ++i) {
      if (i != 0) *out += ", ";
      (*items)[i].Write(out);
    }
    out->push_back(']');
  } else {
    out->push_back('{');
    bool first = true;
    for (const auto& [key, value] : std::get<ObjectValue>(data_)) {
      if (!first) *out += ", ";
      first = false;
      WriteString(key, out);
      *out += ": ";
      value.Write(out);
    }
    out->push_back('}');
  }
}

Value Value::Parse(std::string_view text, int max_nesting) {
  return Parser(text, max_nesting).ParseDocument();
}

}  // namespace json
}  // namespace tvm
