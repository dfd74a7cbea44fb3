/*!
 * \file tensorize.cc
 * \brief The primitive that exchanges what a block does for an intrinsic that does the same.
 */
#include <tvm/arith/analyzer.h>
#include <tvm/tir/index_map.h>
#include <tvm/tir/tensor_intrin.h>

#include <algorithm>

#include "primitives.h"

namespace tvm {
namespace tir {
namespace sched {
namespace {

/*! \brief Where the elements of a buffer of the description are. */
struct Place {
  Buffer buffer;
  /*! \brief Indices of the element that the description calls the first. */
  Array<PrimExpr> base;
};

/*! \brief Compares a description with a part of a program, and finds out where its buffers are. */
class Matcher {
 public:
  Matcher(const Tree& tree, Id scope) {
    for (Id at = scope; at != kNone; at = tree[at].parent) {
      if (tree.IsLoop(at)) analyzer_.Bind(tree.loop(at).var, tree.loop(at).range());
      if (!tree.IsBlock(at)) continue;
      for (const IterVar& iv : tree.block(at).iter_vars) analyzer_.Bind(iv->var, iv->dom);
    }
  }

  std::unordered_map<const BufferNode*, Place> places;
  /*! \brief The first difference. */
  std::string why;

  bool Same(Stmt want, Stmt have) {
    want = SkipUnits(want, &want_vars_);
    have = SkipUnits(have, &have_vars_);
    if (const auto* loop = want.as<ForNode>()) {
      const auto* other = have.as<ForNode>();
      if (other == nullptr) return No("the description has a loop " + Name(loop->loop_var));
      if (!SameInt(loop->extent, other->extent) || !is_zero(loop->min) || !is_zero(other->min)) {
        std::ostringstream os;
        os << "loop " << other->loop_var << " has the extent " << other->extent
           << " and the description wants " << loop->extent;
        return No(os.str());
      }
      analyzer_.Bind(other->loop_var, Range::FromMinExtent(other->min, other->extent));
      inside_.Add(other->loop_var);
      want_vars_[loop->loop_var.get()] = other->loop_var;
      return Same(loop->body, other->body);
    }
    if (const auto* realize = want.as<BlockRealizeNode>()) {
      const auto* other = have.as<BlockRealizeNode>();
      if (other == nullptr) return No("the description has a block " + realize->block->name_hint);
      if (!is_const_int(realize->predicate, 1) || !is_const_int(other->predicate, 1)) {
        return No("block " + other->block->name_hint + " has a predicate");
      }
      Enter(realize, &want_vars_);
      Enter(other, &have_vars_);
      if (Reducing(realize) != Reducing(other)) {
        return No("block " + other->block->name_hint + " reduces over other variables");
      }
      if (realize->block->init.defined() != other->block->init.defined()) {
        return No(std::string("block ") + other->block->name_hint +
                  (other->block->init.defined() ? " has first values; decompose the reduction first"
                                                : " has no first values"));
      }
      if (realize->block->init.defined() && !Same(realize->block->init, other->block->init)) {
        return false;
      }
      return Same(realize->block->body, other->block->body);
    }
    if (const auto* seq = want.as<SeqStmtNode>()) {
      const auto* other = have.as<SeqStmtNode>();
      if (other == nullptr || seq->seq.size() != other->seq.size()) {
        return No("the description has " + std::to_string(seq->seq.size()) + " statements");
      }
      for (size_t i = 0; i < seq->seq.size(); ++i) {
        int64_t at = static_cast<int64_t>(i);
        if (!Same(seq->seq[at], other->seq[at])) return false;
      }
      return true;
    }
    if (const auto* store = want.as<BufferStoreNode>()) {
      const auto* other = have.as<BufferStoreNode>();
      if (other == nullptr) return No("the description has a store");
      return Same(store->value, other->value) &&
             SameAccess(store->buffer, store->indices, other->buffer, other->indices);
    }
    if (const auto* branch = want.as<IfThenElseNode>()) {
      const auto* other = have.as<IfThenElseNode>();
      if (other == nullptr || branch->else_case.defined() != other->else_case.defined()) {
        return No("the description has a branch");
      }
      return Same(branch->condition, other->condition) &&
             Same(branch->then_case, other->then_case) &&
             (!branch->else_case.defined() || Same(branch->else_case, other->else_case));
    }
    return No("a description cannot have a " + want->GetTypeKey());
  }

 private:
  static std::string Name(const Var& var) { return var->name_hint.str(); }

  bool No(const std::string& reason) {
    if (why.empty()) why = reason;
    return false;
  }

  /*! \brief The statement inside of loops of one trip. */
  static Stmt SkipUnits(Stmt stmt, std::unordered_map<const VarNode*, PrimExpr>* vars) {
    for (const auto* loop = stmt.as<ForNode>(); loop && is_const_int(loop->extent, 1);
         loop = stmt.as<ForNode>()) {
      (*vars)[loop->loop_var.get()] = loop->min;
      stmt = loop->body;
    }
    return stmt;
  }

  static int64_t Reducing(const BlockRealizeNode* realize) {
    const Array<IterVar>& iters = realize->block->iter_vars;
    return std::count_if(iters.begin(), iters.end(), [](const IterVar& iv) {
      return iv->iter_type == kCommReduce && !is_const_int(iv->dom->extent, 1);
    });
  }

  void Enter(const BlockRealizeNode* realize, VarMap* vars) {
    for (size_t i = 0; i < realize->iter_values.size(); ++i) {
      int64_t at = static_cast<int64_t>(i);
      const PrimExpr& value = realize->iter_values[at];
      (*vars)[realize->block->iter_vars[at]->var.get()] = SubstituteAs(value, *vars, value.dtype());
    }
  }

  PrimExpr Wanted(const PrimExpr& expr, DataType dtype) {
    return SubstituteAs(expr, want_vars_, dtype);
  }
  PrimExpr Had(const PrimExpr& expr) { return Substitute(expr, have_vars_); }

  bool SameInt(const PrimExpr& want, const PrimExpr& have) {
    PrimExpr a = Had(have);
    return analyzer_.CanProveEqual(Wanted(want, a.dtype()), a);
  }

  bool SameAccess(const Buffer& want, const Array<PrimExpr>& wanted, const Buffer& have,
                  const Array<PrimExpr>& had) {
    auto differs = [&](const std::string& reason) {
      return No(have->name + " in the place of " + want->name + ": " + reason);
    };
    if (want->dtype != have->dtype) return differs("another element type");
    if (wanted.size() > had.size()) return differs("fewer axes");
    size_t lead = had.size() - wanted.size();
    Array<PrimExpr> base;
    for (size_t d = 0; d < had.size(); ++d) {
      PrimExpr at = Had(had[static_cast<int64_t>(d)]);
      if (d >= lead) at = at - Wanted(wanted[static_cast<int64_t>(d - lead)], at.dtype());
      base.push_back(analyzer_.Simplify(at));
      if (VarsOf(base.back()).Intersects(inside_)) {
        std::ostringstream os;
        os << "the index " << had << " does not move as " << wanted << " does";
        return differs(os.str());
      }
    }
    auto [place, is_new] = places.try_emplace(want.get(), Place{have, base});
    if (is_new) return true;
    if (!place->second.buffer.same_as(have)) return differs("it stands for two buffers");
    for (size_t d = 0; d < base.size(); ++d) {
      int64_t at = static_cast<int64_t>(d);
      if (!analyzer_.CanProveEqual(place->second.base[at], base[at])) {
        return differs("two accesses of it have different offsets");
      }
    }
    return true;
  }

  bool Same(const PrimExpr& want, const PrimExpr& have) {
    if (const auto* load = want.as<BufferLoadNode>()) {
      const auto* other = have.as<BufferLoadNode>();
      if (other == nullptr) return No("the description loads from " + load->buffer->name);
      return SameAccess(load->buffer, load->indices, other->buffer, other->indices);
    }
    bool index = want.dtype().is_int() && have.dtype().is_int() && !ReadsMemory(want) &&
                 !ReadsMemory(have) && !want.as<CallNode>() && !want.as<CastNode>();
    if (index) return SameInt(want, have) || Differs(want, have);
    if (want->type_index() != have->type_index() || want.dtype() != have.dtype()) {
      return Differs(want, have);
    }
#define TVM_TIR_SAME_OPERANDS(Name)              \
  if (const auto* a = want.as<Name##Node>()) {   \
    const auto* b = have.as<Name##Node>();       \
    return Same(a->a, b->a) && Same(a->b, b->b); \
  }
    TVM_TIR_SAME_OPERANDS(Add)
    TVM_TIR_SAME_OPERANDS(Sub)
    TVM_TIR_SAME_OPERANDS(Mul)
    TVM_TIR_SAME_OPERANDS(Div)
    TVM_TIR_SAME_OPERANDS(Mod)
    TVM_TIR_SAME_OPERANDS(FloorDiv)
    TVM_TIR_SAME_OPERANDS(FloorMod)
    TVM_TIR_SAME_OPERANDS(Min)
    TVM_TIR_SAME_OPERANDS(Max)
    TVM_TIR_SAME_OPERANDS(EQ)
    TVM_TIR_SAME_OPERANDS(NE)
    TVM_TIR_SAME_OPERANDS(LT)
    TVM_TIR_SAME_OPERANDS(LE)
    TVM_TIR_SAME_OPERANDS(GT)
    TVM_TIR_SAME_OPERANDS(GE)
    TVM_TIR_SAME_OPERANDS(And)
    TVM_TIR_SAME_OPERANDS(Or)
#undef TVM_TIR_SAME_OPERANDS
    if (const auto* a = want.as<CastNode>()) return Same(a->value, have.as<CastNode>()->value);
    if (const auto* a = want.as<NotNode>()) return Same(a->a, have.as<NotNode>()->a);
    if (const auto* a = want.as<SelectNode>()) {
      const auto* b = have.as<SelectNode>();
      return Same(a->condition, b->condition) && Same(a->true_value, b->true_value) &&
             Same(a->false_value, b->false_value);
    }
    if (const auto* a = want.as<CallNode>()) {
      const auto* b = have.as<CallNode>();
      if (!a->op.same_as(b->op) || a->args.size() != b->args.size()) return Differs(want, have);
      for (size_t i = 0; i < a->args.size(); ++i) {
        int64_t at = static_cast<int64_t>(i);
        if (!Same(a->args[at], b->args[at])) return false;
      }
      return true;
    }
    return ExprDeepEqual()(Substitute(want, want_vars_), Had(have)) || Differs(want, have);
  }

  bool Differs(const PrimExpr& want, const PrimExpr& have) {
    std::ostringstream os;
    os << "the description has " << want << " where the program has " << have;
    return No(os.str());
  }

  arith::Analyzer analyzer_;
  VarMap want_vars_, have_vars_;
  VarSet inside_;
};

/*! \brief A copy of an implementation with definitions of its own, in the index type given. */
class Instantiator final : public StmtExprMutator {
 public:
  explicit Instantiator(DataType dtype) : dtype_(dtype) {}

  /*! \brief A view for a parameter: its layout's variables belong to the view. */
  Buffer Define(const Buffer& buffer, const std::string& scope) {
    Buffer made = buffer;
    BufferNode* node = made.CopyOnWrite();
    const auto* pointer = buffer->data->type_annotation.as<PointerTypeNode>();
    ICHECK(pointer != nullptr);
    Type type = scope.empty() || scope == buffer.scope()
                    ? buffer->data->type_annotation
                    : Type(PointerType(pointer->element_type, scope));
    node->data = Var(buffer->data->name_hint, type);
    vars_[buffer->data.get()] = node->data;
    auto layout = [this](const PrimExpr& expr) { return Layout(expr); };
    node->shape.MutateByApply(layout);
    node->strides.MutateByApply(layout);
    if (node->elem_offset.defined()) node->elem_offset = layout(node->elem_offset);
    buffers_[buffer.get()] = made;
    return made;
  }

  Array<BufferRegion> Regions(const Array<BufferRegion>& regions) {
    return regions.Map([&](const BufferRegion& region) {
      return BufferRegion(Own(region->buffer), region->region.Map([&](const Range& range) {
        return Range::FromMinExtent(Layout(range->min), Layout(range->extent));
      }));
    });
  }

  PrimExpr Index(const PrimExpr& expr) { return Layout(expr); }

 private:
  using StmtExprMutator::VisitExpr_;
  using StmtExprMutator::VisitStmt_;

  bool Changes(DataType dtype) const { return dtype.is_int() && dtype == DataType::Int(32); }

  Var Renew(const Var& var) {
    Var fresh = Changes(var.dtype()) && dtype_ != var.dtype() ? var.copy_with_dtype(dtype_)
                                                              : var.copy_with_suffix("");
    vars_[var.get()] = fresh;
    return fresh;
  }

  PrimExpr Layout(const PrimExpr& expr) {
    for (const Var& var : VarsOf(expr)) {
      if (!vars_.count(var.get())) Renew(var);
    }
    return expr.dtype().is_int() ? SubstituteAs(expr, vars_, dtype_) : VisitExpr(expr);
  }

  Buffer Own(const Buffer& buffer) const {
    auto own = buffers_.find(buffer.get());
    return own == buffers_.end() ? buffer : own->second;
  }

  PrimExpr VisitExpr_(const VarNode* op) final {
    auto own = vars_.find(op);
    return own == vars_.end() ? GetRef<PrimExpr>(op) : own->second;
  }
  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    return BufferLoad(Own(op->buffer), op->indices.Map([&](const PrimExpr& e) { return At(e); }));
  }
  Stmt VisitStmt_(const BufferStoreNode* op) final {
    PrimExpr value = VisitExpr(op->value);
    return BufferStore(Own(op->buffer), value,
                       op->indices.Map([&](const PrimExpr& e) { return At(e); }));
  }
  /*! \brief Arithmetic over variables that changed their type changes it with them. */
  template <typename TRef, typename TNode>
  PrimExpr Matched(const TNode* op) {
    PrimExpr a = VisitExpr(op->a), b = VisitExpr(op->b);
    if (a.dtype() != b.dtype()) {
      a = SubstituteAs(op->a, vars_, dtype_);
      b = SubstituteAs(op->b, vars_, dtype_);
    }
    return TRef(a, b);
  }
#define TVM_TIR_MATCH_TYPES(Name) \
  PrimExpr VisitExpr_(const Name##Node* op) final { return Matched<Name>(op); }
  TVM_TIR_MATCH_TYPES(Add)
  TVM_TIR_MATCH_TYPES(Sub)
  TVM_TIR_MATCH_TYPES(Mul)
  TVM_TIR_MATCH_TYPES(FloorDiv)
  TVM_TIR_MATCH_TYPES(FloorMod)
#undef TVM_TIR_MATCH_TYPES
  PrimExpr At(const PrimExpr& expr) {
    return expr.dtype().is_int() && expr.dtype().is_scalar() && !ReadsMemory(expr) &&
                   !Holds<CallNode>(expr)
               ? SubstituteAs(expr, vars_, dtype_)
               : VisitExpr(expr);
  }
  Stmt VisitStmt_(const ForNode* op) final {
    PrimExpr min = At(op->min), extent = At(op->extent);
    Var var = Renew(op->loop_var);
    Optional<IterVar> thread = op->thread_binding;
    return For(var, min, extent, op->kind, VisitStmt(op->body), thread, op->annotations);
  }
  Stmt VisitStmt_(const LetStmtNode* op) final {
    PrimExpr value = VisitExpr(op->value);
    Var var = op->var.copy_with_suffix("");
    vars_[op->var.get()] = var;
    return LetStmt(var, value, VisitStmt(op->body));
  }
  Stmt VisitStmt_(const AttrStmtNode* op) final {
    ObjectRef node = op->node;
    if (const auto* axis = node.as<IterVarNode>()) {
      Var var = axis->var.copy_with_suffix("");
      vars_[axis->var.get()] = var;
      node = IterVar(axis->dom, var, axis->iter_type, axis->thread_tag);
    }
    PrimExpr value = VisitExpr(op->value);
    return AttrStmt(node, op->attr_key, value, VisitStmt(op->body));
  }
  Stmt VisitStmt_(const BlockRealizeNode* op) final {
    Array<PrimExpr> values = op->iter_values.Map([&](const PrimExpr& e) { return At(e); });
    PrimExpr predicate = VisitExpr(op->predicate);
    return BlockRealize(values, predicate, Downcast<Block>(VisitStmt(op->block)));
  }
  Stmt VisitStmt_(const BlockNode* op) final {
    Array<IterVar> iters = op->iter_vars.Map([&](const IterVar& iv) {
      Range dom = Range::FromMinExtent(At(iv->dom->min), At(iv->dom->extent));
      return IterVar(dom, Renew(iv->var), iv->iter_type, iv->thread_tag);
    });
    Array<Buffer> buffers =
        op->alloc_buffers.Map([&](const Buffer& buffer) { return Define(buffer, ""); });
    Array<MatchBufferRegion> views = op->match_buffers.Map([&](const MatchBufferRegion& view) {
      BufferRegion source = Regions({view->source})[0];
      return MatchBufferRegion(Define(view->buffer, ""), source);
    });
    Array<BufferRegion> reads = Regions(op->reads), writes = Regions(op->writes);
    Stmt init = op->init.defined() ? VisitStmt(op->init) : op->init;
    return Block(iters, reads, writes, op->name_hint, VisitStmt(op->body), init, buffers, views,
                 op->annotations);
  }

  DataType dtype_;
  VarMap vars_;
  std::unordered_map<const BufferNode*, Buffer> buffers_;
};

}  // namespace

void Tensorize(Tree* tree, Id id, const String& name, bool preserve_unit_iters) {
  TensorIntrin intrin = TensorIntrin::Get(name).value();
  if (tree->IsLoop(id)) id = Blockize(tree, id, preserve_unit_iters);
  const Block& want = intrin->desc->body.as<BlockRealizeNode>()->block;
  const Block& impl = intrin->impl->body.as<BlockRealizeNode>()->block;
  Matcher matcher(*tree, id);
  bool same = !tree->block(id).init.defined() && matcher.Same(want->body, tree->Body(id));
  if (tree->block(id).init.defined()) {
    matcher.why = "the block has first values; decompose the reduction first";
  }
  TVM_CHECK(same, ScheduleError) << "block " << tree->NameOf(id)
                                 << " does not compute what the tensor intrinsic " << name
                                 << " does: " << matcher.why;
  // Indices of one program have one type.
  DataType dtype = DataType::Int(32);
  for (const auto& [buffer, place] : matcher.places) {
    for (const PrimExpr& index : place.base) {
      if (index.dtype().bits() > dtype.bits()) dtype = index.dtype();
    }
  }
  Instantiator instance(dtype);
  Array<MatchBufferRegion> views;
  std::unordered_map<const BufferNode*, Place> sources;
  for (size_t i = 0; i < intrin->desc->params.size(); ++i) {
    int64_t at = static_cast<int64_t>(i);
    const Buffer& wanted = intrin->desc->buffer_map[intrin->desc->params[at]];
    const Buffer& buffer = intrin->impl->buffer_map[intrin->impl->params[at]];
    auto place = matcher.places.find(wanted.get());
    TVM_CHECK(place != matcher.places.end(), ScheduleError)
        << "the description of " << name << " does not access its parameter " << wanted->name;
    const auto& [source, base] = place->second;
    size_t lead = base.size() - wanted->shape.size();
    Array<Range> region;
    for (size_t d = 0; d < base.size(); ++d) {
      const PrimExpr& low = base[static_cast<int64_t>(d)];
      PrimExpr extent = make_const(low.dtype(), 1);
      if (d >= lead) {
        extent = SubstituteAs(wanted->shape[static_cast<int64_t>(d - lead)], {}, low.dtype());
      }
      region.push_back(Range::FromMinExtent(low, extent));
    }
    std::string scope = buffer.scope();
    TVM_CHECK(scope == source.scope(), ScheduleError)
        << name << " wants " << buffer->name << " in '" << scope << "' memory, and " << source->name
        << " is in '" << source.scope() << "'; use set_scope, or cache_read and cache_write";
    views.push_back(
        MatchBufferRegion(instance.Define(buffer, scope), BufferRegion(source, region)));
    sources.emplace(buffer.get(), place->second);
  }
  auto placed = [&](const Array<BufferRegion>& regions) {
    Array<BufferRegion> found;
    arith::Analyzer analyzer;
    for (const BufferRegion& region : regions) {
      auto source = sources.find(region->buffer.get());
      if (source == sources.end()) continue;
      const auto& [buffer, base] = source->second;
      size_t lead = base.size() - region->region.size();
      Array<Range> ranges;
      for (size_t d = 0; d < base.size(); ++d) {
        const PrimExpr& low = base[static_cast<int64_t>(d)];
        if (d < lead) {
          ranges.push_back(Range::FromMinExtent(low, make_const(low.dtype(), 1)));
          continue;
        }
        const Range& own = region->region[static_cast<int64_t>(d - lead)];
        ranges.push_back(
            Range::FromMinExtent(analyzer.Simplify(low + SubstituteAs(own->min, {}, low.dtype())),
                                 SubstituteAs(own->extent, {}, low.dtype())));
      }
      found.push_back(BufferRegion(buffer, ranges));
    }
    return found;
  };
  Array<BufferRegion> reads = placed(impl->reads), writes = placed(impl->writes);
  Block made = Downcast<Block>(instance(impl));
  BlockKind kind = KindOf(*tree, id);
  tree->SetChildren(id, Holds<BlockRealizeNode>(made->body) ? tree->Import(made->body)
                                                            : Ids{tree->AddLeaf(made->body)});
  BlockItem* block = tree->EditBlock(id);
  if (kind != BlockKind::kOpaque) block->sealed = kind;
  block->reads = reads;
  block->writes = writes;
  block->alloc_buffers = made->alloc_buffers;
  block->match_buffers = views;
  for (const MatchBufferRegion& view : made->match_buffers) block->match_buffers.push_back(view);
  for (const auto& [key, value] : made->annotations) block->annotations.Set(key, value);
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
