/*!
 * \file ir_text.h
 * \brief Writes one LLVM function as text, numbering equal values once and hoisting them out of
 *        loops while it writes.
 *
 * Doing both here keeps the text small, so that LLVM needs only a few passes afterwards: parsing
 * and optimising are most of the time a candidate takes to compile.
 */
#ifndef TVM_CODEGEN_LLVM_IR_TEXT_H_
#define TVM_CODEGEN_LLVM_IR_TEXT_H_

#include <tvm/runtime/data_type.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace tvm {
namespace codegen {

/*! \brief LLVM's name of a type as a value: bool is i1, handle is ptr, bfloat16 its bits as i16. */
std::string LLVMType(DataType dtype);

/*! \brief LLVM's name of a vector, whose lanes count as those of a DataType; one lane is no vector.
 */
std::string VectorType(int lanes, const std::string& element);

/*! \brief An operand: its type, its text, and the loop level at which it is defined. */
struct Value {
  std::string type;
  std::string ref;
  /*! \brief 0 outside all loops (and for constants), n inside n of them. */
  int level = 0;

  bool is_vector() const { return type[0] == '<'; }
  bool is_scalable() const;
  /*! \brief As those of a DataType: minus the factor of vscale where they are scalable. */
  int lanes() const;
  /*! \brief Type of one lane. */
  std::string element() const;
  /*! \brief The type with another element, as many lanes. */
  std::string TypeWith(const std::string& element) const;
  /*! \brief How names of intrinsics end that are overloaded on the type: "nxv4f32". */
  std::string Suffix() const;
  std::string str() const { return type + " " + ref; }
};

/*! \brief Declarations and functions of one module. */
class ModuleText {
 public:
  /*! \brief Declare an external function once; `signature` is `type @name(types)`. */
  void Declare(const std::string& name, const std::string& signature);
  void Define(const std::string& name) { defined_.insert(name); }
  /*! \brief Name of a private constant that holds `text` and a terminating zero. */
  std::string StringConstant(const std::string& text);
  /*! \brief Type and contents of a constant with a terminating zero. */
  static std::string StringLiteral(const std::string& text);
  void AddGlobal(const std::string& definition) { globals_ += definition + "\n"; }
  /*! \brief Append a complete function. */
  void AddFunction(const std::string& text) { functions_ += text + "\n"; }
  /*! \brief Reference to a metadata node with this body; equal bodies share one node. */
  std::string Metadata(const std::string& body);
  /*! \brief Reference to a metadata node different from all others. */
  std::string DistinctMetadata(const std::string& rest);
  int UniqueId() { return next_id_++; }
  /*!
   * \brief Functions begun from now on have the lines of this file as their source; none if empty.
   *
   * Their instructions are told the lines by FunctionText::SetLine, for debuggers and profilers.
   */
  void SetDebugSource(const std::string& file) { debug_source_ = file; }
  const std::string& debug_source() const { return debug_source_; }
  /*!
   * \brief Whether the machine estimates reciprocals of 16 floats to 14 bits (AVX-512), from where
   *  one step leads to a quotient in a third of the time that a division takes.
   */
  void SetEstimatesReciprocals(bool estimates) { estimates_reciprocals_ = estimates; }
  bool estimates_reciprocals() const { return estimates_reciprocals_; }
  /*! \brief Reference to a node of debug information, such as `!DILocation(...)`; equal ones once.
   */
  std::string DebugNode(const std::string& node);
  /*! \brief A reference to a node that is defined later. */
  std::string ReserveMetadata() { return "!" + std::to_string(next_metadata_++); }
  void DefineSubprogram(const std::string& reference, const std::string& file,
                        const std::string& symbol);
  std::string Finish(const std::string& header) const;

 private:
  std::map<std::string, std::string> declarations_;
  std::set<std::string> defined_;
  std::map<std::string, std::string> strings_;
  std::unordered_map<std::string, std::string> metadata_;
  /*! \brief File of the debug information, and the compile unit of all of it. */
  std::string FileNode(const std::string& file);
  std::string globals_, functions_, metadata_text_, debug_source_, debug_unit_;
  bool estimates_reciprocals_ = false;
  int next_id_ = 0;
  int next_metadata_ = 0;
};

/*! \brief Body of one function while it is written. */
class FunctionText {
 public:
  explicit FunctionText(ModuleText* module);

  /*!
   * \brief The value of an instruction without effects that never traps.
   *
   * An equal one that dominates this place is reused; a new one is placed before the outermost loop
   * that all its operands are defined outside of.
   */
  Value Pure(const std::string& type, const std::string& instruction, int operand_level);
  /*! \brief A new value of an instruction that has to stand here. */
  Value Here(const std::string& type, const std::string& instruction);
  /*! \brief An instruction without a value. */
  void Line(const std::string& instruction) { Text() += "  " + instruction + location_ + "\n"; }
  /*! \brief The line of the debug source that the next instructions are of; gives the one before.
   */
  int SetLine(int line);
  /*! \brief Memory in the frame, reserved once per call. */
  Value Alloca(const std::string& type, int alignment, const std::string& name);

  // Arithmetic. `flags` go between the operation and the type, as in `add nsw`.
  Value Binary(const std::string& op, const Value& a, const Value& b);
  Value Compare(const std::string& op, const Value& a, const Value& b);
  Value Convert(const std::string& op, const Value& a, const std::string& type);
  Value Select(const Value& condition, const Value& yes, const Value& no);
  /*! \brief Call of a function without effects, declared on the way. */
  Value PureCall(const std::string& name, const std::string& type, const std::vector<Value>& args,
                 const std::string& flags = "");
  /*!
   * \brief Call of an LLVM intrinsic overloaded on its result type: `base` is "llvm.fma", `flags`
   * those of floating point arithmetic, each behind a space.
   */
  Value Intrinsic(const std::string& base, const std::vector<Value>& args,
                  const std::string& flags = "");
  Value Splat(const Value& scalar, int lanes);
  Value Extract(const Value& vector, int lane);
  /*! \brief `element` numbers from a vector, by constant lane numbers of `a` then `b`. */
  Value Shuffle(const Value& a, const Value& b, const std::vector<int>& lanes);
  Value Insert(const Value& vector, const Value& element, int lane);
  Value GetElementPtr(const std::string& element, const Value& base, const Value& index);

  Value Int(const std::string& type, int64_t value) const;
  Value Float(const std::string& type, double value) const;
  Value I64(int64_t value) const { return Int("i64", value); }
  static Value Poison(const std::string& type) { return {type, "poison", 0}; }

  // Control flow.
  std::string NewLabel(const std::string& hint);
  void StartBlock(const std::string& label);
  void Branch(const std::string& label);
  void Branch(const Value& condition, const std::string& yes, const std::string& no);
  const std::string& block() const { return block_; }
  /*! \brief Values first made inside a scope are forgotten when it closes. */
  void EnterScope();
  void ExitScope();
  /*! \brief Start a loop: what is written next belongs to its body, hoisted values go before it. */
  void EnterLoop();
  /*!
   * \brief Let the loop that has just been entered carry pointers. This is where its block of phis
   *  ends; control comes from the block `entry` and, once again, from the block `latch`.
   */
  void CarryPointers(const std::string& entry, const std::string& latch);
  /*!
   * \brief A pointer that is `start` in the first trip of the innermost loop and moves by `step`
   *  elements a trip; undefined where the loop carries no more.
   */
  std::optional<Value> Advancing(const std::string& element, const Value& start, int64_t step);
  /*! \brief Write the steps of carried pointers; `latch` starts here. */
  void AdvancePointers();
  /*! \brief End it. `entry` is the branch into the loop, written after the hoisted values. */
  void ExitLoop(const std::string& entry);
  int level() const { return static_cast<int>(loops_.size()); }
  std::string NewName(const std::string& hint = "v");

  ModuleText* module() const { return module_; }
  /*! \brief The finished function; `head` is everything up to the opening brace. */
  std::string Finish(const std::string& head) const;

 private:
  struct Loop {
    std::string before;
    std::string body;
    size_t outer_scope;
    std::string entry, latch;
    size_t end_of_phis = 0;
    std::string phis, steps;
    int pointers = 0;
  };
  std::string& Text() { return loops_.empty() ? text_ : loops_.back().body; }

  ModuleText* module_;
  /*! \brief File and node of the function in debug information, or empty. */
  std::string debug_source_, subprogram_;
  /*! \brief What instructions end with to say their line. */
  std::string location_;
  int line_ = 0;
  std::string allocas_;
  std::string text_;
  std::string block_ = "entry";
  std::vector<Loop> loops_;
  std::vector<std::vector<std::string>> scopes_;
  std::unordered_map<std::string, Value> numbered_;
  int next_name_ = 0;
};

}  // namespace codegen
}  // namespace tvm

#endif  // TVM_CODEGEN_LLVM_IR_TEXT_H_
