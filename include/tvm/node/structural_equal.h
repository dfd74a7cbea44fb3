/*!
 * \file tvm/node/structural_equal.h
 * \brief Equality of object graphs up to the renaming of bound variables.
 */
#ifndef TVM_NODE_STRUCTURAL_EQUAL_H_
#define TVM_NODE_STRUCTURAL_EQUAL_H_

#include <tvm/node/node.h>

#include <optional>
#include <string>

namespace tvm {

/*! \brief Where two graphs differ first. */
struct StructuralMismatch {
  /*! \brief Path from the root, such as `<root>.body.extent`. */
  std::string path;
  /*! \brief What was found on either side. */
  std::string reason;
};

/*!
 * \brief The first difference in field order, or nothing when the graphs are equal.
 * \param map_free_vars Let variables that no Bind field introduced correspond as well, each to
 *        one variable of the other side; otherwise such a variable equals only itself.
 */
TVM_DLL std::optional<StructuralMismatch> FindStructuralMismatch(const Any& lhs, const Any& rhs,
                                                                 bool map_free_vars = false);

/*! \brief Function object, usable as the Equal parameter of a hash map. */
struct StructuralEqual {
  TVM_DLL bool operator()(const Any& lhs, const Any& rhs, bool map_free_vars = false) const;
  bool operator()(const ObjectRef& lhs, const ObjectRef& rhs) const {
    return (*this)(Any(lhs), Any(rhs));
  }
};

}  // namespace tvm

#endif  // TVM_NODE_STRUCTURAL_EQUAL_H_
