/*!
 * \file tvm/tir/schedule/trace.h
 * \brief The history of a schedule: which primitives were called with what, and what was drawn.
 */
#ifndef TVM_TIR_SCHEDULE_TRACE_H_
#define TVM_TIR_SCHEDULE_TRACE_H_

#include <tvm/node/node.h>

#include <string>
#include <unordered_map>

namespace tvm {
namespace tir {

/*! \brief A block of a schedule, whatever happens to the function around it. */
class BlockRVNode : public Object {
 public:
  TVM_DECLARE_NODE(BlockRVNode, Object, "tir.BlockRV");
};
class BlockRV : public ObjectRef {
 public:
  TVM_DEFINE_REF(BlockRV, ObjectRef, BlockRVNode);
};

/*!
 * \brief A loop of a schedule, until a primitive takes it apart.
 *
 * Some are no loops but places where compute_at may put a block.
 */
class LoopRVNode : public Object {
 public:
  /*! \brief "stay" where it is, or "inlined"; empty for a loop. */
  String place;
  TVM_DECLARE_NODE(LoopRVNode, Object, "tir.LoopRV", Value(place));
};
class LoopRV : public ObjectRef {
 public:
  TVM_DEFINE_REF(LoopRV, ObjectRef, LoopRVNode);
};

/*! \brief A primitive as traces know it. */
class InstructionKindNode : public Object {
 public:
  /*! \brief For example "SamplePerfectTile". */
  String name;
  /*! \brief Name of the method of a schedule. */
  String method;
  /*! \brief Whether it only looks. */
  bool is_pure = false;
  bool is_sampling = false;
  bool is_postproc = false;
  /*! \brief The argument that is written without a name; empty if there is none. */
  String variadic;
  /*! \brief Names of all arguments, in order. */
  Array<String> arguments;
  /*! \brief Whether it returns a list, which one output has to be unpacked from. */
  bool returns_list = false;
  /*! \brief ValueError if no primitive has the name. */
  void Init();
  TVM_DECLARE_NODE(InstructionKindNode, Object, "tir.InstructionKind", Value(name), Ignore(method),
                   Ignore(is_pure), Ignore(is_sampling), Ignore(is_postproc), Ignore(variadic),
                   Ignore(arguments), Ignore(returns_list));
  TVM_NODE_ARGS();
};
class InstructionKind : public ObjectRef {
 public:
  /*! \brief The kind of that name; KeyError that lists those there are. */
  static InstructionKind Get(const std::string& name);
  TVM_DEFINE_REF(InstructionKind, ObjectRef, InstructionKindNode);
};

/*! \brief One call of a primitive. Its decision, if it samples, belongs to the trace. */
class InstructionNode : public Object {
 public:
  InstructionKind kind;
  /*! \brief Values of the kind's arguments, which may hold random variables inside of lists. */
  Array<Any> values;
  /*! \brief Random variables: blocks, loops and, for sampled numbers, expression variables. */
  Array<ObjectRef> outputs;
  /*! \brief Random variables the call takes, in order. */
  Array<ObjectRef> Inputs() const;
  /*! \brief The other arguments, in order. */
  Array<Any> Attrs() const;
  /*! \brief ValueError unless there is a value for each argument of the kind. */
  void Init();
  TVM_DECLARE_NODE(InstructionNode, Object, "tir.Instruction", Value(kind), Value(values),
                   Value(outputs));
};
class Instruction : public FromFields<ObjectRef, InstructionNode> {
 public:
  TVM_DEFINE_NODE_REF(Instruction, InstructionNode);
};

class Schedule;
/*! \brief Chooses a decision: instruction, inputs, attributes, recorded decision. */
using DecisionProvider =
    std::function<Any(const Instruction&, const Array<ObjectRef>&, const Array<Any>&, const Any&)>;

/*! \brief Instructions in the order they were carried out, and the decisions of those that sample.
 */
class TraceNode : public Object {
 public:
  Array<Instruction> insts;
  Map<Instruction, Any> decisions;

  /*! \brief Add an instruction; a decision that is null is none. */
  void Append(const Instruction& inst, const Any& decision);
  /*! \brief Carry out the instructions on another schedule. */
  void ApplyToSchedule(const Schedule& sch, bool remove_postproc,
                       const DecisionProvider& decision_provider = nullptr) const;
  /*! \brief The instructions, or those in front of the postprocessing. */
  Array<Instruction> Insts(bool remove_postproc) const;
  /*! \brief The calls as lines of Python. */
  Array<String> AsPython() const;
  /*! \brief [instructions, decisions] as JSON text. */
  String AsJSON(bool remove_postproc) const;

  TVM_DECLARE_NODE(TraceNode, Object, "tir.Trace", Value(insts), Value(decisions));
};
class Trace : public FromFields<ObjectRef, TraceNode> {
 public:
  using Constructors::Constructors;
  static Trace Empty() { return Trace(Array<Instruction>(), Map<Instruction, Any>()); }
  /*! \brief The trace that AsJSON wrote; ValueError says where it is none. */
  static Trace FromJSON(const std::string& text);
  /*! \brief The same with another decision. */
  Trace WithDecision(const Instruction& inst, const Any& decision, bool remove_postproc) const;
  /*! \brief Without instructions that only look and whose results nothing needs. */
  Trace Simplified(bool remove_postproc) const;
  TVM_DEFINE_MUTABLE_REF(Trace, Constructors, TraceNode);
};

}  // namespace tir
}  // namespace tvm
#endif  // TVM_TIR_SCHEDULE_TRACE_H_
