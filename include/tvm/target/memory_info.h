/*!
 * \file tvm/target/memory_info.h
 * \brief What is said of the special memory of a machine, scope by scope.
 */
#ifndef TVM_TARGET_MEMORY_INFO_H_
#define TVM_TARGET_MEMORY_INFO_H_

#include <tvm/expr/expr.h>
#include <tvm/node/node.h>

namespace tvm {

/*!
 * \brief Sizes of the memory behind a storage scope, in bits.
 *
 * The global function `tvm.info.mem.<scope>` gives those of a scope.
 */
class MemoryInfoNode : public Object {
 public:
  /*! \brief What an address counts. */
  int64_t unit_bits = 0;
  /*! \brief All there is; 0 is no limit. */
  int64_t max_num_bits = 0;
  /*! \brief What one access moves; allocations begin at multiples of it. */
  int64_t max_simd_bits = 0;
  /*! \brief Where it begins, if that is fixed. */
  Optional<PrimExpr> head_address;
  TVM_DECLARE_NODE(MemoryInfoNode, Object, "MemoryInfo", Value(unit_bits), Value(max_num_bits),
                   Value(max_simd_bits), Default(head_address));
};

/*! \brief Reference to a MemoryInfoNode. */
class MemoryInfo : public ObjectRef {
 public:
  /*! \brief What is registered for `scope`, if something is. */
  static Optional<MemoryInfo> Of(const String& scope);
  TVM_DEFINE_REF(MemoryInfo, ObjectRef, MemoryInfoNode);
};

}  // namespace tvm
#endif  // TVM_TARGET_MEMORY_INFO_H_
