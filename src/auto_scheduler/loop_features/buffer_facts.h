/*!
 * \file buffer_facts.h
 * \brief How a store uses its buffers.
 */
#ifndef TVM_AUTO_SCHEDULER_LOOP_FEATURES_BUFFER_FACTS_H_
#define TVM_AUTO_SCHEDULER_LOOP_FEATURES_BUFFER_FACTS_H_

#include <tvm/auto_scheduler/loop_features.h>

namespace tvm {
namespace auto_scheduler {

/*! \brief How the store uses the buffer of one of its accesses. */
BufferFacts FactsOf(const StoreFacts& store, const AccessInfo& access);

}  // namespace auto_scheduler
}  // namespace tvm

#endif  // TVM_AUTO_SCHEDULER_LOOP_FEATURES_BUFFER_FACTS_H_
