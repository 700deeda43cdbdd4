#include "compiler/support/credentials.h"

#include <gtest/gtest.h>

namespace hstujit {
namespace {

TEST(Credentials, OfAUrlAreHidden) {
  EXPECT_EQ(hide_credentials("Unsupported proxy syntax in 'http://pu:PW@127.0.0.1:999999': bad port"),
            "Unsupported proxy syntax in 'http://***@127.0.0.1:999999': bad port");
  EXPECT_EQ(hide_credentials("ht!tp://pu:PW@host"), "ht!tp://***@host");
  EXPECT_EQ(hide_credentials("http://pu:P W/x@y@bad host:1"), "http://***@bad host:1");
  EXPECT_EQ(hide_credentials("http://pu:PW@"), "http://***@");
  EXPECT_EQ(hide_credentials("in 'pu:P/W@host:1'"), "in '***@host:1'");
}

TEST(Credentials, OtherTextsStay) {
  for (const char* text : {"", "@", "could not resolve host: nowhere", "/data/user@host/cache", "/a:/b@c", "user@host",
                           "http://host:80/a"}) {
    EXPECT_EQ(hide_credentials(text), text);
  }
}

}  // namespace
}  // namespace hstujit
