#include "session_process.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <tvm/runtime/logging.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "connection.h"
#include "session.h"
#include "session_functions.h"

namespace tvm {
namespace runtime {
namespace rpc {
namespace {

using json::ArrayValue;
using json::ObjectValue;
using json::Value;

// Of a stranger who connects and says nothing.
constexpr double kReceptionSeconds = 10;
// A client that sees that a server is busy is told so this soon.
constexpr int kBusyMilliseconds = 200;

/*! \brief Hand bytes on in both directions until one end closes. */
void Relay(int a, int b) {
  std::vector<char> buffer(1 << 18);
  pollfd ends[2] = {{a, POLLIN, 0}, {b, POLLIN, 0}};
  for (;;) {
    if (poll(ends, 2, -1) < 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (ends[i].revents == 0) continue;
      const ssize_t got = recv(ends[i].fd, buffer.data(), buffer.size(), 0);
      if (got <= 0) return;
      for (ssize_t at = 0; at < got;) {
        const ssize_t sent =
            send(ends[1 - i].fd, buffer.data() + at, static_cast<size_t>(got - at), MSG_NOSIGNAL);
        if (sent < 0) return;
        at += sent;
      }
    }
  }
}

/*! \brief Connect to where the client wants its session to be; null for here. */
std::unique_ptr<Wire> Onward(const Value& request, const std::string& secret) {
  const Value* constructor = request.Find("constructor");
  if (constructor == nullptr) return nullptr;
  const auto& parts = constructor->Expect<ArrayValue>("constructor");
  if (parts.empty()) return nullptr;
  const auto& name = parts[0].Expect<std::string>("constructor");
  TVM_CHECK(name == "rpc.Connect" && parts.size() >= 4, RPCError)
      << "there is no session constructor \"" << name
      << "\"; there is [\"rpc.Connect\", host, port, key]";
  const auto port = static_cast<int>(parts[2].Expect<int64_t>("port"));
  auto wire = Dial(parts[1].Expect<std::string>("host"), port, kReceptionSeconds);
  wire->SetTimeLimit(kReceptionSeconds);
  ObjectValue next = {{"role", Value(std::string("client"))}, {"key", parts[3]}};
  if (const Value* timeout = request.Find("timeout")) next.emplace_back("timeout", *timeout);
  Introduce(wire.get(), Value(std::move(next)), secret, {"server", "proxy"});
  return wire;
}

void AwaitPermission(const SessionStart& start, Reception* reception) {
  pollfd poll{start.supervisor, POLLIN, 0};
  if (::poll(&poll, 1, kBusyMilliseconds) == 0 && reception != nullptr) {
    reception->Wait("the device is busy with another session");
  }
  char permission = 0;
  if (recv(start.supervisor, &permission, 1, 0) != 1) _exit(0);
}

void CheckKey(const Value& request, const ServerOptions& options, const SessionStart& start) {
  const std::string key = request.At("key", "request").Expect<std::string>("key");
  if (!start.match_key.empty() || !options.tracker_host.empty()) {
    TVM_CHECK(key == start.match_key && !key.empty(), RPCError)
        << "the key \"" << key.substr(0, key.find(':'))
        << "\" is not that of the tracker's current assignment; ask the tracker for a session "
           "with connect_tracker(...).request(...)";
    return;
  }
  TVM_CHECK(key == options.key || options.key.empty(), RPCError)
      << "the key \"" << key << "\" is not that of this server; it serves another kind of device";
}

void Serve(const ServerOptions& options, const SessionStart& start) {
  int socket = start.client;
  if (options.secure.defined() && !start.received) {
    socket = options.secure(socket, true).cast<int>();
  }
  auto wire = std::make_unique<Wire>(socket);
  wire->SetPeer("the client");
  std::unique_ptr<Reception> reception;
  std::unique_ptr<Wire> onward;
  Value request;
  if (!start.received) {
    wire->SetTimeLimit(kReceptionSeconds);
    reception = std::make_unique<Reception>(wire.get(), "server", options.secret);
    try {
      request = reception->request();
      CheckKey(request, options, start);
      onward = Onward(request, options.secret);
    } catch (const Error& error) {
      reception->Refuse(error.message());
      return;
    }
    wire->SetTimeLimit(0);
    double timeout = 0;
    if (const Value* wanted = request.Find("timeout")) {
      const auto* number = wanted->as<double>();
      timeout = number != nullptr ? *number : static_cast<double>(wanted->Expect<int64_t>("s"));
    }
    Wire supervisor(dup(start.supervisor));
    supervisor.Send(Value(ObjectValue{{"timeout", Value(timeout)}}));
  }
  AwaitPermission(start, reception.get());
  if (reception != nullptr) {
    reception->Accept(Value(ObjectValue{{"key", Value(options.key)}}));
  }
  if (onward != nullptr) return Relay(wire->socket(), onward->socket());
  const std::string folder = SessionFolder(options, getpid());
  TVM_CHECK(mkdir(folder.c_str(), 0700) == 0, RuntimeError)
      << "rpc_server: no folder can be made in " << options.work_folder;
  Session::Make(std::move(wire),
                ServedFunctions(folder, options.allowed, options.load_module, options.link_module),
                options.limits)
      ->Serve();
}

}  // namespace

std::string SessionFolder(const ServerOptions& options, int process) {
  return options.work_folder + "/session-" + std::to_string(process);
}

void RemoveFolder(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

void RunSessionProcess(const ServerOptions& options, SessionStart start) {
  // A crash is an expected outcome here, and its core file would only fill the disk.
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  int status = 0;
  try {
    Serve(options, start);
  } catch (const Error& error) {
    // The client has been told, or is gone; the server's log says why.
    LOG(INFO) << "rpc_server: a session ended: " << error.message();
  } catch (const std::exception& error) {
    LOG(WARNING) << "rpc_server: a session ended: " << error.what();
    status = 1;
  }
  RemoveFolder(SessionFolder(options, getpid()));
  // What code of the session left behind, such as threads, is not waited for.
  _exit(status);
}

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
