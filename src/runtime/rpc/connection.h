/*!
 * \file connection.h
 * \brief How two programs meet: listening, connecting, and saying who one is.
 *
 * The listening side speaks first. With a secret, each side proves that it knows it by an HMAC over
 * what it says and both nonces; the secret itself never travels. See docs/rpc.md.
 */
#ifndef TVM_RUNTIME_RPC_CONNECTION_H_
#define TVM_RUNTIME_RPC_CONNECTION_H_

#include <tvm/runtime/packed_func.h>

#include <memory>
#include <string>
#include <vector>

#include "wire.h"

namespace tvm {
namespace runtime {
namespace rpc {

/*! \brief Number of the protocol; the ends of a connection must agree on it. */
constexpr int64_t kProtocol = 1;

/*! \brief A socket that listens, and its port. */
struct Listener {
  int socket;
  int port;
};

/*!
 * \brief Listen on the first free port of [port, port_end); 0 lets the system choose.
 * \param who The program, for messages.
 * \param has_secret Without a secret, only this machine's own addresses may be listened on.
 */
Listener Listen(const std::string& who, const std::string& host, int port, int port_end,
                bool has_secret);

/*! \brief Connect within `seconds`; RPCError that says what to do. */
std::unique_ptr<Wire> Dial(const std::string& host, int port, double seconds);

/*! \brief Keep the connection alive, notice when the other machine is gone, and send at once. */
void TuneSocket(int socket);

/*! \brief What an accepted connection asks for, proven if there is a secret. */
class Reception {
 public:
  /*! \brief Raises RPCError after telling the other side, for a stranger. */
  Reception(Wire* wire, const std::string& role, const std::string& secret);
  const json::Value& request() const { return request_; }
  /*! \brief Say why nothing comes yet. */
  void Wait(const std::string& reason);
  void Accept(const json::Value& reply);
  void Refuse(const std::string& reason);

 private:
  Wire* wire_;
  std::string secret_, own_nonce_, other_nonce_;
  json::Value request_;
};

/*!
 * \brief Ask an accepting program for something; its reply.
 * \param wanted Roles of programs that can answer: "server", "proxy", "tracker".
 *
 * RPCError if it is another program, or refuses.
 */
json::Value Introduce(Wire* wire, const json::Value& request, const std::string& secret,
                      const std::vector<std::string>& wanted);

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_RPC_CONNECTION_H_
