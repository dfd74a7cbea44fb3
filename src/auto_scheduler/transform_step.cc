/*!
 * \file transform_step.cc
 * \brief Steps to and from records.
 */
#include <tvm/auto_scheduler/transform_step.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>

#include <map>
#include <optional>
#include <string>

namespace tvm {
namespace auto_scheduler {

TVM_REGISTER_NODE(StepNode);

namespace {

/*! \brief A field's value as it stands in a record. */
Any RecordValue(const Any& value, bool in_list) {
  if (value.is_null()) return Any(0);
  if (value.type_code() == kTVMBool) return Any(value.cast<int>());
  if (const auto* list = value.as<ArrayNode>()) {
    Array<Any> elements;
    for (const Any& element : list->data) elements.push_back(RecordValue(element, true));
    return elements;
  }
  if (!value.as<PrimExprNode>()) return value;
  auto expr = value.cast<PrimExpr>();
  if (const int64_t* literal = tir::as_const_int(expr)) return Any(*literal);
  if (!in_list) return Any(0);
  const auto* var = expr.as<tir::VarNode>();
  TVM_CHECK(var != nullptr, ValueError)
      << "step record: " << expr << " is neither a number nor a variable, so it cannot be written";
  return var->name_hint;
}

/*! \brief A list whose texts are names of split lengths, with variables in their places. */
Array<Any> WithVariables(const Array<Any>& list) {
  Array<Any> elements;
  for (const Any& element : list) {
    std::optional<String> name = element.TryCast<String>();
    elements.push_back(name ? Any(tir::SizeVar(*name, DataType::Int(32), tir::SizeVarKind::kKnob))
                            : element);
  }
  return elements;
}

/*! \brief The type of the steps with each tag. */
const std::map<std::string, const NodeReflection*>& StepTypes() {
  static const auto* types = [] {
    auto* found = new std::map<std::string, const NodeReflection*>();
    for (uint32_t i = 0; i < runtime::TypeInfo::Count(); ++i) {
      const runtime::TypeInfo* type = runtime::TypeInfo::FromIndex(i);
      if (!type->IsDerivedFrom(StepNode::StaticTypeInfo()) || type->reflection == nullptr) continue;
      if (type->reflection->create == nullptr) continue;
      ObjectPtr<Object> sample = type->reflection->create();
      found->emplace(static_cast<const StepNode*>(sample.get())->Tag(), type->reflection);
    }
    return found;
  }();
  return *types;
}

}  // namespace

Array<Any> Step::ToRecord() const {
  Array<Any> record = {String(get()->Tag())};
  for (const FieldInfo* field : NodeReflection::Require(get()->type_info()).args()) {
    record.push_back(RecordValue(field->Get(get()), false));
  }
  return record;
}

Step Step::FromRecord(const Array<Any>& record) {
  std::optional<String> tag = record.empty() ? String() : record[0].TryCast<String>();
  auto found = StepTypes().find(tag.value_or(String()));
  if (found == StepTypes().end()) {
    std::string known;
    for (const auto& entry : StepTypes()) known += " " + entry.first;
    TVM_FATAL(ValueError) << "step record: unknown tag "
                          << (record.empty() ? Any("(no fields)") : record[0]) << "; known are"
                          << known;
  }
  const NodeReflection* type = found->second;
  const std::vector<const FieldInfo*>& fields = type->args();
  TVM_CHECK(record.size() == fields.size() + 1, ValueError)
      << "step record " << *tag << ": it has " << record.size() << " fields instead of "
      << fields.size() + 1;
  ObjectPtr<Object> step = type->create();
  for (size_t i = 0; i < fields.size(); ++i) {
    const FieldInfo& field = *fields[i];
    const Any value = record[i + 1];
    void* address = field.Address(step.get());
    bool read = !value.is_null() && field.write(address, value);
    if (!read && value.as<ArrayNode>()) {
      read = field.write(address, WithVariables(value.cast<Array<Any>>()));
    }
    TVM_CHECK(read, ValueError) << "step record " << *tag << ": field " << i + 1 << " ("
                                << field.name << ") must be " << field.type_name() << ", got "
                                << value;
  }
  type->finish(step.get());
  return Step(step);
}

TVM_REGISTER_GLOBAL("auto_scheduler.StepToRecord").set_body_typed([](Step step) {
  return step.ToRecord();
});
TVM_REGISTER_GLOBAL("auto_scheduler.StepFromRecord").set_body_typed([](Array<Any> record) {
  return Step::FromRecord(record);
});

}  // namespace auto_scheduler
}  // namespace tvm
