/*!
 * \file rpc_server.cc
 * \brief tvm_rpc_server: a server for machines without Python, on libtvm_runtime alone.
 */
#include <sys/stat.h>
#include <tvm/runtime/logging.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>

#include "runtime/rpc/connection.h"
#include "runtime/rpc/server.h"
#include "runtime/rpc/session.h"
#include "runtime/rpc/session_functions.h"
#include "runtime/rpc/session_process.h"

namespace tvm {
namespace runtime {
namespace rpc {
namespace {

constexpr const char* kUsage =
    "tvm_rpc_server [options]: serves sessions of tvm.rpc, each in a process of its own\n"
    "  --host ADDRESS        to listen on (127.0.0.1); any other takes a secret\n"
    "  --port N              first port to try (9091); 0 for any\n"
    "  --port-end N          port below which to stop trying (9199)\n"
    "  --key NAME            kind of device that clients ask for\n"
    "  --tracker HOST:PORT   tracker to register with\n"
    "  --proxy HOST:PORT     proxy to wait for clients at\n"
    "  --custom-addr NAME    address that the tracker tells clients\n"
    "  --secret-file FILE    shared secret; else TVM_RPC_SECRET_FILE or TVM_RPC_SECRET\n"
    "  --allow NAME          registered function that clients may call too; may be repeated\n"
    "  --open                clients may call every function\n"
    "  --max-sessions N      sessions at a time (1)\n"
    "  --session-timeout S   seconds a session may last at most; 0 for any\n"
    "  --work-dir FOLDER     for the sessions' files; a temporary one by default\n"
    "  --session FOLDER      serve one session over the socket that is standard input\n";
constexpr size_t kLeastSecretBytes = 16;

std::pair<std::string, int> HostAndPort(const std::string& option, const std::string& text) {
  const size_t colon = text.rfind(':');
  const int port = colon == std::string::npos ? 0 : std::atoi(text.c_str() + colon + 1);
  TVM_CHECK(port > 0 && port < 65536 && colon > 0, ValueError)
      << "tvm_rpc_server: " << option << ": expected HOST:PORT, got \"" << text << '"';
  return {text.substr(0, colon), port};
}

int Number(const std::string& option, const std::string& text) {
  char* end = nullptr;
  const long number = std::strtol(text.c_str(), &end, 10);
  TVM_CHECK(!text.empty() && *end == '\0' && number >= 0 && number < 1 << 30, ValueError)
      << "tvm_rpc_server: " << option << ": expected a number, got \"" << text << '"';
  return static_cast<int>(number);
}

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string Secret(std::string file) {
  if (file.empty()) file = Environment("TVM_RPC_SECRET_FILE");
  std::string secret = Environment("TVM_RPC_SECRET");
  if (!file.empty()) {
    struct stat status{};
    TVM_CHECK(stat(file.c_str(), &status) == 0, RPCError)
        << "tvm_rpc_server: the secret's file " << file << " cannot be read";
    TVM_CHECK(S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode), RPCError)
        << "tvm_rpc_server: " << file << " is no file; name the one with the secret";
    TVM_CHECK((status.st_mode & 077) == 0, RPCError)
        << "tvm_rpc_server: others may read the secret in " << file << "; run chmod 600 " << file;
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    secret = text.str();
  }
  const char* space = " \t\r\n";
  const size_t first = secret.find_first_not_of(space);
  if (first == std::string::npos && file.empty()) return "";
  secret = first == std::string::npos
               ? ""
               : secret.substr(first, secret.find_last_not_of(space) - first + 1);
  TVM_CHECK(secret.size() >= kLeastSecretBytes, RPCError)
      << "tvm_rpc_server: the secret has " << secret.size() << " bytes; take at least "
      << kLeastSecretBytes;
  return secret;
}

void Run(int argc, char** argv) {
  ServerOptions options;
  options.allowed = DefaultAllowedFunctions();
  options.port = 9091;
  std::string host = "127.0.0.1", secret_file, session_folder;
  int port_end = 9199;
  const std::map<std::string, std::function<void(const std::string&, const std::string&)>> known = {
      {"--host", [&](auto&, auto& text) { host = text; }},
      {"--port", [&](auto& name, auto& text) { options.port = Number(name, text); }},
      {"--port-end", [&](auto& name, auto& text) { port_end = Number(name, text); }},
      {"--key", [&](auto&, auto& text) { options.key = text; }},
      {"--tracker",
       [&](auto& name, auto& text) {
         std::tie(options.tracker_host, options.tracker_port) = HostAndPort(name, text);
       }},
      {"--proxy",
       [&](auto& name, auto& text) {
         std::tie(options.proxy_host, options.proxy_port) = HostAndPort(name, text);
       }},
      {"--custom-addr", [&](auto&, auto& text) { options.custom_address = text; }},
      {"--secret-file", [&](auto&, auto& text) { secret_file = text; }},
      {"--allow", [&](auto&, auto& text) { options.allowed.push_back(text); }},
      {"--max-sessions",
       [&](auto& name, auto& text) { options.max_sessions = Number(name, text); }},
      {"--session-timeout",
       [&](auto& name, auto& text) { options.session_timeout = Number(name, text); }},
      {"--work-dir", [&](auto&, auto& text) { options.work_folder = text; }},
      {"--session", [&](auto&, auto& text) { session_folder = text; }},
  };
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--open") {
      options.allowed.push_back("*");
      continue;
    }
    auto found = known.find(name);
    TVM_CHECK(found != known.end() && i + 1 < argc, ValueError)
        << "tvm_rpc_server: " << name
        << (found == known.end() ? " is no option of it" : " takes a value") << "; see --help";
    found->second(name, argv[++i]);
  }
  if (!session_folder.empty()) {
    auto wire = std::make_unique<Wire>(dup(STDIN_FILENO));
    wire->SetPeer("the client");
    Session::Make(std::move(wire),
                  ServedFunctions(session_folder, options.allowed, nullptr, nullptr))
        ->Serve();
    return;
  }
  TVM_CHECK(options.max_sessions >= 1, ValueError)
      << "tvm_rpc_server: --max-sessions is at least 1";
  TVM_CHECK(options.tracker_host.empty() || !options.key.empty(), ValueError)
      << "tvm_rpc_server: a server of a tracker needs a --key";
  TVM_CHECK(options.work_folder.empty() || std::filesystem::is_directory(options.work_folder),
            ValueError)
      << "tvm_rpc_server: --work-dir: there is no folder " << options.work_folder
      << "; make it first";
  options.secret = Secret(secret_file);
  if (options.proxy_host.empty()) {
    const Listener listener =
        Listen("tvm_rpc_server", host, options.port, port_end, !options.secret.empty());
    options.socket = listener.socket;
    options.port = listener.port;
    std::cout << "tvm_rpc_server: listening on " << host << ":" << options.port << std::endl;
  }
  std::string temporary;
  if (options.work_folder.empty()) {
    temporary = (std::filesystem::temp_directory_path() / "tvm_rpc_XXXXXX").string();
    TVM_CHECK(mkdtemp(temporary.data()) != nullptr, RuntimeError)
        << "tvm_rpc_server: no temporary folder can be made";
    options.work_folder = temporary;
  }
  RunServer(std::move(options));
  if (!temporary.empty()) RemoveFolder(temporary);
}

}  // namespace
}  // namespace rpc
}  // namespace runtime
}  // namespace tvm

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--help") {
    std::cout << tvm::runtime::rpc::kUsage;
    return 0;
  }
  try {
    tvm::runtime::rpc::Run(argc, argv);
    return 0;
  } catch (const tvm::runtime::Error& error) {
    std::cerr << error.message() << std::endl;
  } catch (const std::exception& error) {
    std::cerr << "tvm_rpc_server: " << error.what() << std::endl;
  }
  return 1;
}
