/*!
 * \file server.h
 * \brief A server: a process for each session, and a supervisor that outlives them all.
 */
#ifndef TVM_RUNTIME_RPC_SERVER_H_
#define TVM_RUNTIME_RPC_SERVER_H_

#include <tvm/runtime/packed_func.h>

#include <string>
#include <vector>

#include "wire.h"

namespace tvm {
namespace runtime {
namespace rpc {

struct ServerOptions {
  /*! \brief A socket that listens, and its port; -1 for a server behind a proxy. */
  int socket = -1;
  int port = 0;
  /*! \brief What clients ask for. */
  std::string key;
  /*! \brief Empty for none. */
  std::string secret;
  /*! \brief Tracker to register with, if the host is not empty. */
  std::string tracker_host;
  int tracker_port = 0;
  /*! \brief Address that clients are told by the tracker; empty for the one it sees. */
  std::string custom_address;
  /*! \brief Proxy to wait for clients at, if the host is not empty. */
  std::string proxy_host;
  int proxy_port = 0;
  /*! \brief Folder in which each session has one of its own. */
  std::string work_folder;
  std::vector<std::string> allowed;
  Limits limits;
  /*! \brief Sessions at a time; others wait. */
  int max_sessions = 1;
  /*! \brief Seconds that a session may last if the client says nothing; 0 for any. */
  double session_timeout = 0;
  /*! \brief Process that this one ends with; 0 for none. */
  int parent = 0;
  /*! \brief As of ServedFunctions. */
  PackedFunc load_module, link_module;
  /*! \brief () to a process number as fork(); null for the system's own. */
  PackedFunc fork;
  /*! \brief (socket, whether this end was connected to) to a socket of plain bytes, with TLS behind
   *         it; null for none. */
  PackedFunc secure;
};

/*! \brief Serve until the process is told to end by SIGTERM or SIGINT; its sessions end with it. */
void RunServer(ServerOptions options);

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_RPC_SERVER_H_
