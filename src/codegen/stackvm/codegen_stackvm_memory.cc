/*!
 * \file codegen_stackvm_memory.cc
 * \brief Loads and stores of the stackvm generator, with the sizes they are checked against.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/expr/op.h>
#include <tvm/tir/async_copies.h>
#include <tvm/tir/launch.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "codegen/stackvm/codegen_stackvm.h"

namespace tvm {
namespace codegen {

using namespace tir;  // NOLINT(*)

bool CodeGenStackVM::IsBound(const PrimExpr& expr) const {
  bool bound = true;
  PostOrderVisit(expr, [&](const ObjectRef& node) {
    const auto* var = node.as<VarNode>();
    if (var != nullptr && vars_.count(var) == 0) bound = false;
  });
  return bound;
}

PrimExpr CodeGenStackVM::SpanBytes(const Buffer& buffer) {
  const DataType wide = DataType::Int(64);
  PrimExpr span = make_const(wide, 1);
  for (size_t axis = 0; axis < buffer->shape.size(); ++axis) {
    PrimExpr extent = cast(wide, buffer->shape[axis]);
    if (buffer->strides.empty()) {
      span = span * extent;
    } else {
      // Without elements on one axis there are none at all, which this then overstates.
      span = span + (extent - 1) * cast(wide, buffer->strides[axis]);
    }
  }
  const int element = std::max(buffer->dtype.bytes(), 1) * buffer->dtype.lanes();
  return (span + cast(wide, buffer->elem_offset)) * element;
}

void CodeGenStackVM::ComputeLimits(std::vector<const BufferNode*>* computed) {
  std::vector<Buffer> left;
  for (const Buffer& buffer : pending_) {
    PrimExpr bytes = SpanBytes(buffer);
    if (const int64_t* constant = as_const_int(bytes)) {
      limits_[buffer.get()].bytes = *constant;
    } else if (vars_.count(buffer->data.get()) && IsBound(bytes)) {
      limits_[buffer.get()].slot = VisitExpr(bytes);
      computed->push_back(buffer.get());
    } else {
      left.push_back(buffer);
    }
  }
  pending_ = std::move(left);
}

CodeGenStackVM::Limit CodeGenStackVM::LimitOf(const Buffer& buffer) {
  auto own = allocations_.find(buffer->data.get());
  if (own != allocations_.end()) return own->second;
  auto known = limits_.find(buffer.get());
  if (known != limits_.end()) return known->second;
  Limit limit;
  PrimExpr bytes = SpanBytes(buffer);
  if (IsBound(bytes)) limit.slot = VisitExpr(bytes);
  return limit;
}

uint8_t CodeGenStackVM::ScopeFlags(const Buffer& buffer) const {
  if (!in_kernel() || program_.limits.check_races == 0) return 0;
  switch (StorageRankOf(buffer.scope())) {
    case StorageRank::kGlobal:
      return written_.count(buffer->data.get()) ? runtime::stackvm::kGlobalMemory : 0;
    case StorageRank::kShared:
      return runtime::stackvm::kSharedMemory;
    case StorageRank::kWarp:
      return runtime::stackvm::kWarpMemory;
    default:
      return 0;
  }
}

CodeGenStackVM::Place CodeGenStackVM::PlaceOf(const Buffer& buffer,
                                              const Array<PrimExpr>& indices) {
  PrimExpr offset =
      buffer->shape.empty() && indices.empty() ? buffer->elem_offset : buffer.ElemOffset(indices);
  // A buffer of vectors counts vectors; addresses count their scalars.
  const int element_lanes = buffer->dtype.lanes();
  Place place;
  const auto* ramp = offset.as<RampNode>();
  if (ramp != nullptr && is_one(ramp->stride) && element_lanes == 1) offset = ramp->base;
  if (const auto* broadcast = offset.as<BroadcastNode>(); broadcast && element_lanes == 1) {
    offset = broadcast->value;
    place.broadcast = true;
  }
  TVM_CHECK(element_lanes == 1 || offset.dtype().is_scalar(), ValueError)
      << "stackvm generator: function " << function_->name << " takes several elements of "
      << buffer->name << ", whose elements are vectors; index it one element at a time";
  if (element_lanes > 1) offset = offset * element_lanes;
  DataType dtype = offset.dtype();
  const bool is_index = dtype.is_int() && (dtype.bits() == 32 || dtype.bits() == 64);
  if (!is_index) {
    dtype = DataType::Int(64, dtype.lanes());
    offset = cast(dtype, offset);
  }
  place.per_lane = dtype.lanes() > 1;
  place.index_type = TypeOf(dtype);
  if (!place.per_lane) {
    arith::ModularSet known = arith::Analyzer().modular_set(offset);
    place.multiple = std::gcd(known->coeff, known->base);
  }
  place.index = VisitExpr(offset);
  return place;
}

void CodeGenStackVM::Access(Opcode contiguous, Opcode scattered, Slot value, DataType dtype,
                            const Buffer& buffer, const Place& place) {
  auto data = vars_.find(buffer->data.get());
  TVM_CHECK(data != vars_.end(), ValueError)
      << "buffer " << buffer->name << " has no memory in function " << function_->name
      << "; make it a parameter, or allocate it around its uses";
  const Limit limit = LimitOf(buffer);
  Instr& instr = Emit(place.per_lane ? scattered : contiguous, dtype, value, data->second,
                      place.index, limit.slot);
  instr.type2 = place.index_type;
  instr.imm = limit.bytes;
  instr.index = BufferIndex(buffer->name, buffer->dtype);
  instr.flags = ScopeFlags(buffer);
  // A place that may lie across vectors is taken element by element, as it is by CodeGenCUDA.
  if (in_kernel() && dtype.lanes() > 1 && !place.per_lane && place.multiple % dtype.lanes() == 0) {
    instr.flags |= runtime::stackvm::kAligned;
  }
}

int CodeGenStackVM::VisitExpr_(const BufferLoadNode* op) {
  const Slot result = Allocate(op->dtype);
  Temporaries scope(this);
  const Place place = PlaceOf(op->buffer, op->indices);
  if (!place.broadcast) {
    Access(Opcode::kLoad, Opcode::kGather, result, op->dtype, op->buffer, place);
    return result;
  }
  const Slot element = Allocate(op->dtype.element_of());
  Access(Opcode::kLoad, Opcode::kGather, element, op->dtype.element_of(), op->buffer, place);
  Emit(Opcode::kBroadcast, op->dtype, result, element);
  return result;
}

void CodeGenStackVM::VisitStmt_(const BufferStoreNode* op) {
  Temporaries scope(this);
  const DataType dtype = op->value.dtype();
  const Slot value = VisitExpr(op->value);
  const Place place = PlaceOf(op->buffer, op->indices);
  if (!place.broadcast) {
    const bool later = async_ && tir::AsyncCopyOf(op).has_value();
    Access(later ? Opcode::kStoreLater : Opcode::kStore, Opcode::kScatter, value, dtype, op->buffer,
           place);
    return;
  }
  // Lanes that go to one element: the last one stays.
  const Slot element = Allocate(dtype.element_of());
  Instr& last = Emit(Opcode::kCopyLane, dtype.element_of(), element, value, 0, dtype.lanes() - 1);
  last.imm = dtype.lanes();
  Access(Opcode::kStore, Opcode::kScatter, element, dtype.element_of(), op->buffer, place);
}

bool CodeGenStackVM::AsyncStatement(const AttrStmtNode* op) {
  if (op->attr_key == tir::attr::async_scope) {
    const bool outer = std::exchange(async_, true);
    VisitStmt(op->body);
    async_ = outer;
    return true;
  }
  if (op->attr_key == tir::attr::async_commit_queue_scope) {
    VisitStmt(op->body);
    Emit(Opcode::kCloseGroup, DataType::Int(32));
    return true;
  }
  if (op->attr_key != tir::attr::async_wait_queue_scope) return false;
  const auto [under_way, body] = tir::WaitOf(op);
  {
    Temporaries scope(this);
    const Slot count = EvalAs(under_way, DataType::Int(64));
    Emit(Opcode::kWaitForGroups, DataType::Int(32), count);
  }
  VisitStmt(body);
  return true;
}

int CodeGenStackVM::AddressOf(const CallNode* op) {
  const auto* load = op->args[0].as<BufferLoadNode>();
  ICHECK(load != nullptr) << "address_of needs a BufferLoad";
  const Slot result = Allocate(DataType::Handle());
  Temporaries scope(this);
  Place place = PlaceOf(load->buffer, load->indices);
  TVM_CHECK(!place.per_lane, ValueError) << "stackvm generator: address_of in function "
                                         << function_->name << " needs one element, got a vector";
  Instr& instr = Emit(Opcode::kAddress, DataType::Handle(), result,
                      vars_.at(load->buffer->data.get()), place.index);
  instr.type2 = place.index_type;
  instr.imm = std::max(load->buffer->dtype.bytes(), 1);
  return result;
}

}  // namespace codegen
}  // namespace tvm
