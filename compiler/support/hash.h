// SHA-256 and the hashing of keys: fields with names and lengths, so that no two different keys share their bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hstujit {

using Digest = std::array<unsigned char, 32>;

std::string to_hex(const Digest& digest);  // 64 lower-case digits

class Sha256 {
 public:
  Sha256();
  Sha256& update(std::string_view bytes);
  // Digest of everything so far. The object is finished afterwards: neither update nor finish may be called again.
  Digest finish();

 private:
  static constexpr size_t kStateSize = 128;
  alignas(8) std::array<unsigned char, kStateSize> state_;
};

std::string sha256_hex(std::string_view bytes);

// Hashes (name, value) pairs in the order given. Each is framed by its length, and a value by its kind, so that
// {"ab", "c"} and {"a", "bc"} differ, and so do the number 1, the text "1" and true.
class KeyHasher {
 public:
  // `schema` names what the key is of and its version, e.g. "hstujit-cubin-1".
  explicit KeyHasher(std::string_view schema);

  KeyHasher& add(std::string_view name, std::string_view text);
  KeyHasher& add(std::string_view name, const char* text) { return add(name, std::string_view(text)); }
  KeyHasher& add(std::string_view name, const std::string& text) { return add(name, std::string_view(text)); }
  KeyHasher& add(std::string_view name, int64_t number);
  KeyHasher& add(std::string_view name, int number) { return add(name, static_cast<int64_t>(number)); }
  KeyHasher& add(std::string_view name, bool value);

  // The key, as 64 hexadecimal digits; the object is finished afterwards.
  std::string finish();

 private:
  void frame(char kind, std::string_view bytes);
  Sha256 sha_;
};

}  // namespace hstujit
