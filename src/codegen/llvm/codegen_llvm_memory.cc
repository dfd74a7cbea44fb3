/*!
 * \file codegen_llvm_memory.cc
 * \brief Indices, addresses, loads, stores and allocations of the LLVM generator.
 */
#include <tvm/expr/op.h>
#include <tvm/tir/launch.h>

#include <algorithm>
#include <numeric>

#include "codegen/constant_data.h"
#include "codegen/llvm/codegen_llvm.h"

namespace tvm {
namespace codegen {

using namespace tir;  // NOLINT(*)

namespace {

/*! \brief Largest buffer, and largest sum of buffers in one function, kept in the stack frame. */
constexpr int64_t kMaxFrameBuffer = 16 << 10;
constexpr int64_t kMaxFrameBytes = 128 << 10;
/*! \brief What TVMBackendAllocWorkspace promises. */
constexpr int kWorkspaceAlignment = 64;

/*! \brief In memory a bool takes a byte. */
DataType StoredType(DataType dtype) {
  return dtype.is_bool() ? DataType::UInt(8, dtype.lanes()) : dtype;
}

int64_t FloorDivide(int64_t a, int64_t b) { return a / b - ((a % b != 0 && (a ^ b) < 0) ? 1 : 0); }

}  // namespace

void LinearIndex::Add(const LinearIndex& other, int64_t factor) {
  offset += other.offset * factor;
  for (const auto& [value, coefficient] : other.terms) {
    auto same = std::find_if(terms.begin(), terms.end(),
                             [&](const auto& term) { return term.first.ref == value.ref; });
    if (same == terms.end()) {
      terms.emplace_back(value, coefficient * factor);
    } else {
      same->second += coefficient * factor;
    }
  }
  terms.erase(
      std::remove_if(terms.begin(), terms.end(), [](const auto& term) { return term.second == 0; }),
      terms.end());
}

bool CodeGenLLVM::IsNonNegative(const LinearIndex& index) const {
  return index.offset >= 0 &&
         std::all_of(index.terms.begin(), index.terms.end(), [this](const auto& term) {
           return term.second > 0 && frame_->non_negative.count(term.first.ref) != 0;
         });
}

Value CodeGenLLVM::Materialize(const LinearIndex& index) {
  FunctionText& t = text();
  // Terms from outside of loops come first, so that their sum moves out of the inner ones.
  std::vector<std::pair<Value, int64_t>> terms = index.terms;
  std::stable_sort(terms.begin(), terms.end(),
                   [](const auto& a, const auto& b) { return a.first.level < b.first.level; });
  Value sum = t.I64(index.offset);
  bool empty = index.offset == 0;
  for (const auto& [value, coefficient] : terms) {
    Value term = coefficient == 1 ? value : t.Binary("mul nsw", value, t.I64(coefficient));
    sum = empty ? term : t.Binary("add nsw", sum, term);
    empty = false;
  }
  if (IsNonNegative(index)) frame_->non_negative.insert(sum.ref);
  return sum;
}

LinearIndex CodeGenLLVM::Index(const PrimExpr& expr) {
  LinearIndex result;
  if (const auto* constant = expr.as<IntImmNode>()) {
    result.offset = constant->value;
  } else if (const auto* var = expr.as<VarNode>()) {
    auto it = frame_->vars.find(var);
    if (it != frame_->vars.end() && it->second.linear) return *it->second.linear;
    result.terms.emplace_back(IndexAtom(expr), 1);
  } else if (const auto* add = expr.as<AddNode>()) {
    result = Index(add->a);
    result.Add(Index(add->b), 1);
  } else if (const auto* sub = expr.as<SubNode>()) {
    result = Index(sub->a);
    result.Add(Index(sub->b), -1);
  } else if (const auto* mul = expr.as<MulNode>()) {
    LinearIndex a = Index(mul->a);
    LinearIndex b = Index(mul->b);
    if (a.is_constant()) std::swap(a, b);
    if (b.is_constant()) {
      result.Add(a, b.offset);
    } else {
      Value product = text().Binary("mul nsw", Materialize(a), Materialize(b));
      if (IsNonNegative(a) && IsNonNegative(b)) frame_->non_negative.insert(product.ref);
      result.terms.emplace_back(product, 1);
    }
  } else if (const auto* cast = expr.as<CastNode>();
             // The sums of narrower types wrap around, so they are computed as they are.
             cast && cast->value.dtype().is_int() && cast->value.dtype().bits() >= 32 &&
             cast->dtype.bits() >= cast->value.dtype().bits()) {
    return Index(cast->value);
  } else if (const auto* broadcast = expr.as<BroadcastNode>()) {
    return Index(broadcast->value);
  } else {
    const auto* floor_div = expr.as<FloorDivNode>();
    const auto* floor_mod = expr.as<FloorModNode>();
    const auto* trunc_div = expr.as<DivNode>();
    const auto* trunc_mod = expr.as<ModNode>();
    if (!floor_div && !floor_mod && !trunc_div && !trunc_mod) {
      Value atom = IndexAtom(expr);
      result.terms.emplace_back(atom, 1);
      return result;
    }
    PrimExpr dividend = floor_div   ? floor_div->a
                        : floor_mod ? floor_mod->a
                        : trunc_div ? trunc_div->a
                                    : trunc_mod->a;
    PrimExpr divisor = floor_div   ? floor_div->b
                       : floor_mod ? floor_mod->b
                       : trunc_div ? trunc_div->b
                                   : trunc_mod->b;
    bool remainder = floor_mod || trunc_mod;
    LinearIndex a = Index(dividend);
    LinearIndex b = Index(divisor);
    bool natural = IsNonNegative(a);
    bool floor = floor_div || floor_mod;
    if (b.is_constant() && b.offset > 0 && (floor || natural)) {
      // Terms that are multiples of the divisor come out of the division exactly.
      int64_t d = b.offset;
      LinearIndex whole, part;
      for (const auto& [value, coefficient] : a.terms) {
        if (coefficient % d == 0) {
          whole.terms.emplace_back(value, coefficient / d);
        } else {
          part.terms.emplace_back(value, coefficient);
        }
      }
      if (part.is_constant()) {
        int64_t quotient = FloorDivide(a.offset, d);
        if (remainder) {
          result.offset = a.offset - quotient * d;
          return result;
        }
        whole.offset = quotient;
        return whole;
      }
      part.offset = a.offset;
      if (floor || IsNonNegative(part)) {
        Value quotient =
            DivideInts(Materialize(part), text().I64(d), IsNonNegative(part), floor, remainder);
        if (remainder || IsNonNegative(part)) frame_->non_negative.insert(quotient.ref);
        result.terms.emplace_back(quotient, 1);
        if (!remainder) result.Add(whole, 1);
        return result;
      }
    }
    bool positive_divisor = IsNonNegative(b);
    Value quotient =
        DivideInts(Materialize(a), Materialize(b), natural && positive_divisor, floor, remainder);
    if (natural && positive_divisor) frame_->non_negative.insert(quotient.ref);
    result.terms.emplace_back(quotient, 1);
  }
  return result;
}

Value CodeGenLLVM::IndexAtom(const PrimExpr& expr) {
  const auto* min = expr.as<MinNode>();
  const auto* max = expr.as<MaxNode>();
  if (min || max) {
    LinearIndex a = Index(min ? min->a : max->a);
    LinearIndex b = Index(min ? min->b : max->b);
    Value x = Materialize(a);
    Value y = Materialize(b);
    Value result = text().Select(text().Compare(min ? "icmp slt" : "icmp sgt", x, y), x, y);
    bool natural =
        min ? IsNonNegative(a) && IsNonNegative(b) : IsNonNegative(a) || IsNonNegative(b);
    if (natural) frame_->non_negative.insert(result.ref);
    return result;
  }
  if (const auto* select = expr.as<SelectNode>()) {
    Value condition = VisitExpr(select->condition);
    LinearIndex a = Index(select->true_value);
    LinearIndex b = Index(select->false_value);
    Value x = Materialize(a);
    Value y = Materialize(b);
    Value result = text().Select(condition, x, y);
    if (IsNonNegative(a) && IsNonNegative(b)) frame_->non_negative.insert(result.ref);
    return result;
  }
  Value value = VisitExpr(expr);
  Value wide = CastTo(value, expr.dtype(), DataType::Int(64));
  bool natural = expr.dtype().is_uint() || expr.as<SizeVarNode>() != nullptr;
  if (natural) frame_->non_negative.insert(wide.ref);
  return wide;
}

std::optional<Value> CodeGenLLVM::Advancing(const Value& base, DataType element,
                                            const LinearIndex& index) {
  if (index.terms.size() != 1) return std::nullopt;
  const auto& [value, step] = index.terms.front();
  auto first = frame_->first_trips.find(value.ref);
  int64_t bytes = step * StoredType(element).bytes();
  // Memory operands multiply by these themselves.
  bool scaled = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
  if (scaled || first == frame_->first_trips.end()) return std::nullopt;
  FunctionText& t = text();
  std::string type = LLVMType(StoredType(element));
  LinearIndex before;
  before.Add(first->second, step);
  return t.Advancing(type, t.GetElementPtr(type, base, Materialize(before)), step);
}

Value CodeGenLLVM::Address(const Value& base, DataType element, const LinearIndex& index) {
  FunctionText& t = text();
  std::string type = LLVMType(StoredType(element));
  // One step per loop level: the outer steps move out of the inner loops.
  Value address = base;
  for (int level = 0; level <= t.level(); ++level) {
    LinearIndex part;
    for (const auto& term : index.terms) {
      if (term.first.level == level) part.terms.push_back(term);
    }
    if (part.is_constant()) continue;
    std::optional<Value> advancing;
    if (level == t.level()) advancing = Advancing(address, element, part);
    address = advancing ? *advancing : t.GetElementPtr(type, address, Materialize(part));
  }
  if (index.offset == 0) return address;
  // The constant stays where it is used, as the displacement of the memory operand.
  return t.Pure(
      "ptr",
      "getelementptr nusw " + type + ", " + address.str() + ", i64 " + std::to_string(index.offset),
      t.level());
}

void CodeGenLLVM::CollectBuffers(const PrimFunc& func) {
  buffers_.clear();
  alias_metadata_.clear();
  std::unordered_set<const VarNode*> seen;
  auto add = [&](const VarNode* data) {
    if (seen.insert(data).second) buffers_.push_back(data);
  };
  PostOrderVisit(func->body, [&](const ObjectRef& node) {
    if (const auto* load = node.as<BufferLoadNode>()) add(load->buffer->data.get());
    if (const auto* store = node.as<BufferStoreNode>()) add(store->buffer->data.get());
  });
  if (!no_alias_ || buffers_.size() < 2) return;
  std::string domain = module_.DistinctMetadata("");
  std::vector<std::string> scopes;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    scopes.push_back(module_.DistinctMetadata(", " + domain));
  }
  for (size_t i = 0; i < buffers_.size(); ++i) {
    std::string others;
    for (size_t j = 0; j < scopes.size(); ++j) {
      if (i != j) others += (others.empty() ? "" : ", ") + scopes[j];
    }
    alias_metadata_[buffers_[i]] =
        ", !alias.scope " + module_.Metadata(scopes[i]) + ", !noalias " + module_.Metadata(others);
  }
}

std::string CodeGenLLVM::AliasMetadata(const VarNode* data) {
  auto it = alias_metadata_.find(data);
  return it == alias_metadata_.end() ? "" : it->second;
}

int CodeGenLLVM::VersionOf(const VarNode* data) const {
  auto it = frame_->stores.find(no_alias_ ? data : nullptr);
  return it == frame_->stores.end() ? 0 : it->second;
}

void CodeGenLLVM::ForgetLoads(const VarNode* data) {
  frame_->stores[no_alias_ ? data : nullptr] += 1;
}

int CodeGenLLVM::AlignmentOf(const VarNode* data, int element_bytes,
                             const LinearIndex& index) const {
  // Arguments may come from any allocator, so only their elements are aligned.
  auto it = alignment_.find(data);
  if (it == alignment_.end()) return element_bytes;
  int64_t step = index.offset;
  for (const auto& term : index.terms) step = std::gcd(step, term.second);
  step *= element_bytes;
  return step == 0 ? it->second : static_cast<int>(std::min<int64_t>(it->second, step & -step));
}

Value CodeGenLLVM::LoadAt(const Buffer& buffer, DataType element, int lanes,
                          const LinearIndex& index) {
  FunctionText& t = text();
  const VarNode* data = buffer->data.get();
  Value address = Address(ValueOf(data), element, index);
  DataType stored = StoredType(element.with_lanes(lanes));
  std::string type = LLVMType(stored);
  int alignment = AlignmentOf(data, stored.element_of().bytes(), index);
  std::string key = type + address.ref;
  auto known = frame_->loads.find(key);
  Value value;
  if (known != frame_->loads.end() && known->second.block == t.block() &&
      known->second.version == VersionOf(data)) {
    value = known->second.value;
  } else {
    value = t.Here(type, "load " + type + ", " + address.str() + ", align " +
                             std::to_string(alignment) + AliasMetadata(data));
    frame_->loads[key] = {value, t.block(), VersionOf(data)};
  }
  if (!element.is_bool()) return value;
  return t.Convert("trunc", value, value.TypeWith("i1"));
}

void CodeGenLLVM::StoreAt(const Buffer& buffer, DataType element, const Value& value,
                          const LinearIndex& index) {
  FunctionText& t = text();
  const VarNode* data = buffer->data.get();
  Value address = Address(ValueOf(data), element, index);
  Value stored = element.is_bool() ? t.Convert("zext", value, value.TypeWith("i8")) : value;
  int alignment = AlignmentOf(data, StoredType(element).bytes(), index);
  t.Line("store " + stored.str() + ", " + address.str() + ", align " + std::to_string(alignment) +
         AliasMetadata(data));
  ForgetLoads(data);
}

LinearIndex CodeGenLLVM::ScalarIndex(const Buffer& buffer, const PrimExpr& offset) {
  LinearIndex index;
  // A buffer of vectors counts vectors; addresses count their scalars.
  index.Add(Index(offset), buffer->dtype.lanes());
  return index;
}

std::vector<LinearIndex> CodeGenLLVM::LaneIndices(const PrimExpr& offset) {
  std::vector<LinearIndex> result(offset.dtype().lanes());
  if (const auto* ramp = offset.as<RampNode>()) {
    LinearIndex base = Index(ramp->base);
    LinearIndex stride = Index(ramp->stride);
    for (size_t lane = 0; lane < result.size(); ++lane) {
      result[lane] = base;
      result[lane].Add(stride, static_cast<int64_t>(lane));
    }
    return result;
  }
  Value places = VisitExpr(offset);
  for (size_t lane = 0; lane < result.size(); ++lane) {
    Value place = text().Extract(places, static_cast<int>(lane));
    result[lane].terms.emplace_back(CastTo(place, offset.dtype().element_of(), DataType::Int(64)),
                                    1);
  }
  return result;
}

Value CodeGenLLVM::LaneAddresses(const Buffer& buffer, DataType element, const PrimExpr& offset) {
  Value places = VisitExpr(offset), base = ValueOf(buffer->data.get());
  const std::string type = LLVMType(StoredType(element));
  return text().Pure(VectorType(places.lanes(), "ptr"),
                     "getelementptr " + type + ", " + base.str() + ", " + places.str(),
                     std::max(base.level, places.level));
}

Value CodeGenLLVM::GatherAt(const Buffer& buffer, DataType element, const PrimExpr& offset) {
  Value addresses = LaneAddresses(buffer, element, offset);
  const DataType stored = StoredType(element.with_lanes(addresses.lanes()));
  const std::string type = LLVMType(stored);
  const int lanes = addresses.lanes();
  const std::string name = "llvm.masked.gather." + FunctionText::Poison(type).Suffix() +
                           (lanes < 0 ? ".nxv" : ".v") + std::to_string(std::abs(lanes)) + "p0";
  const Value all = text().Int(addresses.TypeWith("i1"), 1);
  module_.Declare(name,
                  type + " @" + name + "(" + addresses.type + ", " + all.type + ", " + type + ")");
  Value value = text().Here(type, "call " + type + " @" + name + "(" + addresses.type + " align " +
                                      std::to_string(stored.element_of().bytes()) + " " +
                                      addresses.ref + ", " + all.str() + ", " + type + " poison)" +
                                      AliasMetadata(buffer->data.get()));
  return element.is_bool() ? text().Convert("trunc", value, value.TypeWith("i1")) : value;
}

void CodeGenLLVM::ScatterAt(const Buffer& buffer, DataType element, const Value& value,
                            const PrimExpr& offset) {
  Value addresses = LaneAddresses(buffer, element, offset);
  const DataType stored = StoredType(element.with_lanes(addresses.lanes()));
  const Value written =
      element.is_bool() ? text().Convert("zext", value, value.TypeWith("i8")) : value;
  const std::string name = "llvm.masked.scatter." + written.Suffix() + ".nxv" +
                           std::to_string(-addresses.lanes()) + "p0";
  const Value all = text().Int(addresses.TypeWith("i1"), 1);
  module_.Declare(
      name, "void @" + name + "(" + written.type + ", " + addresses.type + ", " + all.type + ")");
  text().Line("call void @" + name + "(" + written.str() + ", " + addresses.type + " align " +
              std::to_string(stored.element_of().bytes()) + " " + addresses.ref + ", " + all.str() +
              ")" + AliasMetadata(buffer->data.get()));
  ForgetLoads(buffer->data.get());
}

Value CodeGenLLVM::VisitExpr_(const BufferLoadNode* op) {
  DataType element = op->dtype.element_of();
  PrimExpr offset = op->buffer.ElemOffset(op->indices);
  int lanes = op->dtype.lanes();
  const auto* ramp = offset.as<RampNode>();
  if (offset.dtype().is_scalar() || (ramp && is_one(ramp->stride))) {
    return LoadAt(op->buffer, element, lanes, ScalarIndex(op->buffer, ramp ? ramp->base : offset));
  }
  if (const auto* broadcast = offset.as<BroadcastNode>()) {
    return text().Splat(LoadAt(op->buffer, element, 1, Index(broadcast->value)), lanes);
  }
  const bool is_word = StoredType(element).bytes() == 4 || StoredType(element).bytes() == 8;
  // What lies at even distances is put together by shuffles.
  if (lanes < 0 || (gathers_ && is_word && ramp == nullptr && lanes >= 4)) {
    return GatherAt(op->buffer, element, offset);
  }
  Value result = FunctionText::Poison(LLVMType(op->dtype));
  int lane = 0;
  for (const LinearIndex& index : LaneIndices(offset)) {
    result = text().Insert(result, LoadAt(op->buffer, element, 1, index), lane++);
  }
  return result;
}

void CodeGenLLVM::VisitStmt_(const BufferStoreNode* op) {
  Value value = VisitExpr(op->value);
  DataType element = op->value.dtype().element_of();
  PrimExpr offset = op->buffer.ElemOffset(op->indices);
  const auto* ramp = offset.as<RampNode>();
  if (offset.dtype().is_scalar() || (ramp && is_one(ramp->stride))) {
    StoreAt(op->buffer, element, value, ScalarIndex(op->buffer, ramp ? ramp->base : offset));
    return;
  }
  if (offset.dtype().is_scalable_vector()) {
    ScatterAt(op->buffer, element, value, offset);
    return;
  }
  int lane = 0;
  for (const LinearIndex& index : LaneIndices(offset)) {
    StoreAt(op->buffer, element, text().Extract(value, lane++), index);
  }
}

void CodeGenLLVM::VisitStmt_(const tir::AllocateConstNode* op) {
  const VarNode* data = op->buffer_var.get();
  const std::string symbol = "@constant." + std::to_string(module_.UniqueId());
  module_.AddGlobal(symbol + " = private unnamed_addr constant " +
                    ModuleText::StringLiteral(ConstantBytes(op)) + ", align " +
                    std::to_string(kWorkspaceAlignment));
  alignment_[data] = kWorkspaceAlignment;
  frame_->vars[data].value = {"ptr", symbol, 0};
  VisitStmt(op->body);
  frame_->vars.erase(data);
}

void CodeGenLLVM::VisitStmt_(const AllocateNode* op) {
  FunctionText& t = text();
  const VarNode* data = op->buffer_var.get();
  DataType stored = StoredType(op->dtype);
  int64_t element_bytes = stored.bytes() * stored.lanes();
  int64_t count = op->ConstantAllocationSize();
  int64_t bytes = count * element_bytes;
  // Host code that launches kernels allocates what they work on where they run.
  const std::string scope = StorageScopeOf(op->buffer_var);
  // What follows the first point is a user's tag; a processor has one memory for all of these.
  const std::string rank = scope.substr(0, scope.find('.'));
  TVM_CHECK(rank == "global" || rank == "local" || rank == "shared" || rank == "warp", ValueError)
      << "llvm code generator: function " << function_name_ << " allocates "
      << op->buffer_var->name_hint << " in scope \"" << scope
      << "\", which processors do not have; they have global, local, shared and warp";
  bool on_device = frame_->device_type.ref != "" && scope == "global";
  bool in_frame = !on_device && count > 0 && bytes <= kMaxFrameBuffer &&
                  frame_->frame_bytes + bytes <= kMaxFrameBytes;
  alignment_[data] = kWorkspaceAlignment;
  if (in_frame) {
    frame_->frame_bytes += bytes;
    Value memory = t.Alloca("[" + std::to_string(count) + " x " + LLVMType(stored) + "]",
                            kWorkspaceAlignment, "buf");
    frame_->vars[data].value = memory;
    VisitStmt(op->body);
    frame_->vars.erase(data);
    return;
  }
  TVM_CHECK(frame_->returns_status, ValueError)
      << "llvm code generator: function " << function_name_ << " allocates " << op->buffer_var
      << " at run time but cannot report that memory ran out; give it the packed calling "
         "convention";
  LinearIndex size;
  size.offset = 1;
  for (const PrimExpr& extent : op->extents) {
    LinearIndex factor = Index(extent);
    if (size.is_constant()) {
      LinearIndex product;
      product.Add(factor, size.offset);
      size = product;
    } else {
      Value product = t.Binary("mul nsw", Materialize(size), Materialize(factor));
      size = LinearIndex();
      size.terms.emplace_back(product, 1);
    }
  }
  LinearIndex total;
  total.Add(size, element_bytes);
  module_.Declare("TVMBackendAllocWorkspace",
                  "noalias ptr @TVMBackendAllocWorkspace(i32, i32, i64)");
  Frame::Workspace workspace;
  workspace.device_type = on_device ? frame_->device_type : t.Int("i32", kDLCPU);
  workspace.device_id = on_device ? frame_->device_id : t.Int("i32", 0);
  workspace.memory =
      t.Here("ptr", "call noalias ptr @TVMBackendAllocWorkspace(" + workspace.device_type.str() +
                        ", " + workspace.device_id.str() + ", " + Materialize(total).str() + ")");
  const Value& memory = workspace.memory;
  std::string failed = t.NewLabel("out_of_memory");
  std::string got = t.NewLabel("allocated");
  t.Branch(t.Compare("icmp eq", memory, {"ptr", "null", 0}), failed, got);
  t.StartBlock(failed);
  Value message{
      "ptr",
      module_.StringConstant("RuntimeError: " + function_name_ + ": no memory for buffer " +
                             std::string(op->buffer_var->name_hint)),
      0};
  module_.Declare("TVMAPISetLastError", "void @TVMAPISetLastError(ptr)");
  t.Line("call void @TVMAPISetLastError(" + message.str() + ")");
  ReturnFailure();
  t.StartBlock(got);
  frame_->vars[data].value = memory;
  frame_->workspaces.push_back(workspace);
  VisitStmt(op->body);
  frame_->workspaces.pop_back();
  frame_->vars.erase(data);
  FreeWorkspace(workspace);
}

}  // namespace codegen
}  // namespace tvm
