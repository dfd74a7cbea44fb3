/*!
 * \file wire.h
 * \brief Messages over a connected socket: lengths, JSON, raw bytes.
 *
 * The format is that of `tvm.runtime.workers.wire`: the bytes of the JSON text as 32 bits and those
 * of the blob as 64, both little-endian, then the text, then the blob.
 */
#ifndef TVM_RUNTIME_RPC_WIRE_H_
#define TVM_RUNTIME_RPC_WIRE_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/json.h"

namespace tvm {
namespace runtime {
namespace rpc {

/*! \brief The member of a message that is a whole number; ValueError if there is none. */
inline int64_t IntegerOf(const json::Value& message, const char* name) {
  return message.At(name, "message").Expect<int64_t>(name);
}

/*! \brief The member of a message that is text; ValueError if there is none. */
inline const std::string& TextOf(const json::Value& message, const char* name) {
  return message.At(name, "message").Expect<std::string>(name);
}

/*! \brief Bytes that are sent from where they lie. */
struct Piece {
  const void* data;
  size_t size;
};

/*! \brief What a peer may ask for; whatever is beyond ends the connection. */
struct Limits {
  /*! \brief Bytes of one JSON text. */
  size_t text_bytes = 16 << 20;
  /*! \brief Bytes of one blob that is not copied into an array that is there already. */
  uint64_t blob_bytes = uint64_t{1} << 30;
  /*! \brief Nesting of lists and objects in a message. */
  int nesting = 64;
  /*! \brief Objects that a session keeps for its peer. */
  size_t objects = 1 << 20;
};

/*! \brief Where a connection is: before who is there is known, little may be sent. */
inline Limits LimitsOfStrangers() { return Limits{1 << 16, 0, 8, 0}; }

/*!
 * \brief One end of a connection. RPCError for what cannot be sent or received, and
 * RPCSessionTimeoutError when the time limit ends first; the connection is then of no use.
 */
class Wire {
 public:
  /*! \brief Takes over a connected stream socket. */
  explicit Wire(int socket) : socket_(socket) {}
  Wire(const Wire&) = delete;
  ~Wire() { Close(); }

  /*! \brief Give up waiting this many seconds from now; 0 for never. */
  void SetTimeLimit(double seconds);
  /*! \brief Who is there, for messages. */
  void SetPeer(std::string peer) { peer_ = std::move(peer); }
  const std::string& peer() const { return peer_; }

  void Send(std::string_view text, const std::vector<Piece>& blob = {});
  void Send(const json::Value& message);
  /*! \brief The next text and the size of the blob, which is still to be received. Nothing at the
   *         end of the stream. */
  std::optional<std::string> ReceiveText(const Limits& limits, uint64_t* blob_bytes);
  /*! \brief A message without blob; RPCError at the end of the stream. */
  json::Value Receive(const Limits& limits);
  /*! \brief The next `size` bytes of a blob. */
  void ReceiveBytes(void* to, size_t size);
  /*! \brief Pass over bytes of a blob. */
  void Skip(uint64_t size);

  /*! \brief Whether something can be received without waiting. */
  bool Ready() const;
  bool closed() const { return socket_ < 0; }
  int socket() const { return socket_; }
  /*! \brief The socket, which is the caller's from now on. */
  int Release();
  void Close();

 private:
  /*! \brief False at the end of the stream before the first byte. */
  bool Fill(void* to, size_t size, bool may_end);
  void WaitFor(short events);
  void WaitAfter(int error);

  int socket_;
  std::string peer_ = "the other side";
  std::optional<std::chrono::steady_clock::time_point> deadline_;
};

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_RPC_WIRE_H_
