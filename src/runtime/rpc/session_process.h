/*!
 * \file session_process.h
 * \brief What a session's own process does.
 */
#ifndef TVM_RUNTIME_RPC_SESSION_PROCESS_H_
#define TVM_RUNTIME_RPC_SESSION_PROCESS_H_

#include <string>

#include "server.h"

namespace tvm {
namespace runtime {
namespace rpc {

/*! \brief What its supervisor hands to the process of a session. */
struct SessionStart {
  /*! \brief Connection to the client. */
  int client;
  /*! \brief To the supervisor: the request goes up, permission comes down. */
  int supervisor;
  /*! \brief What the client must ask for; empty for the server's own key. */
  std::string match_key;
  /*! \brief The client has been received already, by a proxy. */
  bool received = false;
};

/*! \brief Receive the client, wait for permission, and serve. Never returns. */
[[noreturn]] void RunSessionProcess(const ServerOptions& options, SessionStart start);

/*! \brief Folder of the session of a process. */
std::string SessionFolder(const ServerOptions& options, int process);
/*! \brief Remove a folder with everything in it. */
void RemoveFolder(const std::string& path);

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_RPC_SESSION_PROCESS_H_
