/*!
 * \file tree.cc
 * \brief Reading functions into trees, editing trees, and making functions of them again.
 */
#include "tree.h"

#include <tvm/arith/analyzer.h>

#include <algorithm>
#include <atomic>

namespace tvm {
namespace tir {
namespace sched {

bool Has(const Ids& ids, Id id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); }

Ids Without(Ids ids, const Ids& left_out) {
  std::erase_if(ids, [&](Id id) { return Has(left_out, id); });
  return ids;
}

bool VarSet::Contains(const VarNode* var) const {
  return std::any_of(begin(), end(), [&](const Var& v) { return v.get() == var; });
}

bool VarSet::Intersects(const VarSet& other) const {
  return std::any_of(begin(), end(), [&](const Var& v) { return other.Contains(v); });
}

bool VarSet::IsSubsetOf(const VarSet& other) const {
  return std::all_of(begin(), end(), [&](const Var& v) { return other.Contains(v); });
}

VarSet VarSet::operator&(const VarSet& other) const {
  VarSet both;
  for (const Var& var : vars_) {
    if (other.Contains(var)) both.vars_.push_back(var);
  }
  return both;
}

VarSet VarSet::operator-(const VarSet& other) const {
  VarSet left;
  for (const Var& var : vars_) {
    if (!other.Contains(var)) left.vars_.push_back(var);
  }
  return left;
}

void VarSet::Add(const Var& var) {
  if (!Contains(var)) vars_.push_back(var);
}

void VarSet::Add(const VarSet& other) {
  for (const Var& var : other) Add(var);
}

std::string VarSet::Names() const {
  std::string names;
  for (const Var& var : vars_) AddItem(&names, var->name_hint.str());
  return names;
}

VarSet VarsOf(const PrimExpr& expr) {
  // Most values are a loop or a number.
  if (const auto* var = expr.as<VarNode>()) return VarSet({GetRef<Var>(var)});
  if (expr.as<IntImmNode>()) return VarSet();
  return VarSet(UndefinedVars(expr));
}

VarSet VarsOf(const Stmt& stmt) { return VarSet(UndefinedVars(stmt, {})); }

std::optional<int64_t> AsInt(const PrimExpr& expr) {
  const int64_t* value = as_const_int(expr);
  return value == nullptr ? std::nullopt : std::optional<int64_t>(*value);
}

void AddConjuncts(const PrimExpr& condition, Array<PrimExpr>* found) {
  if (const auto* both = condition.as<AndNode>()) {
    AddConjuncts(both->a, found);
    AddConjuncts(both->b, found);
  } else if (!is_const_int(condition, 1)) {
    found->push_back(condition);
  }
}

std::string LoopItem::thread_tag() const {
  return thread_binding.defined() ? thread_binding.value()->thread_tag.str() : std::string();
}

VarMap BlockItem::Values() const {
  VarMap values;
  for (size_t i = 0; i < iter_vars.size(); ++i) values[iter_vars[i]->var.get()] = iter_values[i];
  return values;
}

PrimExpr BlockItem::ValueOf(const Var& var) const {
  for (size_t i = 0; i < iter_vars.size(); ++i) {
    if (iter_vars[i]->var.same_as(var)) return iter_values[i];
  }
  ICHECK(false) << var << " is no variable of block " << name;
  throw;  // unreachable
}

Array<IterVar> BlockItem::OfType(IterVarType type) const {
  Array<IterVar> found;
  for (const IterVar& iv : iter_vars) {
    if (iv->iter_type == type) found.push_back(iv);
  }
  return found;
}

Tree::Tree(String name, PrimFunc func) : name_(std::move(name)), func_(std::move(func)) {
  Mark start = Save();
  Ids top = Import(func_->body);
  bool has_root =
      top.size() == 1 && IsBlock(top[0]) && block(top[0]).iter_vars.empty() && !IsLeafBlock(top[0]);
  if (has_root) {
    root_ = top[0];
  } else {
    root_ = Add(std::make_shared<BlockItem>("root", Array<IterVar>(), Array<PrimExpr>()));
    SetChildren(root_, top);
  }
  VarSet seen;
  for (Id id : Preorder(root_)) {
    if (!IsLoop(id)) continue;
    Var var = loop(id).var;
    if (seen.Contains(var)) {
      given_.clear();
      // Loops beside each other may have one variable; here it tells them apart.
      Var fresh(var->name_hint, var.dtype());
      ReplaceVars(id, {{var.get(), fresh}});
      EditLoop(id)->var = fresh;
    }
    seen.Add(loop(id).var);
  }
  Commit();
}

Ids Tree::Import(const Stmt& stmt) {
  Ids nodes;
  Array<Stmt> stmts = stmt.as<SeqStmtNode>() ? stmt.as<SeqStmtNode>()->seq : Array<Stmt>{stmt};
  for (const Stmt& item : stmts) {
    if (const auto* op = item.as<ForNode>(); op && Holds<BlockRealizeNode>(item)) {
      auto made = std::make_shared<LoopItem>(op->loop_var, op->min, op->extent);
      made->for_kind = op->kind;
      made->thread_binding = op->thread_binding;
      made->annotations = op->annotations;
      Id id = Add(made);
      SetChildren(id, Import(op->body));
      if (gives_) given_.emplace_back(id, item);
      nodes.push_back(id);
    } else if (const auto* realize = item.as<BlockRealizeNode>()) {
      nodes.push_back(ImportBlock(realize));
    } else {
      nodes.push_back(AddLeaf(item));
    }
  }
  return nodes;
}

namespace {

/*! \brief What is inside of constants and of the buffers that are nothing but such constants. */
Stmt Inside(Stmt stmt, Array<Stmt>* constants) {
  VarSet known;
  while (true) {
    const auto* constant = stmt.as<AllocateConstNode>();
    const auto* declared = stmt.as<DeclBufferNode>();
    if (constant != nullptr) known.Add(constant->buffer_var);
    if (constant == nullptr && (!declared || !known.Contains(declared->buffer->data))) return stmt;
    constants->push_back(stmt);
    stmt = constant != nullptr ? constant->body : declared->body;
  }
}

Stmt Around(const Array<Stmt>& constants, Stmt body) {
  for (size_t i = constants.size(); i-- > 0;) {
    const Stmt& outer = constants[static_cast<int64_t>(i)];
    if (const auto* constant = outer.as<AllocateConstNode>()) {
      auto made = GetRef<AllocateConst>(constant);
      made.CopyOnWrite()->body = body;
      body = made;
    } else {
      auto made = Downcast<DeclBuffer>(outer);
      made.CopyOnWrite()->body = body;
      body = made;
    }
  }
  return body;
}

}  // namespace

Id Tree::ImportBlock(const BlockRealizeNode* realize) {
  const Block& block = realize->block;
  auto made = std::make_shared<BlockItem>(block->name_hint, block->iter_vars, realize->iter_values,
                                          block->init);
  AddConjuncts(realize->predicate, &made->predicate);
  made->reads = block->reads;
  made->writes = block->writes;
  made->alloc_buffers = block->alloc_buffers;
  made->match_buffers = block->match_buffers;
  made->annotations = block->annotations;
  // What computes is one statement; only what holds other blocks is taken apart.
  bool nests = Holds<BlockRealizeNode>(block->body);
  Stmt body = nests ? Inside(block->body, &made->constants) : block->body;
  Id id = Add(made);
  SetChildren(id, nests ? Import(body) : Ids{AddLeaf(body)});
  if (gives_) given_.emplace_back(id, GetRef<Stmt>(realize));
  return id;
}

void Tree::KeepGiven() {
  for (const auto& [id, stmt] : given_) built_[static_cast<size_t>(id)] = stmt;
  given_.clear();
  gives_ = false;
}

const std::string& Tree::NameOf(Id id) const {
  return IsLoop(id) ? loop(id).name() : block(id).name.str();
}

std::string Tree::NamesOf(const Ids& ids) const {
  std::string names;
  for (Id id : ids) AddItem(&names, NameOf(id));
  return names;
}

bool Tree::IsAlive(Id id) const {
  for (; id != root_; id = (*this)[id].parent) {
    Id parent = (*this)[id].parent;
    if (parent == kNone) return false;
    const Ids& siblings = (*this)[parent].children;
    if (std::find(siblings.begin(), siblings.end(), id) == siblings.end()) return false;
  }
  return true;
}

Ids Tree::LoopsAbove(Id id) const {
  Ids found;
  for (Id at = (*this)[id].parent; at != kNone && IsLoop(at); at = (*this)[at].parent) {
    found.push_back(at);
  }
  std::reverse(found.begin(), found.end());
  return found;
}

VarSet Tree::VarsOfLoops(const Ids& loops) const {
  VarSet vars;
  for (Id id : loops) vars.Add(loop(id).var);
  return vars;
}

Id Tree::ScopeOf(Id id) const {
  Id at = (*this)[id].parent;
  while (at != kNone && IsLoop(at)) at = (*this)[at].parent;
  TVM_CHECK(at != kNone, ScheduleError) << "the root block has no block around it";
  return at;
}

bool Tree::IsUnder(Id id, Id other) const {
  while (id != kNone && id != other) id = (*this)[id].parent;
  return id == other;
}

void Tree::AddPreorder(Id id, Ids* found) const {
  found->push_back(id);
  for (Id child : (*this)[id].children) AddPreorder(child, found);
}

Ids Tree::Preorder(Id id) const {
  Ids found;
  AddPreorder(id, &found);
  return found;
}

Ids Tree::BlocksBelow(Id id) const {
  Ids found = Preorder(id);
  std::erase_if(found, [this](Id node) { return !IsBlock(node); });
  return found;
}

Ids Tree::UnitsBelow(Id id) const {
  Ids found;
  for (Id child : (*this)[id].children) {
    if (IsLoop(child)) {
      Ids below = UnitsBelow(child);
      found.insert(found.end(), below.begin(), below.end());
    } else {
      found.push_back(child);
    }
  }
  return found;
}

bool Tree::IsLeafBlock(Id block) const {
  const Ids& children = (*this)[block].children;
  return std::all_of(children.begin(), children.end(), [this](Id id) { return IsLeaf(id); });
}

size_t Tree::IndexOf(Id parent, Id id) const {
  const Ids& children = (*this)[parent].children;
  for (size_t i = 0; i < children.size(); ++i) {
    if (IsUnder(id, children[i])) return i;
  }
  TVM_FATAL(InternalError) << "node " << id << " is not below node " << parent;
}

Stmt Tree::Body(Id id) const {
  const Ids& children = (*this)[id].children;
  if (children.empty()) return Evaluate(0);
  if (children.size() == 1) return ToStmt(children[0]);
  Array<Stmt> stmts;
  for (Id child : children) stmts.push_back(ToStmt(child));
  return SeqStmt(stmts);
}

Block Tree::ToBlock(Id id) const {
  const BlockItem& b = block(id);
  return Block(b.iter_vars, b.reads, b.writes, b.name, Around(b.constants, Body(id)), b.init,
               b.alloc_buffers, b.match_buffers, b.annotations);
}

Stmt Tree::ToStmt(Id id) const {
  if (IsLeaf(id)) return leaf(id).stmt;
  Stmt& made = built_[static_cast<size_t>(id)];
  if (made.defined()) return made;
  if (IsLoop(id)) {
    const LoopItem& l = loop(id);
    made = For(l.var, l.min, l.extent, l.for_kind, Body(id), l.thread_binding, l.annotations);
  } else {
    const BlockItem& b = block(id);
    PrimExpr predicate = b.predicate.empty() ? const_true() : b.predicate[0];
    for (size_t i = 1; i < b.predicate.size(); ++i) predicate = predicate && b.predicate[i];
    made = BlockRealize(b.iter_values, predicate, ToBlock(id));
  }
  return made;
}

PrimFunc Tree::ToFunc() const {
  if (!changed_) return func_;
  PrimFunc made = func_;
  made.CopyOnWrite()->body = ToStmt(root_);
  return made;
}

VarSet Tree::Symbols() const {
  VarSet found;
  for (const Var& param : func_->params) {
    if (!param->dtype.is_handle()) found.Add(param);
    if (func_->buffer_map.count(param) == 0) continue;
    const Buffer& buffer = func_->buffer_map.at(param);
    for (const PrimExpr& extent : buffer->shape) found.Add(VarsOf(extent));
  }
  return found;
}

bool Tree::IsParam(const Buffer& buffer) const {
  for (const auto& [var, param] : func_->buffer_map) {
    if (param.same_as(buffer)) return true;
  }
  return false;
}

bool Tree::IsPinned(const Buffer& buffer) const {
  return std::any_of(pinned_.begin(), pinned_.end(),
                     [&](const Buffer& other) { return other.same_as(buffer); });
}

namespace {
template <typename FTaken>
std::string Unused(const std::string& wanted, FTaken taken) {
  std::string name = wanted;
  for (int number = 1; taken(name); ++number) name = wanted + "_" + std::to_string(number);
  return name;
}
}  // namespace

std::string Tree::NewBlockName(const std::string& wanted) const {
  Ids blocks = BlocksBelow(root_);
  return Unused(wanted, [&](const std::string& name) {
    return std::any_of(blocks.begin(), blocks.end(), [&](Id id) { return NameOf(id) == name; });
  });
}

std::string Tree::NewLoopName(const std::string& wanted) const {
  // Loops that were made in this step may have no place yet.
  Ids nodes = Preorder(root_);
  for (size_t made = first_new_; made < items_.size(); ++made) {
    nodes.push_back(static_cast<Id>(made));
  }
  return Unused(wanted, [&](const std::string& name) {
    return std::any_of(nodes.begin(), nodes.end(),
                       [&](Id id) { return IsLoop(id) && loop(id).name() == name; });
  });
}

std::string Tree::NewBufferName(const std::string& wanted) const {
  Ids blocks = BlocksBelow(root_);
  return Unused(wanted, [&](const std::string& name) {
    for (const auto& [var, param] : func_->buffer_map) {
      if (param->name == name) return true;
    }
    for (Id id : blocks) {
      for (const Buffer& buffer : block(id).alloc_buffers) {
        if (buffer->name == name) return true;
      }
    }
    return false;
  });
}

void Tree::Rebuilt(Id id) {
  // Leaves are statements already.
  if (IsLeaf(id)) id = (*this)[id].parent;
  for (; id != kNone && built_[static_cast<size_t>(id)].defined(); id = (*this)[id].parent) {
    built_[static_cast<size_t>(id)] = Stmt();
  }
}

Item* Tree::Edit(Id id) {
  Rebuilt(id);
  std::shared_ptr<Item>& item = items_[static_cast<size_t>(id)];
  if (item->step != step_) {
    journal_.emplace_back(id, item);
    item = item->Copy();
    item->step = step_;
  }
  return item.get();
}

Id Tree::Add(std::shared_ptr<Item> item) {
  item->step = step_;
  items_.push_back(std::move(item));
  built_.emplace_back();
  return static_cast<Id>(items_.size()) - 1;
}

Id Tree::AddLoop(const std::string& wanted, DataType dtype, const PrimExpr& extent) {
  return Add(
      std::make_shared<LoopItem>(Var(NewLoopName(wanted), dtype), make_const(dtype, 0), extent));
}

Id Tree::AddBlock(std::shared_ptr<BlockItem> block, Stmt body) {
  Stmt init = block->init;
  Id id = Add(std::move(block));
  SetBody(id, std::move(body), std::move(init));
  return id;
}

void Tree::SetChildren(Id id, Ids children) {
  for (Id child : children) Edit(child)->parent = id;
  Edit(id)->children = std::move(children);
}

void Tree::Insert(Id parent, size_t index, Id id) {
  Ids& children = Edit(parent)->children;
  children.insert(children.begin() + static_cast<std::ptrdiff_t>(index), id);
  Edit(id)->parent = parent;
}

void Tree::Replace(Id parent, Id old_id, Id new_id) {
  size_t index = IndexOf(parent, old_id);
  Edit(parent)->children[index] = new_id;
  Edit(new_id)->parent = parent;
}

void Tree::Detach(Id id) {
  Id parent = (*this)[id].parent;
  ICHECK(parent != kNone);
  std::erase(Edit(parent)->children, id);
  Edit(id)->parent = kNone;
  if (IsLoop(parent) && (*this)[parent].children.empty()) Detach(parent);
}

Id Tree::Nest(const Ids& loops, Ids inner) {
  for (size_t i = loops.size(); i-- > 0;) {
    SetChildren(loops[i], std::move(inner));
    inner = {loops[i]};
  }
  return inner.front();
}

void Tree::SetBody(Id id, Stmt body, Stmt init) {
  SetChildren(id, Holds<BlockRealizeNode>(body) ? Import(body) : Ids{AddLeaf(body)});
  AccessRegions regions = DetectAccessRegions(body, init);
  BlockItem* b = EditBlock(id);
  b->init = std::move(init);
  b->reads = regions.reads;
  b->writes = regions.writes;
}

void Tree::DropInit(Id id) {
  BlockItem* b = EditBlock(id);
  b->init = Stmt();
  // What the first values are added to is read now.
  Array<BufferRegion> reads;
  for (const BufferRegion& write : b->writes) {
    bool known = std::any_of(b->reads.begin(), b->reads.end(), [&](const BufferRegion& read) {
      return read->buffer.same_as(write->buffer);
    });
    if (!known) reads.push_back(write);
  }
  b->reads = Concat(reads, b->reads);
}

void Tree::ReplaceDeclared(Id id, const std::function<PrimExpr(const PrimExpr&)>& replace) {
  auto region_of = [&](const BufferRegion& region) {
    Array<Range> ranges = region->region.Map([&](const Range& range) {
      PrimExpr min = replace(range->min), extent = replace(range->extent);
      bool same = min.same_as(range->min) && extent.same_as(range->extent);
      return same ? range : Range::FromMinExtent(min, extent);
    });
    return ranges.same_as(region->region) ? region : BufferRegion(region->buffer, ranges);
  };
  auto view_of = [&](const MatchBufferRegion& view) {
    BufferRegion source = region_of(view->source);
    return source.same_as(view->source) ? view : MatchBufferRegion(view->buffer, source);
  };
  const BlockItem& old = block(id);
  Array<BufferRegion> reads = old.reads.Map(region_of), writes = old.writes.Map(region_of);
  Array<MatchBufferRegion> views = old.match_buffers.Map(view_of);
  if (reads.same_as(old.reads) && writes.same_as(old.writes) && views.same_as(old.match_buffers)) {
    return;
  }
  BlockItem* b = EditBlock(id);
  b->reads = reads;
  b->writes = writes;
  b->match_buffers = views;
}

void Tree::ReplaceVars(Id top, const VarMap& values) {
  auto replace = [&](const PrimExpr& expr) { return Substitute(expr, values); };
  auto uses = [&](const VarSet& vars) {
    return std::any_of(vars.begin(), vars.end(),
                       [&](const Var& var) { return values.count(var.get()); });
  };
  for (Id id : Preorder(top)) {
    if (IsLoop(id)) {
      PrimExpr min = replace(loop(id).min), extent = replace(loop(id).extent);
      if (min.same_as(loop(id).min) && extent.same_as(loop(id).extent)) continue;
      LoopItem* l = EditLoop(id);
      l->min = min;
      l->extent = extent;
    } else if (IsBlock(id)) {
      const BlockItem& old = block(id);
      Array<PrimExpr> new_values = old.iter_values.Map(replace);
      Array<PrimExpr> predicate = old.predicate.Map(replace);
      if (!new_values.same_as(old.iter_values) || !predicate.same_as(old.predicate)) {
        BlockItem* b = EditBlock(id);
        b->iter_values = new_values;
        b->predicate = predicate;
      }
      // A body may use variables of loops past those of its block, and so may what it declares.
      if (!IsLeafBlock(id)) {
        ReplaceDeclared(id, replace);
        continue;
      }
      if (!uses(VarsOf(Stmt(ToBlock(id))))) continue;
      Block changed = Downcast<Block>(Substitute(Stmt(ToBlock(id)), values));
      SetChildren(id, {AddLeaf(changed->body)});
      BlockItem* b = EditBlock(id);
      b->reads = changed->reads;
      b->writes = changed->writes;
      b->match_buffers = changed->match_buffers;
      b->init = changed->init;
    } else if (!IsBlock((*this)[id].parent)) {
      Stmt stmt = Substitute(leaf(id).stmt, values);
      if (!stmt.same_as(leaf(id).stmt)) static_cast<LeafItem*>(Edit(id))->stmt = stmt;
    }
  }
}

void Tree::ReplaceBodyVars(Id id, const VarMap& values) {
  auto replace = [&](const PrimExpr& expr) {
    return arith::Analyzer().Simplify(Substitute(expr, values));
  };
  auto region_of = [&](const BufferRegion& region) {
    Array<Range> ranges = region->region.Map([&](const Range& range) {
      return Range::FromMinExtent(replace(range->min), replace(range->extent));
    });
    return BufferRegion(region->buffer, ranges);
  };
  for (Id node : Preorder(id)) {
    if (IsLeaf(node)) {
      Stmt stmt = Substitute(leaf(node).stmt, values);
      if (!stmt.same_as(leaf(node).stmt)) static_cast<LeafItem*>(Edit(node))->stmt = stmt;
    } else if (IsLoop(node)) {
      LoopItem* l = EditLoop(node);
      l->min = Substitute(l->min, values);
      l->extent = Substitute(l->extent, values);
    } else {
      BlockItem* b = EditBlock(node);
      if (node != id) {
        b->iter_values.MutateByApply([&](const PrimExpr& e) { return Substitute(e, values); });
        b->predicate.MutateByApply([&](const PrimExpr& e) { return Substitute(e, values); });
      }
      b->reads = b->reads.Map(region_of);
      b->writes = b->writes.Map(region_of);
      b->match_buffers = b->match_buffers.Map([&](const MatchBufferRegion& view) {
        return MatchBufferRegion(view->buffer, region_of(view->source));
      });
      if (b->init.defined()) b->init = Substitute(b->init, values);
    }
  }
}

void Tree::Retarget(const VarSet& loops, const VarSet& parts) {
  for (Id id : BlocksBelow(root_)) {
    if (!block(id).given.Intersects(loops)) continue;
    VarSet given = block(id).given - loops;
    given.Add(parts);
    EditBlock(id)->given = given;
  }
}

void Tree::Allocate(const Buffer& buffer, Id scope) {
  EditBlock(scope == kNone ? root_ : scope)->alloc_buffers.push_back(buffer);
}

void Tree::Forget(const Buffer& buffer, const Buffer& instead) {
  for (Id id : BlocksBelow(root_)) {
    Array<Buffer> kept;
    for (const Buffer& other : block(id).alloc_buffers) {
      if (!other.same_as(buffer)) {
        kept.push_back(other);
      } else if (instead.defined()) {
        kept.push_back(instead);
      }
    }
    bool same = kept.size() == block(id).alloc_buffers.size() && !instead.defined();
    if (!same) EditBlock(id)->alloc_buffers = kept;
  }
}

void Tree::ReplaceParam(const Buffer& buffer, const Buffer& instead) {
  Map<Var, Buffer> params = func_->buffer_map;
  for (const auto& [var, param] : func_->buffer_map) {
    if (param.same_as(buffer)) params.Set(var, instead);
  }
  func_.CopyOnWrite()->buffer_map = params;
}

Tree::Mark Tree::Save() {
  // Copies of a tree share records, so a number says which of them made one, and when.
  static std::atomic<int64_t> steps{0};
  step_ = ++steps;
  first_new_ = items_.size();
  return {journal_.size(), items_.size(), pinned_, changed_, func_};
}

void Tree::Restore(const Mark& mark) {
  while (journal_.size() > mark.journal) {
    auto& [id, item] = journal_.back();
    Rebuilt(id);
    items_[static_cast<size_t>(id)] = std::move(item);
    journal_.pop_back();
  }
  items_.resize(mark.items);
  built_.resize(mark.items);
  pinned_ = mark.pinned;
  changed_ = mark.changed;
  func_ = mark.func;
  // Records of the step that goes on were made before the one undone; they are copied once more.
  Save();
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
