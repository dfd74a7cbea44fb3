/*!
 * \file schedule.cc
 * \brief What a schedule remembers, and how it carries out a step: all of it or nothing.
 */
#include <tvm/node/repr_printer.h>
#include <tvm/tir/schedule/schedule.h>

#include <algorithm>

#include "primitive_table.h"
#include "primitives.h"
#include "state.h"
#include "trace_text.h"

namespace tvm {
namespace tir {
namespace sched {
namespace {

/*! \brief What a random variable stands for. */
struct Meaning {
  ObjectRef rv;
  /*! \brief Position of the function of a node, or -1 for a number. */
  int tree;
  /*! \brief The node, or the number. */
  int64_t value;
};

class ConcreteScheduleNode final : public ScheduleNode {
 public:
  ConcreteScheduleNode(IRModule mod, int64_t seed, bool checks, ErrorRenderLevel level)
      : mod_(std::move(mod)), checks_(checks), level_(level), random_(seed) {
    // A lone function needs no name to be found.
    if (mod_->functions.size() != 1) return;
    const auto& [var, func] = *mod_->functions.begin();
    if (func.as<PrimFuncNode>()) working_on = var->name_hint;
  }
  TVM_DECLARE_OBJECT(ConcreteScheduleNode, ScheduleNode, "tir.ConcreteSchedule");

  IRModule Mod() const final;
  Array<ObjectRef> Apply(const InstructionKind& kind, const Array<Any>& arguments,
                         const Any& decision) final;
  ObjectRef Get(const Any& rv) const final;
  void WorkOn(const String& function) final {
    TreeOf(function);
    working_on = function.str();
  }
  ObjectRef Copy() final;
  void Seed(int64_t seed) final { random_ = RandomState(seed); }
  ObjectRef GetSRef(const Any& rv_or_stmt) final;
  int64_t ForkSeed() final { return static_cast<int64_t>(random_.Below(INT32_MAX)) + 1; }

  /*! \brief Let a variable stand for nothing from now on. */
  void Remove(const Any& rv) {
    TVM_CHECK(meanings_.erase(rv.object()) == 1, ScheduleError)
        << "remove_rv: " << rv.TypeName()
        << " is no variable of this schedule, or is removed already";
  }

  /*! \brief What the axes of a block are bound to. */
  Array<PrimExpr> IterValues(const Any& block) const {
    const Meaning& meaning = NodeOf(block, true, false);
    const Tree& tree = *trees_[static_cast<size_t>(meaning.tree)];
    return tree.block(static_cast<Id>(meaning.value)).iter_values;
  }

  /*! \brief Places where a block may be computed, by the decision that stands for them. */
  std::map<int64_t, Id> Locations(const Any& block) {
    const Meaning& meaning = NodeOf(block, true, false);
    Tree* tree = trees_[static_cast<size_t>(meaning.tree)].get();
    std::map<int64_t, Id> found = ComputeLocations(tree, static_cast<Id>(meaning.value));
    tree->Commit();
    return found;
  }

 private:
  friend class Application;

  Tree* TreeOf(const String& function);
  /*! \brief The node that a variable of a class stands for; TypeError if it is none of ours. */
  const Meaning& NodeOf(const Any& rv, bool block, bool loop) const;
  int64_t Number(const Any& value) const;
  /*! \brief A variable for a result of a step that gave `given` results before. */
  ObjectRef VariableFor(const Result& result, int tree, size_t given);

  IRModule mod_;
  bool checks_;
  ErrorRenderLevel level_;
  RandomState random_;
  std::vector<std::shared_ptr<Tree>> trees_;
  // By the position of the function.
  std::unordered_map<size_t, std::shared_ptr<SRefTable>> srefs_;
  std::unordered_map<const Object*, Meaning> meanings_;
};

Tree* ConcreteScheduleNode::TreeOf(const String& function) {
  for (const auto& tree : trees_) {
    if (tree->name() == function) return tree.get();
  }
  std::string names;
  for (const auto& [var, func] : mod_->functions) {
    if (!func.as<PrimFuncNode>()) continue;
    if (var->name_hint == function) {
      auto tree = std::make_shared<Tree>(function, Downcast<PrimFunc>(func));
      Prepare(tree.get());
      tree->doubts = ParallelismDoubts(*tree);
      trees_.push_back(std::move(tree));
      return trees_.back().get();
    }
    AddItem(&names, var->name_hint);
  }
  TVM_FATAL(ScheduleError) << "the module has no function " << function << " of blocks; it has "
                           << (names.empty() ? "none" : names);
}

IRModule ConcreteScheduleNode::Mod() const {
  Map<GlobalVar, BaseFunc> functions = mod_->functions;
  for (const auto& tree : trees_) {
    functions.Set(mod_->GetGlobalVar(tree->name()), tree->ToFunc());
  }
  return IRModule(functions, mod_->attrs);
}

const Meaning& ConcreteScheduleNode::NodeOf(const Any& rv, bool block, bool loop) const {
  bool is_block = rv.as<BlockRVNode>(), is_loop = rv.as<LoopRVNode>();
  auto found = meanings_.find(rv.object());
  bool wanted = (is_block && block) || (is_loop && loop);
  bool as_loop = loop && (!block || is_loop);
  TVM_CHECK(wanted && found != meanings_.end(), TypeError)
      << "expected a " << (as_loop ? "loop" : "block") << " of this schedule, as "
      << (as_loop ? "get_loops" : "get_block") << " returns it, got a " << rv.TypeName();
  const Meaning& meaning = found->second;
  const Tree& tree = *trees_[static_cast<size_t>(meaning.tree)];
  Id id = static_cast<Id>(meaning.value);
  TVM_CHECK(tree.IsAlive(id), ScheduleError)
      << (is_loop ? "loop " : "block ") << tree.NameOf(id)
      << " is gone; a primitive took it apart or moved it. Ask for it again";
  return meaning;
}

int64_t ConcreteScheduleNode::Number(const Any& value) const {
  if (value.type_code() == kTVMInt) return value.cast<int64_t>();
  const auto* node = value.as<PrimExprNode>();
  TVM_CHECK(node != nullptr, TypeError)
      << "expected a whole number or an expression of sampled ones, got a " << value.TypeName();
  PrimExpr expr = GetRef<PrimExpr>(node);
  VarMap known;
  for (const Var& var : VarsOf(expr)) {
    auto found = meanings_.find(var.get());
    TVM_CHECK(found != meanings_.end(), ScheduleError)
        << var << " in " << expr << " was not sampled by this schedule";
    known[var.get()] = make_const(var.dtype(), found->second.value);
  }
  PrimExpr result = known.empty() ? expr : Substitute(expr, known);
  if (!result.as<IntImmNode>()) result = arith::Analyzer().Simplify(result);
  const auto* number = result.as<IntImmNode>();
  TVM_CHECK(number != nullptr, ScheduleError)
      << expr << " is " << result << ", which is no whole number";
  return number->value;
}

ObjectRef ConcreteScheduleNode::Get(const Any& rv) const {
  if (rv.as<BlockRVNode>() || rv.as<LoopRVNode>()) {
    const Meaning& meaning = NodeOf(rv, true, true);
    const Tree& tree = *trees_[static_cast<size_t>(meaning.tree)];
    Id id = static_cast<Id>(meaning.value);
    // The same object as long as nothing in it changed.
    Stmt stmt = tree.ToStmt(id);
    return tree.IsLoop(id) ? stmt : Stmt(stmt.as<BlockRealizeNode>()->block);
  }
  const auto* expr = rv.as<PrimExprNode>();
  int64_t number = Number(rv);
  return make_const(expr == nullptr ? DataType::Int(32) : expr->dtype, number);
}

ObjectRef ConcreteScheduleNode::GetSRef(const Any& rv_or_stmt) {
  auto table_of = [this](size_t tree) {
    std::shared_ptr<SRefTable>& table = srefs_[tree];
    if (!table) table = std::make_shared<SRefTable>(SRefTable{trees_[tree], {}});
    return table;
  };
  if (rv_or_stmt.as<BlockRVNode>() || rv_or_stmt.as<LoopRVNode>()) {
    const Meaning& meaning = NodeOf(rv_or_stmt, true, true);
    return SRefTable::At(table_of(static_cast<size_t>(meaning.tree)),
                         static_cast<Id>(meaning.value));
  }
  Stmt stmt = rv_or_stmt.cast<Stmt>();
  for (const auto& [var, func] : mod_->functions) {
    if (func.as<PrimFuncNode>()) TreeOf(var->name_hint);
  }
  for (size_t i = 0; i < trees_.size(); ++i) {
    Id id = table_of(i)->Find(stmt);
    if (id != kNone) return SRefTable::At(table_of(i), id);
  }
  return ObjectRef();
}

ObjectRef ConcreteScheduleNode::Copy() {
  auto other = make_object<ConcreteScheduleNode>(mod_, ForkSeed(), checks_, level_);
  other->trace = Trace(trace->insts, trace->decisions);
  other->working_on = working_on;
  other->meanings_ = meanings_;
  for (const auto& tree : trees_) {
    // Records that two trees share are only read, so what follows from them is found out before.
    for (Id id : tree->BlocksBelow(tree->root())) KindOf(*tree, id);
    other->trees_.push_back(std::make_shared<Tree>(*tree));
  }
  return ObjectRef(other);
}

ObjectRef ConcreteScheduleNode::VariableFor(const Result& result, int tree, size_t given) {
  ObjectRef rv;
  if (result.kind == Result::kNumber) {
    // Its name in the trace.
    size_t outputs = given;
    for (const Instruction& inst : trace->insts) outputs += inst->outputs.size();
    rv = Var("v" + std::to_string(outputs));
  } else if (result.kind == Result::kPlace) {
    auto place = make_object<LoopRVNode>();
    place->place = result.value == kStay ? "stay" : "inlined";
    return LoopRV(place);
  } else if (trees_[static_cast<size_t>(tree)]->IsBlock(static_cast<Id>(result.value))) {
    rv = BlockRV(make_object<BlockRVNode>());
  } else {
    rv = LoopRV(make_object<LoopRVNode>());
  }
  meanings_[rv.get()] = {rv, result.kind == Result::kNumber ? -1 : tree, result.value};
  return rv;
}

/*! \brief One application of a primitive to a schedule. */
class Application final : public Call {
 public:
  Application(ConcreteScheduleNode* sch, const Primitive& primitive, const Any& wanted)
      : sch_(sch), primitive_(primitive) {
    decision = wanted;
  }

  Array<ObjectRef> Run(const Array<Any>& arguments) {
    try {
      Carry(arguments);
    } catch (const Error& error) {
      Undo();
      if (error.kind() != "ScheduleError") throw;
      throw Error("ScheduleError", Explain(error.message()), error.backtrace());
    } catch (...) {
      Undo();
      throw;
    }
    for (const auto& tree : sch_->trees_) tree->Commit();
    return Record();
  }

  /*! \brief Whether it would be carried out, which changes nothing. */
  bool Would(const Array<Any>& arguments) {
    bool legal = true;
    try {
      Carry(arguments);
    } catch (const Error& error) {
      legal = false;
      if (error.kind() != "ScheduleError") {
        Undo();
        throw;
      }
    }
    Undo();
    return legal;
  }

  Tree* tree() final {
    ICHECK_GE(tree_, 0);
    return sch_->trees_[static_cast<size_t>(tree_)].get();
  }
  Tree* Change() final {
    tree()->MarkChanged();
    changes_ = true;
    return tree();
  }
  Tree* TreeOf(const String& function) final {
    sch_->TreeOf(function);
    for (size_t i = 0; i < sch_->trees_.size(); ++i) {
      if (sch_->trees_[i]->name() == function) tree_ = static_cast<int>(i);
    }
    return tree();
  }
  RandomState* random() final { return &sch_->random_; }
  int64_t Number(const Any& value) const final { return sch_->Number(value); }
  IndexMap MapOf(size_t i) const final {
    bool sampled = false;
    auto number = [&](const Any& var) -> Any {
      sampled = true;
      return make_const(var.as<VarNode>()->dtype, sch_->Number(var));
    };
    IndexMap map = MapRVs(values_[i], number).cast<IndexMap>();
    if (!sampled) return map;
    // Divisors are products of numbers now, and are to be numbers.
    return IndexMap(map->initial_indices, map->final_indices.Map([](const PrimExpr& e) {
      return arith::Analyzer().Simplify(e);
    }),
                    map->inverse_index_map);
  }

 private:
  void Carry(const Array<Any>& arguments) {
    for (const auto& tree : sch_->trees_) marks_.push_back(tree->Save());
    Resolve(arguments);
    primitive_.apply(this);
    Check();
  }

  void Resolve(const Array<Any>& given) {
    const std::vector<Argument>& arguments = primitive_.arguments;
    TVM_CHECK(given.size() <= arguments.size(), TypeError)
        << primitive_.kind->method << ": takes " << arguments.size() << " arguments, got "
        << given.size();
    nodes_.resize(arguments.size());
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Argument& argument = arguments[i];
      Any value = i < given.size() ? given[static_cast<int64_t>(i)] : Any();
      if (value.is_null() && argument.optional) value = argument.otherwise;
      values_.push_back(Resolved(argument, value, &nodes_[i]));
    }
  }

  Any Resolved(const Argument& argument, const Any& value, Ids* nodes) {
    switch (argument.kind) {
      case ArgumentKind::kBlock:
        AddNode(value, true, false, nodes);
        return value;
      case ArgumentKind::kPlace:
        // A place that is no loop has no node.
        if (const auto* loop = value.as<LoopRVNode>(); loop && !loop->place.empty()) return value;
        [[fallthrough]];
      case ArgumentKind::kLoop:
        AddNode(value, false, true, nodes);
        return value;
      case ArgumentKind::kBlockOrLoop:
        AddNode(value, true, true, nodes);
        return value;
      case ArgumentKind::kBlocksOrLoop:
        if (value.as<ArrayNode>() == nullptr) {
          AddNode(value, true, true, nodes);
          return value;
        }
        for (const Any& item : ListOf(argument, value)) AddNode(item, true, false, nodes);
        TVM_CHECK(!nodes->empty(), ScheduleError) << "no blocks given; give at least one";
        return value;
      case ArgumentKind::kLoops:
      case ArgumentKind::kBlocks: {
        bool loops = argument.kind == ArgumentKind::kLoops;
        if (value.is_null() && !loops) return value;
        for (const Any& item : ListOf(argument, value)) AddNode(item, !loops, loops, nodes);
        TVM_CHECK(!loops || !nodes->empty(), ScheduleError) << "no loops given; give at least one";
        return value;
      }
      case ArgumentKind::kInt:
        return sch_->Number(value);
      case ArgumentKind::kInts: {
        Array<Any> numbers;
        for (const Any& item : ListOf(argument, value)) numbers.push_back(sch_->Number(item));
        return numbers;
      }
      case ArgumentKind::kReals: {
        Array<Any> numbers;
        for (const Any& item : ListOf(argument, value)) numbers.push_back(item.cast<double>());
        return numbers;
      }
      case ArgumentKind::kSizes:
        ListOf(argument, value);
        return value;
      case ArgumentKind::kBool:
        return value.cast<bool>();
      case ArgumentKind::kOptionalText:
        if (value.is_null()) return String(sch_->working_on.empty() ? "main" : sch_->working_on);
        [[fallthrough]];
      case ArgumentKind::kText:
        return TextOf(argument, value);
      case ArgumentKind::kThread:
        if (const auto* axis = value.as<IterVarNode>()) return axis->thread_tag;
        return TextOf(argument, value);
      case ArgumentKind::kBufferOf: {
        Array<Any> parts = ListOf(argument, value);
        std::string use = parts.empty() ? "" : parts[0].TryCast<std::string>().value_or("");
        TVM_CHECK(parts.size() == 2 && (use == "read" || use == "write"), TypeError)
            << primitive_.kind->method << ": " << argument.name
            << " is one of the buffers of a block, for example (\"read\", 0)";
        return Array<Any>{Any(String(use)), Any(sch_->Number(parts[1]))};
      }
      case ArgumentKind::kPadValue:
        if (value.as<IndexMapNode>() == nullptr) return value;
        [[fallthrough]];
      case ArgumentKind::kIndexMap:
        TVM_CHECK(value.as<IndexMapNode>(), TypeError)
            << primitive_.kind->method << ": " << argument.name << " is an index map, got a "
            << value.TypeName();
        return value;
      case ArgumentKind::kValue:
        return value;
    }
    return value;
  }

  void AddNode(const Any& rv, bool block, bool loop, Ids* nodes) {
    const Meaning& meaning = sch_->NodeOf(rv, block, loop);
    TVM_CHECK(tree_ < 0 || tree_ == meaning.tree, ScheduleError)
        << "the " << (loop ? "loops" : "blocks") << " are in different functions";
    tree_ = meaning.tree;
    nodes->push_back(static_cast<Id>(meaning.value));
  }

  Array<Any> ListOf(const Argument& argument, const Any& value) const {
    TVM_CHECK(value.as<ArrayNode>(), TypeError) << primitive_.kind->method << ": " << argument.name
                                                << " is a list, got a " << value.TypeName();
    return value.cast<Array<Any>>();
  }

  String TextOf(const Argument& argument, const Any& value) const {
    if (const auto* literal = value.as<StringImmNode>()) return literal->value;
    auto text = value.TryCast<std::string>();
    TVM_CHECK(text.has_value(), TypeError) << primitive_.kind->method << ": " << argument.name
                                           << " is a text, got a " << value.TypeName();
    return String(*text);
  }

  void Check() {
    if (!changes_) return;
    CheckParallelism(*tree());
    if (sch_->checks_) VerifyWellFormed(tree()->ToFunc(), true);
  }

  void Undo() {
    for (size_t i = 0; i < marks_.size(); ++i) {
      sch_->trees_[i]->Restore(marks_[i]);
      sch_->trees_[i]->Commit();
    }
  }

  std::string Explain(const std::string& why) {
    const std::string method = primitive_.kind->method;
    if (sch_->level_ == ErrorRenderLevel::kNone) return method + ": not legal here (not rendered)";
    std::string text = method + ": " + why;
    if (sch_->level_ == ErrorRenderLevel::kFast || tree_ < 0) return text;
    return text + "\nThe function " + tree()->name() + " is\n" + AsRepr(tree()->ToFunc());
  }

  Array<ObjectRef> Record() {
    Array<ObjectRef> outputs;
    for (const Result& result : results) {
      outputs.push_back(sch_->VariableFor(result, tree_, outputs.size()));
    }
    sch_->trace->Append(
        Instruction(primitive_.kind, Array<Any>(values_.begin(), values_.end()), outputs),
        decision);
    return outputs;
  }

  ConcreteScheduleNode* sch_;
  const Primitive& primitive_;
  int tree_ = -1;
  bool changes_ = false;
  std::vector<Tree::Mark> marks_;
};

Array<ObjectRef> ConcreteScheduleNode::Apply(const InstructionKind& kind,
                                             const Array<Any>& arguments, const Any& decision) {
  const Primitive& primitive = PrimitiveOf(kind);
  size_t before = trace->insts.size();
  Array<Any> given = arguments;
  try {
    // A block may be given by its name, which the trace then finds too.
    static const InstructionKind get_block = InstructionKind::Get("GetBlock");
    for (size_t i = 0; i < std::min(arguments.size(), primitive.arguments.size()); ++i) {
      int64_t at = static_cast<int64_t>(i);
      if (primitive.arguments[i].kind != ArgumentKind::kBlock) continue;
      if (auto name = arguments[at].TryCast<std::string>()) {
        given.Set(at, Apply(get_block, {Any(String(*name))}, Any())[0]);
      }
    }
    return Application(this, primitive, decision).Run(given);
  } catch (...) {
    while (trace->insts.size() > before) trace->insts.pop_back();
    throw;
  }
}

/*! \brief Whether a primitive that draws nothing would be carried out. */
bool WouldApply(const Schedule& sch, const InstructionKind& kind, const Array<Any>& arguments) {
  auto* node = static_cast<ConcreteScheduleNode*>(const_cast<ScheduleNode*>(sch.operator->()));
  return Application(node, PrimitiveOf(kind), Any()).Would(arguments);
}

/*! \brief Places where a block may be computed, as decisions of sample_compute_location. */
Array<Integer> LocationsOf(const Schedule& sch, const Any& block) {
  auto* node = static_cast<ConcreteScheduleNode*>(const_cast<ScheduleNode*>(sch.operator->()));
  Array<Integer> places;
  for (const auto& [place, loop] : node->Locations(block)) places.push_back(Integer(place));
  return places;
}

}  // namespace
TVM_REGISTER_GLOBAL("tir.schedule.ScheduleComputeLocations").set_body_typed(LocationsOf);
TVM_REGISTER_GLOBAL("tir.schedule.ScheduleWouldApply").set_body_typed(WouldApply);
TVM_REGISTER_GLOBAL("tir.schedule.ScheduleRemoveRV").set_body_typed([](Schedule sch, Any rv) {
  auto* node = static_cast<ConcreteScheduleNode*>(const_cast<ScheduleNode*>(sch.operator->()));
  node->Remove(rv);
});
TVM_REGISTER_GLOBAL("tir.schedule.ScheduleIterValues").set_body_typed([](Schedule sch, Any block) {
  return static_cast<const ConcreteScheduleNode*>(sch.operator->())->IterValues(block);
});
}  // namespace sched

Schedule::Schedule(IRModule mod, int64_t seed, bool checks, ErrorRenderLevel level) {
  TVM_CHECK(seed >= -1, ValueError) << "Schedule: the seed is a number from 0 on, got " << seed;
  // The module may be changed by whoever has it.
  IRModule own(mod->functions, mod->attrs);
  data_ = make_object<sched::ConcreteScheduleNode>(own, seed, checks, level);
}

TVM_REGISTER_GLOBAL("tir.schedule.Schedule")
    .set_body_typed([](IRModule mod, int64_t seed, bool checks, int level) {
      return Schedule(mod, seed, checks, static_cast<ErrorRenderLevel>(level));
    });
TVM_REGISTER_GLOBAL("tir.schedule.ScheduleApply")
    .set_body_typed([](Schedule sch, InstructionKind kind, Array<Any> arguments, Any decision) {
      return sch->Apply(kind, arguments, decision);
    });
TVM_REGISTER_GLOBAL("tir.schedule.ScheduleMod").set_body_typed([](Schedule sch) {
  return sch->Mod();
});
TVM_REGISTER_GLOBAL("tir.schedule.ScheduleTrace").set_body_typed([](Schedule sch) {
  return sch->trace;
});
TVM_REGISTER_GLOBAL("tir.schedule.ScheduleWorkingOn").set_body_typed([](Schedule sch) {
  return String(sch->working_on);
});
TVM_REGISTER_GLOBAL("tir.schedule.ScheduleWorkOn")
    .set_body_typed([](Schedule sch, String function) { sch->WorkOn(function); });
TVM_REGISTER_GLOBAL("tir.schedule.ScheduleGet").set_body_typed([](Schedule sch, Any rv) {
  return sch->Get(rv);
});
TVM_REGISTER_GLOBAL("tir.schedule.ScheduleGetSRef").set_body_typed([](Schedule sch, Any at) {
  return sch->GetSRef(at);
});
TVM_REGISTER_GLOBAL("tir.schedule.ScheduleCopy").set_body_typed([](Schedule sch) {
  return sch->Copy();
});
TVM_REGISTER_GLOBAL("tir.schedule.ScheduleSeed").set_body_typed([](Schedule sch, int64_t seed) {
  sch->Seed(seed);
});
TVM_REGISTER_GLOBAL("tir.schedule.ScheduleForkSeed").set_body_typed([](Schedule sch) {
  return sch->ForkSeed();
});

}  // namespace tir
}  // namespace tvm
