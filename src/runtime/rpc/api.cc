/*!
 * \file api.cc
 * \brief What Python calls by name.
 */
#include <sys/socket.h>
#include <tvm/runtime/container.h>
#include <tvm/runtime/registry.h>

#include <thread>

#include "connection.h"
#include "secret.h"
#include "server.h"
#include "session.h"
#include "session_functions.h"

namespace tvm {
namespace runtime {
namespace rpc {
namespace {

using json::ArrayValue;
using json::ObjectValue;
using json::Value;

// Over the time a session may last: its server ends it, and says so.
constexpr double kServerIsLate = 5;

class SessionRef : public ObjectRef {
 public:
  TVM_DEFINE_MUTABLE_REF(SessionRef, ObjectRef, Session);
};

SessionRef Refer(const ObjectPtr<Session>& session) {
  return SessionRef(ObjectPtr<Object>(session));
}

std::unique_ptr<Wire> Secured(std::unique_ptr<Wire> wire, const PackedFunc& secure) {
  if (!secure.defined()) return wire;
  const std::string peer = wire->peer();
  auto inside = std::make_unique<Wire>(secure(wire->Release(), false).cast<int>());
  inside->SetPeer(peer);
  return inside;
}

/*! \brief Plain values of Python as JSON. */
Value ToJson(const Any& value) {
  if (const auto* list = value.as<ArrayNode>()) {
    ArrayValue items;
    for (const Any& item : list->data) items.push_back(ToJson(item));
    return Value(std::move(items));
  }
  if (value.type_code() == kTVMBool) return Value(value.cast<bool>());
  if (value.type_code() == kTVMInt) return Value(value.cast<int64_t>());
  return Value(value.cast<std::string>());
}

}  // namespace

TVM_REGISTER_GLOBAL("rpc.Listen")
    .set_body_typed([](std::string who, std::string host, int port, int port_end, bool secret) {
      const Listener listener = Listen(who, host, port, port_end, secret);
      return Array<int64_t>{listener.socket, listener.port};
    });

/*!
 * \brief (host, port, key, seconds to connect, seconds the session may last or 0, constructor,
 * secret, TLS function or None) -> session.
 */
TVM_REGISTER_GLOBAL("rpc.Connect")
    .set_body_typed([](std::string host, int port, std::string key, double connect_seconds,
                       double session_seconds, Array<Any> constructor, std::string secret,
                       PackedFunc secure) {
      auto wire = Secured(Dial(host, port, connect_seconds), secure);
      wire->SetTimeLimit(connect_seconds);
      ObjectValue request = {{"role", Value(std::string("client"))},
                             {"key", Value(key)},
                             {"timeout", Value(session_seconds)}};
      if (!constructor.empty()) request.emplace_back("constructor", ToJson(constructor));
      Introduce(wire.get(), Value(std::move(request)), secret, {"server", "proxy"});
      wire->SetTimeLimit(0);
      ObjectPtr<Session> session = Session::Make(std::move(wire), nullptr);
      if (session_seconds > 0) session->SetTimeLimit(session_seconds + kServerIsLate);
      return Refer(session);
    });

/*!
 * \brief Connect to a tracker: (host, port, request, seconds, secret, TLS function or None) ->
 * [socket, reply].
 */
TVM_REGISTER_GLOBAL("rpc.OpenConnection")
    .set_body_typed([](std::string host, int port, std::string request, double seconds,
                       std::string secret, PackedFunc secure) {
      auto wire = Secured(Dial(host, port, seconds), secure);
      wire->SetTimeLimit(seconds);
      std::string reply;
      Introduce(wire.get(), Value::Parse(request), secret, {"tracker"}).Write(&reply);
      return Array<Any>{Any(static_cast<int64_t>(wire->Release())), Any(String(reply))};
    });

/*! \brief A session over a connected socket, at whose other end a session is served. */
TVM_REGISTER_GLOBAL("rpc.SessionOver").set_body_typed([](int socket, std::string peer) {
  auto wire = std::make_unique<Wire>(socket);
  wire->SetPeer(std::move(peer));
  return Refer(Session::Make(std::move(wire), nullptr));
});

/*! \brief A session with a thread of this process, with files in `folder`. */
TVM_REGISTER_GLOBAL("rpc.LocalSession")
    .set_body_typed([](std::string folder, PackedFunc load_module, PackedFunc link_module) {
      int ends[2];
      TVM_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, RuntimeError)
          << "LocalSession: no pair of sockets";
      auto served = std::make_unique<Wire>(ends[1]);
      served->SetPeer("this process");
      // The other end of this process may call what this process may.
      auto find =
          ServedFunctions(std::move(folder), {"*"}, std::move(load_module), std::move(link_module));
      std::thread([session = Session::Make(std::move(served), std::move(find))]() mutable {
        try {
          session->Serve();
        } catch (const Error&) {
          // The session was dropped in the middle of something.
        }
      }).detach();
      auto wire = std::make_unique<Wire>(ends[0]);
      wire->SetPeer("this process");
      return Refer(Session::Make(std::move(wire), nullptr));
    });

/*! \brief Serve one session over a connected socket until it ends. */
TVM_REGISTER_GLOBAL("rpc.ServeSocket")
    .set_body_typed([](int socket, std::string folder, Array<String> allowed) {
      auto wire = std::make_unique<Wire>(socket);
      wire->SetPeer("the client");
      Session::Make(
          std::move(wire),
          ServedFunctions(std::move(folder), {allowed.begin(), allowed.end()}, nullptr, nullptr))
          ->Serve();
    });

TVM_REGISTER_GLOBAL("rpc.Serve").set_body_typed([](Map<String, Any> given) {
  ServerOptions options;
  options.socket = given["socket"].cast<int>();
  options.port = given["port"].cast<int>();
  options.key = given["key"].cast<std::string>();
  options.secret = given["secret"].cast<std::string>();
  options.tracker_host = given["tracker_host"].cast<std::string>();
  options.tracker_port = given["tracker_port"].cast<int>();
  options.custom_address = given["custom_address"].cast<std::string>();
  options.proxy_host = given["proxy_host"].cast<std::string>();
  options.proxy_port = given["proxy_port"].cast<int>();
  options.work_folder = given["work_folder"].cast<std::string>();
  for (const String& name : given["allowed"].cast<Array<String>>()) options.allowed.push_back(name);
  options.limits.blob_bytes = given["blob_bytes"].cast<uint64_t>();
  options.max_sessions = given["max_sessions"].cast<int>();
  options.session_timeout = given["session_timeout"].cast<double>();
  options.parent = given["parent"].cast<int>();
  options.load_module = given["load_module"].cast<PackedFunc>();
  options.link_module = given["link_module"].cast<PackedFunc>();
  options.fork = given["fork"].cast<PackedFunc>();
  options.secure = given["secure"].cast<PackedFunc>();
  RunServer(std::move(options));
});

TVM_REGISTER_GLOBAL("rpc.HmacSha256").set_body_typed([](std::string key, std::string text) {
  return HmacSha256(key, text);
});

TVM_REGISTER_GLOBAL("rpc.DefaultAllowedFunctions").set_body_typed([] {
  const std::vector<std::string> names = DefaultAllowedFunctions();
  return Array<String>(names.begin(), names.end());
});

TVM_REGISTER_GLOBAL("rpc.GetFunction").set_body_typed([](SessionRef session, std::string name) {
  return session->RequireFunction(name);
});

TVM_REGISTER_GLOBAL("rpc.DeviceOf").set_body_typed([](SessionRef session, int type, int id) {
  TVM_CHECK(type > 0 && type < kSessionMask, ValueError)
      << "rpc: a device has a type from 1 to " << kSessionMask - 1 << ", got " << type;
  return session->Mask(Device{type, id});
});

TVM_REGISTER_GLOBAL("rpc.SetTimeLimit").set_body_typed([](SessionRef session, double seconds) {
  session->SetTimeLimit(seconds);
});

TVM_REGISTER_GLOBAL("rpc.Close").set_body_typed([](SessionRef session) { session->Close(); });

TVM_REGISTER_GLOBAL("rpc.IsClosed").set_body_typed([](SessionRef session) {
  return session->closed();
});

TVM_REGISTER_GLOBAL("rpc.Peer").set_body_typed([](SessionRef session) {
  return String(session->peer());
});

TVM_REGISTER_GLOBAL("rpc.Number").set_body_typed([](SessionRef session) {
  return session->number();
});

/*! \brief The session that a module or function of another process belongs to. */
TVM_REGISTER_GLOBAL("rpc.SessionOf").set_body_typed([](ObjectRef object) {
  if (const auto* module = object.as<RemoteModuleNode>()) return Refer(module->session);
  const auto* function = object.as<RemoteFunctionObj>();
  TVM_CHECK(function != nullptr, TypeError) << "rpc: this is no module or function of a session";
  return Refer(function->session);
});

TVM_REGISTER_GLOBAL("rpc.ObjectKind").set_body_typed([](ObjectRef object) {
  const auto* remote = object.as<RemoteObjectObj>();
  TVM_CHECK(remote != nullptr, TypeError) << "rpc: this is no object of a session";
  return String(remote->kind);
});

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
