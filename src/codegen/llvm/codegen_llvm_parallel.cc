/*!
 * \file codegen_llvm_parallel.cc
 * \brief Statements of the LLVM generator that become functions of their own: bodies of parallel
 * loops, and what runs once.
 */
#include <tvm/expr/op.h>

#include "codegen/llvm/codegen_llvm.h"
#include "codegen/run_once.h"

namespace tvm {
namespace codegen {

using namespace tir;  // NOLINT(*)

void CodeGenLLVM::Capture(const Stmt& stmt, Frame* inner, Captured* captured) {
  std::unordered_set<const VarNode*> seen;
  auto capture = [&](const VarNode* var) {
    auto it = frame_->vars.find(var);
    if (it == frame_->vars.end() || !seen.insert(var).second) return;
    const Binding& binding = it->second;
    if (binding.linear && binding.linear->is_constant()) {
      inner->vars[var].linear = std::make_unique<LinearIndex>(*binding.linear);
    } else {
      captured->emplace_back(var, binding.linear ? Materialize(*binding.linear) : binding.value);
    }
  };
  PostOrderVisit(stmt, [&](const ObjectRef& node) {
    if (const auto* var = node.as<VarNode>()) capture(var);
    if (const auto* load = node.as<BufferLoadNode>()) capture(load->buffer->data.get());
    if (const auto* store = node.as<BufferStoreNode>()) capture(store->buffer->data.get());
  });
}

void CodeGenLLVM::Receive(const VarNode* var, const Value& source, const Value& value,
                          Frame* inner) {
  if (frame_->non_negative.count(source.ref)) inner->non_negative.insert(value.ref);
  if (var == nullptr) return;
  if (frame_->vars[var].linear) {
    LinearIndex index;
    index.terms.emplace_back(value, 1);
    inner->vars[var].linear = std::make_unique<LinearIndex>(index);
  } else {
    inner->vars[var].value = value;
  }
}

namespace {

Value FieldOf(FunctionText* text, const std::string& record, const Value& base, size_t number) {
  return text->Pure("ptr",
                    "getelementptr inbounds " + record + ", " + base.str() + ", i32 0, i32 " +
                        std::to_string(number),
                    base.level);
}

}  // namespace

Value CodeGenLLVM::WriteRecord(const Captured& captured, std::string* type) {
  std::string fields;
  for (const auto& entry : captured) fields += (fields.empty() ? "" : ", ") + entry.second.type;
  *type = "{ " + fields + " }";
  FunctionText& t = text();
  Value data = t.Alloca(*type, 8, "captured");
  for (size_t i = 0; i < captured.size(); ++i) {
    t.Line("store " + captured[i].second.str() + ", " + FieldOf(&t, *type, data, i).str());
  }
  return data;
}

std::vector<Value> CodeGenLLVM::ReadRecord(const Captured& captured, const std::string& type,
                                           Frame* inner) {
  FunctionText& t = inner->text;
  const Value data{"ptr", "%data", 0};
  std::vector<Value> values;
  for (size_t i = 0; i < captured.size(); ++i) {
    const Value& source = captured[i].second;
    values.push_back(
        t.Here(source.type, "load " + source.type + ", " + FieldOf(&t, type, data, i).str()));
    Receive(captured[i].first, source, values.back(), inner);
  }
  return values;
}

void CodeGenLLVM::ParallelLoop(const ForNode* op) {
  TVM_CHECK(frame_->returns_status, ValueError)
      << "llvm code generator: function " << function_name_ << " runs loop " << op->loop_var
      << " in parallel but cannot report a failure; give it the packed calling convention";
  Frame& outer = *frame_;
  LinearIndex begin = Index(op->min);
  Value extent = Materialize(Index(op->extent));

  Captured captured;
  Frame inner(&module_);
  inner.returns_status = true;
  Capture(op->body, &inner, &captured);
  captured.emplace_back(nullptr, Materialize(begin));
  captured.emplace_back(nullptr, extent);
  std::string type;
  Value data = WriteRecord(captured, &type);

  std::string symbol = function_name_ + "_parallel_" + std::to_string(module_.UniqueId());
  module_.Define(symbol);
  FunctionText& t = inner.text;
  Value task{"i32", "%task", 0}, tasks{"i32", "%tasks", 0};
  std::vector<Value> values = ReadRecord(captured, type, &inner);
  bool natural = inner.non_negative.count(values[values.size() - 2].ref) || IsNonNegative(begin);
  frame_ = &inner;
  // Task i of n takes a contiguous share; the first (extent mod n) tasks take one iteration more.
  Value first = values[values.size() - 2];
  Value count = values.back();
  Value id = t.Convert("sext", task, "i64");
  Value number = t.Convert("sext", tasks, "i64");
  Value share = t.Here("i64", "sdiv i64 " + count.ref + ", " + number.ref);
  Value rest = t.Here("i64", "srem i64 " + count.ref + ", " + number.ref);
  Value has_more = t.Compare("icmp slt", id, rest);
  Value start = t.Binary("mul nsw", id, share);
  start = t.Binary("add nsw", start, t.Select(has_more, id, rest));
  start = t.Binary("add nsw", first, start);
  Value end = t.Binary("add nsw", start, share);
  end = t.Binary("add nsw", end, t.Convert("zext", has_more, "i64"));
  if (natural) inner.non_negative.insert(start.ref);
  LinearIndex from;
  from.terms.emplace_back(start, 1);
  SerialLoop(op->loop_var, from, end, false, op->body);
  t.Line("ret i32 0");
  module_.AddFunction(
      t.Finish("define internal i32 @" + symbol + "(i32 %task, i32 %tasks, ptr %data) #0"));
  frame_ = &outer;

  outer.loads.clear();
  module_.Declare("TVMBackendParallelLaunch", "i32 @TVMBackendParallelLaunch(ptr, ptr, i32)");
  Value status = outer.text.Here(
      "i32", "call i32 @TVMBackendParallelLaunch(ptr @" + symbol + ", " + data.str() + ", i32 0)");
  CheckStatus(status, "parallel");
}

void CodeGenLLVM::RunOnce(const AttrStmtNode* op) {
  const std::string runner = RunnerName(op);
  TVM_CHECK(frame_->returns_status, ValueError)
      << "llvm code generator: function " << function_name_ << " lets " << runner << " run a part "
      << "of it but cannot report a failure; give it the packed calling convention";
  Frame& outer = *frame_;
  Captured captured;
  Frame inner(&module_);
  inner.returns_status = true;
  Capture(op->body, &inner, &captured);
  std::string type;
  const Value data = WriteRecord(captured, &type);
  const std::string symbol = function_name_ + "_once_" + std::to_string(module_.UniqueId());
  module_.Define(symbol);
  ReadRecord(captured, type, &inner);
  frame_ = &inner;
  VisitStmt(op->body);
  inner.text.Line("ret i32 0");
  module_.AddFunction(inner.text.Finish("define internal i32 @" + symbol + "(ptr %data) #0"));
  frame_ = &outer;

  outer.loads.clear();
  module_.Declare(runner, "i32 @" + runner + "(ptr, ptr, ptr, i32)");
  const std::string bytes = "ptrtoint (ptr getelementptr (" + type + ", ptr null, i32 1) to i32)";
  const Value handle = StaticHandle();
  CheckStatus(outer.text.Here("i32", "call i32 @" + runner + "(" + handle.str() + ", ptr @" +
                                         symbol + ", " + data.str() + ", i32 " + bytes + ")"),
              "once");
}

}  // namespace codegen
}  // namespace tvm
