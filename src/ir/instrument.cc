#include <tvm/ir/transform.h>
#include <tvm/node/repr_printer.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>

namespace tvm {
namespace instrument {

using transform::PassInfo;

TVM_REGISTER_NODE(PassInstrumentNode);

namespace {

/*! \brief An instrument made of callbacks; a missing callback does nothing. */
class CallbackInstrumentNode final : public PassInstrumentNode {
 public:
  TypedPackedFunc<void()> enter, exit;
  TypedPackedFunc<bool(IRModule, PassInfo)> should_run;
  TypedPackedFunc<void(IRModule, PassInfo)> before, after;

  void EnterPassContext() const override {
    if (enter.defined()) enter();
  }
  void ExitPassContext() const override {
    if (exit.defined()) exit();
  }
  bool ShouldRun(const IRModule& mod, const PassInfo& info) const override {
    return !should_run.defined() || should_run(mod, info);
  }
  void RunBeforePass(const IRModule& mod, const PassInfo& info) const override {
    if (before.defined()) before(mod, info);
  }
  void RunAfterPass(const IRModule& mod, const PassInfo& info) const override {
    if (after.defined()) after(mod, info);
  }
  // Not a node with fields: saved without its callbacks it would be another instrument.
  TVM_DECLARE_OBJECT(CallbackInstrumentNode, PassInstrumentNode, "instrument.CallbackInstrument");
};

/*! \brief Time spent in each pass, as a tree: passes run by a pass are its children. */
class PassTimingNode final : public PassInstrumentNode {
 public:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    std::string name;
    Clock::time_point begin;
    double seconds = 0;
    std::vector<std::unique_ptr<Entry>> children;
  };

  PassTimingNode() { EnterPassContext(); }
  // Objects of this type are made by one function and never copied.
  PassTimingNode(const PassTimingNode&) = delete;

  void EnterPassContext() const override {
    root_ = std::make_unique<Entry>();
    open_.assign(1, root_.get());
  }
  void RunBeforePass(const IRModule& mod, const PassInfo& info) const override {
    auto entry = std::make_unique<Entry>();
    entry->name = info->name;
    entry->begin = Clock::now();
    open_.push_back(open_.back()->children.emplace_back(std::move(entry)).get());
  }
  void RunAfterPass(const IRModule& mod, const PassInfo& info) const override {
    // A pass that raised never got here: close what it left open inside.
    while (open_.size() > 1) {
      Entry* entry = open_.back();
      open_.pop_back();
      entry->seconds = std::chrono::duration<double>(Clock::now() - entry->begin).count();
      if (entry->name == info->name) break;
    }
  }

  std::string Render() const {
    double total = 0;
    for (const auto& entry : root_->children) total += entry->seconds;
    std::ostringstream os;
    for (const auto& entry : root_->children) RenderEntry(*entry, 0, total, total, &os);
    char line[64];
    std::snprintf(line, sizeof(line), "Total time: %.3f ms\n", total * 1e3);
    os << line;
    return os.str();
  }
  TVM_DECLARE_NODE(PassTimingNode, PassInstrumentNode, "instrument.PassTimingInstrument");

 private:
  static void RenderEntry(const Entry& entry, int depth, double parent, double total,
                          std::ostringstream* os) {
    double inside = 0;
    for (const auto& child : entry.children) inside += child->seconds;
    auto percent = [](double part, double whole) { return whole > 0 ? 100 * part / whole : 0.0; };
    char line[160];
    std::snprintf(line, sizeof(line), ": %.3f ms, own %.3f ms (%.1f%% of all, %.1f%% of parent)\n",
                  entry.seconds * 1e3, (entry.seconds - inside) * 1e3,
                  percent(entry.seconds, total), percent(entry.seconds, parent));
    *os << std::string(static_cast<size_t>(2 * depth), ' ') << entry.name << line;
    for (const auto& child : entry.children) {
      RenderEntry(*child, depth + 1, entry.seconds, total, os);
    }
  }

  mutable std::unique_ptr<Entry> root_;
  mutable std::vector<Entry*> open_;
};

}  // namespace

/*! \brief Prints the module before and after passes with given names; absent names mean all. */
class PrintInstrumentNode final : public PassInstrumentNode {
 public:
  Optional<Array<String>> before, after;

  void RunBeforePass(const IRModule& mod, const PassInfo& info) const override {
    if (Selects(before, info)) LOG(INFO) << "before pass " << info->name << "\n" << mod;
  }
  void RunAfterPass(const IRModule& mod, const PassInfo& info) const override {
    if (Selects(after, info)) LOG(INFO) << "after pass " << info->name << "\n" << mod;
  }
  TVM_DECLARE_NODE(PrintInstrumentNode, PassInstrumentNode, "instrument.PrintInstrument",
                   Value(before), Value(after));
  TVM_NODE_ARGS();

 private:
  static bool Selects(const Optional<Array<String>>& names, const PassInfo& info) {
    if (!names.defined()) return true;
    for (const String& name : names.value()) {
      if (name == info->name) return true;
    }
    return false;
  }
};
TVM_REGISTER_NODE(PrintInstrumentNode);

TVM_REGISTER_GLOBAL("instrument.PassInstrument")
    .set_body_typed([](String name, PackedFunc enter, PackedFunc exit, PackedFunc should_run,
                       PackedFunc before, PackedFunc after) {
      auto node = make_object<CallbackInstrumentNode>();
      node->name = std::move(name);
      node->enter = std::move(enter);
      node->exit = std::move(exit);
      node->should_run = std::move(should_run);
      node->before = std::move(before);
      node->after = std::move(after);
      return PassInstrument(ObjectPtr<Object>(node));
    });

TVM_REGISTER_GLOBAL("instrument.MakePassTimingInstrument").set_body_typed([]() {
  auto node = make_object<PassTimingNode>();
  node->name = "PassTimingInstrument";
  return PassInstrument(ObjectPtr<Object>(node));
});

TVM_REGISTER_GLOBAL("instrument.RenderTimePassProfiles").set_body_typed([](PassInstrument timing) {
  const auto* node = timing.as<PassTimingNode>();
  TVM_CHECK(node != nullptr, TypeError)
      << "PassTimingInstrument.render: got " << timing->GetTypeKey();
  return node->Render();
});

TVM_REGISTER_GLOBAL("instrument.MakePrintInstrument")
    .set_body_typed([](String name, Optional<Array<String>> before, Optional<Array<String>> after) {
      auto node = make_object<PrintInstrumentNode>();
      node->name = std::move(name);
      node->before = std::move(before);
      node->after = std::move(after);
      return PassInstrument(ObjectPtr<Object>(node));
    });

}  // namespace instrument
}  // namespace tvm
