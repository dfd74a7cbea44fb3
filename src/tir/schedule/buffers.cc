/*!
 * \file buffers.cc
 * \brief Primitives that change what a buffer is: its memory, its strides, its type.
 */
#include "buffers.h"

#include <algorithm>

#include "primitives.h"
#include "rewrite.h"

namespace tvm {
namespace tir {
namespace sched {

Buffer BufferAt(const Tree& tree, Id id, int64_t index, bool write) {
  const BlockItem& block = tree.block(id);
  const Array<BufferRegion>& regions = write ? block.writes : block.reads;
  const char* verb = write ? "writes" : "reads";
  std::string names;
  for (size_t i = 0; i < regions.size(); ++i) {
    names += (i == 0 ? "" : ", ") + std::to_string(i) + ": " + regions[i]->buffer->name;
  }
  TVM_CHECK(0 <= index && index < static_cast<int64_t>(regions.size()), ScheduleError)
      << "block " << block.name << " " << verb << " no buffer " << index << "; it " << verb << " "
      << names;
  Buffer buffer = regions[index]->buffer;
  std::shared_ptr<const Access> access = AccessOf(tree, id);
  TVM_CHECK(write ? access->Writes(buffer) : access->Reads(buffer), ScheduleError)
      << "block " << block.name << " declares " << buffer->name
      << " but does not access it; declare what it accesses";
  return buffer;
}

void CheckScope(const std::string& scope) {
  // What follows a rank tells memories of it apart, "global.vtcm" and "global2" for example.
  bool known = false;
  for (const char* rank : {"global", "shared", "local", "warp", "wmma.", "m16n8k8.", "texture"}) {
    known |= scope.rfind(rank, 0) == 0;
  }
  TVM_CHECK(known, ScheduleError)
      << "'" << scope
      << "' is no memory scope; there are global, shared, shared.dyn, local, warp, wmma.matrix_a, "
         "wmma.matrix_b and wmma.accumulator, m16n8k8.matrixA and its kin";
}

Ids UsersOf(const Tree& tree, const Buffer& buffer) {
  Ids users = tree.UnitsBelow(tree.root());
  std::erase_if(users, [&](Id unit) {
    std::shared_ptr<const Access> access = AccessOf(tree, unit);
    return !access->Reads(buffer) && !access->Writes(buffer);
  });
  return users;
}

namespace {

/*! \brief Give a buffer of the function's own another description everywhere. */
void Become(Tree* tree, const Buffer& buffer, const Buffer& twin) {
  BufferChange change{buffer, twin, nullptr, nullptr};
  for (Id child : Ids((*tree)[tree->root()].children)) ChangeBuffer(tree, child, change);
  tree->Forget(buffer, twin);
  if (tree->IsPinned(buffer)) tree->Pin(twin);
}

}  // namespace

void SetScope(Tree* tree, Id id, int64_t index, const std::string& scope) {
  CheckScope(scope);
  Buffer buffer = BufferAt(*tree, id, index, true);
  TVM_CHECK(!tree->IsParam(buffer), ScheduleError)
      << buffer->name << " is given by the caller, who decides where it is; use cache_write";
  Buffer twin = decl_buffer(buffer->shape, buffer->dtype, buffer->name, scope);
  Become(tree, buffer, twin);
}

void SetAxisSeparator(Tree* tree, Id id, int64_t index, bool write,
                      const std::vector<int64_t>& separators) {
  Buffer buffer = BufferAt(*tree, id, index, write);
  int64_t rank = static_cast<int64_t>(buffer->shape.size()), previous = 0;
  Array<Integer> axes;
  for (int64_t at : separators) {
    TVM_CHECK(previous < at && at < rank, ScheduleError)
        << "axis separators of " << buffer->name << ", which has " << rank
        << " axes, increase from 1 to " << rank - 1 << "; " << at << " does not";
    axes.push_back(Integer(at));
    previous = at;
  }
  Buffer twin = buffer;
  BufferNode* node = twin.CopyOnWrite();
  node->axis_separators = axes;
  node->data = Var(buffer->data->name_hint, buffer->data->type_annotation);
  bool given = tree->IsParam(buffer);
  if (given) {
    BufferChange change{buffer, twin, nullptr, nullptr};
    for (Id child : Ids((*tree)[tree->root()].children)) ChangeBuffer(tree, child, change);
    tree->ReplaceParam(buffer, twin);
    return;
  }
  Become(tree, buffer, twin);
}

void StorageAlign(Tree* tree, Id id, int64_t index, int64_t axis, int64_t factor, int64_t offset) {
  Buffer buffer = BufferAt(*tree, id, index, true);
  TVM_CHECK(!tree->IsParam(buffer), ScheduleError)
      << buffer->name << " is given by the caller, with the strides it has";
  int64_t rank = static_cast<int64_t>(buffer->shape.size());
  TVM_CHECK(-rank <= axis && axis < rank, ScheduleError)
      << buffer->name << " has " << rank << " axes, none of which is " << axis;
  TVM_CHECK(factor >= 1 && 0 <= offset && offset < factor, ScheduleError)
      << "the factor " << factor << " must be at least 1 and the offset " << offset
      << " from 0 to below it";
  for (Id user : UsersOf(*tree, buffer)) {
    bool known = tree->IsBlock(user) && !AccessOf(*tree, user)->opaque;
    TVM_CHECK(known, ScheduleError)
        << (tree->IsBlock(user) ? tree->NameOf(user) : "a statement") << " accesses "
        << buffer->name << " in ways that are not all known";
  }
  if (axis < 0) axis += rank;
  const String key = "buffer_dim_align";
  using Row = Array<Integer>;
  Array<Row> rows;
  if (auto known = tree->block(id).annotations.Get(key)) {
    for (const Row& row : Any(known.value()).cast<Array<Row>>()) {
      if (row[0].IntValue() != index || row[1].IntValue() != axis) rows.push_back(row);
    }
  }
  rows.push_back({Integer(index), Integer(axis), Integer(factor), Integer(offset)});
  tree->EditBlock(id)->annotations.Set(key, rows);
}

void UnsafeHideBufferAccess(Tree* tree, Id id, const std::string& use,
                            const std::vector<int64_t>& indices) {
  TVM_CHECK(use == "read" || use == "write", ScheduleError)
      << "what is hidden is \"read\" or \"write\", got \"" << use << "\"";
  BlockItem* block = tree->EditBlock(id);
  Array<BufferRegion>& regions = use == "read" ? block->reads : block->writes;
  int64_t known = static_cast<int64_t>(regions.size());
  for (int64_t at : indices) {
    TVM_CHECK(0 <= at && at < known, ScheduleError)
        << "block " << block->name << " " << use << "s no buffer " << at << "; it " << use << "s "
        << known << " of them";
  }
  Array<BufferRegion> kept;
  for (int64_t at = 0; at < known; ++at) {
    if (std::find(indices.begin(), indices.end(), at) == indices.end()) kept.push_back(regions[at]);
  }
  regions = kept;
}

namespace {

/*! \brief Casts what is loaded back to the type a buffer had, and what is stored to its new one. */
class TypeChanger final : public StmtExprMutator {
 public:
  TypeChanger(const Buffer& from, const Buffer& to) : from_(from), to_(to) {}

 private:
  using StmtExprMutator::VisitExpr_;
  using StmtExprMutator::VisitStmt_;

  PrimExpr VisitExpr_(const BufferLoadNode* op) final {
    PrimExpr load = StmtExprMutator::VisitExpr_(op);
    if (!op->buffer.same_as(from_)) return load;
    return cast(from_->dtype, BufferLoad(to_, Downcast<BufferLoad>(load)->indices));
  }
  Stmt VisitStmt_(const BufferStoreNode* op) final {
    BufferStore store = Downcast<BufferStore>(StmtExprMutator::VisitStmt_(op));
    if (!op->buffer.same_as(from_)) return store;
    return BufferStore(to_, cast(to_->dtype, store->value), store->indices);
  }

  Buffer from_, to_;
};

}  // namespace

void UnsafeSetDType(Tree* tree, Id id, int64_t index, const std::string& dtype) {
  Buffer buffer = BufferAt(*tree, id, index, true);
  TVM_CHECK(!tree->IsParam(buffer), ScheduleError)
      << buffer->name << " is given by the caller, with the type it has";
  DataType wanted = DataType::FromString(dtype);
  if (wanted == buffer->dtype) return;
  for (Id user : UsersOf(*tree, buffer)) {
    TVM_CHECK(tree->IsBlock(user) && !AccessOf(*tree, user)->opaque, ScheduleError)
        << (tree->IsBlock(user) ? tree->NameOf(user) : "a statement") << " accesses "
        << buffer->name << " in ways that are not all known";
  }
  Buffer twin = decl_buffer(buffer->shape, wanted, buffer->name, buffer.scope());
  TypeChanger changer(buffer, twin);
  for (Id node : tree->Preorder(tree->root())) {
    if (tree->IsLeaf(node)) {
      Stmt stmt = changer(tree->leaf(node).stmt);
      if (!stmt.same_as(tree->leaf(node).stmt))
        static_cast<LeafItem*>(tree->Edit(node))->stmt = stmt;
    } else if (tree->IsBlock(node) && tree->block(node).init.defined()) {
      Stmt init = changer(tree->block(node).init);
      if (!init.same_as(tree->block(node).init)) tree->EditBlock(node)->init = init;
    }
  }
  // What is left are regions.
  Become(tree, buffer, twin);
}

}  // namespace sched
}  // namespace tir
}  // namespace tvm
