/*!
 * \file schedule_postproc_rewrite_for_tensor_core.cc
 * \brief Marked matrix products on the fragments of tensor cores.
 *
 * Indices in the result of ScheduleOps are those of tensors. So what a warp has of a tensor is the
 * union of what its threads have, and a statement of one thread can be replaced by one of the warp
 * for that union, whichever thread did which element.
 */
#include <tvm/expr/builtin.h>
#include <tvm/expr/op.h>
#include <tvm/ir/type.h>
#include <tvm/runtime/registry.h>
#include <tvm/te/schedule_pass.h>

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

#include "tensor_core_fragments.h"

namespace tvm {
namespace te {

namespace {

constexpr const char* kPragma = "pragma_tensor_core";
/*! \brief Rows of fragments in memory start at multiples of this. */
constexpr int kRowBytes = 16;

/*!
 * \brief Drops guards that always hold.
 *
 * Lowering states them where a region is computed for the sake of a reader, and a guard between
 * loops would split the nest that a fragment takes the place of.
 */
class ProvenGuardRemover final : public tir::StmtMutator {
 private:
  Stmt VisitStmt_(const tir::ForNode* op) override {
    analyzer_.Bind(op->loop_var, Range::FromMinExtent(op->min, op->extent), true);
    return StmtMutator::VisitStmt_(op);
  }

  Stmt VisitStmt_(const tir::AttrStmtNode* op) override {
    if (op->attr_key == tir::attr::thread_extent || op->attr_key == tir::attr::virtual_thread) {
      analyzer_.Bind(op->node.as<IterVarNode>()->var, Range::FromMinExtent(0, op->value), true);
    }
    return StmtMutator::VisitStmt_(op);
  }

  Stmt VisitStmt_(const tir::IfThenElseNode* op) override {
    const auto* call = op->condition.as<tir::CallNode>();
    const bool is_guard = call != nullptr && call->op.same_as(tir::builtin::likely());
    if (is_guard && !op->else_case.defined() && analyzer_.CanProve(call->args[0])) {
      return VisitStmt(op->then_case);
    }
    return StmtMutator::VisitStmt_(op);
  }

  arith::Analyzer analyzer_;
};

/*! \brief Replaces everything that touches buffers of fragments. */
class FragmentRewriter final : public KernelMutator {
 public:
  FragmentRewriter(FragmentMap fragments,
                   std::unordered_map<const tir::BufferNode*, Buffer> extern_buffers)
      : fragments_(std::move(fragments)), extern_buffers_(std::move(extern_buffers)) {}
  using KernelMutator::operator();

 private:
  const Fragments* Find(const Buffer& buffer) const {
    auto it = fragments_.find(buffer.get());
    return it == fragments_.end() ? nullptr : &it->second;
  }

  const Fragments* FindData(const Object* data) const {
    for (const auto& [buffer, found] : fragments_) {
      if (buffer->data.get() == data) return &found;
    }
    return nullptr;
  }

  /*! \brief Some buffer of fragments that is touched, or null. */
  const Fragments* Touched(const ObjectRef& node) const {
    const Fragments* touched = nullptr;
    tir::PostOrderVisit(node, [&](const ObjectRef& part) {
      const Fragments* found = nullptr;
      if (const auto* load = part.as<tir::BufferLoadNode>()) found = Find(load->buffer);
      if (const auto* store = part.as<tir::BufferStoreNode>()) found = Find(store->buffer);
      if (part.as<VarNode>() != nullptr) found = FindData(part.get());
      if (found != nullptr) touched = found;
    });
    return touched;
  }

  bool IsAboutFragments(const tir::BufferStoreNode* store) const override {
    return Touched(GetRef<Stmt>(store)) != nullptr;
  }

  Stmt VisitStmt_(const tir::IfThenElseNode* op) override {
    const Fragments* touched = Touched(GetRef<Stmt>(op));
    if (touched != nullptr) RefuseCondition(touched->where, touched->buffer, op->condition);
    return KernelMutator::VisitStmt_(op);
  }

  Stmt VisitStmt_(const tir::ForNode* op) override {
    if (warp_.DependsOnLane(op->min) || warp_.DependsOnLane(op->extent)) {
      const Fragments* touched = Touched(op->body);
      TVM_CHECK(touched == nullptr, ScheduleError)
          << touched->where << "threads of one warp run loop " << op->loop_var->name_hint
          << " differently";
    }
    return KernelMutator::VisitStmt_(op);
  }

  Stmt VisitStmt_(const tir::EvaluateNode* op) override {
    const Fragments* touched = Touched(op->value);
    TVM_CHECK(touched == nullptr, ScheduleError)
        << touched->where << op->value << " uses " << touched->buffer->name
        << ", whose elements are in no thread in particular; copy them to shared memory first";
    return KernelMutator::VisitStmt_(op);
  }

  /*! \brief What an attribute is about, if that is fragments. */
  const Fragments* FragmentsOf(const Object* node) const {
    if (node->IsInstance<ArrayNode>()) {
      for (const Any& part : static_cast<const ArrayNode*>(node)->data) {
        const Fragments* found = part.object() == nullptr ? nullptr : FragmentsOf(part.object());
        if (found != nullptr) return found;
      }
      return nullptr;
    }
    auto it = fragments_.find(static_cast<const tir::BufferNode*>(node));
    return it == fragments_.end() ? FindData(node) : &it->second;
  }

  Stmt VisitStmt_(const tir::AttrStmtNode* op) override {
    if (op->attr_key == kPragma) return VisitStmt(op->body);
    if (op->attr_key == attr::tensor_buffer) {
      Array<ObjectRef> pair = Downcast<Array<ObjectRef>>(op->node);
      const Fragments* found = Find(Downcast<Buffer>(pair[1]));
      if (found == nullptr) return KernelMutator::VisitStmt_(op);
      pair.Set(1, found->buffer);
      return tir::AttrStmt(pair, op->attr_key, op->value, VisitStmt(op->body));
    }
    if (const Fragments* found = FragmentsOf(op->node.get())) {
      // Rows of fragments are where the hardware wants them.
      if (op->attr_key == tir::attr::storage_alignment) return VisitStmt(op->body);
      TVM_FATAL(ScheduleError) << found->where << "fragments of " << found->buffer->name
                               << " cannot have the attribute " << op->attr_key;
    }
    if (op->attr_key == tir::attr::virtual_thread && !tir::is_one(op->value)) ++virtual_threads_;
    if (op->attr_key == tir::attr::storage_alignment) {
      const auto* buffer = op->node.as<tir::BufferNode>();
      Array<PrimExpr> args = op->value.as<tir::CallNode>()->args;
      alignment_[buffer].push_back(args);
    }
    Stmt stmt = KernelMutator::VisitStmt_(op);
    if (op->attr_key == tir::attr::virtual_thread && !tir::is_one(op->value)) --virtual_threads_;
    return stmt;
  }

  Stmt VisitStmt_(const tir::BufferRealizeNode* op) override {
    auto it = fragments_.find(op->buffer.get());
    if (it == fragments_.end()) {
      realized_[op->buffer.get()] = op->bounds;
      return KernelMutator::VisitStmt_(op);
    }
    Fragments& found = it->second;
    TVM_CHECK(virtual_threads_ == 0, ScheduleError)
        << found.where << "fragments of " << op->buffer->name << " in a virtual thread; let the "
        << "warp have a larger tile instead";
    found.region = warp_.RegionOf(op->bounds, found.where);
    Array<Range> bounds;
    for (size_t i = 0; i < op->bounds.size(); ++i) {
      bounds.push_back(Range::FromMinExtent(warp_.ToThreads(found.region.min[i]),
                                            static_cast<int>(found.region.extent[i])));
    }
    CheckWhole(found, found.region);
    return tir::BufferRealize(found.buffer, bounds, op->condition, VisitStmt(op->body));
  }

  Stmt Replace(const StoreNest& nest, const Stmt& stmt) override {
    Stmt body = Collective(nest);
    for (size_t i = nest.pragmas.size(); i != 0; --i) {
      const tir::AttrStmtNode* pragma = nest.pragmas[i - 1];
      if (pragma->attr_key == kPragma) continue;
      body = tir::AttrStmt(pragma->node, pragma->attr_key, pragma->value, body);
    }
    return warp_.ToThreads(body);
  }

  Stmt Collective(const StoreNest& nest) {
    const tir::BufferStoreNode* store = nest.store;
    const Fragments* target = Find(store->buffer);
    const auto* copied = store->value.as<tir::BufferLoadNode>();
    const Fragments* source = copied == nullptr ? nullptr : Find(copied->buffer);
    if (target == nullptr) {
      if (source == nullptr) source = Touched(store->value);
      TVM_CHECK(copied != nullptr && source->buffer.scope() == "wmma.accumulator", ScheduleError)
          << source->where << "elements of " << source->buffer->name << " are in no thread in "
          << "particular, so they can be multiplied or copied out as they are, but "
          << store->buffer->name << store->indices << " = " << store->value
          << "; copy them to shared memory first";
      return Move(nest, *source, copied->indices, store->buffer, store->indices, true);
    }
    if (target->buffer.scope() != "wmma.accumulator") {
      TVM_CHECK(copied != nullptr && source == nullptr, ScheduleError)
          << target->where << target->buffer->name << " must be a copy of a tensor in shared or "
          << "global memory, but is computed as " << store->value
          << "; compute it in a stage in shared memory and cache_read that";
      return Move(nest, *target, store->indices, copied->buffer, copied->indices, false);
    }
    if (tir::is_const_number(store->value)) return Fill(nest, *target);
    return Multiply(nest, *target);
  }

  /*! \brief Raises unless the region consists of whole fragments. */
  void CheckWhole(const Fragments& fragments, const WarpRegion& region) const {
    bool whole = true;
    for (size_t i = 0; i < region.extent.size(); ++i) {
      int unit = i == fragments.row_axis      ? fragments.rows
                 : i == fragments.column_axis ? fragments.columns
                                              : 0;
      whole = whole && (unit == 0 ? region.extent[i] == 1 : region.extent[i] % unit == 0);
    }
    TVM_CHECK(whole, ScheduleError)
        << fragments.where << "a warp accesses " << Text(region) << " elements of "
        << fragments.buffer->name << " at a time, which are no whole fragments of "
        << fragments.rows << " x " << fragments.columns
        << "; compute_at puts a copy where it covers what is multiplied";
  }

  /*! \brief Number of the fragment that starts `row` and `column` elements into `region`. */
  PrimExpr Index(const Fragments& fragments, const WarpRegion& region, const PrimExpr& row,
                 const PrimExpr& column) {
    auto position = [&](size_t axis, const PrimExpr& offset, int unit) {
      PrimExpr distance = region.min[axis] - fragments.region.min[axis] + offset;
      TVM_CHECK(warp_.analyzer.CanProveEqual(floormod(distance, unit), 0), ScheduleError)
          << fragments.where << "an access of " << fragments.buffer->name << " starts "
          << warp_.analyzer.Simplify(distance) << " elements into axis " << axis
          << ", which is inside of a fragment of " << fragments.rows << " x " << fragments.columns;
      return floordiv(distance, unit);
    };
    int across =
        static_cast<int>(fragments.region.extent[fragments.column_axis] / fragments.columns);
    return warp_.analyzer.Simplify(position(fragments.row_axis, row, fragments.rows) * across +
                                   position(fragments.column_axis, column, fragments.columns));
  }

  /*! \brief `body` for each multiple of `unit` below `extent`. */
  static Stmt ForTiles(int64_t extent, int unit, const char* name,
                       const std::function<Stmt(PrimExpr)>& body) {
    if (extent == unit) return body(PrimExpr(0));
    Var tile(name);
    return tir::For(tile, 0, static_cast<int>(extent / unit), tir::ForKind::kUnrolled,
                    body(tile * unit));
  }

  /*! \brief `body` for the start of every fragment of `region`, relative to the region's. */
  static Stmt ForFragments(const Fragments& fragments, const WarpRegion& region,
                           const std::function<Stmt(PrimExpr, PrimExpr)>& body) {
    return ForTiles(region.extent[fragments.row_axis], fragments.rows, "row", [&](PrimExpr row) {
      return ForTiles(region.extent[fragments.column_axis], fragments.columns, "column",
                      [&](PrimExpr column) { return body(row, column); });
    });
  }

  static Stmt Call(const Op& op, const Array<PrimExpr>& args) {
    return tir::Evaluate(tir::Call(DataType::Handle(), op, args));
  }

  Stmt Fill(const StoreNest& nest, const Fragments& sum) {
    WarpRegion region = warp_.RegionOf(nest.store->indices, nest.loops, false, sum.where);
    CheckWhole(sum, region);
    return ForFragments(sum, region, [&](PrimExpr row, PrimExpr column) {
      return Call(tir::builtin::tvm_fill_fragment(),
                  {sum.buffer->data, sum.m, sum.n, sum.k, Index(sum, region, row, column),
                   nest.store->value});
    });
  }

  Stmt Multiply(const StoreNest& nest, const Fragments& sum) {
    WarpRegion result = warp_.RegionOf(nest.store->indices, nest.loops, false, sum.where);
    const Fragments* a = nullptr;
    const Fragments* b = nullptr;
    WarpRegion a_region, b_region;
    tir::PostOrderVisit(nest.store->value, [&](const ObjectRef& node) {
      const auto* load = node.as<tir::BufferLoadNode>();
      if (load == nullptr || load->buffer.same_as(nest.store->buffer)) return;
      const Fragments* found = Find(load->buffer);
      bool left = found->buffer.scope() == "wmma.matrix_a";
      (left ? a : b) = found;
      (left ? a_region : b_region) = warp_.RegionOf(load->indices, nest.loops, false, sum.where);
    });
    // FindProducts saw to it.
    ICHECK(a != nullptr && b != nullptr);
    return ForFragments(sum, result, [&](PrimExpr row, PrimExpr column) {
      PrimExpr at = Index(sum, result, row, column);
      return ForTiles(a_region.extent[a->column_axis], sum.k, "step", [&](PrimExpr step) {
        const Var& data = sum.buffer->data;
        return Call(tir::builtin::tvm_mma_sync(),
                    {data, at, a->buffer->data, Index(*a, a_region, row, step), b->buffer->data,
                     Index(*b, b_region, step, column), data, at});
      });
    });
  }

  /*! \brief A copy between fragments and memory, in either direction. */
  Stmt Move(const StoreNest& nest, const Fragments& fragments, const Array<PrimExpr>& inner,
            const Buffer& memory, const Array<PrimExpr>& outer, bool store) {
    std::string scope = memory.scope();
    TVM_CHECK(scope.empty() || scope == "global" || scope.rfind("shared", 0) == 0, ScheduleError)
        << fragments.where << fragments.buffer->name << " is copied " << (store ? "to " : "from ")
        << memory->name << " in " << scope << " memory; it must be in shared or global memory";
    WarpRegion region = warp_.RegionOf(inner, nest.loops, false, fragments.where);
    CheckWhole(fragments, region);
    WarpRegion box = warp_.RegionOf(outer, nest.loops, false, fragments.where);
    auto axis_of = [&](size_t axis) {
      size_t found = box.extent.size();
      PrimExpr offset = warp_.ToLanes(inner[axis]) - region.min[axis];
      for (size_t i : WideAxes(box)) {
        if (box.extent[i] == region.extent[axis] &&
            warp_.analyzer.CanProveEqual(warp_.ToLanes(outer[i]) - box.min[i], offset)) {
          found = i;
        }
      }
      return found;
    };
    size_t row_axis = axis_of(fragments.row_axis), column_axis = axis_of(fragments.column_axis);
    size_t last = box.extent.size() - 1;
    bool matrix = WideAxes(box).size() == 2 && row_axis <= last && column_axis <= last &&
                  row_axis != column_axis && std::max(row_axis, column_axis) == last;
    TVM_CHECK(matrix, ScheduleError)
        << fragments.where << fragments.buffer->name << inner << " is copied "
        << (store ? "to " : "from ") << memory->name << outer << ", of which a warp touches "
        << Text(box) << " elements; that must be a matrix, and one of its axes the last axis of "
        << memory->name;
    size_t leading = std::min(row_axis, column_axis);
    CheckRows(fragments, memory, leading);
    return ForFragments(fragments, region, [&](PrimExpr row, PrimExpr column) {
      CheckStart(fragments, memory, box.min[last] + (last == row_axis ? row : column));
      Array<PrimExpr> corners, shape, strides;
      for (size_t i = 0; i <= last; ++i) {
        PrimExpr offset = i == row_axis ? row : i == column_axis ? column : PrimExpr(0);
        int extent = i == row_axis ? fragments.rows : i == column_axis ? fragments.columns : 1;
        corners.push_back(warp_.analyzer.Simplify(box.min[i] + offset));
        corners.push_back(extent);
        shape.push_back(extent);
        if (i == last) {
          strides.push_back(1);
        } else {
          strides.push_back(Var("stride"));
        }
      }
      DataType dtype = memory->dtype;
      Var data(memory->name, PointerType(PrimType(dtype), memory.scope()));
      Buffer block(data, dtype, shape, strides, Var("offset"), memory->name, 0,
                   kRowBytes / dtype.bytes());
      PrimExpr type = tir::Call(dtype, tir::builtin::type_annotation(), {});
      PrimExpr pointer = tir::Call(
          DataType::Handle(), tir::builtin::tvm_access_ptr(),
          {type, data, block->elem_offset, strides[leading] * shape[leading], store ? 2 : 1});
      const char* layout = row_axis < column_axis ? "row_major" : "col_major";
      Stmt call =
          Call(store ? tir::builtin::tvm_store_matrix_sync() : tir::builtin::tvm_load_matrix_sync(),
               {fragments.buffer->data, fragments.m, fragments.n, fragments.k,
                Index(fragments, region, row, column), pointer, strides[leading],
                tir::StringImm(layout)});
      return tir::AttrStmt(Array<ObjectRef>{block, memory}, tir::attr::buffer_bind_scope,
                           tir::Call(DataType::Handle(), tir::builtin::tvm_tuple(), corners), call);
    });
  }

  /*! \brief Raises where rows of `memory`, `axis` counting them, are not aligned. */
  void CheckRows(const Fragments& fragments, const Buffer& memory, size_t axis) {
    PrimExpr stride = 1;
    auto user = extern_buffers_.find(memory.get());
    if (user != extern_buffers_.end() && !user->second->strides.empty()) {
      const Array<PrimExpr>& strides = user->second->strides;
      TVM_CHECK(warp_.analyzer.CanProveEqual(strides[strides.size() - 1], 1), ScheduleError)
          << fragments.where << "tensor " << memory->name << " is bound to a buffer of strides "
          << strides << "; the last one must be 1";
      stride = strides[axis];
    } else {
      auto realized = realized_.find(memory.get());
      for (size_t i = memory->shape.size(); i != axis + 1; --i) {
        stride = stride * (realized == realized_.end() ? memory->shape[i - 1]
                                                       : realized->second[i - 1]->extent);
        stride = Aligned(memory, i - 2, stride);
      }
    }
    int unit = kRowBytes / memory->dtype.bytes();
    TVM_CHECK(warp_.analyzer.CanProveEqual(floormod(stride, unit), 0), ScheduleError)
        << fragments.where << "rows of " << memory->name << " are "
        << warp_.analyzer.Simplify(stride) << " elements apart; fragments need a multiple of "
        << unit << " (" << kRowBytes << " bytes), which storage_align or padding gives";
  }

  /*! \brief Raises where a row of `memory` is accessed from an unaligned element on. */
  void CheckStart(const Fragments& fragments, const Buffer& memory, PrimExpr start) {
    auto realized = realized_.find(memory.get());
    if (realized != realized_.end()) {
      start = start - realized->second[realized->second.size() - 1]->min;
    }
    int unit = kRowBytes / memory->dtype.bytes();
    TVM_CHECK(warp_.analyzer.CanProveEqual(floormod(start, unit), 0), ScheduleError)
        << fragments.where << "a fragment of " << fragments.rows << " x " << fragments.columns
        << " starts at element " << warp_.analyzer.Simplify(start) << " of rows of " << memory->name
        << "; that must be a multiple of " << unit << " (" << kRowBytes
        << " bytes), so let a warp compute more elements along the rows";
  }

  /*! \brief `stride` of an axis after the alignment that was asked for. */
  PrimExpr Aligned(const Buffer& memory, size_t axis, const PrimExpr& stride) const {
    auto it = alignment_.find(memory.get());
    if (it == alignment_.end()) return stride;
    for (const Array<PrimExpr>& entry : it->second) {
      const int64_t* aligned = tir::as_const_int(entry[0]);
      if (aligned == nullptr || *aligned != static_cast<int64_t>(axis)) continue;
      return stride + floormod(entry[1] + entry[2] - floormod(stride, entry[1]), entry[1]);
    }
    return stride;
  }

  FragmentMap fragments_;
  std::unordered_map<const tir::BufferNode*, Buffer> extern_buffers_;
  std::unordered_map<const tir::BufferNode*, Array<Range>> realized_;
  std::unordered_map<const tir::BufferNode*, std::vector<Array<PrimExpr>>> alignment_;
  int virtual_threads_ = 0;
};

/*! \brief The marked stages of `stmt` by their loops in `schedule`. */
std::vector<Mark> MarksOf(const Stmt& stmt, const Schedule& schedule,
                          const TensorMap<Buffer>& buffers) {
  std::vector<Mark> marks;
  tir::PostOrderVisit(stmt, [&](const ObjectRef& node) {
    const auto* pragma = node.as<tir::AttrStmtNode>();
    if (pragma == nullptr || pragma->attr_key != kPragma) return;
    const auto* loop = pragma->node.as<IterVarNode>();
    const Stage* marked = nullptr;
    for (const Stage& stage : schedule->stages) {
      for (const IterVar& leaf : stage->leaf_iter_vars) {
        if (loop != nullptr && leaf->var.same_as(loop->var)) marked = &stage;
      }
    }
    TVM_CHECK(marked != nullptr, ValueError)
        << "SchedulePostProcRewriteForTensorCore: the statement marks "
        << (loop == nullptr ? "what is no loop" : "loop " + std::string(loop->var->name_hint))
        << ", which no stage of the schedule has; pass the schedule that it was made from";
    auto buffer = buffers.find((*marked)->origin_op.output(0));
    TVM_CHECK(buffer != buffers.end(), ScheduleError)
        << "pragma \"tensor_core\": stage " << (*marked)->op->name << " has no memory of its own; "
        << "mark a stage that computes a product by itself";
    std::string where = "pragma(" + std::string((*marked)->op->name) + ", " +
                        std::string(loop->var->name_hint) + ", \"tensor_core\"): ";
    marks.push_back({buffer->second, where});
  });
  return marks;
}

}  // namespace

Stmt SchedulePostProcRewriteForTensorCore(const Stmt& stmt, const Schedule& schedule,
                                          const Map<Tensor, Buffer>& extern_buffer) {
  TensorMap<Buffer> buffers;
  for (const auto* attr = stmt.as<tir::AttrStmtNode>();
       attr != nullptr && attr->attr_key == attr::tensor_buffer;
       attr = attr->body.as<tir::AttrStmtNode>()) {
    Array<ObjectRef> pair = Downcast<Array<ObjectRef>>(attr->node);
    buffers.emplace(Downcast<Tensor>(pair[0]), Downcast<Buffer>(pair[1]));
  }
  std::vector<Mark> marks = MarksOf(stmt, schedule, buffers);
  if (marks.empty()) return stmt;
  std::unordered_map<const tir::BufferNode*, Buffer> extern_buffers;
  for (const auto& [tensor, buffer] : extern_buffer) {
    auto it = buffers.find(tensor);
    if (it != buffers.end()) extern_buffers.emplace(it->second.get(), buffer);
  }
  const Stmt plain = ProvenGuardRemover()(stmt);
  return FragmentRewriter(FindProducts(plain, marks), std::move(extern_buffers))(plain);
}

TVM_REGISTER_GLOBAL("te.SchedulePostProcRewriteForTensorCore")
    .set_body_typed([](Stmt stmt, Schedule schedule, Optional<Map<Tensor, Buffer>> extern_buffer) {
      return SchedulePostProcRewriteForTensorCore(
          stmt, schedule, extern_buffer.defined() ? extern_buffer.value() : Map<Tensor, Buffer>());
    });

}  // namespace te
}  // namespace tvm
