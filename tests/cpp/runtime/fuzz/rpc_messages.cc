/*!
 * \file rpc_messages.cc
 * \brief Damaged, cut, reordered and oversized messages at both ends of a session and at both sides
 * of a greeting, to be built with sanitizers: each ends its connection with an error and nothing
 * else.
 *
 * `fuzz_rpc MESSAGES [SEED]`; the last line says how many, and status 1 that descriptors are left
 * over. A connection that hangs ends the program by SIGALRM, and the seed in the last line of the
 * log leads back to it.
 */
#include <sys/socket.h>
#include <tvm/runtime/container.h>
#include <tvm/runtime/registry.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/json.h"
#include "runtime/rpc/connection.h"
#include "runtime/rpc/session.h"
#include "runtime/rpc/session_functions.h"
#include "runtime/rpc/wire.h"

namespace tvm {
namespace runtime {
namespace rpc {
namespace {

using json::ArrayValue;
using json::ObjectValue;
using json::Value;

constexpr unsigned kHangSeconds = 60;
constexpr char kSecret[] = "0123456789abcdef";

/*! \brief A text, and the bytes behind it. */
struct Message {
  std::string text;
  std::string blob;
};

const std::vector<Message> kRequests = {
    {R"({"op": "get", "name": "rpc.test.addone"})", ""},
    {R"({"op": "get", "name": "runtime.ShapeTuple"})", ""},
    {R"({"op": "get", "name": "upload"})", ""},
    {R"({"op": "get", "name": "testing.echo"})", ""},
    {R"({"op": "call", "h": 1, "args": [1]})", ""},
    {R"({"op": "call", "h": 2, "args": [1, 2, {"$": "bytes", "size": 4}]})", "1234"},
    {R"({"op": "call", "h": 3, "args": ["name", {"$": "bytes", "size": 2}]})", "12"},
    {R"({"op": "call", "h": 4, "args": [{"$": "dict", "items": [[1, 2]]}, [[], null, 1.5]]})", ""},
    {R"({"op": "call", "h": 4, "args": [{"$": "mine", "what": "function", "h": 3}]})", ""},
    {R"({"op": "call", "h": 4, "args": [{"$": "yours", "what": "array", "h": 5, "at": 0,)"
     R"( "shape": [2, 4], "dtype": "float32"}]})",
     ""},
    {R"({"op": "call", "h": 1, "args": [{"$": "yours", "what": "object", "h": 2}]})", ""},
    {R"({"op": "alloc", "device": [1, 0], "bytes": 64})", ""},
    {R"({"op": "write", "h": 5, "at": 8})", "12345678"},
    {R"({"op": "read", "h": 5, "at": 8, "bytes": 16})", ""},
    {R"({"op": "copy", "h": 5, "at": 0, "to": 5, "to_at": 32, "bytes": 8})", ""},
    {R"({"op": "member", "h": 4, "name": "main", "imports": true})", ""},
    {R"({"op": "attribute", "device": [1, 0], "kind": 0})", ""},
    {R"({"op": "sync", "device": [1, 0]})", ""},
    {R"({"op": "free", "handles": [2, 3]})", ""},
};

const std::vector<Message> kAnswers = {
    {R"({"ok": {"$": "mine", "what": "function", "h": 1, "type": "runtime.PackedFunc"}})", ""},
    {R"({"ok": {"$": "mine", "what": "module", "h": 1, "type": "runtime.Module"}})", ""},
    {R"({"ok": {"$": "mine", "what": "object", "h": 1, "type": "runtime.ShapeTuple"}})", ""},
    {R"({"ok": {"$": "mine", "what": "array", "h": 1, "at": 0, "shape": [2, 3], "dtype": "int8",)"
     R"( "device": {"$": "device", "type": 1, "id": 0}}})",
     ""},
    {R"({"ok": {"$": "bytes", "size": 3}})", "abc"},
    {R"({"ok": null})", ""},
    {R"({"ok": 7})", ""},
    {R"({"error": "no", "kind": "ValueError"})", ""},
    {R"({"end": "it was late", "kind": "RPCSessionTimeoutError"})", ""},
    {R"({"op": "call", "h": 1, "args": []})", ""},
    {R"({"op": "get", "name": "rpc.test.addone"})", ""},
};

const std::vector<Message> kVisits = {
    {R"({"tvm-rpc": 1, "nonce": "00000000000000000000000000000000",)"
     R"( "request": "{\"role\": \"client\", \"key\": \"a\", \"timeout\": 0}", "proof": "00"})",
     ""},
    {R"({"tvm-rpc": 1, "nonce": "0", "request": "{\"role\": \"server\"}"})", ""},
};

const std::vector<Message> kReplies = {
    {R"({"tvm-rpc": 1, "role": "server", "nonce": "0123", "secret": false})", ""},
    {R"({"tvm-rpc": 1, "role": "server", "nonce": "0123", "secret": true})", ""},
    {R"({"wait": "it is busy"})", ""},
    {R"({"reply": "{\"match\": 1}", "proof": "00"})", ""},
    {R"({"refused": "no"})", ""},
};

/*! \brief What is drawn for one connection. */
class Draw {
 public:
  explicit Draw(uint64_t seed) : engine_(seed) {}
  /*! \brief An integer from 0 to below `end`. */
  size_t Below(size_t end) { return std::uniform_int_distribution<size_t>(0, end - 1)(engine_); }
  bool Chance(double share) { return std::bernoulli_distribution(share)(engine_); }
  template <typename T>
  const T& Of(const std::vector<T>& items) {
    return items[Below(items.size())];
  }

 private:
  std::mt19937_64 engine_;
};

Value OddValue(Draw* draw) {
  switch (draw->Below(13)) {
    case 0:
      return Value(draw->Chance(0.5));
    case 1:
      return Value(int64_t{-1});
    case 2:
      return Value(int64_t{1} << 31);
    case 3:
      return Value(std::numeric_limits<int64_t>::max());
    case 4:
      return Value(std::numeric_limits<int64_t>::min());
    case 5:
      return Value(1e300);
    case 6:
      return Value(std::string(draw->Below(300), 'x'));
    case 7:
      return Value(std::string(1, '\0'));
    case 8:
      return Value(ArrayValue(draw->Below(50), Value(int64_t{0})));
    case 9:
      return Value(ObjectValue{{"$", Value(std::string("mine"))}});
    case 10:
      return Value(ObjectValue{{"$", Value(std::string("tuple"))}, {"items", Value(int64_t{3})}});
    case 11: {
      Value nested;
      for (size_t depth = draw->Below(90); depth > 0; --depth) nested = Value(ArrayValue{nested});
      return nested;
    }
    default:
      return Value();
  }
}

/*! \brief The value with one part of it replaced or left out. */
Value WithOddPart(const Value& value, Draw* draw) {
  if (const auto* object = value.as<ObjectValue>();
      object != nullptr && !object->empty() && draw->Chance(0.8)) {
    ObjectValue changed = *object;
    const size_t at = draw->Below(changed.size());
    if (draw->Chance(0.1)) {
      changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      changed[at].second = WithOddPart(changed[at].second, draw);
    }
    return Value(std::move(changed));
  }
  if (const auto* array = value.as<ArrayValue>();
      array != nullptr && !array->empty() && draw->Chance(0.8)) {
    ArrayValue changed = *array;
    const size_t at = draw->Below(changed.size());
    changed[at] = WithOddPart(changed[at], draw);
    return Value(std::move(changed));
  }
  return OddValue(draw);
}

std::string Frame(const Message& message) {
  std::string frame(12, '\0');
  for (int i = 0; i < 4; ++i) frame[i] = static_cast<char>(message.text.size() >> (8 * i));
  for (int i = 0; i < 8; ++i) {
    frame[4 + i] = static_cast<char>(uint64_t{message.blob.size()} >> (8 * i));
  }
  return frame + message.text + message.blob;
}

/*! \brief Some messages in a row, most of which are not what they should be; adds their number. */
std::string Damaged(const std::vector<Message>& messages, Draw* draw, size_t* count) {
  std::string data;
  for (size_t left = 1 + draw->Below(6); left > 0; --left, ++*count) {
    Message message = draw->Of(messages);
    if (draw->Chance(0.4)) {
      message.text.clear();
      WithOddPart(Value::Parse(draw->Of(messages).text), draw).Write(&message.text);
    }
    data += Frame(message);
  }
  const size_t how = draw->Below(20);
  auto byte = [draw] { return static_cast<char>(draw->Below(256)); };
  if (how < 4) {
    for (size_t left = 1 + draw->Below(4); left > 0; --left)
      data[draw->Below(data.size())] = byte();
  } else if (how < 7) {
    data.resize(draw->Below(data.size()));
  } else if (how < 9) {
    const uint32_t size = draw->Of(std::vector<uint32_t>{0xffffffff, 1 << 20, 1 << 30, 0});
    const size_t at = draw->Of(std::vector<size_t>{0, 4, 8});
    for (size_t i = 0; i < 4; ++i) data[at + i] = static_cast<char>(size >> (8 * i));
  } else if (how == 9) {
    std::string noise(1 + draw->Below(40), '\0');
    for (char& c : noise) c = byte();
    data.insert(draw->Below(data.size()), noise);
  }
  return data;
}

/*! \brief A wire on which `data` has come and nothing more will; what it sends goes nowhere. */
std::unique_ptr<Wire> WireWith(const std::string& data, int* other) {
  int ends[2];
  TVM_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, RuntimeError) << "no pair of sockets";
  TVM_CHECK(
      send(ends[0], data.data(), data.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(data.size()),
      RuntimeError)
      << "the messages do not fit into the socket";
  shutdown(ends[0], SHUT_WR);
  *other = ends[0];
  return std::make_unique<Wire>(ends[1]);
}

template <typename Action>
void OverWire(const std::string& data, Action&& action) {
  int other = -1;
  auto wire = WireWith(data, &other);
  try {
    action(std::move(wire));
  } catch (const Error&) {
    // What every bad message comes to.
  }
  close(other);
}

/*! \brief One connection of a kind that is drawn; adds the number of messages. */
void Connect(uint64_t seed, const std::string& folder, size_t* count) {
  Draw draw(seed);
  const std::string secret = draw.Chance(0.5) ? kSecret : "";
  switch (draw.Below(8)) {
    case 0:
      return OverWire(Damaged(kVisits, &draw, count), [&](std::unique_ptr<Wire> wire) {
        Reception visitor(wire.get(), "server", secret);
        visitor.Wait("it is busy");
        visitor.Accept(visitor.request());
      });
    case 1:
      return OverWire(Damaged(kReplies, &draw, count), [&](std::unique_ptr<Wire> wire) {
        Introduce(wire.get(), Value(ObjectValue{{"role", Value(std::string("client"))}}), secret,
                  {"server", "proxy"});
      });
    case 2:
    case 3:
      return OverWire(Damaged(kAnswers, &draw, count), [](std::unique_ptr<Wire> wire) {
        auto session = Session::Make(std::move(wire), nullptr);
        const PackedFunc function = session->RequireFunction("rpc.test.addone");
        NDArray array = NDArray::Empty({8}, DataType::UInt(8), session->Mask(Device{kDLCPU, 0}));
        function(array, 1, "text");
        array.CopyTo(Device{kDLCPU, 0});
      });
    default:
      return OverWire(Damaged(kRequests, &draw, count), [&](std::unique_ptr<Wire> wire) {
        Session::Make(std::move(wire),
                      ServedFunctions(folder, DefaultAllowedFunctions(), nullptr, nullptr))
            ->Serve();
      });
  }
}

size_t OpenDescriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

int Run(size_t messages, uint64_t seed) {
  std::string folder = (std::filesystem::temp_directory_path() / "fuzz_rpc_XXXXXX").string();
  TVM_CHECK(mkdtemp(folder.data()) != nullptr, RuntimeError) << "no temporary folder";
  const size_t before = OpenDescriptors();
  size_t count = 0;
  for (uint64_t number = seed; count < messages; ++number) {
    alarm(kHangSeconds);
    if ((number - seed) % 50000 == 0) {
      std::fprintf(stderr, "seed %llu: %zu messages\n", static_cast<unsigned long long>(number),
                   count);
    }
    Connect(number, folder, &count);
  }
  alarm(0);
  const size_t left = OpenDescriptors() - before;
  std::filesystem::remove_all(folder);
  std::printf("%zu messages, %zu descriptors left over\n", count, left);
  return left == 0 ? 0 : 1;
}

}  // namespace
}  // namespace rpc
}  // namespace runtime
}  // namespace tvm

int main(int argc, char** argv) {
  const size_t messages = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 20000;
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  return tvm::runtime::rpc::Run(messages, seed);
}
