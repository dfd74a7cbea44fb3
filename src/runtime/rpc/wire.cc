#include "wire.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <tvm/runtime/logging.h>
#include <tvm/runtime/registry.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tvm {
namespace runtime {
namespace rpc {
namespace {

constexpr size_t kHeaderBytes = 12;

void PutLittleEndian(uint64_t value, size_t bytes, uint8_t* to) {
  for (size_t i = 0; i < bytes; ++i) to[i] = static_cast<uint8_t>(value >> (8 * i));
}

uint64_t GetLittleEndian(const uint8_t* from, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value |= uint64_t{from[i]} << (8 * i);
  return value;
}

// A signal interrupted a call of the system: Python may have to raise KeyboardInterrupt, which it
// does when it runs anything.
void HandleSignals() {
  if (const PackedFunc* handler = Registry::Get("rpc.HandleSignals")) (*handler)();
}

}  // namespace

void Wire::SetTimeLimit(double seconds) {
  using Clock = std::chrono::steady_clock;
  if (seconds <= 0) {
    deadline_.reset();
    return;
  }
  // What is longer than a year never ends.
  const std::chrono::duration<double> limit(std::min(seconds, 3.2e7));
  deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
}

void Wire::WaitFor(short events) {
  if (!deadline_) return;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::microseconds>(
        *deadline_ - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      const std::string peer = peer_;
      Close();
      TVM_FATAL(RPCSessionTimeoutError)
          << "rpc: no answer from " << peer
          << " within the time limit, so the session was ended; give it a longer session_timeout";
    }
    timespec time{left.count() / 1000000, left.count() % 1000000 * 1000};
    pollfd poll{socket_, events, 0};
    const int ready = ppoll(&poll, 1, &time, nullptr);
    if (ready > 0) return;
    if (ready < 0) WaitAfter(errno);
  }
}

void Wire::WaitAfter(int error) {
  if (error == EAGAIN || error == EWOULDBLOCK) return;
  if (error == EINTR) {
    HandleSignals();
    return;
  }
  const std::string peer = peer_;
  Close();
  TVM_FATAL(RPCError) << "rpc: the connection to " << peer << " broke: " << std::strerror(error);
}

void Wire::Send(std::string_view text, const std::vector<Piece>& blob) {
  TVM_CHECK(!closed(), RPCError) << "rpc: the session with " << peer_
                                 << " has ended; connect again";
  uint64_t blob_bytes = 0;
  for (const Piece& piece : blob) blob_bytes += piece.size;
  uint8_t header[kHeaderBytes];
  PutLittleEndian(text.size(), 4, header);
  PutLittleEndian(blob_bytes, 8, header + 4);
  std::vector<iovec> parts = {{header, kHeaderBytes},
                              {const_cast<char*>(text.data()), text.size()}};
  for (const Piece& piece : blob) {
    if (piece.size != 0) parts.push_back({const_cast<void*>(piece.data), piece.size});
  }
  size_t first = 0;
  while (first < parts.size()) {
    WaitFor(POLLOUT);
    msghdr message{};
    message.msg_iov = parts.data() + first;
    message.msg_iovlen = std::min<size_t>(parts.size() - first, 64);
    ssize_t sent = sendmsg(socket_, &message, MSG_NOSIGNAL | (deadline_ ? MSG_DONTWAIT : 0));
    if (sent < 0) {
      WaitAfter(errno);
      continue;
    }
    while (first < parts.size() && static_cast<size_t>(sent) >= parts[first].iov_len) {
      sent -= static_cast<ssize_t>(parts[first++].iov_len);
    }
    if (first < parts.size()) {
      parts[first].iov_base = static_cast<char*>(parts[first].iov_base) + sent;
      parts[first].iov_len -= static_cast<size_t>(sent);
    }
  }
}

void Wire::Send(const json::Value& message) {
  std::string text;
  message.Write(&text);
  Send(text);
}

bool Wire::Fill(void* to, size_t size, bool may_end) {
  auto* at = static_cast<char*>(to);
  size_t got = 0;
  while (got < size) {
    TVM_CHECK(!closed(), RPCError)
        << "rpc: the session with " << peer_ << " has ended; connect again";
    WaitFor(POLLIN);
    const ssize_t part = recv(socket_, at + got, size - got, deadline_ ? MSG_DONTWAIT : 0);
    if (part > 0) {
      got += static_cast<size_t>(part);
    } else if (part < 0) {
      WaitAfter(errno);
    } else if (got == 0 && may_end) {
      return false;
    } else {
      const std::string peer = peer_;
      Close();
      TVM_FATAL(RPCError) << "rpc: the connection to " << peer
                          << " was closed in the middle of a message";
    }
  }
  return true;
}

std::optional<std::string> Wire::ReceiveText(const Limits& limits, uint64_t* blob_bytes) {
  uint8_t header[kHeaderBytes];
  if (!Fill(header, kHeaderBytes, true)) return std::nullopt;
  const uint64_t text_bytes = GetLittleEndian(header, 4);
  *blob_bytes = GetLittleEndian(header + 4, 8);
  if (text_bytes > limits.text_bytes) {
    const std::string peer = peer_;
    Close();
    TVM_FATAL(RPCError) << "rpc: a message of " << text_bytes << " bytes came from " << peer << ", "
                        << limits.text_bytes << " are allowed; is it a tvm.rpc program?";
  }
  std::string text(text_bytes, '\0');
  Fill(text.data(), text.size(), false);
  return text;
}

json::Value Wire::Receive(const Limits& limits) {
  uint64_t blob_bytes = 0;
  const std::optional<std::string> text = ReceiveText(limits, &blob_bytes);
  TVM_CHECK(text && blob_bytes == 0, RPCError)
      << "rpc: " << peer_ << (text ? " sent what it should not" : " closed the connection");
  return json::Value::Parse(*text, limits.nesting);
}

void Wire::ReceiveBytes(void* to, size_t size) { Fill(to, size, false); }

void Wire::Skip(uint64_t size) {
  std::vector<char> scratch(static_cast<size_t>(std::min<uint64_t>(size, 1 << 16)));
  while (size > 0) {
    const auto part = static_cast<size_t>(std::min<uint64_t>(size, scratch.size()));
    ReceiveBytes(scratch.data(), part);
    size -= part;
  }
}

bool Wire::Ready() const {
  pollfd poll{socket_, POLLIN, 0};
  return ::poll(&poll, 1, 0) > 0;
}

int Wire::Release() {
  const int socket = socket_;
  socket_ = -1;
  return socket;
}

void Wire::Close() {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
}

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
