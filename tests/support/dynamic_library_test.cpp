#include "compiler/support/dynamic_library.h"

#include <elf.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "compiler/support/files.h"
#include "tests/paths.h"

namespace hstujit {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

Elf64_Ehdr header_of(const std::string& library) {
  Elf64_Ehdr header;
  std::memcpy(&header, library.data(), sizeof(header));
  return header;
}

// Where the last byte ends that the loader maps.
size_t end_of_segments(const std::string& library) {
  const Elf64_Ehdr header = header_of(library);
  size_t end = 0;
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, library.data() + header.e_phoff + i * sizeof(segment), sizeof(segment));
    if (segment.p_type == PT_LOAD) end = std::max<size_t>(end, segment.p_offset + segment.p_filesz);
  }
  return end;
}

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

// The loader maps what the headers tell of, and a page behind the end of the file ends the process.
TEST(DynamicLibrary, WhatIsCutOffIsNotOpened) {
  const auto folder = TempDir::create();
  ASSERT_TRUE(folder.ok());
  const auto maths = DynamicLibrary::open("the maths library", {"libm.so.6"}, Code::kNotFound);
  ASSERT_TRUE(maths.ok());
  const auto whole = read_file(maths->path(), size_t{1} << 30);
  ASSERT_TRUE(whole.ok());
  const std::string path = folder->path() / "libm.so";
  const auto reason = [&](const std::string& bytes) {
    EXPECT_TRUE(write_file_atomically(path, bytes).ok());
    return DynamicLibrary::open("the maths library", {path}, Code::kNotFound).status().message();
  };
  EXPECT_EQ(reason(*whole), "");
  const auto header = header_of(*whole);
  // Within the header, behind it, within the table of segments, behind it, and further on to the last segment's end.
  const size_t table = header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr);
  std::vector<size_t> sizes = {4, 20, 63, 64, 65, table - 1, table, table + 1, 4096, whole->size() / 2};
  sizes.push_back(end_of_segments(*whole) - 1);
  for (const size_t size : sizes) {
    EXPECT_THAT(reason(whole->substr(0, size)), HasSubstr(fmt::format("it is cut off: it has {} bytes", size)));
  }
  for (const size_t size : {0, 1, 3}) EXPECT_THAT(reason(whole->substr(0, size)), HasSubstr("it is no shared library"));

  const auto changed = [&](auto change) {
    std::string bytes = *whole;
    Elf64_Ehdr other = header;
    change(other);
    std::memcpy(bytes.data(), &other, sizeof(other));
    return reason(bytes);
  };
  const auto of_another = HasSubstr("it is a shared library for another kind of machine");
  EXPECT_THAT(changed([](auto& other) { other.e_machine = EM_S390; }), of_another);
  EXPECT_THAT(changed([](auto& other) { other.e_ident[EI_CLASS] = ELFCLASS32; }), of_another);
  EXPECT_THAT(changed([](auto& other) { other.e_phoff = ~uint64_t{0}; }), HasSubstr("it is no shared library"));
  EXPECT_THAT(changed([](auto& other) { other.e_type = ET_REL; }), HasSubstr("it is no shared library"));
  EXPECT_THAT(changed([](auto& other) { other.e_phnum = 0; }), HasSubstr("it is no shared library"));
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
  EXPECT_THAT(folder_of_code(reinterpret_cast<const void*>(&folder_of_code)), HasSubstr(binary_path()));
  EXPECT_EQ(folder_of_code(nullptr), "");
}

}  // namespace
}  // namespace hstujit
