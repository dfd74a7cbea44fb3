#include <tvm/node/repr_printer.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/stack_guard.h>

#include <charconv>
#include <sstream>

namespace tvm {
namespace {

// Deeper than any program a person prints, shallower than the machine stack.
constexpr int kMaxDepth = 400;

void PrintQuoted(const std::string& text, std::ostream& os) {
  os << '"';
  for (char c : text) {
    if (c == '"' || c == '\\') {
      os << '\\' << c;
    } else if (c == '\n') {
      os << "\\n";
    } else {
      os << c;
    }
  }
  os << '"';
}

// The shortest text that reads back as the same number, with a sign that it is not an integer.
void PrintFloat(double value, std::ostream& os) {
  char buffer[40];
  auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  std::string_view text(buffer, static_cast<size_t>(end - buffer));
  os << text;
  if (text.find_first_of(".en") == std::string_view::npos) os << ".0";
}

}  // namespace

void ReprPrinter::PrintIndent() {
  for (int i = 0; i < indent; ++i) stream << ' ';
}

void ReprPrinter::Print(const Any& value) {
  switch (value.type_code()) {
    case kTVMNull:
      stream << "None";
      return;
    case kTVMBool:
      stream << (value.raw().v_int64 ? "True" : "False");
      return;
    case kTVMInt:
      stream << value.raw().v_int64;
      return;
    case kTVMFloat:
      PrintFloat(value.raw().v_float64, stream);
      return;
    case kTVMDataType:
      stream << DataType(value.raw().v_dtype);
      return;
    case kTVMDevice:
      stream << runtime::DeviceName(value.raw().v_device.device_type) << '('
             << value.raw().v_device.device_id << ')';
      return;
    case kTVMStr:
      PrintQuoted(value.raw().v_str, stream);
      return;
    case kTVMOpaqueHandle:
    case kTVMDLTensor:
      stream << (value.type_code() == kTVMDLTensor ? "DLTensor(" : "handle(")
             << value.raw().v_handle << ')';
      return;
    default:
      break;
  }
  runtime::CheckStack();
  const Object* node = value.object();
  for (const auto* type = node->type_info(); type != nullptr; type = type->parent) {
    if (type->reflection != nullptr && type->reflection->repr) {
      type->reflection->repr(node, this);
      return;
    }
  }
  PrintFields(node);
}

void ReprPrinter::PrintFields(const Object* node) {
  stream << node->GetTypeKey() << '(';
  if (++depth_ > kMaxDepth) {
    stream << "...";
  } else if (const NodeReflection* reflection = node->type_info()->reflection) {
    bool first = true;
    for (const FieldInfo& field : reflection->fields()) {
      // Spans and caches are noise in print as well.
      if (field.role == FieldRole::kIgnore) continue;
      stream << (first ? "" : ", ") << field.name << '=';
      Print(field.Get(node));
      first = false;
    }
  }
  --depth_;
  stream << ')';
}

std::string AsRepr(const Any& value) {
  std::ostringstream os;
  ReprPrinter(os).Print(value);
  return os.str();
}

std::ostream& operator<<(std::ostream& os, const Any& value) {
  ReprPrinter(os).Print(value);
  return os;
}

std::ostream& operator<<(std::ostream& os, const ObjectRef& ref) { return os << Any(ref); }

TVM_REGISTER_REPR(StringObj, [](const StringObj* node, ReprPrinter* p) {
  PrintQuoted(node->data, p->stream);
});

TVM_REGISTER_REPR(ArrayNode, [](const ArrayNode* node, ReprPrinter* p) {
  p->stream << '[';
  for (size_t i = 0; i < node->size(); ++i) {
    if (i != 0) p->stream << ", ";
    p->Print(node->at(i));
  }
  p->stream << ']';
});

TVM_REGISTER_REPR(MapNode, [](const MapNode* node, ReprPrinter* p) {
  p->stream << '{';
  bool first = true;
  for (const auto& [key, value] : node->entries()) {
    if (!first) p->stream << ", ";
    p->Print(key);
    p->stream << ": ";
    p->Print(value);
    first = false;
  }
  p->stream << '}';
});

TVM_REGISTER_REPR(runtime::NDArrayObj, [](const runtime::NDArrayObj* node, ReprPrinter* p) {
  p->stream << "NDArray(" << DataType(node->tensor.dtype) << ", (";
  for (size_t i = 0; i < node->shape.size(); ++i) p->stream << (i ? ", " : "") << node->shape[i];
  p->stream << "), ";
  p->Print(Any(node->tensor.device));
  p->stream << ')';
});

TVM_REGISTER_REPR(runtime::ModuleNode, [](const runtime::ModuleNode* node, ReprPrinter* p) {
  p->stream << "Module(" << node->type_key() << ')';
});

TVM_REGISTER_REPR(runtime::PackedFuncObj, [](const runtime::PackedFuncObj* node, ReprPrinter* p) {
  p->stream << "PackedFunc(" << static_cast<const void*>(node) << ')';
});

TVM_REGISTER_GLOBAL("node.AsRepr").set_body_typed([](Any value) { return AsRepr(value); });

}  // namespace tvm
