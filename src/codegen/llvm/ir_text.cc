/*!
 * \file ir_text.cc
 * \brief Text of LLVM modules and functions.
 */
#include "codegen/llvm/ir_text.h"

#include <tvm/runtime/logging.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

namespace tvm {
namespace codegen {

namespace {
const std::string kScalable = "<vscale x ";
}  // namespace

std::string LLVMType(DataType dtype) {
  if (dtype.is_void()) return "void";
  std::string element;
  if (dtype.is_handle()) {
    element = "ptr";
  } else if (dtype.is_bfloat16()) {
    element = "i16";
  } else if (dtype.is_float()) {
    switch (dtype.bits()) {
      case 16:
        element = "half";
        break;
      case 32:
        element = "float";
        break;
      case 64:
        element = "double";
        break;
      default:
        TVM_FATAL(ValueError) << "llvm code generator: " << dtype.ToString()
                              << " is not supported; use float16, bfloat16, float32 or float64";
    }
  } else {
    element = "i" + std::to_string(dtype.bits());
  }
  return VectorType(dtype.lanes(), element);
}

std::string VectorType(int lanes, const std::string& element) {
  if (lanes == 1) return element;
  const std::string count = std::to_string(std::abs(lanes)) + " x " + element + ">";
  return (lanes < 0 ? kScalable : "<") + count;
}

namespace {

/*! \brief Bits of the float16 nearest to `value`, ties to even. */
unsigned HalfBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  unsigned sign = (bits >> 16) & 0x8000u;
  uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return sign | 0x7E00u;
  if (magnitude >= 0x47800000u) return sign | 0x7C00u;
  if (magnitude < 0x38800000u) {
    // Subnormal: adding 0.5 puts the rounded units of 2^-24 into the low bits of the sum.
    float sum;
    std::memcpy(&sum, &magnitude, sizeof(sum));
    sum += 0.5f;
    uint32_t units;
    std::memcpy(&units, &sum, sizeof(units));
    return sign | (units - 0x3F000000u);
  }
  // The exponent moves from bias 127 to bias 15; 13 bits of the fraction are rounded away.
  uint32_t rounded = magnitude - 0x38000000u + 0x0FFFu + ((magnitude >> 13) & 1u);
  return sign | (rounded >> 13);
}

}  // namespace

bool Value::is_scalable() const { return type.compare(0, kScalable.size(), kScalable) == 0; }

int Value::lanes() const {
  if (!is_vector()) return 1;
  return is_scalable() ? -std::atoi(type.c_str() + kScalable.size()) : std::atoi(type.c_str() + 1);
}

std::string Value::element() const {
  if (!is_vector()) return type;
  size_t begin = type.rfind(" x ") + 3;
  return type.substr(begin, type.size() - begin - 1);
}

std::string Value::TypeWith(const std::string& element) const {
  if (!is_vector()) return element;
  return type.substr(0, type.rfind(" x ") + 3) + element + ">";
}

std::string Value::Suffix() const {
  const std::string one = element();
  const std::string suffix = one[0] == 'i'     ? one
                             : one == "float"  ? "f32"
                             : one == "double" ? "f64"
                             : one == "half"   ? "f16"
                                               : "bf16";
  if (!is_vector()) return suffix;
  return (is_scalable() ? "nxv" : "v") + std::to_string(std::abs(lanes())) + suffix;
}

void ModuleText::Declare(const std::string& name, const std::string& signature) {
  declarations_.emplace(name, "declare " + signature + "\n");
}

std::string ModuleText::StringLiteral(const std::string& text) {
  std::string literal = "[" + std::to_string(text.size() + 1) + " x i8] c\"";
  for (unsigned char c : text) {
    if (c >= 32 && c < 127 && c != '"' && c != '\\') {
      literal += static_cast<char>(c);
    } else {
      char escape[4];
      std::snprintf(escape, sizeof(escape), "\\%02X", c);
      literal += escape;
    }
  }
  return literal + "\\00\"";
}

std::string ModuleText::StringConstant(const std::string& text) {
  auto it = strings_.find(text);
  if (it != strings_.end()) return it->second;
  std::string name = "@.str." + std::to_string(strings_.size());
  AddGlobal(name + " = private unnamed_addr constant " + StringLiteral(text));
  strings_[text] = name;
  return name;
}

std::string ModuleText::Metadata(const std::string& body) {
  auto it = metadata_.find(body);
  if (it != metadata_.end()) return it->second;
  std::string name = "!" + std::to_string(next_metadata_++);
  metadata_text_ += name + " = !{" + body + "}\n";
  metadata_[body] = name;
  return name;
}

std::string ModuleText::DistinctMetadata(const std::string& rest) {
  std::string name = "!" + std::to_string(next_metadata_++);
  metadata_text_ += name + " = distinct !{" + name + rest + "}\n";
  return name;
}

std::string ModuleText::DebugNode(const std::string& node) {
  auto it = metadata_.find(node);
  if (it != metadata_.end()) return it->second;
  std::string name = ReserveMetadata();
  metadata_text_ += name + " = " + node + "\n";
  metadata_[node] = name;
  return name;
}

std::string ModuleText::FileNode(const std::string& file) {
  // A quote or a backslash in a path is written by its code.
  auto quoted = [](const std::string& text) {
    std::string literal = StringLiteral(text);
    const size_t begin = literal.find('"');
    return literal.substr(begin, literal.size() - begin - 4) + "\"";
  };
  std::string node = DebugNode("!DIFile(filename: " + quoted(file) + ", directory: " +
                               quoted(std::filesystem::current_path().string()) + ")");
  if (debug_unit_.empty()) {
    debug_unit_ = ReserveMetadata();
    // Full, so that functions have their names; the language only has to be one with arrays.
    metadata_text_ += debug_unit_ +
                      " = distinct !DICompileUnit(language: DW_LANG_C99, file: " + node +
                      ", producer: \"tvm\", isOptimized: true, runtimeVersion: 0, " +
                      "emissionKind: FullDebug)\n!llvm.dbg.cu = !{" + debug_unit_ + "}\n";
    std::string dwarf = Metadata("i32 7, !\"Dwarf Version\", i32 4");
    std::string version = Metadata("i32 2, !\"Debug Info Version\", i32 3");
    metadata_text_ += "!llvm.module.flags = !{" + dwarf + ", " + version + "}\n";
  }
  return node;
}

void ModuleText::DefineSubprogram(const std::string& reference, const std::string& file,
                                  const std::string& symbol) {
  std::string source = FileNode(file);
  std::string type = DebugNode("!DISubroutineType(types: " + Metadata("null") + ")");
  metadata_text_ += reference + " = distinct !DISubprogram(name: \"" + symbol +
                    "\", scope: " + source + ", file: " + source + ", line: 1, type: " + type +
                    ", scopeLine: 1, spFlags: DISPFlagDefinition, unit: " + debug_unit_ + ")\n";
}

std::string ModuleText::Finish(const std::string& header) const {
  std::string text = header + globals_ + "\n" + functions_;
  for (const auto& entry : declarations_) {
    if (!defined_.count(entry.first)) text += entry.second;
  }
  return text + metadata_text_;
}

namespace {

/*! \brief Pointers carried by one loop: about half of the general registers of x86-64. */
constexpr int kMaxPointers = 8;

}  // namespace

FunctionText::FunctionText(ModuleText* module)
    : module_(module), debug_source_(module->debug_source()) {
  scopes_.emplace_back();
  if (debug_source_.empty()) return;
  subprogram_ = module_->ReserveMetadata();
  // A call without a line, of a function that has lines, is refused by LLVM.
  SetLine(1);
}

int FunctionText::SetLine(int line) {
  const int before = std::exchange(line_, line);
  if (subprogram_.empty() || line == before) return before;
  location_ = ", !dbg " + module_->DebugNode("!DILocation(line: " + std::to_string(line) +
                                             ", column: 1, scope: " + subprogram_ + ")");
  return before;
}

std::string FunctionText::NewName(const std::string& hint) {
  return "%" + hint + std::to_string(next_name_++);
}

Value FunctionText::Pure(const std::string& type, const std::string& instruction,
                         int operand_level) {
  // The type is not part of every instruction's text (a conversion's is), so it joins the key.
  std::string key = type + "=" + instruction;
  auto it = numbered_.find(key);
  if (it != numbered_.end()) return it->second;
  Value value{type, NewName(), operand_level};
  std::string line = "  " + value.ref + " = " + instruction + location_ + "\n";
  if (operand_level < level()) {
    Loop& loop = loops_[operand_level];
    loop.before += line;
    scopes_[loop.outer_scope].push_back(key);
  } else {
    Text() += line;
    scopes_.back().push_back(key);
  }
  numbered_.emplace(std::move(key), value);
  return value;
}

Value FunctionText::Here(const std::string& type, const std::string& instruction) {
  Value value{type, NewName(), level()};
  Text() += "  " + value.ref + " = " + instruction + location_ + "\n";
  return value;
}

Value FunctionText::Alloca(const std::string& type, int alignment, const std::string& name) {
  Value value{"ptr", NewName(name), 0};
  allocas_ +=
      "  " + value.ref + " = alloca " + type + ", align " + std::to_string(alignment) + "\n";
  return value;
}

Value FunctionText::Binary(const std::string& op, const Value& a, const Value& b) {
  ICHECK(a.type == b.type) << op << " of " << a.str() << " and " << b.str();
  return Pure(a.type, op + " " + a.type + " " + a.ref + ", " + b.ref, std::max(a.level, b.level));
}

Value FunctionText::Compare(const std::string& op, const Value& a, const Value& b) {
  ICHECK(a.type == b.type) << op << " of " << a.str() << " and " << b.str();
  return Pure(a.TypeWith("i1"), op + " " + a.type + " " + a.ref + ", " + b.ref,
              std::max(a.level, b.level));
}

Value FunctionText::Convert(const std::string& op, const Value& a, const std::string& type) {
  if (a.type == type) return a;
  return Pure(type, op + " " + a.str() + " to " + type, a.level);
}

Value FunctionText::Select(const Value& condition, const Value& yes, const Value& no) {
  ICHECK(yes.type == no.type) << "select of " << yes.str() << " and " << no.str();
  return Pure(yes.type, "select " + condition.str() + ", " + yes.str() + ", " + no.str(),
              std::max({condition.level, yes.level, no.level}));
}

Value FunctionText::PureCall(const std::string& name, const std::string& type,
                             const std::vector<Value>& args, const std::string& flags) {
  std::string types, operands;
  int level = 0;
  for (const Value& arg : args) {
    types += (types.empty() ? "" : ", ") + arg.type;
    operands += (operands.empty() ? "" : ", ") + arg.str();
    level = std::max(level, arg.level);
  }
  module_->Declare(name, type + " @" + name + "(" + types + ")");
  return Pure(type, "call" + flags + " " + type + " @" + name + "(" + operands + ")", level);
}

Value FunctionText::Intrinsic(const std::string& base, const std::vector<Value>& args,
                              const std::string& flags) {
  const Value& first = args.front();
  return PureCall(base + "." + first.Suffix(), first.type, args, flags);
}

Value FunctionText::Splat(const Value& scalar, int lanes) {
  std::string type = VectorType(lanes, scalar.type);
  if (scalar.ref[0] != '%') return {type, "splat (" + scalar.str() + ")", 0};
  Value first = Insert(Poison(type), scalar, 0);
  if (lanes > 0) return Shuffle(first, Poison(type), std::vector<int>(lanes, 0));
  return Pure(type,
              "shufflevector " + first.str() + ", " + Poison(type).str() + ", " +
                  VectorType(lanes, "i32") + " zeroinitializer",
              first.level);
}

Value FunctionText::Extract(const Value& vector, int lane) {
  return Pure(vector.element(), "extractelement " + vector.str() + ", i64 " + std::to_string(lane),
              vector.level);
}

Value FunctionText::Insert(const Value& vector, const Value& element, int lane) {
  return Pure(
      vector.type,
      "insertelement " + vector.str() + ", " + element.str() + ", i64 " + std::to_string(lane),
      std::max(vector.level, element.level));
}

Value FunctionText::Shuffle(const Value& a, const Value& b, const std::vector<int>& lanes) {
  std::string mask;
  bool zero = true;
  for (int lane : lanes) {
    mask += (mask.empty() ? "i32 " : ", i32 ") + std::to_string(lane);
    zero = zero && lane == 0;
  }
  std::string count = "<" + std::to_string(lanes.size()) + " x ";
  return Pure(count + a.element() + ">",
              "shufflevector " + a.str() + ", " + b.str() + ", " + count + "i32> " +
                  (zero ? "zeroinitializer" : "<" + mask + ">"),
              std::max(a.level, b.level));
}

Value FunctionText::GetElementPtr(const std::string& element, const Value& base,
                                  const Value& index) {
  if (index.ref == "0") return base;
  // Not inbounds: parts of an index that are added first may lead out of the array before others
  // lead back.
  return Pure("ptr", "getelementptr nusw " + element + ", " + base.str() + ", " + index.str(),
              std::max(base.level, index.level));
}

Value FunctionText::Int(const std::string& type, int64_t value) const {
  Value constant{type, "", 0};
  std::string element = constant.element();
  std::string digits = element == "i1" ? (value ? "true" : "false") : std::to_string(value);
  constant.ref = constant.is_vector() ? "splat (" + element + " " + digits + ")" : digits;
  return constant;
}

Value FunctionText::Float(const std::string& type, double value) const {
  Value constant{type, "", 0};
  std::string element = constant.element();
  char digits[24];
  if (element == "half") {
    std::snprintf(digits, sizeof(digits), "0xH%04X", HalfBits(static_cast<float>(value)));
  } else {
    // LLVM writes a float as the bits of the double of the same value.
    if (element == "float") value = static_cast<float>(value);
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    std::snprintf(digits, sizeof(digits), "0x%016llX", static_cast<unsigned long long>(bits));
  }
  constant.ref = constant.is_vector() ? "splat (" + element + " " + digits + ")" : digits;
  return constant;
}

std::string FunctionText::NewLabel(const std::string& hint) {
  return hint + "." + std::to_string(next_name_++);
}

void FunctionText::StartBlock(const std::string& label) {
  Text() += label + ":\n";
  block_ = label;
}

void FunctionText::Branch(const std::string& label) { Line("br label %" + label); }

void FunctionText::Branch(const Value& condition, const std::string& yes, const std::string& no) {
  Line("br " + condition.str() + ", label %" + yes + ", label %" + no);
}

void FunctionText::EnterScope() { scopes_.emplace_back(); }

void FunctionText::ExitScope() {
  for (const std::string& key : scopes_.back()) numbered_.erase(key);
  scopes_.pop_back();
}

void FunctionText::EnterLoop() {
  loops_.emplace_back();
  loops_.back().outer_scope = scopes_.size() - 1;
  EnterScope();
}

void FunctionText::CarryPointers(const std::string& entry, const std::string& latch) {
  Loop& loop = loops_.back();
  loop.entry = entry;
  loop.latch = latch;
  loop.end_of_phis = loop.body.size();
}

std::optional<Value> FunctionText::Advancing(const std::string& element, const Value& start,
                                             int64_t step) {
  Loop& loop = loops_.back();
  if (loop.latch.empty() || start.level >= level()) return std::nullopt;
  std::string move = "getelementptr " + element + ", " + start.type + " ";
  std::string by = ", i64 " + std::to_string(step);
  std::string key = "advancing " + start.ref + move + by;
  auto it = numbered_.find(key);
  if (it != numbered_.end()) return it->second;
  if (loop.pointers == kMaxPointers) return std::nullopt;
  ++loop.pointers;
  Value value{start.type, NewName("at"), level()};
  std::string next = NewName("next");
  loop.phis += "  " + value.ref + " = phi " + start.type + " [ " + start.ref + ", %" + loop.entry +
               " ], [ " + next + ", %" + loop.latch + " ]\n";
  loop.steps += "  " + next + " = " + move + value.ref + by + "\n";
  scopes_[loop.outer_scope + 1].push_back(key);
  numbered_.emplace(std::move(key), value);
  return value;
}

void FunctionText::AdvancePointers() { Text() += loops_.back().steps; }

void FunctionText::ExitLoop(const std::string& entry) {
  ExitScope();
  Loop loop = std::move(loops_.back());
  loops_.pop_back();
  loop.body.insert(loop.end_of_phis, loop.phis);
  Text() += loop.before + entry + loop.body;
}

std::string FunctionText::Finish(const std::string& head) const {
  ICHECK(loops_.empty()) << "a loop is still open";
  std::string debug;
  if (!subprogram_.empty()) {
    const size_t begin = head.find('@') + 1;
    module_->DefineSubprogram(subprogram_, debug_source_,
                              head.substr(begin, head.find('(') - begin));
    debug = " !dbg " + subprogram_;
  }
  return head + debug + " {\nentry:\n" + allocas_ + text_ + "}\n";
}

}  // namespace codegen
}  // namespace tvm
