/*!
 * \file tvm/tir/schedule/schedule.h
 * \brief The schedule of a module of blocks: primitives that change loops and keep what is
 * computed.
 */
#ifndef TVM_TIR_SCHEDULE_SCHEDULE_H_
#define TVM_TIR_SCHEDULE_SCHEDULE_H_

#include <tvm/ir/module.h>
#include <tvm/tir/schedule/trace.h>

#include <string>

namespace tvm {
namespace tir {

/*! \brief How much errors show. */
enum class ErrorRenderLevel : int {
  /*! \brief Which primitive was refused. */
  kNone = 0,
  /*! \brief Why. */
  kFast = 1,
  /*! \brief The function, too. */
  kDetail = 2,
};

/*!
 * \brief Changes how the blocks of a module run, not what they compute, and records every step.
 *
 * Primitives are rows of a table (src/tir/schedule/primitive_table.cc) and applied by name. Each
 * raises ScheduleError, and changes nothing, where it cannot be shown to keep the results.
 */
class ScheduleNode : public Object {
 public:
  /*! \brief What was done so far. */
  Trace trace = Trace::Empty();
  /*! \brief Function that blocks are looked for in when none is named; empty for "main". */
  String working_on;

  /*! \brief The module as it is now. */
  virtual IRModule Mod() const = 0;
  /*!
   * \brief Apply a primitive.
   * \param arguments Values by the order of the kind's arguments; ones left out at the end, and
   *        null where that is no value, stand for defaults.
   * \param decision What a sampling primitive is to draw; null draws.
   * \return Its results: random variables.
   */
  virtual Array<ObjectRef> Apply(const InstructionKind& kind, const Array<Any>& arguments,
                                 const Any& decision = Any()) = 0;
  /*! \brief The block or loop that a variable stands for, or the value of an expression. */
  virtual ObjectRef Get(const Any& rv) const = 0;
  /*!
   * \brief A reference to the loop or block that a variable stands for, or that a statement of the
   *        module is; null if there is none.
   */
  virtual ObjectRef GetSRef(const Any& rv_or_stmt) = 0;
  /*! \brief Look for blocks in a function when none is named. */
  virtual void WorkOn(const String& function) = 0;
  /*! \brief A schedule that goes its own way; variables stand for the same in both. */
  virtual ObjectRef Copy() = 0;
  /*! \brief Start the random numbers anew; -1 draws a seed. */
  virtual void Seed(int64_t seed) = 0;
  /*! \brief A seed for another schedule, drawn from this one's numbers. */
  virtual int64_t ForkSeed() = 0;

  TVM_DECLARE_OBJECT(ScheduleNode, Object, "tir.Schedule");
};

class Schedule : public ObjectRef {
 public:
  /*!
   * \param mod The module; it stays as it is.
   * \param seed Of the sampling primitives; -1 draws one.
   * \param checks Whether every step ends with a check that the function is well formed.
   */
  explicit Schedule(IRModule mod, int64_t seed = -1, bool checks = false,
                    ErrorRenderLevel level = ErrorRenderLevel::kDetail);
  TVM_DEFINE_MUTABLE_REF(Schedule, ObjectRef, ScheduleNode);
};

}  // namespace tir
}  // namespace tvm
#endif  // TVM_TIR_SCHEDULE_SCHEDULE_H_
