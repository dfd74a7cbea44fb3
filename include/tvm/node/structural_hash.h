/*!
 * \file tvm/node/structural_hash.h
 * \brief Hash of object graphs that agrees with StructuralEqual.
 */
#ifndef TVM_NODE_STRUCTURAL_HASH_H_
#define TVM_NODE_STRUCTURAL_HASH_H_

#include <tvm/node/node.h>

#include <cstdint>

namespace tvm {

/*!
 * \brief The same number in every process, unless the graph has free variables and
 * `map_free_vars` is false: a free variable is then known by its address only.
 */
struct StructuralHash {
  TVM_DLL size_t operator()(const Any& value, bool map_free_vars = false) const;
  size_t operator()(const ObjectRef& ref) const { return (*this)(Any(ref)); }
};

/*! \brief Mix `value` into `seed`; order matters. */
inline uint64_t HashCombine(uint64_t seed, uint64_t value) {
  seed ^= value + 0x9e3779b97f4a7c15ULL + (seed << 12) + (seed >> 4);
  seed ^= seed >> 29;
  return seed * 0xbf58476d1ce4e5b9ULL;
}

}  // namespace tvm

#endif  // TVM_NODE_STRUCTURAL_HASH_H_
