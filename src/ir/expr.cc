#include <tvm/ir/expr.h>
#include <tvm/node/repr_printer.h>
#include <tvm/runtime/narrow_float.h>

#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>

namespace tvm {

using runtime::TypeInfo;

TVM_REGISTER_NODE(SpanNode, "ir.Span");
TVM_REGISTER_NODE(BaseExprNode);
TVM_REGISTER_NODE(PrimExprNode);
TVM_REGISTER_NODE(IntImmNode, "ir.IntImm");
TVM_REGISTER_NODE(FloatImmNode, "ir.FloatImm");
TVM_REGISTER_NODE(RangeNode, "ir.Range_from_min_extent");
TVM_REGISTER_NODE(RelayExprNode);
TVM_REGISTER_NODE(GlobalVarNode, "ir.GlobalVar");

// What is known of a function is a note on its name, which has no part in equality.
[[maybe_unused]] static const bool kNoteOnName = [] {
  NodeReflection* reflection = NodeReflection::Mutable(GlobalVarNode::StaticTypeInfo());
  static void (*const collect)(FieldTable*) = reflection->collect;
  reflection->collect = [](FieldTable* out) {
    collect(out);
    for (FieldInfo& field : out->fields) {
      if (std::string_view(field.name) == "struct_info_") field.role = FieldRole::kIgnore;
    }
  };
  return true;
}();

namespace {

struct ConversionTable {
  std::shared_mutex mutex;
  std::map<const TypeInfo*, PrimExpr::Converter> converters;
  static ConversionTable& Global() {
    static auto* table = new ConversionTable();
    return *table;
  }
};

[[maybe_unused]] const bool int_literals_are_numbers = [] {
  IntImmNode::StaticTypeInfo()->as_int = [](const Object* node, int64_t* out) {
    *out = static_cast<const IntImmNode*>(node)->value;
    return true;
  };
  FloatImmNode::StaticTypeInfo()->as_float = [](const Object* node, double* out) {
    *out = static_cast<const FloatImmNode*>(node)->value;
    return true;
  };
  return runtime::RegisterNumberBoxer(
      [](const Any& value) -> ObjectRef { return value.cast<PrimExpr>(); });
}();

// The nearest value the type can hold, so that equal literals have equal bits.
double RoundToType(double value, DataType dtype) {
  if (dtype.bits() == 32) return static_cast<float>(value);
  static constexpr NarrowFloatFormat kHalf{16, 10, 15, NarrowFloatFormat::kIEEE};
  const NarrowFloatFormat* format = dtype.is_float16() ? &kHalf : NarrowFloatFormatOf(dtype);
  if (format == nullptr || std::isnan(value) || value == 0) return value;
  const double beyond =
      format->specials == NarrowFloatFormat::kIEEE ? HUGE_VAL : std::nan("");  // without infinity
  if (std::isinf(value)) return std::copysign(beyond, value);
  int precision = format->mantissa_bits + 1;
  int min_exponent = 1 - format->bias;
  double largest = format->Largest();
  int exponent = std::max(std::ilogb(value), min_exponent);
  double unit = std::ldexp(1.0, exponent - precision + 1);
  double rounded = std::nearbyint(value / unit) * unit;
  return std::abs(rounded) > largest ? std::copysign(beyond, value) : rounded;
}

}  // namespace

PrimExpr PrimExpr::FromBool(bool value) { return Bool(value); }

PrimExpr PrimExpr::FromInt(int64_t value) {
  bool small =
      value >= std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max();
  return IntImm(DataType::Int(small ? 32 : 64), value);
}

PrimExpr PrimExpr::FromFloat(double value) { return FloatImm(DataType::Float(32), value); }

std::optional<PrimExpr> PrimExpr::FromAny(const Any& value) {
  switch (value.type_code()) {
    case kTVMBool:
      return FromBool(value.raw().v_int64 != 0);
    case kTVMInt:
      return FromInt(value.raw().v_int64);
    case kTVMFloat:
      return FromFloat(value.raw().v_float64);
    case kTVMStr:
      return FromAny(Any(value));
    case kTVMObject:
      break;
    default:
      return std::nullopt;
  }
  ConversionTable& table = ConversionTable::Global();
  std::shared_lock lock(table.mutex);
  for (const TypeInfo* type = value.object()->type_info(); type; type = type->parent) {
    auto it = table.converters.find(type);
    if (it != table.converters.end()) return it->second(value.object());
  }
  return std::nullopt;
}

bool PrimExpr::RegisterConversion(const TypeInfo* type, Converter convert) {
  ConversionTable& table = ConversionTable::Global();
  std::unique_lock lock(table.mutex);
  table.converters[type] = convert;
  return true;
}

void IntImmNode::Init() {
  TVM_CHECK(dtype.is_scalar() && (dtype.is_int() || dtype.is_uint()), ValueError)
      << "IntImm: expected a scalar integer type, got " << dtype;
  if (dtype.is_uint()) {
    TVM_CHECK(value >= 0, ValueError)
        << "IntImm: " << value << " is negative, the type " << dtype << " is not signed";
  }
  int magnitude_bits = dtype.is_uint() ? dtype.bits() : dtype.bits() - 1;
  if (magnitude_bits < 63) {
    int64_t limit = int64_t{1} << magnitude_bits;
    TVM_CHECK(value < limit && value >= (dtype.is_uint() ? 0 : -limit), ValueError)
        << "IntImm: " << value << " does not fit " << dtype;
  }
}

void FloatImmNode::Init() {
  TVM_CHECK(dtype.is_scalar() && IsFloating(dtype), ValueError)
      << "FloatImm: expected a scalar floating-point type, got " << dtype;
  value = RoundToType(value, dtype);
}

Range Range::FromMinExtent(PrimExpr min, PrimExpr extent, Span span) {
  return Construct<Range>(min, extent, span);
}

TVM_REGISTER_REPR(IntImmNode, [](const IntImmNode* node, ReprPrinter* p) {
  if (node->dtype.is_bool()) {
    p->stream << (node->value ? "T.bool(True)" : "T.bool(False)");
  } else if (node->dtype == DataType::Int(32)) {
    p->stream << node->value;
  } else {
    p->stream << "T." << node->dtype << '(' << node->value << ')';
  }
});

TVM_REGISTER_REPR(FloatImmNode, [](const FloatImmNode* node, ReprPrinter* p) {
  p->stream << "T." << node->dtype << '(';
  if (std::isfinite(node->value)) {
    p->Print(Any(node->value));
  } else {
    // As programs have them: names such as inf mean nothing in a text.
    p->stream << '"' << (std::isnan(node->value) ? "nan" : node->value > 0 ? "inf" : "-inf") << '"';
  }
  p->stream << ')';
});

TVM_REGISTER_REPR(GlobalVarNode, [](const GlobalVarNode* node, ReprPrinter* p) {
  p->stream << "I.GlobalVar(\"" << node->name_hint << "\")";
});

namespace {

void WriteSpan(const ObjectRef& node, const Span& span) {
  const FieldInfo* field = NodeReflection::Require(node->type_info()).Find("span");
  TVM_CHECK(field != nullptr, TypeError) << node->GetTypeKey() << " has no place for a span";
  field->Set(const_cast<Object*>(node.get()), span);
}

}  // namespace

/*! \brief For constructors: note the place of a node that nobody else refers to yet. */
TVM_REGISTER_GLOBAL("ir.SetSpan").set_body_typed([](ObjectRef node, Span span) {
  WriteSpan(node, span);
});

/*! \brief A copy of a node with another span; variables and operators, which are known by identity,
 * stay as they are. */
TVM_REGISTER_GLOBAL("ir.WithSpan").set_body_typed([](ObjectRef node, Span span) {
  const NodeReflection& reflection = NodeReflection::Require(node->type_info());
  if (reflection.is_variable || reflection.name_of != nullptr) return node;
  ObjectRef copy = CopyNode(node);
  WriteSpan(copy, span);
  return copy;
});

/*! \brief A literal or anything that stands for an expression, as an expression. */
TVM_REGISTER_GLOBAL("ir.AsPrimExpr").set_body_typed([](PrimExpr value) { return value; });

}  // namespace tvm
