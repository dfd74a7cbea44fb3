/*!
 * \file src/tir/ir/script_names.h
 * \brief What the text of a function has to declare, because no other line introduces it.
 */
#ifndef TVM_SRC_TIR_IR_SCRIPT_NAMES_H_
#define TVM_SRC_TIR_IR_SCRIPT_NAMES_H_

#include <tvm/ir/script_printer.h>
#include <tvm/tir/function.h>

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tvm {
namespace tir {

/*!
 * \brief Variables and buffers of one function by how they come into being.
 *
 * Loops, lets, allocations, parameters and block axes introduce variables. Buffers come from
 * parameters and blocks; the others are views, which are declared where all they need is known. A
 * data pointer that nothing introduces belongs to the first buffer that has it.
 */
struct ScriptNames {
  explicit ScriptNames(const PrimFuncNode* func);

  /*! \brief The buffer that stands for all of the same contents. */
  const BufferNode* Representative(const BufferNode* buffer) const;
  /*! \brief Whether all variables of the buffer can be named now. */
  bool IsReady(const BufferNode* buffer) const;

  /*! \brief Variables that a line of the program introduces. */
  std::unordered_set<const VarNode*> introduced;
  /*! \brief Variables that nothing introduces, in order of appearance. */
  std::vector<const VarNode*> free;
  /*! \brief Thread variables that more than one launch introduces, or that are used outside. */
  std::unordered_set<const VarNode*> shared_threads;
  std::vector<const IterVarNode*> shared_axes;
  /*! \brief Data pointers by the buffer as whose `.data` they are written. */
  std::unordered_map<const VarNode*, const BufferNode*> owner;
  /*! \brief Views not declared so far, in order of appearance. */
  std::vector<const BufferNode*> waiting;
  std::unordered_map<const VarNode*, std::vector<const BufferNode*>> by_data;
  /*! \brief Variables, and buffers that have been declared, which may be named at this point. */
  std::unordered_set<const Object*> visible;
  /*! \brief Parameters that occur in the body. */
  std::unordered_set<const VarNode*> used;
};

/*! \brief A data pointer such as every buffer of the type gets that is not given one. */
bool HasUsualPointer(const BufferNode* buffer);

/*! \brief A variable whose type is no more than its dtype. */
bool IsPlainVar(const VarNode* var);

}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_IR_SCRIPT_NAMES_H_
