#include "tracker_link.h"

#include <poll.h>
#include <tvm/runtime/logging.h>

#include "connection.h"
#include "secret.h"

namespace tvm {
namespace runtime {
namespace rpc {
namespace {

using json::ObjectValue;
using json::Value;
using std::chrono::milliseconds;

// A tracker answers at once, or it is of no use.
constexpr double kAnswerSeconds = 5;
constexpr milliseconds kRetry{1000};
constexpr milliseconds kPing{2000};
// A client that was given this server comes within this time, or it never will.
constexpr milliseconds kComing{10000};

}  // namespace

TrackerLink::TrackerLink(const ServerOptions& options) : options_(options) {}

void TrackerLink::Connect() {
  wire_ = Dial(options_.tracker_host, options_.tracker_port, kAnswerSeconds);
  if (options_.secure.defined()) {
    const std::string peer = wire_->peer();
    wire_ = std::make_unique<Wire>(options_.secure(wire_->Release(), false).cast<int>());
    wire_->SetPeer(peer);
  }
  wire_->SetTimeLimit(kAnswerSeconds);
  Introduce(wire_.get(),
            Value(ObjectValue{{"role", Value(std::string("server"))},
                              {"key", Value(options_.key)},
                              {"port", Value(static_cast<int64_t>(options_.port))},
                              {"address", Value(options_.custom_address)}}),
            options_.secret, {"tracker"});
  known_key_.clear();
}

Value TrackerLink::Ask(ObjectValue request) {
  wire_->SetTimeLimit(kAnswerSeconds);
  wire_->Send(Value(std::move(request)));
  Value answer = wire_->Receive(LimitsOfStrangers());
  if (const Value* error = answer.Find("error")) {
    throw Error("RPCError", error->Expect<std::string>("error"));
  }
  return answer;
}

void TrackerLink::Step(bool free) {
  if (!wanted()) return;
  const Clock::time_point now = Clock::now();
  try {
    if (wire_ == nullptr || wire_->closed()) {
      if (now < next_try_) return;
      next_try_ = now + kRetry;
      Connect();
      if (told_) LOG(INFO) << "rpc_server: the tracker is there again";
      told_ = false;
    } else if (wire_->Ready()) {
      // A tracker only answers; what comes unasked is the end of the stream.
      wire_->Receive(LimitsOfStrangers());
      TVM_FATAL(RPCError) << "it sent what was not asked for";
    }
    if (is_given_out_ && !match_key_.empty() && now > given_out_ + kComing) match_key_.clear();
    if (free && match_key_.empty()) match_key_ = options_.key + ":" + RandomNonce();
    if (!match_key_.empty() && known_key_ != match_key_) {
      Ask({{"op", Value(std::string("put"))}, {"match", Value(match_key_)}});
      known_key_ = match_key_;
      is_given_out_ = false;
      next_ping_ = now + kPing;
    } else if (now >= next_ping_) {
      next_ping_ = now + kPing;
      const Value answer = Ask({{"op", Value(std::string("ping"))}, {"match", Value(match_key_)}});
      const bool waits = answer.At("waiting", "answer").Expect<bool>("waiting");
      if (!waits && !is_given_out_) given_out_ = now;
      is_given_out_ = !waits;
    }
  } catch (const Error& error) {
    if (!told_) {
      LOG(WARNING) << "rpc_server: the tracker at " << options_.tracker_host << ":"
                   << options_.tracker_port << " does not answer (" << error.message()
                   << "); trying again until it does";
    }
    told_ = true;
    wire_.reset();
    next_try_ = now + kRetry;
  }
}

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
