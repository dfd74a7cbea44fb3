/*!
 * \file session_functions.h
 * \brief What the other end of a session may call by name: files of the session, and registered
 * functions that are on a list.
 */
#ifndef TVM_RUNTIME_RPC_SESSION_FUNCTIONS_H_
#define TVM_RUNTIME_RPC_SESSION_FUNCTIONS_H_

#include <string>
#include <vector>

#include "session.h"

namespace tvm {
namespace runtime {
namespace rpc {

/*! \brief Names of registered functions that measuring needs; a "*" at the end stands for any. */
std::vector<std::string> DefaultAllowedFunctions();

/*!
 * \brief The finder of a serving session.
 * \param folder Where the session's files are; nothing outside of it is reached.
 * \param allowed Names as in DefaultAllowedFunctions.
 * \param load_module Path to module; null for libraries only.
 * \param link_module Path of an archive to the path of a library; null if there is no linker.
 */
FunctionFinder ServedFunctions(std::string folder, std::vector<std::string> allowed,
                               PackedFunc load_module, PackedFunc link_module);

/*! \brief Path of a session's file; ValueError for a name that leads out of the folder. */
std::string ConfinedPath(const std::string& folder, const std::string& name);

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_RPC_SESSION_FUNCTIONS_H_
