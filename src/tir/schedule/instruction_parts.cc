/*!
 * \file instruction_parts.cc
 * \brief Arguments of an instruction in two lists, see instruction_parts.h.
 */
#include "instruction_parts.h"

#include <tvm/runtime/registry.h>

#include "primitive_table.h"

namespace tvm {
namespace tir {
namespace sched {
namespace {

enum class Part { kInput, kInputs, kAttr, kBuffer };

Part PartOf(const Argument& argument) {
  switch (argument.kind) {
    case ArgumentKind::kBlock:
    case ArgumentKind::kLoop:
    case ArgumentKind::kPlace:
    case ArgumentKind::kBlockOrLoop:
    case ArgumentKind::kBlocksOrLoop:
    case ArgumentKind::kValue:
      return Part::kInput;
    case ArgumentKind::kLoops:
    case ArgumentKind::kBlocks:
    case ArgumentKind::kSizes:
      return Part::kInputs;
    case ArgumentKind::kBufferOf:
      return Part::kBuffer;
    default:
      return Part::kAttr;
  }
}

constexpr const char* kSides[] = {"read", "write"};

/*! \brief Numbers that C++ and JSON have for truth values, as truth values. */
Any AsBool(const Any& value) {
  if (auto number = value.TryCast<int64_t>()) return *number != 0;
  return value;
}

/*! \brief Takes the parts one after the other. */
class Reader {
 public:
  Reader(const InstructionKind& kind, const char* what, const Array<Any>& items)
      : kind_(kind), what_(what), items_(items) {}

  size_t left() const { return items_.size() - next_; }
  Any Next() {
    TVM_CHECK(left() > 0, ValueError)
        << "Instruction: " << kind_->name << " needs more than " << items_.size() << " " << what_;
    return items_[static_cast<int64_t>(next_++)];
  }
  void CheckEnd() const {
    TVM_CHECK(left() == 0, ValueError) << "Instruction: " << kind_->name << " has " << next_ << " "
                                       << what_ << ", got " << items_.size();
  }

 private:
  const InstructionKind& kind_;
  const char* what_;
  const Array<Any>& items_;
  size_t next_ = 0;
};

}  // namespace

Array<Any> InputsOf(const Instruction& inst) {
  Array<Any> inputs;
  const Primitive& row = PrimitiveOf(inst->kind);
  for (size_t i = 0; i < row.arguments.size(); ++i) {
    const Any& value = inst->values[static_cast<int64_t>(i)];
    Part part = PartOf(row.arguments[i]);
    if (part == Part::kInput) inputs.push_back(value);
    if (part != Part::kInputs || value.is_null()) continue;
    for (const Any& item : value.cast<Array<Any>>()) inputs.push_back(item);
  }
  return inputs;
}

Array<Any> AttrsOf(const Instruction& inst) {
  Array<Any> attrs;
  const Primitive& row = PrimitiveOf(inst->kind);
  for (size_t i = 0; i < row.arguments.size(); ++i) {
    const Any& value = inst->values[static_cast<int64_t>(i)];
    Part part = PartOf(row.arguments[i]);
    if (part == Part::kAttr) attrs.push_back(value);
    if (part != Part::kBuffer) continue;
    Array<Any> place = value.cast<Array<Any>>();
    attrs.push_back(place[1]);
    attrs.push_back(static_cast<int64_t>(place[0].cast<String>() == kSides[1]));
  }
  return attrs;
}

Instruction FromParts(const InstructionKind& kind, const Array<Any>& inputs,
                      const Array<Any>& attrs, const Array<ObjectRef>& outputs) {
  const Primitive& row = PrimitiveOf(kind);
  Reader from_inputs(kind, "inputs", inputs), from_attrs(kind, "attributes", attrs);
  size_t single_inputs = 0;
  for (const Argument& argument : row.arguments) {
    single_inputs += PartOf(argument) == Part::kInput ? 1 : 0;
  }
  Array<Any> values;
  for (const Argument& argument : row.arguments) {
    Part part = PartOf(argument);
    if (part == Part::kInput) {
      values.push_back(from_inputs.Next());
    } else if (part == Part::kInputs) {
      Array<Any> list;
      for (size_t i = single_inputs; i < inputs.size(); ++i) list.push_back(from_inputs.Next());
      values.push_back(list.empty() && argument.optional ? argument.otherwise : Any(list));
    } else if (argument.optional && from_attrs.left() == 0) {
      values.push_back(argument.otherwise);
    } else if (part == Part::kBuffer) {
      Any position = from_attrs.Next();
      bool written = AsBool(from_attrs.Next()).cast<bool>();
      values.push_back(Array<Any>{String(kSides[written ? 1 : 0]), position});
    } else {
      Any value = from_attrs.Next();
      values.push_back(argument.kind == ArgumentKind::kBool ? AsBool(value) : value);
    }
  }
  from_inputs.CheckEnd();
  from_attrs.CheckEnd();
  return Instruction(kind, values, outputs);
}

TVM_REGISTER_GLOBAL("tir.schedule.InstructionInputs").set_body_typed(InputsOf);
TVM_REGISTER_GLOBAL("tir.schedule.InstructionAttrs").set_body_typed(AttrsOf);
TVM_REGISTER_GLOBAL("tir.schedule.InstructionFromParts").set_body_typed(FromParts);

}  // namespace sched
}  // namespace tir
}  // namespace tvm
