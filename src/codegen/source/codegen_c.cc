/*!
 * \file codegen_c.cc
 * \brief Functions and statements of the generator for C-like languages.
 */
#include <tvm/codegen/codegen_c.h>
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>

#include <algorithm>
#include <cctype>

#include "codegen/constant_data.h"
#include "codegen/import_pragmas.h"
#include "codegen/run_once.h"

namespace tvm {
namespace codegen {

using namespace tir;  // NOLINT(*)

namespace {

/*! \brief Words a variable cannot be called in C, C++, or by the names our own text uses. */
const std::unordered_set<std::string>& ReservedWords() {
  static const std::unordered_set<std::string> words = {
      "auto",     "bool",     "break",    "case",      "catch",     "char",     "class",
      "const",    "continue", "default",  "delete",    "do",        "double",   "else",
      "enum",     "explicit", "extern",   "false",     "float",     "for",      "friend",
      "goto",     "half",     "if",       "inline",    "int",       "long",     "main",
      "mutable",  "new",      "operator", "private",   "protected", "public",   "register",
      "restrict", "return",   "short",    "signed",    "sizeof",    "static",   "struct",
      "switch",   "template", "this",     "throw",     "true",      "try",      "typedef",
      "typename", "union",    "unsigned", "using",     "virtual",   "void",     "volatile",
      "while",    "and",      "or",       "not",       "xor",       "asm",      "near",
      "far",      "max",      "min",      "threadIdx", "blockIdx",  "blockDim", "gridDim",
      "warpSize", "y0",       "y1",       "j0",        "j1",        "gamma",    "signal",
      "exp",      "log",      "sqrt",     "sin",       "cos",       "tan",      "floor",
      "ceil",     "round",    "trunc",    "pow",       "fma",       "abs",      "index",
      "NAN",      "INFINITY", "NULL",     "TVMAny",    "namespace", "nullptr",  "constexpr",
  };
  return words;
}

std::string Identifier(const std::string& hint) {
  std::string name;
  for (char c : hint) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "v" + name;
  if (ReservedWords().count(name)) name += "_";
  // Two leading underscores, or one and a capital, belong to the compiler.
  if (name[0] == '_') name = "v" + name;
  return name;
}

/*! \brief The text between one pair of parentheses; compilers warn about two. */
std::string Parenthesized(const std::string& text) {
  int depth = 0;
  bool enclosed = text.front() == '(';
  for (size_t i = 0; enclosed && i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (depth == 0 && i + 1 < text.size()) enclosed = false;
  }
  return enclosed ? text : "(" + text + ")";
}

}  // namespace

CodeGenC::CodeGenC(Target target) : target_(std::move(target)) {}

void CodeGenC::Unsupported(const std::string& what, const std::string& remedy) const {
  TVM_FATAL(ValueError) << LanguageName() << " code generator: " << what << " in function "
                        << function_name_ << "; " << remedy;
}

void CodeGenC::Declare(const std::string& name, const PrimFunc& func) {
  std::string symbol = func->GetAttr<String>(tir::attr::kGlobalSymbol, String(name));
  // The entry of a program is an ordinary name in a library.
  TVM_CHECK(symbol == "main" || Identifier(symbol) == symbol, ValueError)
      << LanguageName() << " code generator: a function cannot be called \"" << symbol
      << "\" in this language; give it another name";
  symbols_[name] = symbol;
}

std::string CodeGenC::FunctionPrefix(const PrimFunc& func, bool exported) {
  DataType result = GetRuntimeDataType(func->ret_type);
  return std::string(exported ? "" : "static ") + (result.is_void() ? "void" : Type(result)) + " ";
}

std::string CodeGenC::Parameter(const Var& param, const std::string& name, bool written) {
  if (!param->dtype.is_handle()) return Type(param->dtype) + " " + name;
  auto pointee = pointee_.find(param.get());
  std::string type = pointee == pointee_.end() ? "void" : Type(pointee->second);
  return std::string(written ? "" : "const ") + type + "* " + (no_alias_ ? RestrictKeyword() : "") +
         name;
}

void CodeGenC::AddFunction(const std::string& name, const PrimFunc& func) {
  function_name_ = symbols_.at(name);
  no_alias_ = func->HasNonzeroAttr(tir::attr::kNoAlias);
  bool exported = func->GetAttr<String>(tir::attr::kGlobalSymbol).has_value();
  names_.clear();
  taken_ = globals_;
  for (const auto& symbol : symbols_) taken_.insert(symbol.second);
  pointee_.clear();
  used_.clear();
  written_.clear();
  auto point_to = [this](const Buffer& buffer) {
    used_.insert(buffer->data.get());
    pointee_.emplace(buffer->data.get(), buffer->dtype.element_of());
  };
  PostOrderVisit(func->body, [&](const ObjectRef& node) {
    if (const auto* var = node.as<VarNode>()) used_.insert(var);
    if (const auto* load = node.as<BufferLoadNode>()) point_to(load->buffer);
    if (const auto* store = node.as<BufferStoreNode>()) {
      point_to(store->buffer);
      written_.insert(store->buffer->data.get());
    }
    if (const auto* call = node.as<CallNode>()) {
      if (call->op.same_as(builtin::tvm_access_ptr())) {
        constexpr int64_t kWrites = 2;
        const int64_t* mask = as_const_int(call->args[4]);
        const auto* data = call->args[1].as<VarNode>();
        if (data && (mask == nullptr || *mask & kWrites)) written_.insert(data);
        pointee_.emplace(data, call->args[0].dtype().element_of());
        return;
      }
      // Whoever is handed a pointer may write through it.
      for (const PrimExpr& arg : call->args) {
        if (const auto* var = arg.as<VarNode>()) written_.insert(var);
        bool takes_address = call->op.same_as(builtin::address_of());
        const auto* load = arg.as<BufferLoadNode>();
        if (takes_address && load) written_.insert(load->buffer->data.get());
      }
    }
  });
  for (const Var& param : func->params) {
    const auto* pointer = param->type_annotation.as<PointerTypeNode>();
    const auto* element = pointer ? pointer->element_type.as<PrimTypeNode>() : nullptr;
    if (element && !element->dtype.is_void()) {
      pointee_.emplace(param.get(), element->dtype.element_of());
    }
  }
  body_.clear();
  indent_ = 2;
  std::string params;
  for (const Var& param : func->params) {
    std::string param_name = NewName(param->name_hint);
    names_[param.get()] = param_name;
    auto buffer = func->buffer_map.Get(param);
    if (buffer) {
      // A function that keeps its own calling convention gets plain pointers for its buffers.
      const VarNode* data = buffer.value()->data.get();
      names_[data] = param_name;
      pointee_.emplace(param.get(), buffer.value()->dtype.element_of());
      if (written_.count(data)) written_.insert(param.get());
    }
    params += (params.empty() ? "" : ", ") +
              Parameter(param, param_name, written_.count(param.get()) != 0);
  }
  BeginFunction(func);
  VisitStmt(func->body);
  EndFunction(func);
  std::string head = FunctionPrefix(func, exported) + function_name_ + "(" +
                     (params.empty() && LanguageName() == "c" ? "void" : params) + ")";
  declarations_ += head + ";\n";
  definitions_ += "\n" + head + " {\n" + body_ + "}\n";
}

std::string CodeGenC::Finish() {
  return Prelude() + helpers_ + "\n" + declarations_ + definitions_;
}

void CodeGenC::Line(const std::string& text) {
  body_ += std::string(static_cast<size_t>(indent_), ' ') + text + "\n";
}

void CodeGenC::Block(const std::string& text, const std::function<void()>& body) {
  Line(text.empty() ? "{" : text + " {");
  indent_ += 2;
  body();
  indent_ -= 2;
  Line("}");
}

std::string CodeGenC::NewName(const std::string& hint) {
  std::string base = Identifier(hint);
  std::string name = base;
  for (int i = 1; !taken_.insert(name).second; ++i) name = base + "_" + std::to_string(i);
  return name;
}

std::string CodeGenC::NewGlobalName(const std::string& hint) {
  std::string name = NewName(hint);
  globals_.insert(name);
  return name;
}

std::string CodeGenC::Helper(const std::string& name, const std::string& text) {
  if (helper_names_.insert(name).second) helpers_ += HelperPrefix() + text + "\n";
  return name;
}

std::string CodeGenC::NameOf(const VarNode* var) const {
  auto it = names_.find(var);
  TVM_CHECK(it != names_.end(), ValueError)
      << "variable " << var->name_hint << " has no value in function " << function_name_
      << "; make it a parameter, or bind it by a loop or a let";
  return it->second;
}

std::string CodeGenC::ScopeOf(const Var& data) {
  const auto* pointer = data->type_annotation.as<PointerTypeNode>();
  std::string scope = pointer ? std::string(pointer->storage_scope) : "";
  return scope.empty() ? "global" : scope;
}

void CodeGenC::LaneLoop(int lanes, const std::function<void(const std::string& lane)>& body) {
  std::string outer = lane_;
  lane_ = NewName("lane");
  if (std::string unroll = UnrollLine(lanes); !unroll.empty()) Line(unroll);
  Block(
      "for (int " + lane_ + " = 0; " + lane_ + " < " + std::to_string(lanes) + "; ++" + lane_ + ")",
      [&] { body(lane_); });
  lane_ = outer;
}

std::string CodeGenC::Materialize(const PrimExpr& vector) {
  if (const auto* var = vector.as<VarNode>()) return NameOf(var);
  DataType dtype = vector.dtype();
  auto outer_loads = wide_loads_;
  PrepareVector(vector);
  auto loaded = wide_loads_.find(vector.get());
  std::string name = loaded == wide_loads_.end() ? "" : loaded->second;
  if (name.empty()) {
    name = NewName("vec");
    Line(Type(dtype.element_of()) + " " + name + "[" + std::to_string(dtype.lanes()) + "];");
    LaneLoop(dtype.lanes(), [&](const std::string& lane) {
      std::string text = Print(vector);
      Line(name + "[" + lane + "] = " + text + ";");
    });
  }
  wide_loads_ = std::move(outer_loads);
  return name;
}

void CodeGenC::Bind(const Var& var, const PrimExpr& value) {
  DataType dtype = var->dtype;
  if (dtype.is_vector()) {
    names_[var.get()] = Materialize(value);
    return;
  }
  std::string text = Print(value);
  std::string name = NewName(var->name_hint);
  std::string type = Type(dtype);
  if (dtype.is_handle()) {
    auto pointee = pointee_.find(var.get());
    bool is_data = pointee != pointee_.end();
    type = is_data ? Type(pointee->second) + "*" : "void*";
    text = "(" + type + ")" + text;
    if (is_data && no_alias_) type += " " + RestrictKeyword();
  }
  Line(type + (type.back() == ' ' ? "" : " ") + name + " = " + text + ";");
  names_[var.get()] = name;
  if (dtype.is_int()) analyzer_.modular_set.Update(var, analyzer_.modular_set(value), true);
}

void CodeGenC::VisitStmt_(const LetStmtNode* op) {
  // Checked arguments are given names that the body need not use; C compilers warn about those.
  if (used_.count(op->var.get())) Bind(op->var, op->value);
  VisitStmt(op->body);
}

std::string CodeGenC::ThreadIndex(const std::string& tag) {
  Unsupported("a loop bound to thread index " + tag,
              "a processor runs loops marked parallel; build thread-bound loops for a GPU");
}

void CodeGenC::VisitStmt_(const AttrStmtNode* op) {
  if (op->attr_key == tir::attr::thread_extent) {
    IterVar iv = Downcast<IterVar>(op->node);
    if (!names_.count(iv->var.get())) {
      names_[iv->var.get()] = ThreadIndex(iv->thread_tag);
      analyzer_.Bind(iv->var, Range::FromMinExtent(make_zero(op->value.dtype()), op->value), true);
    }
  } else if (op->attr_key == kImportC) {
    std::string code = ImportedCode(op);
    if (imported_.insert(code).second) declarations_ = code + "\n" + declarations_;
  } else if (op->attr_key == kImportLLVM) {
    Unsupported("the pragma import_llvm", "import C with the pragma import_c");
  } else if (Attribute(op)) {
    return;
  } else if (op->attr_key == kRunOnce) {
    Unsupported("a part that " + std::string(RunnerName(op)) + " runs",
                "only functions that the host calls can hand parts to another function");
  }
  VisitStmt(op->body);
}

void CodeGenC::VisitStmt_(const AssertStmtNode* op) {
  Unsupported("an assertion", "only functions that the host calls can report a failure");
}

void CodeGenC::StorageSync(const std::string& scope) {
  Unsupported("a barrier of scope \"" + scope + "\"",
              "only kernels have threads that share memory");
}

void CodeGenC::AllocateIn(const std::string& scope, const AllocateNode* op,
                          const std::string& name) {
  if (scope != "global" && scope != "local") {
    Unsupported("memory of scope \"" + scope + "\" for " + std::string(op->buffer_var->name_hint),
                "this language has the scopes \"global\" and \"local\"");
  }
  int64_t count = op->ConstantAllocationSize();
  if (count <= 0) {
    Unsupported("an allocation of variable size for " + std::string(op->buffer_var->name_hint),
                "give it constant extents");
  }
  Line(Type(op->dtype.element_of()) + " " + name + "[" + std::to_string(count * op->dtype.lanes()) +
       "];");
}

void CodeGenC::VisitStmt_(const AllocateNode* op) {
  std::string name = NewName(op->buffer_var->name_hint);
  names_[op->buffer_var.get()] = name;
  pointee_[op->buffer_var.get()] = op->dtype.element_of();
  AllocateIn(ScopeOf(op->buffer_var), op, name);
  VisitStmt(op->body);
}

void CodeGenC::VisitStmt_(const tir::AllocateConstNode* op) {
  const std::string name = NewName(op->buffer_var->name_hint);
  names_[op->buffer_var.get()] = name;
  pointee_[op->buffer_var.get()] = op->dtype.element_of();
  const std::string bytes = ConstantBytes(op);
  const int64_t count = op->ConstantAllocationSize();
  std::string values;
  for (int64_t i = 0; i < count; ++i) {
    values += (i == 0 ? "" : ", ") + Print(ConstantElement(op, bytes, i));
  }
  Line("static const " + Type(op->dtype.element_of()) + " " + name + "[" + std::to_string(count) +
       "] = {" + values + "};");
  VisitStmt(op->body);
}

void CodeGenC::VisitStmt_(const SeqStmtNode* op) {
  for (const Stmt& stmt : op->seq) VisitStmt(stmt);
}

void CodeGenC::VisitStmt_(const EvaluateNode* op) {
  if (is_const_number(op->value)) return;
  auto evaluate = [&] {
    std::string text = Print(op->value);
    if (text.empty()) return;
    // A call that took lines of its own leaves the name of its value.
    bool is_name = Identifier(text) == text;
    bool is_value = !op->value.dtype().is_void() && (is_name || !op->value.as<CallNode>());
    Line((is_value ? "(void)" : "") + text + ";");
  };
  if (op->value.dtype().is_vector()) {
    LaneLoop(op->value.dtype().lanes(), [&](const std::string&) { evaluate(); });
  } else {
    evaluate();
  }
}

void CodeGenC::VisitStmt_(const IfThenElseNode* op) {
  Block("if " + Parenthesized(Print(op->condition)), [&] {
    arith::ConstraintContext holds(&analyzer_, op->condition);
    VisitStmt(op->then_case);
  });
  if (op->else_case.defined()) Block("else", [&] { VisitStmt(op->else_case); });
}

void CodeGenC::SerialLoop(const ForNode* op, const std::string& begin, const std::string& end) {
  std::string name = NewName(op->loop_var->name_hint);
  names_[op->loop_var.get()] = name;
  Block("for (" + Type(op->loop_var->dtype) + " " + name + " = " + begin + "; " + name + " < " +
            end + "; ++" + name + ")",
        [&] { VisitStmt(op->body); });
}

void CodeGenC::VisitStmt_(const ForNode* op) {
  if (op->kind == ForKind::kThreadBinding) {
    Unsupported("a loop bound to " + std::string(op->thread_binding.value()->thread_tag),
                "lower the schedule before building it");
  }
  analyzer_.Bind(op->loop_var, Range::FromMinExtent(op->min, op->extent), true);
  if (is_one(op->extent)) {
    Bind(op->loop_var, op->min);
    VisitStmt(op->body);
    return;
  }
  std::string begin = Print(op->min);
  std::string end = Print(analyzer_.Simplify(op->min + op->extent));
  const int64_t* extent = as_const_int(op->extent);
  if (op->kind == ForKind::kUnrolled) {
    std::string line = UnrollLine(extent ? *extent : 0);
    if (!line.empty()) Line(line);
  }
  SerialLoop(op, begin, end);
}

void CodeGenC::VisitStmt_(const WhileNode* op) {
  // The condition may need lines of its own, which belong into every round.
  Block("for (;;)", [&] {
    Line("if (!" + Print(op->condition) + ") break;");
    VisitStmt(op->body);
  });
}

void CodeGenC::VisitStmt_(const BufferStoreNode* op) {
  DataType dtype = op->value.dtype();
  DataType element = dtype.element_of();
  PrimExpr offset = op->buffer.ElemOffset(op->indices);
  const Var& data = op->buffer->data;
  if (dtype.is_scalar()) {
    std::string value = Print(op->value);
    std::string place = Element(data, element, ScalarOffset(op->buffer, offset));
    Line(place + " = " + value + ";");
    return;
  }
  auto outer_loads = wide_loads_;
  PrepareVector(op->value);
  const auto* ramp = offset.as<RampNode>();
  bool neighbours = offset.dtype().is_scalar() || (ramp && is_one(ramp->stride));
  if (!neighbours || !StoreWide(op, ramp)) {
    // All lanes are read before the first is written.
    std::string values = Materialize(op->value);
    std::string base;
    if (offset.dtype().is_scalar()) base = ScalarOffset(op->buffer, offset);
    LaneLoop(dtype.lanes(), [&](const std::string& lane) {
      std::string index = base.empty() ? Print(offset) : "(" + base + " + " + lane + ")";
      Line(Element(data, element, index) + " = " + values + "[" + lane + "];");
    });
  }
  wide_loads_ = std::move(outer_loads);
}

void CodeGenC::VisitStmtDefault_(const Object* op) {
  Unsupported("there is no code for " + std::string(op->GetTypeKey()),
              "lower the function before building it");
}

std::vector<std::pair<std::string, PrimFunc>> SortedPrimFuncs(const IRModule& mod) {
  std::vector<std::pair<std::string, PrimFunc>> functions;
  for (const auto& entry : mod->functions) {
    if (const auto* func = entry.second.as<PrimFuncNode>()) {
      functions.emplace_back(entry.first->name_hint, GetRef<PrimFunc>(func));
    }
  }
  std::sort(functions.begin(), functions.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return functions;
}

std::string PrintModule(CodeGenC* generator, const IRModule& mod) {
  auto functions = SortedPrimFuncs(mod);
  for (const auto& [name, func] : functions) generator->Declare(name, func);
  for (const auto& [name, func] : functions) generator->AddFunction(name, func);
  return generator->Finish();
}

}  // namespace codegen
}  // namespace tvm
