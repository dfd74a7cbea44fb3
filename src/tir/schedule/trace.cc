/*!
 * \file trace.cc
 * \brief Traces: as Python, as JSON, replayed, shortened.
 */
#include <tvm/node/repr_printer.h>
#include <tvm/tir/schedule/schedule.h>

#include <algorithm>

#include "instruction_parts.h"
#include "primitive_table.h"
#include "runtime/json.h"
#include "trace_text.h"

namespace tvm {
namespace tir {

TVM_REGISTER_NODE(BlockRVNode);
TVM_REGISTER_NODE(LoopRVNode);
TVM_REGISTER_NODE(InstructionNode, "tir.schedule.Instruction");
TVM_REGISTER_NODE(TraceNode, "tir.schedule.Trace");

using sched::Names;

void InstructionNode::Init() {
  TVM_CHECK(values.size() == kind->arguments.size(), ValueError)
      << "Instruction: " << kind->name << " has " << kind->arguments.size() << " arguments, got "
      << values.size();
}

Array<ObjectRef> InstructionNode::Inputs() const {
  Array<ObjectRef> found;
  auto collect = [&](const Any& rv) {
    found.push_back(rv.ref());
    return rv;
  };
  for (const Any& value : values) sched::MapRVs(value, collect);
  return found;
}

Array<Any> InstructionNode::Attrs() const { return sched::AttrsOf(GetRef<Instruction>(this)); }

void TraceNode::Append(const Instruction& inst, const Any& decision) {
  insts.push_back(inst);
  if (!decision.is_null()) decisions.Set(inst, decision);
}

Array<Instruction> TraceNode::Insts(bool remove_postproc) const {
  if (!remove_postproc) return insts;
  auto end = std::find_if(insts.begin(), insts.end(),
                          [](const Instruction& inst) { return inst->kind->is_postproc; });
  return Array<Instruction>(insts.begin(), end);
}

namespace {

Names NamesOf(const TraceNode* trace) {
  Names names;
  size_t index = 0;
  for (const Instruction& inst : trace->insts) {
    for (const ObjectRef& rv : inst->outputs) {
      const char* prefix = rv.as<BlockRVNode>() ? "b" : rv.as<LoopRVNode>() ? "l" : "v";
      names[rv.get()] = prefix + std::to_string(index++);
    }
  }
  return names;
}

/*! \brief Decisions of instructions that are still there. */
Map<Instruction, Any> DecisionsOf(const TraceNode* trace, const Array<Instruction>& insts) {
  Map<Instruction, Any> kept;
  for (const Instruction& inst : insts) {
    if (auto decision = trace->decisions.Get(inst)) kept.Set(inst, *decision);
  }
  return kept;
}

/*! \brief Whether an argument is one that need not be given, and is not. */
bool IsLeftOut(const sched::Argument& argument, const Any& value) {
  return value.is_null() && argument.optional && argument.otherwise.is_null();
}

/*! \brief An instruction as a line of Python; without names, every random variable is "_". */
String LineOf(const Instruction& inst, Names names, const std::optional<Any>& decision) {
  if (names.empty()) {
    for (const ObjectRef& rv : inst->Inputs()) names[rv.get()] = "_";
    for (const ObjectRef& rv : inst->outputs) names[rv.get()] = "_";
  }
  std::string arguments;
  auto add = [&](const std::string& text) { sched::AddItem(&arguments, text); };
  const sched::Primitive& row = sched::PrimitiveOf(inst->kind);
  for (size_t i = 0; i < row.arguments.size(); ++i) {
    const Any& value = inst->values[static_cast<int64_t>(i)];
    if (row.kind->variadic == row.arguments[i].name) {
      for (const Any& item : value.cast<Array<Any>>()) add(sched::ToText(item, names));
    } else if (!IsLeftOut(row.arguments[i], value)) {
      add(std::string(row.arguments[i].name) + "=" + sched::ToText(value, names));
    }
  }
  if (decision && row.kind->is_sampling) add("decision=" + sched::ToText(*decision, names));
  std::string outputs;
  for (const ObjectRef& rv : inst->outputs) {
    sched::AddItem(&outputs, names.at(rv.get()));
  }
  if (inst->outputs.size() == 1 && row.kind->returns_list) outputs += ",";
  std::string call = "sch." + row.kind->method + "(" + arguments + ")";
  return outputs.empty() ? call : outputs + " = " + call;
}

}  // namespace

Array<String> TraceNode::AsPython() const {
  Names names = NamesOf(this);
  Array<String> lines;
  for (const Instruction& inst : insts) lines.push_back(LineOf(inst, names, decisions.Get(inst)));
  return lines;
}

Trace Trace::WithDecision(const Instruction& inst, const Any& decision,
                          bool remove_postproc) const {
  const Array<Instruction>& all = get()->insts;
  TVM_CHECK(std::find(all.begin(), all.end(), inst) != all.end() && inst->kind->is_sampling,
            ValueError)
      << "with_decision: " << inst->kind->name << " is no sampling instruction of this trace";
  Array<Instruction> insts = get()->Insts(remove_postproc);
  Map<Instruction, Any> decisions = DecisionsOf(get(), insts);
  decisions.Set(inst, decision);
  return Trace(insts, decisions);
}

Trace Trace::Simplified(bool remove_postproc) const {
  Array<Instruction> insts = get()->Insts(remove_postproc);
  std::unordered_map<const Object*, bool> needed;
  std::vector<Instruction> kept;
  for (size_t i = insts.size(); i-- > 0;) {
    const Instruction& inst = insts[static_cast<int64_t>(i)];
    bool used = std::any_of(inst->outputs.begin(), inst->outputs.end(),
                            [&](const ObjectRef& rv) { return needed.count(rv.get()); });
    if (inst->kind->is_pure && !used) continue;
    for (const ObjectRef& rv : inst->Inputs()) needed[rv.get()] = true;
    kept.push_back(inst);
  }
  Array<Instruction> left(kept.rbegin(), kept.rend());
  return Trace(left, DecisionsOf(get(), left));
}

void TraceNode::ApplyToSchedule(const Schedule& sch, bool remove_postproc,
                                const DecisionProvider& decision_provider) const {
  std::unordered_map<const Object*, Any> twins;
  auto twin = [&](const Any& rv) {
    auto found = twins.find(rv.object());
    TVM_CHECK(found != twins.end(), ValueError)
        << "trace: an instruction takes what none before it returned";
    return found->second;
  };
  for (const Instruction& inst : Insts(remove_postproc)) {
    Array<Any> arguments;
    for (const Any& value : inst->values) arguments.push_back(sched::MapRVs(value, twin));
    Any decision;
    if (inst->kind->is_sampling) {
      if (auto recorded = decisions.Get(inst)) decision = *recorded;
      if (decision_provider) {
        decision = decision_provider(inst, inst->Inputs(), inst->Attrs(), decision);
      }
    }
    Array<ObjectRef> results = sch->Apply(inst->kind, arguments, decision);
    TVM_CHECK(results.size() == inst->outputs.size(), ScheduleError)
        << "trace: " << inst->kind->name << " returned " << results.size()
        << " results where the trace has " << inst->outputs.size()
        << "; it was recorded for another module";
    for (size_t i = 0; i < results.size(); ++i) {
      int64_t at = static_cast<int64_t>(i);
      twins[inst->outputs[at].get()] = results[at];
    }
  }
}

namespace {

constexpr const char* kFromJSON = "Trace.from_json";

json::Value ToJSON(const Any& decision) {
  if (const auto* items = decision.as<ArrayNode>()) {
    json::ArrayValue values;
    for (const Any& item : items->data) values.push_back(ToJSON(item));
    return json::Value(values);
  }
  return json::Value(decision.cast<int64_t>());
}

Any DecisionFrom(const json::Value& value) {
  if (const auto* items = value.as<json::ArrayValue>()) {
    Array<Any> decision;
    for (const json::Value& item : *items) decision.push_back(DecisionFrom(item));
    return decision;
  }
  return value.Expect<int64_t>(std::string(kFromJSON) + ": a decision");
}

ObjectRef RVNamed(const std::string& name) {
  bool numbered = name.size() > 1 && std::all_of(name.begin() + 1, name.end(), [](char c) {
                    return std::isdigit(static_cast<unsigned char>(c));
                  });
  if (numbered && name[0] == 'b') return BlockRV(make_object<BlockRVNode>());
  if (numbered && name[0] == 'l') return LoopRV(make_object<LoopRVNode>());
  TVM_CHECK(numbered && name[0] == 'v', ValueError)
      << kFromJSON << ": outputs are called b0 (a block), l0 (a loop) or v0, got "
      << sched::Quoted(name);
  return Var(name);
}

/*! \brief The elements of a list of a known length. */
const json::ArrayValue& Items(const json::Value& value, size_t size, const char* what) {
  const auto& items = value.Expect<json::ArrayValue>(std::string(kFromJSON) + ": " + what);
  TVM_CHECK(items.size() == size, ValueError)
      << kFromJSON << ": " << what << " has " << size << " parts, got " << items.size();
  return items;
}

/*! \brief An argument of TVM's form of instructions; names of random variables only in inputs. */
Any PartFrom(const json::Value& value, const sched::NamedRVs* known) {
  if (value.is_null()) return Any();
  if (const auto* number = value.as<int64_t>()) return *number;
  if (const auto* number = value.as<double>()) return *number;
  if (const auto* truth = value.as<bool>()) return *truth;
  if (const auto* items = value.as<json::ArrayValue>()) {
    Array<Any> list;
    for (const json::Value& item : *items) list.push_back(PartFrom(item, known));
    return list;
  }
  const auto& text = value.Expect<std::string>(std::string(kFromJSON) + ": an argument");
  if (known == nullptr) return String(text);
  if (text == "None") return Any();
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    return String(text.substr(1, text.size() - 2));
  }
  auto found = known->find(text);
  TVM_CHECK(found != known->end(), ValueError)
      << kFromJSON << ": no instruction before gives " << sched::Quoted(text);
  return found->second;
}

Array<ObjectRef> OutputsFrom(const json::Value& value, sched::NamedRVs* known) {
  std::string where = kFromJSON;
  Array<ObjectRef> outputs;
  for (const json::Value& output : value.Expect<json::ArrayValue>(where + ": outputs")) {
    const std::string& name = output.Expect<std::string>(where + ": an output");
    outputs.push_back(RVNamed(name));
    (*known)[name] = outputs.back();
  }
  return outputs;
}

/*! \brief An instruction as TVM saves it: [kind, inputs, attributes, outputs]. */
Instruction InstructionFromParts(const json::ArrayValue& parts, sched::NamedRVs* known) {
  std::string where = kFromJSON;
  InstructionKind kind = InstructionKind::Get(parts[0].Expect<std::string>(where + ": a kind"));
  Array<Any> inputs, attrs;
  for (const json::Value& item : parts[1].Expect<json::ArrayValue>(where + ": inputs")) {
    inputs.push_back(PartFrom(item, known));
  }
  for (const json::Value& item : parts[2].Expect<json::ArrayValue>(where + ": attributes")) {
    attrs.push_back(PartFrom(item, nullptr));
  }
  return sched::FromParts(kind, inputs, attrs, OutputsFrom(parts[3], known));
}

Instruction InstructionFrom(const json::Value& row, sched::NamedRVs* known) {
  if (const auto* items = row.as<json::ArrayValue>(); items != nullptr && items->size() == 4) {
    return InstructionFromParts(*items, known);
  }
  const json::ArrayValue& parts = Items(row, 3, "an instruction [kind, arguments, outputs]");
  std::string where = kFromJSON;
  InstructionKind kind = InstructionKind::Get(parts[0].Expect<std::string>(where + ": a kind"));
  const sched::Primitive& primitive = sched::PrimitiveOf(kind);
  std::vector<bool> is_given(primitive.arguments.size(), false);
  std::vector<Any> values(primitive.arguments.size());
  for (const auto& [name, text] : parts[1].Expect<json::ObjectValue>(where + ": arguments")) {
    size_t i = sched::ArgumentNamed(kind, name);
    is_given[i] = true;
    values[i] =
        sched::FromText(text.Expect<std::string>(where + ": an argument of " + kind->name), *known);
  }
  Array<Any> arguments;
  for (size_t i = 0; i < values.size(); ++i) {
    const sched::Argument& argument = primitive.arguments[i];
    TVM_CHECK(is_given[i] || argument.optional, ValueError)
        << kind->name << " of a trace: the argument " << argument.name << " is missing";
    arguments.push_back(is_given[i] ? values[i] : argument.otherwise);
  }
  return Instruction(kind, arguments, OutputsFrom(parts[2], known));
}

}  // namespace

namespace {

/*!
 * \brief An argument in TVM's form of instructions, or nothing if it has none there, as index maps
 *        and computed sizes.
 * \param names Of random variables, for inputs; null for attributes.
 */
std::optional<json::Value> PartAsJSON(const Any& value, const Names* names) {
  if (value.is_null()) return names == nullptr ? json::Value() : json::Value(std::string("None"));
  if (const Object* rv = sched::AsRV(value)) {
    if (names == nullptr || names->count(rv) == 0) return std::nullopt;
    return json::Value(names->at(rv));
  }
  if (auto text = value.TryCast<String>()) {
    std::string content = *text;
    return json::Value(names == nullptr ? content : "\"" + content + "\"");
  }
  if (const auto* items = value.as<ArrayNode>()) {
    json::ArrayValue list;
    for (const Any& item : items->data) {
      auto part = PartAsJSON(item, names);
      if (!part) return std::nullopt;
      list.push_back(*part);
    }
    return json::Value(list);
  }
  if (value.as<Object>() != nullptr && value.as<IntImmNode>() == nullptr) return std::nullopt;
  if (value.type_code() == kTVMBool) return json::Value(static_cast<int64_t>(value.cast<bool>()));
  if (auto number = value.TryCast<int64_t>()) return json::Value(*number);
  if (auto number = value.TryCast<double>()) return json::Value(*number);
  return std::nullopt;
}

}  // namespace

String TraceNode::AsJSON(bool remove_postproc) const {
  Names names = NamesOf(this);
  json::ArrayValue rows, drawn;
  for (const Instruction& inst : Insts(remove_postproc)) {
    json::ArrayValue outputs;
    for (const ObjectRef& rv : inst->outputs) outputs.emplace_back(names.at(rv.get()));
    if (auto decision = decisions.Get(inst)) {
      drawn.emplace_back(
          json::ArrayValue{json::Value(static_cast<int64_t>(rows.size())), ToJSON(*decision)});
    }
    const json::Value kind(inst->kind->name.str());
    auto inputs = PartAsJSON(Any(sched::InputsOf(inst)), &names);
    auto attrs = PartAsJSON(Any(sched::AttrsOf(inst)), nullptr);
    if (inputs && attrs) {
      rows.emplace_back(json::ArrayValue{kind, *inputs, *attrs, json::Value(outputs)});
      continue;
    }
    const sched::Primitive& row = sched::PrimitiveOf(inst->kind);
    json::ObjectValue values;
    for (size_t i = 0; i < row.arguments.size(); ++i) {
      const Any& value = inst->values[static_cast<int64_t>(i)];
      if (IsLeftOut(row.arguments[i], value)) continue;
      values.emplace_back(row.arguments[i].name, json::Value(sched::ToText(value, names)));
    }
    rows.emplace_back(json::ArrayValue{kind, json::Value(values), json::Value(outputs)});
  }
  std::string text;
  json::Value(json::ArrayValue{json::Value(rows), json::Value(drawn)}).Write(&text);
  return text;
}

Trace Trace::FromJSON(const std::string& text) {
  json::Value value = json::Value::Parse(text);
  const json::ArrayValue& parts = Items(value, 2, "a trace [instructions, decisions]");
  Trace trace = Trace::Empty();
  sched::NamedRVs known;
  std::string where = kFromJSON;
  for (const json::Value& row : parts[0].Expect<json::ArrayValue>(where + ": instructions")) {
    trace->Append(InstructionFrom(row, &known), Any());
  }
  for (const json::Value& row : parts[1].Expect<json::ArrayValue>(where + ": decisions")) {
    const json::ArrayValue& pair = Items(row, 2, "a decision [index, decision]");
    int64_t index = pair[0].Expect<int64_t>(where + ": the index of a decision");
    TVM_CHECK(0 <= index && index < static_cast<int64_t>(trace->insts.size()), ValueError)
        << where << ": a decision for instruction " << index << " of " << trace->insts.size();
    trace->decisions.Set(trace->insts[index], DecisionFrom(pair[1]));
  }
  return trace;
}

namespace {

/*! \brief A trace as a Python function. */
String FunctionOf(const Trace& trace) {
  std::string text = "# from tvm import tir\ndef apply_trace(sch: tir.Schedule) -> None:";
  for (const String& line : trace->AsPython()) text += "\n    " + line;
  return trace->insts.empty() ? text + "\n    pass" : text;
}

}  // namespace

TVM_REGISTER_GLOBAL("tir.schedule.BlockRV").set_body_typed([] {
  return BlockRV(make_object<BlockRVNode>());
});
TVM_REGISTER_GLOBAL("tir.schedule.LoopRV").set_body_typed([] {
  return LoopRV(make_object<LoopRVNode>());
});
TVM_REGISTER_REPR(InstructionNode, [](const InstructionNode* inst, ReprPrinter* p) {
  p->stream << LineOf(GetRef<Instruction>(inst), {}, std::nullopt);
});
TVM_REGISTER_GLOBAL("tir.schedule.TraceAppend")
    .set_body_typed([](Trace trace, Instruction inst, Any decision) {
      trace->Append(inst, decision);
    });
TVM_REGISTER_GLOBAL("tir.schedule.TracePop").set_body_typed([](Trace trace) -> ObjectRef {
  if (trace->insts.empty()) return ObjectRef();
  Instruction last = trace->insts.back();
  trace->insts.pop_back();
  trace->decisions.erase(last);
  return last;
});
TVM_REGISTER_GLOBAL("tir.schedule.TraceWithDecision")
    .set_body_typed([](Trace trace, Instruction inst, Any decision, bool remove_postproc) {
      return trace.WithDecision(inst, decision, remove_postproc);
    });
TVM_REGISTER_GLOBAL("tir.schedule.TraceSimplified")
    .set_body_typed([](Trace trace, bool remove_postproc) {
      return trace.Simplified(remove_postproc);
    });
TVM_REGISTER_GLOBAL("tir.schedule.TraceApply")
    .set_body_typed([](Trace trace, Schedule sch, bool remove_postproc, Any provider) {
      if (provider.is_null()) return trace->ApplyToSchedule(sch, remove_postproc);
      auto choose = provider.cast<runtime::PackedFunc>();
      trace->ApplyToSchedule(
          sch, remove_postproc,
          [&](const Instruction& inst, const Array<ObjectRef>& inputs, const Array<Any>& attrs,
              const Any& decision) -> Any { return choose(inst, inputs, attrs, decision); });
    });
TVM_REGISTER_GLOBAL("tir.schedule.TraceAsPython").set_body_typed([](Trace trace) {
  return trace->AsPython();
});
TVM_REGISTER_GLOBAL("tir.schedule.TraceAsJSON")
    .set_body_typed([](Trace trace, bool remove_postproc) {
      return trace->AsJSON(remove_postproc);
    });
TVM_REGISTER_GLOBAL("tir.schedule.TraceFromJSON").set_body_typed([](String text) {
  return Trace::FromJSON(text);
});
TVM_REGISTER_GLOBAL("tir.schedule.TraceAsFunction").set_body_typed(FunctionOf);

// For callers in other languages, which hold modules and texts.

/*! \brief A module after the trace that a JSON text holds. */
TVM_REGISTER_GLOBAL("tir.schedule.ApplyJSON").set_body_typed([](IRModule mod, String text) {
  Schedule sch(mod);
  Trace::FromJSON(text)->ApplyToSchedule(sch, false);
  return sch->Mod();
});
/*! \brief A trace, given as JSON text, as a Python function. */
TVM_REGISTER_GLOBAL("tir.schedule.AsPython").set_body_typed([](String text) {
  return FunctionOf(Trace::FromJSON(text));
});
/*! \brief A trace, given as JSON text, without what nothing needs; as JSON text. */
TVM_REGISTER_GLOBAL("tir.schedule.Simplified").set_body_typed([](String text) {
  return Trace::FromJSON(text).Simplified(false)->AsJSON(false);
});

}  // namespace tir
}  // namespace tvm
