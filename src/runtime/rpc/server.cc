#include "server.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <tvm/runtime/logging.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>

#include "connection.h"
#include "session_process.h"
#include "tracker_link.h"

namespace tvm {
namespace runtime {
namespace rpc {
namespace {

using Clock = std::chrono::steady_clock;
using json::ObjectValue;
using json::Value;

// Connections whose clients have not said yet who they are; more are turned away.
constexpr int kMaxStrangers = 32;
constexpr auto kStrangerTime = std::chrono::seconds(15);
// Between the end of a connection and that of the process, which then hangs.
constexpr auto kEndTime = std::chrono::seconds(2);
constexpr int kStepMilliseconds = 500;

volatile sig_atomic_t told_to_end = 0;

Clock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(std::min(seconds, 3.2e7)));
}

/*! \brief A process with its session, as its supervisor sees it. */
struct Child {
  enum class State { kStranger, kWaiting, kActive };
  pid_t process;
  int control;
  /*! \brief The connection once more, to see when the client goes and to say how a session ended.
   */
  int client;
  State state;
  Clock::time_point started;
  double timeout = 0;
  bool used_match_key = false;
  bool client_left = false;
  Clock::time_point left_at{};
};

class Supervisor {
 public:
  explicit Supervisor(ServerOptions options) : options_(std::move(options)), tracker_(options_) {}
  ~Supervisor() {
    for (Child& child : children_) End(&child, "the server was stopped");
  }

  void Run() {
    while (!told_to_end) {
      if (options_.parent != 0 && getppid() != options_.parent) return;
      tracker_.Step(CanBegin());
      StepProxy();
      Wait();
      Enforce();
    }
  }

 private:
  int Count(Child::State state) const {
    return static_cast<int>(std::count_if(children_.begin(), children_.end(),
                                          [state](const Child& c) { return c.state == state; }));
  }
  bool CanBegin() const {
    return Count(Child::State::kActive) + Count(Child::State::kWaiting) < options_.max_sessions;
  }

  void Wait() {
    std::vector<pollfd> polled;
    if (options_.socket >= 0) polled.push_back({options_.socket, POLLIN, 0});
    if (proxy_ != nullptr) polled.push_back({proxy_->socket(), POLLIN, 0});
    if (tracker_.socket() >= 0) polled.push_back({tracker_.socket(), POLLIN, 0});
    for (const Child& child : children_) {
      polled.push_back({child.control, POLLIN, 0});
      if (!child.client_left) polled.push_back({child.client, POLLRDHUP, 0});
    }
    if (poll(polled.data(), polled.size(), NextStep()) <= 0) return;
    size_t at = 0;
    const bool accept = options_.socket >= 0 && polled[at++].revents != 0;
    const bool paired = proxy_ != nullptr && polled[at++].revents != 0;
    if (tracker_.socket() >= 0) ++at;
    for (Child& child : children_) {
      if (polled[at++].revents != 0) Hear(&child);
      if (!child.client_left && polled[at++].revents != 0) {
        child.client_left = true;
        child.left_at = Clock::now();
      }
    }
    children_.erase(std::remove_if(children_.begin(), children_.end(),
                                   [](const Child& child) { return child.process < 0; }),
                    children_.end());
    Permit();
    // Last: a new child has no place among those that were polled.
    if (accept) Accept();
    if (paired) AcceptFromProxy();
  }

  /*! \brief Milliseconds until something may be due. */
  int NextStep() const {
    auto next = Clock::now() + std::chrono::milliseconds(kStepMilliseconds);
    for (const Child& child : children_) {
      if (child.state == Child::State::kActive && child.timeout > 0) {
        next = std::min(next, child.started + Seconds(child.timeout));
      }
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(next - Clock::now()).count() + 1;
    return static_cast<int>(std::max<long>(left, 1));
  }

  void Accept() {
    const int client = accept4(options_.socket, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    TuneSocket(client);
    if (Count(Child::State::kStranger) >= kMaxStrangers) {
      close(client);
      return;
    }
    Start({client, -1, tracker_.match_key(), false}, Child::State::kStranger, 0);
  }

  void Start(SessionStart start, Child::State state, double timeout) {
    int control[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) != 0) {
      close(start.client);
      return;
    }
    const pid_t supervisor = getpid();
    const pid_t process = options_.fork.defined() ? options_.fork().cast<int>() : fork();
    if (process == 0) {
      // It must not be outlived by what it starts, nor outlive the server.
      setpgid(0, 0);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != supervisor) _exit(1);
      signal(SIGTERM, SIG_DFL);
      signal(SIGINT, SIG_IGN);
      CloseInChild(control[0]);
      start.supervisor = control[1];
      RunSessionProcess(options_, start);
    }
    close(control[1]);
    if (process < 0) {
      LOG(WARNING) << "rpc_server: no process for a session: " << std::strerror(errno);
      close(control[0]);
      close(start.client);
      return;
    }
    setpgid(process, process);
    Child child{process, control[0], start.client, state, Clock::now()};
    child.timeout = TimeLimit(timeout);
    children_.push_back(child);
    Permit();
  }

  /*! \brief Seconds that a session may last, 0 for any: what its client asks for, within what the
   * operator allows. */
  double TimeLimit(double asked) const {
    const double most = options_.session_timeout;
    if (asked <= 0) return most;
    return most > 0 ? std::min(asked, most) : asked;
  }

  void CloseInChild(int control) {
    close(control);
    if (options_.socket >= 0) close(options_.socket);
    tracker_.CloseInChild();
    if (proxy_ != nullptr) proxy_->Close();
    for (const Child& child : children_) {
      close(child.control);
      close(child.client);
    }
  }

  /*! \brief A child has said what its client wants, or has ended. */
  void Hear(Child* child) {
    try {
      Wire control(dup(child->control));
      uint64_t blob = 0;
      control.SetTimeLimit(1);
      const auto text = control.ReceiveText(LimitsOfStrangers(), &blob);
      if (!text) return Reap(child);
      const double timeout = Value::Parse(*text).At("timeout", "request").Expect<double>("timeout");
      child->timeout = TimeLimit(timeout);
      child->state = Child::State::kWaiting;
      if (tracker_.wanted()) {
        child->used_match_key = true;
        tracker_.Use();
      }
    } catch (const Error&) {
      Reap(child);
    }
  }

  void Permit() {
    for (Child& child : children_) {
      if (Count(Child::State::kActive) >= options_.max_sessions) return;
      if (child.state != Child::State::kWaiting) continue;
      const char permission = 1;
      child.state = Child::State::kActive;
      child.started = Clock::now();
      // A child that is gone shows at the other end of its control.
      [[maybe_unused]] const ssize_t sent = send(child.control, &permission, 1, MSG_NOSIGNAL);
    }
  }

  void Enforce() {
    const Clock::time_point now = Clock::now();
    for (Child& child : children_) {
      // A child's own children may hold its control open.
      siginfo_t ended{};
      if (waitid(P_PID, static_cast<id_t>(child.process), &ended, WEXITED | WNOHANG | WNOWAIT) ==
              0 &&
          ended.si_pid == child.process) {
        Reap(&child);
      } else if (child.state == Child::State::kStranger && now > child.started + kStrangerTime) {
        End(&child, "");
      } else if (child.client_left && now > child.left_at + kEndTime) {
        End(&child, "");
      } else if (child.state == Child::State::kActive && child.timeout > 0 &&
                 now > child.started + Seconds(child.timeout)) {
        End(&child, "its time of " + std::to_string(child.timeout) +
                        " s was over; give it a longer session_timeout");
      }
    }
    children_.erase(std::remove_if(children_.begin(), children_.end(),
                                   [](const Child& child) { return child.process < 0; }),
                    children_.end());
    Permit();
  }

  /*! \brief End a session now and tell its client why, unless the reason is empty. */
  void End(Child* child, const std::string& reason) {
    kill(-child->process, SIGKILL);
    kill(child->process, SIGKILL);
    waitpid(child->process, nullptr, 0);
    if (!reason.empty()) Tell(*child, reason, "RPCSessionTimeoutError");
    Forget(child);
  }

  /*! \brief A child ended by itself. */
  void Reap(Child* child) {
    int status = 0;
    kill(-child->process, SIGKILL);
    waitpid(child->process, &status, 0);
    // Whatever it left in its group was killed above; a child that was still ending, too.
    if (WIFSIGNALED(status) && !child->client_left && child->state == Child::State::kActive) {
      const int signal = WTERMSIG(status);
      Tell(*child,
           std::string("its process was ended by signal ") + std::to_string(signal) + " (" +
               strsignal(signal) + ")",
           "RPCError");
    }
    Forget(child);
  }

  void Tell(const Child& child, const std::string& reason, const char* kind) {
    // Behind TLS only the session's own process can speak.
    if (options_.secure.defined()) return;
    try {
      Wire client(dup(child.client));
      client.SetTimeLimit(1);
      client.Send(Value(ObjectValue{{"end", Value(reason)}, {"kind", Value(std::string(kind))}}));
    } catch (const Error&) {
      // It is gone.
    }
  }

  void Forget(Child* child) {
    shutdown(child->client, SHUT_RDWR);
    close(child->client);
    close(child->control);
    RemoveFolder(SessionFolder(options_, child->process));
    child->process = -1;
  }

  // ------------------------------------------------------------------------------ proxy

  void StepProxy() {
    if (options_.proxy_host.empty() || proxy_ != nullptr || !CanBegin()) return;
    if (Clock::now() < next_proxy_) return;
    next_proxy_ = Clock::now() + std::chrono::seconds(1);
    try {
      proxy_ = Dial(options_.proxy_host, options_.proxy_port, 5);
      if (options_.secure.defined()) {
        const std::string peer = proxy_->peer();
        proxy_ = std::make_unique<Wire>(options_.secure(proxy_->Release(), false).cast<int>());
        proxy_->SetPeer(peer);
      }
      proxy_->SetTimeLimit(10);
      Introduce(
          proxy_.get(),
          Value(ObjectValue{{"role", Value(std::string("server"))}, {"key", Value(options_.key)}}),
          options_.secret, {"proxy"});
      proxy_->SetTimeLimit(0);
      told_proxy_ = false;
    } catch (const Error& error) {
      proxy_.reset();
      if (!told_proxy_) {
        LOG(WARNING) << "rpc_server: the proxy at " << options_.proxy_host << ":"
                     << options_.proxy_port << " does not answer (" << error.message()
                     << "); trying again until it does";
      }
      told_proxy_ = true;
    }
  }

  void AcceptFromProxy() {
    try {
      proxy_->SetTimeLimit(5);
      const Value message = proxy_->Receive(LimitsOfStrangers());
      const double timeout = message.At("timeout", "message").Expect<double>("timeout");
      const int client = proxy_->Release();
      proxy_.reset();
      next_proxy_ = Clock::now();
      Start({client, -1, "", true}, Child::State::kWaiting, timeout);
    } catch (const Error&) {
      proxy_.reset();
    }
  }

  ServerOptions options_;
  TrackerLink tracker_;
  std::vector<Child> children_;
  std::unique_ptr<Wire> proxy_;
  Clock::time_point next_proxy_{};
  bool told_proxy_ = false;
};

}  // namespace

void RunServer(ServerOptions options) {
  told_to_end = 0;
  struct sigaction action{};
  action.sa_handler = [](int) { told_to_end = 1; };
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
  Supervisor(std::move(options)).Run();
}

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
