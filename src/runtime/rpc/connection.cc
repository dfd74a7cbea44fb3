#include "connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <tvm/runtime/logging.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "secret.h"

namespace tvm {
namespace runtime {
namespace rpc {
namespace {

using json::ObjectValue;
using json::Value;

constexpr const char* kGreeting = "tvm-rpc";

std::string Place(const std::string& host, int port) { return host + ":" + std::to_string(port); }

struct Addresses {
  addrinfo* first = nullptr;
  ~Addresses() {
    if (first != nullptr) freeaddrinfo(first);
  }
};

void Resolve(const std::string& who, const std::string& host, int port, int flags,
             Addresses* found) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  const int error = getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(),
                                &hints, &found->first);
  TVM_CHECK(error == 0, RPCError) << who << ": the host \"" << host << "\" is not known here ("
                                  << gai_strerror(error)
                                  << "); check its name, or give its address";
}

bool IsLoopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
  }
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

int PortOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

void SetPort(sockaddr* address, int port) {
  const auto in_order = htons(static_cast<uint16_t>(port));
  if (address->sa_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = in_order;
  } else {
    reinterpret_cast<sockaddr_in*>(address)->sin_port = in_order;
  }
}

// 0, or why not.
int ConnectWithin(int socket, const addrinfo* to, double seconds) {
  if (connect(socket, to->ai_addr, to->ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd poll{socket, POLLOUT, 0};
  if (::poll(&poll, 1, static_cast<int>(seconds * 1e3)) <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

std::string Proof(const std::string& secret, const char* side, const std::string& own,
                  const std::string& other, const std::string& text) {
  return HmacSha256(secret,
                    std::string("tvm-rpc 1 ") + side + "\n" + own + "\n" + other + "\n" + text);
}

void CheckProof(Wire* wire, const Value& message, const std::string& expected) {
  const Value* proof = message.Find("proof");
  const auto* text = proof == nullptr ? nullptr : proof->as<std::string>();
  TVM_CHECK(text != nullptr && EqualInConstantTime(*text, expected), RPCError)
      << "rpc: " << wire->peer()
      << " does not know the secret of this program; give both the same TVM_RPC_SECRET_FILE";
}

/*! \brief The first words of an accepting program, which says them unless it waits for TLS. */
Value ReceiveGreeting(Wire* wire) {
  const std::string peer = wire->peer();
  uint64_t blob_bytes = 0;
  std::optional<std::string> text;
  try {
    text = wire->ReceiveText(LimitsOfStrangers(), &blob_bytes);
  } catch (const Error& error) {
    if (error.kind() != "RPCSessionTimeoutError") throw;
    TVM_FATAL(RPCSessionTimeoutError)
        << "rpc: " << peer
        << " did not say in time what it is; it stands still, or wants TLS: then give this program "
           "certificates";
  }
  TVM_CHECK(text, RPCError)
      << "rpc: " << peer
      << " closed the connection before it said what it is; it ended, or wants TLS: then give this "
         "program certificates, one of its own among them if that one asks for it";
  TVM_CHECK(blob_bytes == 0, RPCError) << "rpc: " << peer << " is no program of tvm.rpc";
  return Value::Parse(*text, LimitsOfStrangers().nesting);
}

/*! \brief Programs of different kinds understand each other's greetings, and nothing after them. */
void CheckRole(const std::string& peer, const Value& greeting,
               const std::vector<std::string>& wanted) {
  const std::string role = TextOf(greeting, "role");
  if (std::find(wanted.begin(), wanted.end(), role) != wanted.end()) return;
  TVM_CHECK(role == "server" || role == "proxy" || role == "tracker", RPCError)
      << "rpc: " << peer << " is no program of tvm.rpc";
  std::string names;
  for (const std::string& name : wanted) names += (names.empty() ? "a " : " or a ") + name;
  TVM_FATAL(RPCError) << "rpc: " << peer << " is a " << role << ", where " << names
                      << " is wanted; look at the port"
                      << (role == "tracker" ? ", or ask it for a server with connect_tracker" : "");
}

}  // namespace

Listener Listen(const std::string& who, const std::string& host, int port, int port_end,
                bool has_secret) {
  TVM_CHECK(port >= 0 && port < 65536 && port_end <= 65536, ValueError)
      << who << ": ports are 1 to 65535, or 0 for any, got " << port;
  Addresses found;
  Resolve(who, host, port, AI_PASSIVE, &found);
  const addrinfo* chosen = found.first;
  // "localhost" has two addresses; programs that name 127.0.0.1 want the older one.
  for (const addrinfo* at = found.first; at != nullptr; at = at->ai_next) {
    if (at->ai_family == AF_INET) {
      chosen = at;
      break;
    }
  }
  TVM_CHECK(has_secret || IsLoopback(chosen->ai_addr), RPCError)
      << who << ": listening on \"" << host
      << "\" lets other machines in, which takes a shared secret; put one into a file and name it "
         "in TVM_RPC_SECRET_FILE here and for the clients, or listen on 127.0.0.1";
  int error = EADDRINUSE;
  for (int at = port; at == port || at < port_end; ++at) {
    const int socket = ::socket(chosen->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    TVM_CHECK(socket >= 0, RPCError) << who << ": no socket: " << std::strerror(errno);
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    SetPort(chosen->ai_addr, at);
    if (bind(socket, chosen->ai_addr, chosen->ai_addrlen) == 0 && listen(socket, 128) == 0) {
      return {socket, PortOf(socket)};
    }
    error = errno;
    close(socket);
    if (error != EADDRINUSE) break;
  }
  std::string tried = std::to_string(port);
  if (port_end > port + 1) tried += " to " + std::to_string(port_end - 1);
  TVM_FATAL(RPCError) << who << ": cannot listen on port " << tried << " of " << host << ": "
                      << std::strerror(error)
                      << (error == EADDRINUSE ? "; choose another port, or a range with port_end"
                                              : "");
}

void TuneSocket(int socket) {
  const int yes = 1, idle = 30, interval = 10, probes = 3;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

std::unique_ptr<Wire> Dial(const std::string& host, int port, double seconds) {
  TVM_CHECK(port > 0 && port < 65536, ValueError) << "rpc: " << port << " is no port";
  Addresses found;
  Resolve("rpc", host, port, 0, &found);
  int error = 0;
  for (const addrinfo* at = found.first; at != nullptr; at = at->ai_next) {
    const int socket =
        ::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol);
    if (socket < 0) {
      error = errno;
      continue;
    }
    error = ConnectWithin(socket, at, seconds);
    if (error != 0) {
      close(socket);
      continue;
    }
    // The wire waits by itself where there is a time limit.
    fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) & ~O_NONBLOCK);
    TuneSocket(socket);
    auto wire = std::make_unique<Wire>(socket);
    wire->SetPeer(Place(host, port));
    return wire;
  }
  TVM_FATAL(RPCError) << "rpc: cannot connect to " << Place(host, port) << ": "
                      << std::strerror(error)
                      << "; is a tracker or server running there, on that port?";
}

Reception::Reception(Wire* wire, const std::string& role, const std::string& secret)
    : wire_(wire), secret_(secret), own_nonce_(RandomNonce()) {
  wire_->Send(Value(ObjectValue{{kGreeting, Value(kProtocol)},
                                {"role", Value(role)},
                                {"nonce", Value(own_nonce_)},
                                {"secret", Value(!secret.empty())}}));
  const Value answer = wire_->Receive(LimitsOfStrangers());
  const Value* protocol = answer.Find(kGreeting);
  const auto* number = protocol == nullptr ? nullptr : protocol->as<int64_t>();
  if (number == nullptr || *number != kProtocol) {
    Refuse("it speaks version " + std::to_string(kProtocol) +
           " of the protocol and you do not; install the same tvm at both ends");
    TVM_FATAL(RPCError) << "rpc: " << wire->peer() << " speaks another version of the protocol";
  }
  const std::string text = TextOf(answer, "request");
  other_nonce_ = TextOf(answer, "nonce");
  if (!secret_.empty()) {
    try {
      CheckProof(wire_, answer, Proof(secret_, "client", other_nonce_, own_nonce_, text));
    } catch (const Error&) {
      Refuse("the secret is wrong; give both programs the same TVM_RPC_SECRET_FILE");
      throw;
    }
  }
  request_ = Value::Parse(text, LimitsOfStrangers().nesting);
}

void Reception::Wait(const std::string& reason) {
  wire_->Send(Value(ObjectValue{{"wait", Value(reason)}}));
}

void Reception::Accept(const Value& reply) {
  std::string text;
  reply.Write(&text);
  ObjectValue message = {{"reply", Value(text)}};
  if (!secret_.empty()) {
    message.emplace_back("proof", Value(Proof(secret_, "server", own_nonce_, other_nonce_, text)));
  }
  wire_->Send(Value(std::move(message)));
}

void Reception::Refuse(const std::string& reason) {
  wire_->Send(Value(ObjectValue{{"refused", Value(reason)}}));
}

Value Introduce(Wire* wire, const Value& request, const std::string& secret,
                const std::vector<std::string>& wanted) {
  const std::string peer = wire->peer();
  const Value greeting = ReceiveGreeting(wire);
  const Value* protocol = greeting.Find(kGreeting);
  const auto* number = protocol == nullptr ? nullptr : protocol->as<int64_t>();
  TVM_CHECK(number != nullptr, RPCError) << "rpc: " << peer << " is no program of tvm.rpc";
  TVM_CHECK(*number == kProtocol, RPCError)
      << "rpc: " << peer << " speaks version " << *number << " of the protocol, this program "
      << kProtocol << "; install the same tvm at both ends";
  CheckRole(peer, greeting, wanted);
  const bool wants_secret = greeting.At("secret", "greeting").Expect<bool>("secret");
  TVM_CHECK(!wants_secret || !secret.empty(), RPCError)
      << "rpc: " << peer << " wants a secret; name the file that has it in TVM_RPC_SECRET_FILE";
  TVM_CHECK(wants_secret || secret.empty(), RPCError)
      << "rpc: " << peer
      << " has no secret, so it cannot prove who it is; start it with this program's "
         "TVM_RPC_SECRET_FILE, or unset that here";
  const std::string other = TextOf(greeting, "nonce"), own = RandomNonce();
  std::string text;
  request.Write(&text);
  ObjectValue answer = {
      {kGreeting, Value(kProtocol)}, {"nonce", Value(own)}, {"request", Value(text)}};
  if (!secret.empty()) {
    answer.emplace_back("proof", Value(Proof(secret, "client", own, other, text)));
  }
  wire->Send(Value(std::move(answer)));
  std::string waiting_for;
  for (;;) {
    Value message;
    try {
      message = wire->Receive(LimitsOfStrangers());
    } catch (const Error& error) {
      if (error.kind() != "RPCSessionTimeoutError" || waiting_for.empty()) throw;
      TVM_FATAL(RPCSessionTimeoutError)
          << "rpc: " << peer << ": " << waiting_for
          << ", and it did not become free in time; wait longer, or ask a tracker for another";
    }
    if (const Value* wait = message.Find("wait")) {
      waiting_for = wait->Expect<std::string>("wait");
      continue;
    }
    if (const Value* refused = message.Find("refused")) {
      TVM_FATAL(RPCError) << "rpc: " << peer
                          << " refused: " << refused->Expect<std::string>("refused");
    }
    const std::string reply = TextOf(message, "reply");
    if (!secret.empty()) CheckProof(wire, message, Proof(secret, "server", other, own, reply));
    return Value::Parse(reply, LimitsOfStrangers().nesting);
  }
}

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
