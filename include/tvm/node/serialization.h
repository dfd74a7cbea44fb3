/*!
 * \file tvm/node/serialization.h
 * \brief Object graphs to and from JSON text.
 */
#ifndef TVM_NODE_SERIALIZATION_H_
#define TVM_NODE_SERIALIZATION_H_

#include <tvm/node/node.h>

#include <string>

namespace tvm {

/*! \brief JSON text of a graph; an object used twice is written once. */
TVM_DLL std::string SaveJSON(const Any& root);

/*!
 * \brief The graph a text describes.
 *
 * ValueError for text that is not JSON, lacks the expected structure, names an unknown type or
 * field, refers forward or out of range, or has another format version.
 */
TVM_DLL Any LoadJSON(const std::string& text);

}  // namespace tvm

#endif  // TVM_NODE_SERIALIZATION_H_
