/*!
 * \file tree.h
 * \brief The function a schedule works on: a tree of loops and blocks of which an edit copies one
 *        node.
 *
 * Nodes have numbers that stay the same in copies of the tree. A table maps numbers to records that
 * copies share; a record is copied before it is written, and what it was is kept until the step
 * ends. So a step costs what it touches, undoing one costs what it touched, and a copy of the tree
 * is a copy of the table.
 */
#ifndef TVM_SRC_TIR_SCHEDULE_TREE_H_
#define TVM_SRC_TIR_SCHEDULE_TREE_H_

#include <tvm/expr/op.h>
#include <tvm/tir/analysis.h>
#include <tvm/tir/stmt_functor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "text_list.h"

namespace tvm {
namespace tir {
namespace sched {

/*! \brief Number of a node in its tree. */
using Id = int32_t;
constexpr Id kNone = -1;
using Ids = std::vector<Id>;
bool Has(const Ids& ids, Id id);
Ids Without(Ids ids, const Ids& left_out);
using VarMap = std::unordered_map<const VarNode*, PrimExpr>;

/*! \brief A few variables, in the order they were added. */
class VarSet {
 public:
  VarSet() = default;
  explicit VarSet(const Array<Var>& vars) : vars_(vars.begin(), vars.end()) {}

  bool Contains(const VarNode* var) const;
  bool Contains(const Var& var) const { return Contains(var.get()); }
  bool Intersects(const VarSet& other) const;
  bool IsSubsetOf(const VarSet& other) const;
  VarSet operator&(const VarSet& other) const;
  VarSet operator-(const VarSet& other) const;
  void Add(const Var& var);
  void Add(const VarSet& other);
  bool empty() const { return vars_.empty(); }
  size_t size() const { return vars_.size(); }
  auto begin() const { return vars_.begin(); }
  auto end() const { return vars_.end(); }
  /*! \brief Names for messages. */
  std::string Names() const;

 private:
  std::vector<Var> vars_;
};

/*! \brief Variables an expression or statement uses but does not bind. */
VarSet VarsOf(const PrimExpr& expr);
VarSet VarsOf(const Stmt& stmt);

/*! \brief The value of an integer literal. */
std::optional<int64_t> AsInt(const PrimExpr& expr);
/*! \brief Conditions that hold together where `condition` does. */
void AddConjuncts(const PrimExpr& condition, Array<PrimExpr>* found);
/*! \brief Whether a node of a class is part of a statement or expression. */
template <typename TNode>
bool Holds(const ObjectRef& code) {
  bool found = false;
  PreOrderVisit(code, [&](const ObjectRef& node) {
    found = found || node->IsInstance<TNode>();
    return !found;
  });
  return found;
}

struct Item {
  enum Kind { kLeaf, kLoop, kBlock };
  Kind kind;
  Id parent = kNone;
  Ids children;
  /*! \brief The step in which this record was made; only that one may write it. */
  int64_t step = 0;

  explicit Item(Kind kind) : kind(kind) {}
  virtual ~Item() = default;
  virtual std::shared_ptr<Item> Copy() const = 0;
};

/*! \brief A statement that is not scheduled by itself. */
struct LeafItem final : Item {
  Stmt stmt;
  explicit LeafItem(Stmt stmt) : Item(kLeaf), stmt(std::move(stmt)) {}
  std::shared_ptr<Item> Copy() const override { return std::make_shared<LeafItem>(*this); }
};

/*! \brief A loop around blocks; its variable is its identity in expressions. */
struct LoopItem final : Item {
  Var var;
  PrimExpr min, extent;
  ForKind for_kind = ForKind::kSerial;
  Optional<IterVar> thread_binding;
  Map<String, ObjectRef> annotations;

  LoopItem(Var var, PrimExpr min, PrimExpr extent)
      : Item(kLoop), var(std::move(var)), min(std::move(min)), extent(std::move(extent)) {}
  std::shared_ptr<Item> Copy() const override { return std::make_shared<LoopItem>(*this); }
  const std::string& name() const { return var->name_hint.str(); }
  /*! \brief Tag of the threads that run the iterations; empty if none do. */
  std::string thread_tag() const;
  Range range() const { return Range::FromMinExtent(min, extent); }
  /*! \brief Whether there is one iteration for sure. */
  bool IsUnit() const { return is_const_int(extent, 1); }
};

struct Access;
enum class BlockKind;
/*! \brief What was found out about the body of a block, and from what. */
struct BlockFacts {
  Stmt body, init;
  Array<IterVar> iter_vars;
  bool erratic = false;
  std::shared_ptr<const Access> access;
  std::optional<BlockKind> kind;
};

/*! \brief A block and the values its variables take. */
struct BlockItem final : Item {
  String name;
  Array<IterVar> iter_vars;
  Array<PrimExpr> iter_values;
  /*! \brief Conditions that all hold where the block runs. */
  Array<PrimExpr> predicate;
  Stmt init;
  Array<BufferRegion> reads, writes;
  Array<Buffer> alloc_buffers;
  Array<MatchBufferRegion> match_buffers;
  Map<String, ObjectRef> annotations;
  /*! \brief Constants around the body, and the buffers over them: statements of which what is
   *         inside does not count. */
  Array<Stmt> constants;
  /*! \brief Loops whose values have to be fixed so that no instance of the block runs twice. */
  VarSet given;
  /*! \brief Whether it runs all of its instances. */
  bool covers = true;
  /*! \brief Whether each of them may run, if only because it once did. */
  bool total = true;
  /*! \brief Whether memory decides which instances run, or more than there are may run. */
  bool erratic = false;
  /*! \brief What a block that was put around others computes; what its body is otherwise. */
  std::optional<BlockKind> sealed;
  /*! \brief Of the update of a decomposed reduction, the block that writes the first values. */
  Id init_block = kNone;
  /*! \brief Follows from the rest, and is asked for often. */
  mutable std::shared_ptr<BlockFacts> facts;

  BlockItem(String name, Array<IterVar> iter_vars, Array<PrimExpr> iter_values, Stmt init = Stmt(),
            Array<PrimExpr> predicate = {})
      : Item(kBlock),
        name(std::move(name)),
        iter_vars(std::move(iter_vars)),
        iter_values(std::move(iter_values)),
        predicate(std::move(predicate)),
        init(std::move(init)) {}
  std::shared_ptr<Item> Copy() const override { return std::make_shared<BlockItem>(*this); }
  /*! \brief What the block's variables stand for, in terms of loops. */
  VarMap Values() const;
  /*! \brief The value of one of the block's variables. */
  PrimExpr ValueOf(const Var& var) const;
  /*! \brief Data-parallel variables. */
  Array<IterVar> Spatial() const { return OfType(kDataPar); }
  /*! \brief Variables of a commutative reduction. */
  Array<IterVar> Reducing() const { return OfType(kCommReduce); }

 private:
  Array<IterVar> OfType(IterVarType type) const;
};

/*! \brief One function as a tree. */
class Tree {
 public:
  Tree(String name, PrimFunc func);

  const String& name() const { return name_; }
  Id root() const { return root_; }

  // Reading. References stay valid, but do not follow edits of the node.
  const Item& operator[](Id id) const { return *items_[static_cast<size_t>(id)]; }
  bool IsLoop(Id id) const { return (*this)[id].kind == Item::kLoop; }
  bool IsBlock(Id id) const { return (*this)[id].kind == Item::kBlock; }
  bool IsLeaf(Id id) const { return (*this)[id].kind == Item::kLeaf; }
  const LoopItem& loop(Id id) const { return static_cast<const LoopItem&>((*this)[id]); }
  const BlockItem& block(Id id) const { return static_cast<const BlockItem&>((*this)[id]); }
  const LeafItem& leaf(Id id) const { return static_cast<const LeafItem&>((*this)[id]); }
  /*! \brief Name of a loop or block. */
  const std::string& NameOf(Id id) const;
  /*! \brief Names for messages. */
  std::string NamesOf(const Ids& ids) const;
  /*! \brief Whether the node is still below the root. */
  bool IsAlive(Id id) const;
  /*! \brief Loops around a node inside of its scope, outermost first. */
  Ids LoopsAbove(Id id) const;
  /*! \brief Variables of loops. */
  VarSet VarsOfLoops(const Ids& loops) const;
  /*! \brief The nearest block around a node. */
  Id ScopeOf(Id id) const;
  /*! \brief Whether `other` is the node or around it. */
  bool IsUnder(Id id, Id other) const;
  /*! \brief A node and all below it, in the order of the program. */
  Ids Preorder(Id id) const;
  /*! \brief Blocks below a node, itself included, in the order of the program. */
  Ids BlocksBelow(Id id) const;
  /*! \brief Blocks and statements with only loops between them and a node. */
  Ids UnitsBelow(Id id) const;
  /*! \brief Whether no other blocks are below a block. */
  bool IsLeafBlock(Id block) const;
  /*! \brief Position of the child that is `id` or around it. */
  size_t IndexOf(Id parent, Id id) const;
  /*! \brief What a block computes, or what is below a loop. */
  Stmt Body(Id id) const;
  Block ToBlock(Id id) const;
  Stmt ToStmt(Id id) const;
  /*! \brief The function as it is now; the given one as long as nothing changed. */
  PrimFunc ToFunc() const;
  /*! \brief Whether the caller gives the buffer. */
  bool IsParam(const Buffer& buffer) const;
  /*! \brief Scalar parameters and extents of parameters, which are the same for all instances. */
  VarSet Symbols() const;
  /*! \brief Whether the order in which the buffer is written decides on its values. */
  bool IsPinned(const Buffer& buffer) const;
  /*! \brief `wanted`, with a number behind it if a block, loop or buffer is called so. */
  std::string NewBlockName(const std::string& wanted) const;
  std::string NewLoopName(const std::string& wanted) const;
  std::string NewBufferName(const std::string& wanted) const;

  // Editing.
  Item* Edit(Id id);
  LoopItem* EditLoop(Id id) { return static_cast<LoopItem*>(Edit(id)); }
  BlockItem* EditBlock(Id id) { return static_cast<BlockItem*>(Edit(id)); }
  Id Add(std::shared_ptr<Item> item);
  Id AddLeaf(Stmt stmt) { return Add(std::make_shared<LeafItem>(std::move(stmt))); }
  /*! \brief A serial loop from zero on, named as it is wanted or nearly so, in no place yet. */
  Id AddLoop(const std::string& wanted, DataType dtype, const PrimExpr& extent);
  /*! \brief A block with a body, in no place yet; its regions follow from the body. */
  Id AddBlock(std::shared_ptr<BlockItem> block, Stmt body);
  /*! \brief Nodes for a statement, in no place yet. */
  Ids Import(const Stmt& stmt);
  void SetChildren(Id id, Ids children);
  void Insert(Id parent, size_t index, Id id);
  void Replace(Id parent, Id old_id, Id new_id);
  /*! \brief Take a node out, and the loops that hold nothing without it. */
  void Detach(Id id);
  /*! \brief Put loops around `inner`, outermost first; returns the outermost of all. */
  Id Nest(const Ids& loops, Ids inner);
  /*! \brief Exchange what a block computes; its regions follow. */
  void SetBody(Id block, Stmt body, Stmt init = Stmt());
  /*! \brief Take first values from a block, which then goes on from what there is. */
  void DropInit(Id block);
  /*! \brief Put expressions in the place of variables in all that is below and at a node. */
  void ReplaceVars(Id id, const VarMap& values);
  /*! \brief Put expressions in the place of a leaf block's own variables, in all that it does. */
  void ReplaceBodyVars(Id block, const VarMap& values);
  /*! \brief Where a loop had to stand still, those in its place have to. */
  void Retarget(const VarSet& loops, const VarSet& parts);
  /*! \brief Give a block, by default the outermost one, another buffer of its own. */
  void Allocate(const Buffer& buffer, Id scope = kNone);
  /*! \brief Take a buffer from the function, or put another in its place. */
  void Forget(const Buffer& buffer, const Buffer& instead = Buffer(nullptr));
  /*! \brief Let the caller give another buffer. */
  void ReplaceParam(const Buffer& buffer, const Buffer& instead);
  void Pin(const Buffer& buffer) { pinned_.push_back(buffer); }
  void MarkChanged() { changed_ = true; }
  /*! \brief Let nodes that were not changed yet be the statements they were made of. */
  void KeepGiven();

  /*! \brief What the tree is, to come back to. Marks end in the order opposite to their making. */
  struct Mark {
    size_t journal, items;
    Array<Buffer> pinned;
    bool changed;
    PrimFunc func;
  };
  Mark Save();
  void Restore(const Mark& mark);
  /*! \brief Forget how to come back, at the end of a step. */
  void Commit() { journal_.clear(); }

  /*! \brief Why loops that were given as running at once cannot be shown to be independent. */
  std::vector<std::string> doubts;

 private:
  Id ImportBlock(const BlockRealizeNode* realize);
  void AddPreorder(Id id, Ids* found) const;
  void ReplaceDeclared(Id id, const std::function<PrimExpr(const PrimExpr&)>& replace);
  void Rebuilt(Id id);

  String name_;
  PrimFunc func_;
  Id root_ = kNone;
  bool changed_ = false;
  Array<Buffer> pinned_;
  std::vector<std::shared_ptr<Item>> items_;
  // Statements of nodes below which nothing changed since; where one is missing, those above are.
  mutable std::vector<Stmt> built_;
  // What the tree was made of, until facts about it are known; empty if names had to change.
  std::vector<std::pair<Id, Stmt>> given_;
  bool gives_ = true;
  int64_t step_ = 0;
  size_t first_new_ = 0;
  std::vector<std::pair<Id, std::shared_ptr<Item>>> journal_;
};

}  // namespace sched
}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_SCHEDULE_TREE_H_
