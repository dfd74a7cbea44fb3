/*!
 * \file value.h
 * \brief Arguments and results as JSON with raw bytes, and back.
 *
 * Plain values, texts, bytes, lists and maps travel by value, in the form of
 * `tvm.runtime.workers.wire`. Everything else stays where it is: "mine" is an object of the sender,
 * "yours" one of the receiver.
 */
#ifndef TVM_RUNTIME_RPC_VALUE_H_
#define TVM_RUNTIME_RPC_VALUE_H_

#include <string>
#include <vector>

#include "session.h"

namespace tvm {
namespace runtime {
namespace rpc {

/*! \brief Writes the values of one message. */
class Encoder {
 public:
  explicit Encoder(Session* session) : session_(session) {}
  /*! \brief TypeError for what cannot travel. */
  json::Value Encode(const Any& value, int depth = 0);
  /*! \brief The message's blob; valid as long as this object. */
  std::vector<Piece> pieces() const;

 private:
  json::Value EncodeObject(const Any& value, int depth);
  json::Value EncodeArray(const NDArray& array);
  json::Value Mine(const char* what, ObjectRef object);
  json::Value Yours(const ObjectPtr<Session>& owner, int64_t handle) const;

  Session* session_;
  // The strings keep what is sent.
  std::vector<String> blobs_;
};

/*! \brief Reads the values of one message. ValueError for what no Encoder writes. */
class Decoder {
 public:
  Decoder(Session* session, std::string_view blob) : session_(session), blob_(blob) {}
  Any Decode(const json::Value& value);

 private:
  Any DecodeTagged(const std::string& tag, const json::Value& value);
  Any DecodeMine(const json::Value& value);
  Any DecodeYourArray(const json::Value& value);

  Session* session_;
  std::string_view blob_;
};

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_RPC_VALUE_H_
