/*!
 * \file tvm/ir/instrument.h
 * \brief Instruments: callbacks around every pass.
 */
#ifndef TVM_IR_INSTRUMENT_H_
#define TVM_IR_INSTRUMENT_H_

#include <tvm/ir/module.h>

namespace tvm {
namespace transform {
class PassInfo;
}
namespace instrument {

/*!
 * \brief Called around passes by the PassContext that holds it.
 *
 * ShouldRun is asked first, of all instruments; the pass runs if none refuses. The other callbacks
 * happen only for passes that run.
 */
class PassInstrumentNode : public Object {
 public:
  String name;
  virtual void EnterPassContext() const {}
  virtual void ExitPassContext() const {}
  virtual bool ShouldRun(const IRModule& mod, const transform::PassInfo& info) const {
    return true;
  }
  virtual void RunBeforePass(const IRModule& mod, const transform::PassInfo& info) const {}
  virtual void RunAfterPass(const IRModule& mod, const transform::PassInfo& info) const {}
  TVM_DECLARE_NODE(PassInstrumentNode, Object, "instrument.PassInstrument", Value(name));
  TVM_NODE_ARGS();
};
class PassInstrument : public ObjectRef {
 public:
  TVM_DEFINE_REF(PassInstrument, ObjectRef, PassInstrumentNode);
};

}  // namespace instrument
}  // namespace tvm

#endif  // TVM_IR_INSTRUMENT_H_
