#include "session_functions.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <tvm/runtime/container/bytes.h>
#include <tvm/runtime/registry.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace tvm {
namespace runtime {
namespace rpc {
namespace {

constexpr size_t kMaxPath = 255;

/*! \brief An open file. */
class File {
 public:
  File(const std::string& path, int flags) : path_(path) {
    do {
      // What code of the session put there is not followed to other places.
      file_ = open(path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, 0700);
    } while (file_ < 0 && errno == EINTR);
    if (file_ < 0) Fail("opened");
  }
  File(const File&) = delete;
  ~File() { close(file_); }
  void Write(const std::string& bytes) {
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t part = write(file_, bytes.data() + at, bytes.size() - at);
      if (part < 0 && errno != EINTR) Fail("written");
      if (part > 0) at += static_cast<size_t>(part);
    }
  }
  std::string Read() {
    std::string bytes;
    char buffer[1 << 16];
    for (;;) {
      const ssize_t part = read(file_, buffer, sizeof(buffer));
      if (part < 0 && errno != EINTR) Fail("read");
      if (part == 0) return bytes;
      if (part > 0) bytes.append(buffer, static_cast<size_t>(part));
    }
  }

 private:
  [[noreturn]] void Fail(const char* what) const {
    TVM_FATAL(RuntimeError) << "rpc: the session's file \"" << path_.substr(path_.rfind('/') + 1)
                            << "\" cannot be " << what << ": " << std::strerror(errno);
  }
  std::string path_;
  int file_;
};

void MakeFoldersOf(const std::string& folder, const std::string& path) {
  for (size_t at = path.find('/', folder.size() + 1); at != std::string::npos;
       at = path.find('/', at + 1)) {
    const std::string part = path.substr(0, at);
    struct stat status{};
    const bool made = mkdir(part.c_str(), 0700) == 0;
    TVM_CHECK(made || (lstat(part.c_str(), &status) == 0 && S_ISDIR(status.st_mode)), RuntimeError)
        << "rpc: the session's folder has no room for \"" << path.substr(folder.size() + 1) << '"';
  }
}

bool Matches(const std::string& pattern, const std::string& name) {
  if (!pattern.empty() && pattern.back() == '*') {
    return name.compare(0, pattern.size() - 1, pattern, 0, pattern.size() - 1) == 0;
  }
  return pattern == name;
}

Module LoadLibrary(const std::string& path) {
  const size_t dot = path.rfind('.');
  const std::string suffix = dot == std::string::npos ? "" : path.substr(dot + 1);
  TVM_CHECK(suffix != "o" && suffix != "tar", ValueError)
      << "load_module: this server cannot link \"" << path.substr(path.rfind('/') + 1)
      << "\"; upload a shared library";
  return Module::LoadFromFile(path, "so");
}

}  // namespace

std::vector<std::string> DefaultAllowedFunctions() {
  return {"runtime.TimeEvaluator",
          "runtime.SystemLib",
          "tvm.graph_executor.create",
          "tvm.graph_executor_debug.create",
          "runtime.ShapeTuple",
          "runtime.GetShapeTupleElem",
          "runtime.GetShapeTupleSize",
          "runtime.ModuleImport",
          "runtime.ModuleListFunctionNames",
          "runtime.ModuleGetSource",
          "runtime.NumThreads",
          "runtime.config_threadpool",
          "runtime.profiling.*",
          "cache_flush_cpu_non_first_arg",
          "tvm.contrib.random.random_fill*",
          "rpc.test.*",
          "testing.echo"};
}

std::string ConfinedPath(const std::string& folder, const std::string& name) {
  bool good = !name.empty() && name.size() <= kMaxPath && name.find('\0') == std::string::npos;
  for (size_t at = 0; good && at <= name.size();) {
    const size_t end = std::min(name.find('/', at), name.size());
    const std::string part = name.substr(at, end - at);
    good = !part.empty() && part != "." && part != "..";
    at = end + 1;
  }
  TVM_CHECK(good, ValueError) << "rpc: \"" << name.substr(0, kMaxPath)
                              << "\" does not name a file in the session's folder; give a relative "
                                 "path without \"..\"";
  return folder + "/" + name;
}

FunctionFinder ServedFunctions(std::string folder, std::vector<std::string> allowed,
                               PackedFunc load_module, PackedFunc link_module) {
  auto path_of = [folder](const std::string& name) { return ConfinedPath(folder, name); };
  const std::string prefix = "tvm.rpc.server.";
  std::unordered_map<std::string, PackedFunc> own;
  own[prefix + "upload"] = MakeTypedPacked(
      [path_of, folder](String name, String bytes) {
        const std::string path = path_of(name);
        MakeFoldersOf(folder, path);
        File(path, O_WRONLY | O_CREAT | O_TRUNC).Write(bytes);
      },
      prefix + "upload");
  own[prefix + "download"] = MakeTypedPacked(
      [path_of](String name) { return Bytes(File(path_of(name), O_RDONLY).Read()); },
      prefix + "download");
  own[prefix + "remove"] = MakeTypedPacked(
      [path_of](String name) {
        const std::string path = path_of(name);
        TVM_CHECK(unlink(path.c_str()) == 0 || errno == ENOENT, RuntimeError)
            << "rpc: the session's file \"" << name
            << "\" cannot be removed: " << std::strerror(errno);
      },
      prefix + "remove");
  own[prefix + "listdir"] = MakeTypedPacked(
      [path_of, folder](String name) {
        Array<String> names;
        std::error_code failed;
        const std::string path = name.str().empty() ? folder : path_of(name);
        for (const auto& entry : std::filesystem::directory_iterator(path, failed)) {
          names.push_back(entry.path().filename().string());
        }
        TVM_CHECK(!failed, ValueError)
            << "rpc: the session has no folder \"" << name << "\": " << failed.message();
        return names;
      },
      prefix + "listdir");
  own[prefix + "workpath"] = MakeTypedPacked(
      [path_of](String name) { return String(path_of(name)); }, prefix + "workpath");
  own[prefix + "load_module"] = MakeTypedPacked(
      [path_of, load_module](String name) {
        const std::string path = path_of(name);
        TVM_CHECK(access(path.c_str(), R_OK) == 0, ValueError)
            << "load_module: the session has no file \"" << name << "\"; upload it first";
        return load_module.defined() ? load_module(String(path)).cast<Module>() : LoadLibrary(path);
      },
      prefix + "load_module");
  own[prefix + "download_linked_module"] = MakeTypedPacked(
      [path_of, link_module](String name) {
        TVM_CHECK(link_module.defined(), RuntimeError)
            << "download_linked_module: this server cannot link; link the module before uploading";
        const std::string linked = link_module(String(path_of(name))).cast<std::string>();
        return Bytes(File(linked, O_RDONLY).Read());
      },
      prefix + "download_linked_module");
  return [own = std::move(own), allowed = std::move(allowed)](const std::string& name) {
    if (auto found = own.find(name); found != own.end()) return found->second;
    bool may = false;
    for (const std::string& pattern : allowed) may = may || Matches(pattern, name);
    const PackedFunc* function = Registry::Get(name);
    TVM_CHECK(may, RPCError)
        << "rpc: the function \"" << name
        << "\" is not among those that this server lets be called; its operator can add it with "
           "--allow "
        << name << ", or all with --open";
    return function == nullptr ? PackedFunc() : *function;
  };
}

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
