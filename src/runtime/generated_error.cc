/*!
 * \file generated_error.cc
 * \brief Messages of compiled functions, whose values arrive as numbers.
 */
#include "generated_error.h"

#include <tvm/runtime/data_type.h>
#include <tvm/runtime/logging.h>

#include <functional>
#include <iterator>
#include <regex>
#include <string>

namespace tvm {
namespace runtime {
namespace {

/*! \brief `text` with every match of `pattern` replaced by what `spell` makes of it. */
std::string Replace(const std::string& text, const std::regex& pattern,
                    const std::function<std::string(const std::smatch&)>& spell) {
  std::string out;
  auto rest = text.begin();
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) {
    out.append(rest, (*it)[0].first);
    out += spell(*it);
    rest = (*it)[0].second;
  }
  return out.append(rest, text.end());
}

int Number(const std::smatch& match, int group) { return std::stoi(match[group].str()); }

std::string SpellType(const std::smatch& match) {
  int code = Number(match, 1);
  if (code == kDLBool) return "bool";
  try {
    return DataType(code, Number(match, 2), Number(match, 3)).ToString();
  } catch (const Error&) {
    return "a type of code " + match[1].str() + " and " + match[2].str() + " bits";
  }
}

std::string SpellDevice(const std::smatch& match) {
  try {
    return DeviceName(Number(match, 1));
  } catch (const Error&) {
    return "device type " + match[1].str();
  }
}

std::string SpellKind(const std::smatch& match) {
  static constexpr const char* kNames[] = {"None",   "bool",   "int",       "float", "DataType",
                                           "Device", "handle", "an object", "array", "str"};
  size_t code = Number(match, 1);
  return code < std::size(kNames) ? kNames[code] : "a value of code " + match[1].str();
}

}  // namespace

std::string SpellNumbers(const std::string& message) {
  static const std::regex type("<dtype (\\d{1,3}) (\\d{1,3}) (\\d{1,5})>");
  static const std::regex device("<device (\\d{1,4})>");
  static const std::regex kind("<kind (\\d{1,3})>");
  if (message.find('<') == std::string::npos) return message;
  return Replace(Replace(Replace(message, type, SpellType), device, SpellDevice), kind, SpellKind);
}

}  // namespace runtime
}  // namespace tvm
