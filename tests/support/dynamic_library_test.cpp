#include "compiler/support/dynamic_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <utility>

#include "compiler/support/files.h"

namespace hstujit {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(DynamicLibrary, TheFirstThatOpensIsTaken) {
  const auto library = DynamicLibrary::open("the maths library", {"/nowhere/libm.so", "libm.so.6"}, Code::kNotFound);
  ASSERT_TRUE(library.ok()) << library.status().message();
  EXPECT_EQ(library->name(), "libm.so.6");
  EXPECT_THAT(library->path(), EndsWith("libm.so.6"));
  const auto cosine = library->function<double(double)>("cos");
  ASSERT_TRUE(cosine.ok());
  EXPECT_EQ((*cosine)(0.0), 1.0);
}

TEST(DynamicLibrary, AMissingOneSaysWhatWasLookedForAndWhere) {
  const auto library =
      DynamicLibrary::open("the CUDA driver", {"/nowhere/libcuda.so.1", "libno_such_thing.so"}, Code::kNoDriver);
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.status().code(), Code::kNoDriver);
  EXPECT_THAT(library.status().message(),
              AllOf(HasSubstr("the CUDA driver was not found"), HasSubstr("/nowhere/libcuda.so.1"),
                    HasSubstr("libno_such_thing.so"), HasSubstr("cannot open shared object")));
  EXPECT_THAT(DynamicLibrary::open("it", {}, Code::kNotFound).status().message(), HasSubstr("tried: nothing"));
}

// The loader would wait for a pipe's writer for ever.
TEST(DynamicLibrary, WhatIsNoRegularFileIsNotOpened) {
  const auto folder = TempDir::create();
  ASSERT_TRUE(folder.ok());
  const std::string pipe = folder->path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0666), 0);
  const auto library = DynamicLibrary::open("the CUDA driver", {pipe, "/dev/zero"}, Code::kNoDriver);
  EXPECT_THAT(library.status().message(),
              AllOf(HasSubstr("it is a pipe, no regular file"), HasSubstr("it is a device, no regular file")));
  // A regular file for the system, whose reader waits for what the kernel has yet to say.
  EXPECT_FALSE(DynamicLibrary::open("the CUDA driver", {"/proc/kmsg"}, Code::kNoDriver).ok());
  EXPECT_THAT(DynamicLibrary::open("the CUDA driver", {"/proc/version"}, Code::kNoDriver).status().message(),
              HasSubstr("/proc/version (it is no shared library)"));
}

TEST(DynamicLibrary, AMissingFunctionIsNamed) {
  const auto library = DynamicLibrary::open("the maths library", {"libm.so.6"}, Code::kNoCompiler);
  ASSERT_TRUE(library.ok());
  const auto missing = library->function<void()>("no_such_function");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), Code::kNoCompiler);
  EXPECT_THAT(missing.status().message(),
              AllOf(HasSubstr("the maths library"), HasSubstr("libm.so.6"), HasSubstr("no_such_function")));
  EXPECT_EQ(library->optional_function<void()>("no_such_function"), nullptr);
  EXPECT_NE(library->optional_function<double(double)>("sin"), nullptr);
}

TEST(DynamicLibrary, MovesKeepItOpen) {
  auto opened =
      DynamicLibrary::open("the maths library", {"libm.so.6"}, Code::kNotFound, DynamicLibrary::Keep::kForever);
  ASSERT_TRUE(opened.ok());
  DynamicLibrary first = std::move(opened).value();
  DynamicLibrary second = std::move(first);
  first = std::move(second);
  EXPECT_NE(first.optional_function<double(double)>("sin"), nullptr);
}

TEST(DynamicLibrary, FolderOfCodeIsTheFolderOfItsFile) {
  EXPECT_THAT(folder_of_code(reinterpret_cast<const void*>(&folder_of_code)), HasSubstr(HSTUJIT_BINARY_DIR));
  EXPECT_EQ(folder_of_code(nullptr), "");
}

}  // namespace
}  // namespace hstujit
