// How the URL of a remote cache is read.
#include "autotune_cache/remote/remote_url.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace hstujit {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(RemoteUrlTest, IsTakenApart) {
  const auto parts = [](const char* text) {
    const auto url = parse_remote_url(text);
    return url.ok() ? std::vector{url->base, url->user, url->password} : std::vector{url.status().message()};
  };
  EXPECT_THAT(parts("http://cache"), ElementsAre("http://cache", "", ""));
  EXPECT_THAT(parts("https://cache:8080/a/b//"), ElementsAre("https://cache:8080/a/b", "", ""));
  EXPECT_THAT(parts("http://me:p%40ss%3a@[::1]:80/x"), ElementsAre("http://[::1]:80/x", "me", "p@ss:"));
  EXPECT_THAT(parts("http://me@cache/"), ElementsAre("http://cache", "me", ""));
}

TEST(RemoteUrlTest, WhatIsNoneIsRefusedWithoutItsValue) {
  for (const char* text : {"",
                           "cache",
                           "ftp://cache/",
                           "http://",
                           "http:///x",
                           "http://cache:0",
                           "http://cache:70000",
                           "http://cache:80x/",
                           "http://a b/",
                           "http://cache/?x",
                           "http://cache/#x",
                           "http://[::1/x",
                           "http://[]/x",
                           "HTTP://cache",
                           "http://me:%4@cache",
                           "http://:secret@cache",
                           "http://me%00:secret@cache",
                           "http://me:secret%00@cache",
                           "ftp://me:secret@cache/",
                           "http://me:sec/ret@cache:0/",
                           "http://me:80/secret@cache/",
                           "https://cache/c?sig=secret",
                           "https://cache?sig=secret",
                           "https://cache/c#secret",
                           "http://user:secret",
                           "secret"}) {
    const auto url = parse_remote_url(text);
    ASSERT_FALSE(url.ok()) << text;
    EXPECT_EQ(url.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(url.status().message(), AllOf(StartsWith("HSTUJIT_REMOTE_CACHE "), HasSubstr("; allowed: http://"),
                                              Not(HasSubstr("secret")), Not(HasSubstr("sec/ret"))))
        << text;
  }
  const auto message = [](const char* text) { return parse_remote_url(text).status().message(); };
  EXPECT_THAT(message("cache:8080"), HasSubstr("does not begin with http:// or https://"));
  EXPECT_THAT(message("http://cache/?x"), HasSubstr("has a blank, \"?\""));
  EXPECT_THAT(message("http://cache:0"), HasSubstr("has no host, or a port"));
  EXPECT_THAT(message("http://me:80/ret@cache/c"), HasSubstr("a \"/\" of the user or password is written %2F"));
  EXPECT_THAT(message("http://:secret@cache"), HasSubstr("has no user before \"@\""));
}

}  // namespace
}  // namespace hstujit
