/*!
 * \file tracker_link.h
 * \brief A server's standing connection to its tracker, made again whenever it breaks.
 */
#ifndef TVM_RUNTIME_RPC_TRACKER_LINK_H_
#define TVM_RUNTIME_RPC_TRACKER_LINK_H_

#include <chrono>
#include <memory>
#include <string>

#include "server.h"

namespace tvm {
namespace runtime {
namespace rpc {

class TrackerLink {
 public:
  using Clock = std::chrono::steady_clock;
  explicit TrackerLink(const ServerOptions& options);
  /*! \brief Whether there is a tracker at all. */
  bool wanted() const { return !options_.tracker_host.empty(); }
  /*! \brief Who names this is let in; it holds for one session. */
  const std::string& match_key() const { return match_key_; }
  /*! \brief The match key was used: nobody else may use it. */
  void Use() { match_key_.clear(); }
  /*! \brief Do what is due. \param free Whether a session could begin now. */
  void Step(bool free);
  int socket() const { return wire_ == nullptr || wire_->closed() ? -1 : wire_->socket(); }
  /*! \brief Leave the connection to the process that made it. */
  void CloseInChild() {
    if (wire_ != nullptr) wire_->Close();
  }

 private:
  void Connect();
  json::Value Ask(json::ObjectValue request);

  const ServerOptions& options_;
  std::unique_ptr<Wire> wire_;
  std::string match_key_;
  /*! \brief The match key that the tracker has. */
  std::string known_key_;
  bool told_ = false;
  Clock::time_point next_try_, next_ping_, given_out_;
  bool is_given_out_ = false;
};

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_RPC_TRACKER_LINK_H_
