#include "compiler/support/hash.h"

#include <sodium.h>
#include <string.h>

#include <new>

// SHA-256 wipes its buffer through this. libsodium's own lies in a file that needs its random sources, hence all of its
// ciphers and curves: 190 kB that nothing here calls.
void sodium_memzero(void* const bytes, const size_t size) { ::explicit_bzero(bytes, size); }

namespace hstujit {
namespace {

// libsodium's type stays out of the header, so that only this file needs its include path.
crypto_hash_sha256_state* sodium_state(unsigned char* bytes) {
  return std::launder(reinterpret_cast<crypto_hash_sha256_state*>(bytes));
}

std::array<char, 8> little_endian(uint64_t value) {
  std::array<char, 8> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>((value >> (8 * i)) & 0xff);
  return bytes;
}

}  // namespace

std::string to_hex(const Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * digest.size());
  for (unsigned char byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

Sha256::Sha256() {
  static_assert(sizeof(crypto_hash_sha256_state) <= kStateSize && alignof(crypto_hash_sha256_state) <= 8);
  // SHA-256 needs no sodium_init(): that chooses random sources and accelerated ciphers only.
  crypto_hash_sha256_init(new (state_.data()) crypto_hash_sha256_state);
}

Sha256& Sha256::update(std::string_view bytes) {
  crypto_hash_sha256_update(sodium_state(state_.data()), reinterpret_cast<const unsigned char*>(bytes.data()),
                            bytes.size());
  return *this;
}

Digest Sha256::finish() {
  Digest digest;
  crypto_hash_sha256_final(sodium_state(state_.data()), digest.data());
  return digest;
}

std::string sha256_hex(std::string_view bytes) { return to_hex(Sha256().update(bytes).finish()); }

KeyHasher::KeyHasher(std::string_view schema) { frame('s', schema); }

void KeyHasher::frame(char kind, std::string_view bytes) {
  const auto length = little_endian(bytes.size());
  sha_.update({&kind, 1}).update({length.data(), length.size()}).update(bytes);
}

KeyHasher& KeyHasher::add(std::string_view name, std::string_view text) {
  frame('n', name);
  frame('t', text);
  return *this;
}

KeyHasher& KeyHasher::add(std::string_view name, int64_t number) {
  const auto bytes = little_endian(static_cast<uint64_t>(number));
  frame('n', name);
  frame('i', {bytes.data(), bytes.size()});
  return *this;
}

KeyHasher& KeyHasher::add(std::string_view name, bool value) {
  frame('n', name);
  frame('b', value ? "1" : "0");
  return *this;
}

std::string KeyHasher::finish() { return to_hex(sha_.finish()); }

}  // namespace hstujit
