/*!
 * \file codegen_llvm.cc
 * \brief Functions and statements of the LLVM generator.
 */
#include "codegen/llvm/codegen_llvm.h"

#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>
#include <tvm/tir/debug_spans.h>
#include <tvm/tir/launch.h>
#include <tvm/tir/stmt_functor.h>

#include <algorithm>

#include "codegen/import_pragmas.h"
#include "codegen/run_once.h"

namespace tvm {
namespace codegen {

using namespace tir;  // NOLINT(*)

namespace {

/*! \brief Copies of a body marked for unrolling that are written out at most. */
constexpr int64_t kMaxUnroll = 4096;

bool IsPacked(const PrimFunc& func) { return GetCallingConv(func) == CallingConv::kCPackedFunc; }

std::string ReturnType(const PrimFunc& func) {
  return IsPacked(func) ? "i32" : LLVMType(GetRuntimeDataType(func->ret_type));
}

}  // namespace

namespace {

/*! \brief LLVM's flags of floating point arithmetic that the options `fast-math*` stand for. */
std::string FloatFlags(const Target& target) {
  if (target->GetInt("fast-math", 0) != 0) return " fast";
  // `contract` lets a product and a sum become one fused instruction.
  std::string flags = " contract";
  for (const char* flag : {"nnan", "ninf", "nsz", "arcp", "reassoc"}) {
    if (target->GetInt(std::string("fast-math-") + flag, 0) != 0) flags += std::string(" ") + flag;
  }
  return flags;
}

}  // namespace

CodeGenLLVM::CodeGenLLVM(Target target)
    : target_(std::move(target)), float_flags_(FloatFlags(target_)) {
  const std::string features = "," + target_->GetStr("mattr_full", "") + ",";
  auto has = [&features](const char* name) {
    return features.find(std::string(",+") + name + ",") != std::string::npos;
  };
  module_.SetEstimatesReciprocals(has("avx512f"));
  // Processors with halves of 16 bits in vectors fetch the elements of a vector in less time than
  // it takes to put them there one by one. Others do not, or had to be slowed down for their
  // safety.
  gathers_ = has("avx512fp16");
}

void CodeGenLLVM::Declare(const std::string& name, const PrimFunc& func) {
  std::string symbol = func->GetAttr<String>(tir::attr::kGlobalSymbol, String(name));
  signatures_[name] = symbol;
  module_.Define(symbol);
}

void CodeGenLLVM::AddFunction(const std::string& name, const PrimFunc& func) {
  function_name_ = signatures_.at(name);
  bool exported = func->GetAttr<String>(tir::attr::kGlobalSymbol).has_value();
  module_.SetDebugSource(func->GetAttr<String>(tir::transform::kDebugSource, String("")));
  Frame frame(&module_);
  frame_ = &frame;
  frame.returns_status = IsPacked(func);
  no_alias_ = func->HasNonzeroAttr(tir::attr::kNoAlias);
  alignment_.clear();
  CollectBuffers(func);
  std::string params;
  for (const Var& param : func->params) {
    Value value{LLVMType(param->dtype), text().NewName("arg"), 0};
    params += (params.empty() ? "" : ", ") + value.str();
    Binding& binding = frame.vars[param.get()];
    binding.value = value;
  }
  for (const auto& entry : func->buffer_map) {
    // A function that keeps its own calling convention gets plain pointers for its buffers.
    frame.vars[entry.second->data.get()].value = ValueOf(entry.first.get());
  }
  if (frame.returns_status) {
    CheckArguments(func->body);
  } else {
    VisitStmt(func->body);
  }
  std::string type = ReturnType(func);
  text().Line(type == "void" ? "ret void" : "ret " + type + " " + (type == "ptr" ? "null" : "0"));
  module_.AddFunction(text().Finish("define " + std::string(exported ? "" : "internal ") + type +
                                    " @" + function_name_ + "(" + params + ") #" +
                                    (frame.returns_status ? "1" : "0")));
  frame_ = nullptr;
  if (exported && IsPacked(func)) entry_points_.push_back(function_name_);
}

std::string CodeGenLLVM::Finish() {
  // Weak, so that modules linked into one library share their context; protected, so that they use
  // that of their own library whatever libraries the process has loaded before.
  module_.AddGlobal("@" + std::string(runtime::kModuleContext) +
                    " = weak protected global ptr null");
  if (entry_points_.size() == 1) {
    // Weak, so that several such modules can be linked into one library.
    module_.AddGlobal("@" + std::string(runtime::kModuleMain) + " = weak constant " +
                      ModuleText::StringLiteral(entry_points_[0]));
  }
  std::string triple = target_->GetStr("code_triple", target_->GetStr("mtriple", ""));
  std::string header = triple.empty() ? "" : "target triple = \"" + triple + "\"\n";
  // Said in the text too, for those who compile it elsewhere.
  std::string machine;
  for (const auto& [attribute, option] :
       {std::pair("target-cpu", "mcpu"), std::pair("target-features", "mattr_full")}) {
    const std::string value = target_->GetStr(option, "");
    if (!value.empty()) machine += std::string(" \"") + attribute + "\"=\"" + value + "\"";
  }
  // Not more than SVE has, so that LLVM knows that products of it do not overflow.
  const bool sve = triple.rfind("aarch64", 0) == 0 && machine.find("+sve") != std::string::npos;
  if (sve) machine += " vscale_range(1,16)";
  return module_.Finish(header) + "attributes #0 = { nounwind" + machine +
         " }\nattributes #1 = { nounwind noinline optnone" + machine + " }\n";
}

void CodeGenLLVM::CheckArguments(Stmt stmt) {
  std::vector<const VarNode*> bound;
  while (true) {
    if (const auto* let = stmt.as<LetStmtNode>()) {
      Bind(let->var, let->value);
      bound.push_back(let->var.get());
      stmt = let->body;
    } else if (const auto* check = stmt.as<AssertStmtNode>()) {
      CheckAssertion(check);
      stmt = check->body;
    } else {
      break;
    }
  }
  // Checking arguments is most of the blocks of a small function. It runs once per call, so LLVM
  // leaves it unoptimised, which halves the time to compile; the work goes to a function apart.
  std::vector<std::pair<const VarNode*, Value>> captured;
  Frame inner(&module_);
  inner.returns_status = true;
  Capture(stmt, &inner, &captured);
  std::string params, operands;
  for (size_t i = 0; i < captured.size(); ++i) {
    const Value& source = captured[i].second;
    Value param{source.type, "%p" + std::to_string(i), 0};
    params += (i == 0 ? "" : ", ") + param.str();
    operands += (i == 0 ? "" : ", ") + source.str();
    Receive(captured[i].first, source, param, &inner);
  }
  std::string symbol = function_name_ + "_compute";
  module_.Define(symbol);
  Frame& outer = *frame_;
  frame_ = &inner;
  VisitStmt(stmt);
  text().Line("ret i32 0");
  module_.AddFunction(text().Finish("define internal i32 @" + symbol + "(" + params + ") #0"));
  frame_ = &outer;
  CheckStatus(text().Here("i32", "call i32 @" + symbol + "(" + operands + ")"), "compute");
  for (const VarNode* var : bound) outer.vars.erase(var);
}

void CodeGenLLVM::Bind(const Var& var, const PrimExpr& value) {
  DataType dtype = var.dtype();
  if (dtype.is_int() && dtype.is_scalar() && dtype.bits() >= 32) {
    BindIndex(var, Index(value));
  } else {
    Value computed = VisitExpr(value);
    frame_->vars[var.get()].value = computed;
    // A second name for the same memory shares its aliasing facts.
    if (const auto* source = value.as<VarNode>(); source && dtype.is_handle()) {
      auto it = alias_metadata_.find(source);
      alias_metadata_[var.get()] = it == alias_metadata_.end() ? "" : it->second;
    }
  }
}

void CodeGenLLVM::BindIndex(const Var& var, LinearIndex index) {
  if (var.as<SizeVarNode>()) {
    for (const auto& term : index.terms) {
      if (index.terms.size() == 1 && term.second == 1 && index.offset == 0) {
        frame_->non_negative.insert(term.first.ref);
      }
    }
  }
  frame_->vars[var.get()].linear = std::make_unique<LinearIndex>(std::move(index));
}

Value CodeGenLLVM::ValueOf(const VarNode* var) {
  auto it = frame_->vars.find(var);
  TVM_CHECK(it != frame_->vars.end(), ValueError)
      << "variable " << var->name_hint << " has no value in function " << function_name_
      << "; make it a parameter, or bind it by a loop or a let";
  const Binding& binding = it->second;
  if (!binding.linear) return binding.value;
  if (binding.linear->is_constant()) return Constant(var->dtype, binding.linear->offset);
  return CastTo(Materialize(*binding.linear), DataType::Int(64), var->dtype);
}

void CodeGenLLVM::VisitStmt(const Stmt& stmt) {
  if (!stmt->span.defined()) return StmtFunctor::VisitStmt(stmt);
  const int outer = text().SetLine(stmt->span->line);
  StmtFunctor::VisitStmt(stmt);
  text().SetLine(outer);
}

void CodeGenLLVM::VisitStmt_(const LetStmtNode* op) {
  Bind(op->var, op->value);
  VisitStmt(op->body);
  frame_->vars.erase(op->var.get());
}

void CodeGenLLVM::VisitStmt_(const AttrStmtNode* op) {
  TVM_CHECK(op->attr_key != tir::attr::thread_extent, ValueError)
      << "llvm code generator: function " << function_name_ << " binds a loop to GPU threads"
      << "; a processor runs loops marked parallel";
  TVM_CHECK(op->attr_key != kImportC, ValueError)
      << "llvm code generator: function " << function_name_ << " imports C with the pragma "
      << "import_c; compile it with tvm.contrib.clang.create_llvm and pass the result to the "
      << "pragma import_llvm, or build for the target c";
  if (op->attr_key == kRunOnce) return RunOnce(op);
  Value* device = op->attr_key == tir::attr::device_type ? &frame_->device_type
                  : op->attr_key == tir::attr::device_id ? &frame_->device_id
                                                         : nullptr;
  if (device == nullptr) {
    VisitStmt(op->body);
    return;
  }
  Value outer = *device;
  *device = VisitExpr(op->value);
  VisitStmt(op->body);
  *device = outer;
}

void CodeGenLLVM::FreeWorkspace(const Frame::Workspace& workspace) {
  module_.Declare("TVMBackendFreeWorkspace", "i32 @TVMBackendFreeWorkspace(i32, i32, ptr)");
  text().Line("call i32 @TVMBackendFreeWorkspace(" + workspace.device_type.str() + ", " +
              workspace.device_id.str() + ", " + workspace.memory.str() + ")");
}

void CodeGenLLVM::FreeWorkspaces() {
  for (auto it = frame_->workspaces.rbegin(); it != frame_->workspaces.rend(); ++it) {
    FreeWorkspace(*it);
  }
}

void CodeGenLLVM::ReturnFailure() {
  FreeWorkspaces();
  text().Line("ret i32 -1");
}

void CodeGenLLVM::CheckStatus(const Value& status, const std::string& hint) {
  FunctionText& t = text();
  std::string failed = t.NewLabel(hint + "_failed");
  std::string done = t.NewLabel(hint + "_done");
  t.Branch(t.Compare("icmp eq", status, t.Int("i32", 0)), done, failed);
  t.StartBlock(failed);
  ReturnFailure();
  t.StartBlock(done);
}

void CodeGenLLVM::CheckAssertion(const AssertStmtNode* op) {
  TVM_CHECK(frame_->returns_status, ValueError)
      << "llvm code generator: function " << function_name_ << " asserts " << op->condition
      << " but cannot report a failure; give it the packed calling convention";
  FunctionText& t = text();
  Value condition = VisitExpr(op->condition);
  std::string failed = t.NewLabel("assert_failed");
  std::string holds = t.NewLabel("assert_holds");
  t.Branch(condition, holds, failed);
  t.StartBlock(failed);
  t.EnterScope();
  module_.Declare("TVMAPISetLastError", "void @TVMAPISetLastError(ptr)");
  t.Line("call void @TVMAPISetLastError(" + ErrorText(op->message).str() + ")");
  ReturnFailure();
  t.ExitScope();
  t.StartBlock(holds);
}

void CodeGenLLVM::VisitStmt_(const AssertStmtNode* op) {
  CheckAssertion(op);
  VisitStmt(op->body);
}

void CodeGenLLVM::VisitStmt_(const SeqStmtNode* op) {
  for (const Stmt& stmt : op->seq) VisitStmt(stmt);
}

void CodeGenLLVM::VisitStmt_(const EvaluateNode* op) {
  if (!is_const_number(op->value)) VisitExpr(op->value);
}

void CodeGenLLVM::VisitStmt_(const IfThenElseNode* op) {
  FunctionText& t = text();
  Value condition = VisitExpr(op->condition);
  if (condition.ref == "true" || condition.ref == "false") {
    const Stmt& taken = condition.ref == "true" ? op->then_case : op->else_case;
    if (taken.defined()) VisitStmt(taken);
    return;
  }
  bool has_else = op->else_case.defined();
  std::string then_label = t.NewLabel("if_then");
  std::string else_label = has_else ? t.NewLabel("if_else") : "";
  std::string end_label = t.NewLabel("if_end");
  t.Branch(condition, then_label, has_else ? else_label : end_label);
  auto branch = [&](const std::string& label, const Stmt& body) {
    t.StartBlock(label);
    t.EnterScope();
    VisitStmt(body);
    t.ExitScope();
    t.Branch(end_label);
  };
  branch(then_label, op->then_case);
  if (has_else) branch(else_label, op->else_case);
  t.StartBlock(end_label);
}

void CodeGenLLVM::VisitStmt_(const ForNode* op) {
  TVM_CHECK(op->kind != ForKind::kThreadBinding, ValueError)
      << "llvm code generator: loop " << op->loop_var << " of function " << function_name_
      << " is bound to GPU threads; a processor runs loops marked parallel";
  LinearIndex begin = Index(op->min);
  LinearIndex extent = Index(op->extent);
  if (extent.is_constant() && extent.offset <= 0) return;
  if (extent.is_constant() && extent.offset == 1) {
    BindIndex(op->loop_var, begin);
    VisitStmt(op->body);
  } else if (op->kind == ForKind::kParallel) {
    ParallelLoop(op);
  } else if (op->kind == ForKind::kUnrolled && extent.is_constant() &&
             extent.offset <= kMaxUnroll) {
    for (int64_t i = 0; i < extent.offset; ++i) {
      LinearIndex index = begin;
      index.offset += i;
      BindIndex(op->loop_var, index);
      VisitStmt(op->body);
    }
  } else {
    LinearIndex end = begin;
    end.Add(extent, 1);
    SerialLoop(op->loop_var, begin, Materialize(end), extent.is_constant(), op->body);
  }
  frame_->vars.erase(op->loop_var.get());
}

namespace {

/*! \brief Whether code of the statement runs straight through, unrolled loops apart. */
bool IsInnermost(const Stmt& body) {
  bool loops = false;
  PostOrderVisit(body, [&](const ObjectRef& node) {
    if (const auto* loop = node.as<ForNode>()) {
      loops = loops || loop->kind != ForKind::kUnrolled;
    }
    loops = loops || node->IsInstance<WhileNode>();
  });
  return !loops;
}

}  // namespace

void CodeGenLLVM::SerialLoop(const Var& var, const LinearIndex& begin, const Value& end, bool runs,
                             const Stmt& body) {
  FunctionText& t = text();
  Value start = Materialize(begin);
  bool natural = IsNonNegative(begin);
  std::string body_label = t.NewLabel("for_body");
  std::string next_label = t.NewLabel("for_next");
  std::string end_label = t.NewLabel("for_end");
  std::string entry = "  br label %" + body_label + "\n";
  if (!runs) {
    Value enters = t.Compare("icmp slt", start, end);
    entry = "  br i1 " + enters.ref + ", label %" + body_label + ", label %" + end_label + "\n";
  }
  std::string before = t.block();
  t.EnterLoop();
  t.StartBlock(body_label);
  Value index{"i64", t.NewName("i"), t.level()};
  Value next{"i64", t.NewName("next"), t.level()};
  t.Line(index.ref + " = phi i64 [ " + start.ref + ", %" + before + " ], [ " + next.ref + ", %" +
         next_label + " ]");
  if (natural) frame_->non_negative.insert(index.ref);
  if (IsInnermost(body)) {
    t.CarryPointers(before, next_label);
    frame_->first_trips.emplace(index.ref, begin);
  }
  LinearIndex linear;
  linear.terms.emplace_back(index, 1);
  BindIndex(var, linear);
  VisitStmt(body);
  t.Branch(next_label);
  t.StartBlock(next_label);
  t.AdvancePointers();
  t.Line(next.ref + " = add nsw i64 " + index.ref + ", 1");
  Value more = t.Here("i1", "icmp slt i64 " + next.ref + ", " + end.ref);
  t.Branch(more, body_label, end_label);
  t.ExitLoop(entry);
  t.StartBlock(end_label);
}

void CodeGenLLVM::VisitStmt_(const WhileNode* op) {
  FunctionText& t = text();
  std::string test = t.NewLabel("while_test");
  std::string body = t.NewLabel("while_body");
  std::string end = t.NewLabel("while_end");
  t.EnterLoop();
  t.StartBlock(test);
  t.Branch(VisitExpr(op->condition), body, end);
  t.StartBlock(body);
  VisitStmt(op->body);
  t.Branch(test);
  t.ExitLoop("  br label %" + test + "\n");
  t.StartBlock(end);
}

void CodeGenLLVM::VisitStmtDefault_(const Object* op) {
  TVM_FATAL(ValueError) << "llvm code generator: " << op->GetTypeKey() << " in function "
                        << function_name_ << " has no code; lower the function before building it";
}

std::string EmitLLVM(const IRModule& mod, const Target& target) {
  CodeGenLLVM generator(target);
  // Sorted by name, so that the text does not depend on the order of insertion.
  std::vector<std::pair<std::string, PrimFunc>> functions;
  for (const auto& entry : mod->functions) {
    if (const auto* func = entry.second.as<PrimFuncNode>()) {
      functions.emplace_back(entry.first->name_hint, GetRef<PrimFunc>(func));
    }
  }
  std::sort(functions.begin(), functions.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [name, func] : functions) generator.Declare(name, func);
  for (const auto& [name, func] : functions) generator.AddFunction(name, func);
  return generator.Finish();
}

/*! \brief What pragmas import, each once, in order of first use; paths or LLVM IR. */
TVM_REGISTER_GLOBAL("target.ImportedLLVM").set_body_typed([](IRModule mod) {
  Array<String> imported;
  for (const auto& [var, func] : mod->functions) {
    const auto* prim_func = func.as<PrimFuncNode>();
    if (prim_func == nullptr) continue;
    tir::PostOrderVisit(prim_func->body, [&imported](const ObjectRef& node) {
      const auto* attr = node.as<AttrStmtNode>();
      if (attr == nullptr || attr->attr_key != kImportLLVM) return;
      String code = ImportedCode(attr);
      if (std::find(imported.begin(), imported.end(), code) == imported.end()) {
        imported.push_back(code);
      }
    });
  }
  return imported;
});

/*! \brief Whether functions of a module call others of it, so that they are compiled together. */
TVM_REGISTER_GLOBAL("target.HasInnerCalls").set_body_typed([](IRModule mod) {
  bool found = false;
  for (const auto& [var, func] : mod->functions) {
    const auto* prim_func = func.as<PrimFuncNode>();
    if (prim_func == nullptr) continue;
    tir::PostOrderVisit(prim_func->body, [&found](const ObjectRef& node) {
      const auto* call = node.as<CallNode>();
      found = found || (call != nullptr && call->op->IsInstance<GlobalVarNode>());
    });
  }
  return found;
});

TVM_REGISTER_GLOBAL("target.EmitLLVM").set_body_typed([](IRModule mod, Target target) {
  return String(EmitLLVM(mod, target));
});

}  // namespace codegen
}  // namespace tvm
