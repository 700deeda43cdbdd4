// The helper of the golden tests: what passes, what fails, and that writing files anew cannot pass unnoticed.
#include "tests/golden/golden.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "compiler/support/files.h"

namespace hstujit {
namespace {

// The environment as the test needs it, and as it was afterwards.
class Updating {
 public:
  explicit Updating(const char* value) {
    if (const char* old = std::getenv(kName)) old_ = old;
    set(value);
  }
  Updating(const Updating&) = delete;
  Updating& operator=(const Updating&) = delete;
  ~Updating() { set(old_ ? old_->c_str() : nullptr); }

 private:
  static constexpr char kName[] = "HSTUJIT_UPDATE_GOLDEN";
  static void set(const char* value) { value == nullptr ? unsetenv(kName) : setenv(kName, value, 1); }
  std::optional<std::string> old_;
};

TEST(Golden, FailsWhereTheTextDiffersOrIsMissing) {
  static const auto folder = TempDir::create();
  ASSERT_TRUE(folder.ok());
  const Updating off(nullptr);
  std::ofstream(folder->path() / "a.txt") << "text";
  expect_golden("a.txt", "text", folder->path());
  EXPECT_NONFATAL_FAILURE(expect_golden("a.txt", "other", folder->path()), "a.txt differs");
  EXPECT_FATAL_FAILURE(expect_golden("b.txt", "text", folder->path()), "b.txt is missing");
}

TEST(Golden, WritingAnewFails) {
  static const auto folder = TempDir::create();
  ASSERT_TRUE(folder.ok());
  {
    const Updating on("1");
    EXPECT_FATAL_FAILURE(expect_golden("new.txt", "text", folder->path()), "new.txt was written anew");
  }
  const Updating off(nullptr);
  expect_golden("new.txt", "text", folder->path());
}

}  // namespace
}  // namespace hstujit
