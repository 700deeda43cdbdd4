#include "compiler/support/hash.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace hstujit {
namespace {

// FIPS 180-2, appendix B.
TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesGiveTheDigestOfTheWhole) {
  const std::string text(1000, 'x');
  for (size_t cut : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{999}}) {
    EXPECT_EQ(to_hex(Sha256().update(text.substr(0, cut)).update(text.substr(cut)).finish()), sha256_hex(text));
  }
}

TEST(KeyHasher, NameValueAndOrderAllCount) {
  std::set<std::string> keys = {
      KeyHasher("schema-1").finish(),
      KeyHasher("schema-2").finish(),
      KeyHasher("schema-1").add("ab", "c").finish(),
      KeyHasher("schema-1").add("a", "bc").finish(),
      KeyHasher("schema-1").add("a", "b").add("c", "d").finish(),
      KeyHasher("schema-1").add("c", "d").add("a", "b").finish(),
      KeyHasher("schema-1").add("a", std::string("b\0c", 3)).finish(),
  };
  EXPECT_EQ(keys.size(), 7u);
}

TEST(KeyHasher, KindsOfValuesDiffer) {
  std::set<std::string> keys = {
      KeyHasher("s").add("a", 1).finish(),
      KeyHasher("s").add("a", "1").finish(),
      KeyHasher("s").add("a", true).finish(),
      KeyHasher("s").add("a", -1).finish(),
      KeyHasher("s").add("a", int64_t{1} << 32).finish(),
  };
  EXPECT_EQ(keys.size(), 5u);
}

TEST(KeyHasher, SameFieldsGiveTheSameKey) {
  EXPECT_EQ(KeyHasher("s").add("a", 1).add("b", "x").finish(),
            KeyHasher("s").add("a", int64_t{1}).add("b", "x").finish());
}

}  // namespace
}  // namespace hstujit
