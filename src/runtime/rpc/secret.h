/*!
 * \file secret.h
 * \brief Proofs that both ends of a connection know one secret, which never travels itself.
 */
#ifndef TVM_RUNTIME_RPC_SECRET_H_
#define TVM_RUNTIME_RPC_SECRET_H_

#include <string>
#include <string_view>

namespace tvm {
namespace runtime {
namespace rpc {

/*! \brief HMAC-SHA-256 (RFC 2104, FIPS 180-4) of a text, as 64 hexadecimal digits. */
std::string HmacSha256(std::string_view key, std::string_view text);
/*! \brief 32 hexadecimal digits from the system's generator. */
std::string RandomNonce();
/*! \brief Equality in a time that does not tell how much of the texts agrees. */
bool EqualInConstantTime(std::string_view a, std::string_view b);

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_RPC_SECRET_H_
