// The C boundary of the host backend: what it refuses, in sentences, and its use from several threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "compiler/generator/generator_digest.h"
#include "compiler/spec/limits.h"
#include "compiler/support/files.h"
#include "compiler/support/read_limits.h"
#include "compiler/support/status.h"
#include "tests/host/host_call.h"

namespace hstujit {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

const Json kSpec = {{"op", "hstu_attention"}, {"heads", 2}, {"attn_dim", 16}, {"hidden_dim", 8}, {"dtype", "bf16"}};
const Lengths kLengths{.rows = {4, 9}, .num_targets = {}, .max_seq_len = 16};

std::string refusal(const std::string& request) {
  char error[512] = "";
  void* handle = hstujit_host_create(request.c_str(), error, sizeof(error));
  EXPECT_EQ(handle, nullptr) << request;
  hstujit_host_destroy(handle);
  return error;
}

TEST(HostApi, SaysItsBuild) {
  EXPECT_EQ(hstujit_host_abi(), HSTUJIT_HOST_ABI);
  EXPECT_EQ(hstujit_host_generator(), generator_digest());
}

TEST(HostApi, RefusesWrongRequests) {
  EXPECT_EQ(refusal("{"), "the request is not a JSON object");
  EXPECT_EQ(refusal("[]"), "the request is not a JSON object");
  EXPECT_EQ(refusal("{}"), "the request has no field \"spec\"");
  EXPECT_THAT(refusal(Json{{"spec", kSpec}, {"direction", "sideways"}}.dump()), HasSubstr("direction is \"sideways\""));
  EXPECT_THAT(refusal(Json{{"spec", kSpec}, {"threads", -1}}.dump()), HasSubstr("threads is -1"));
  EXPECT_EQ(refusal(Json{{"spec", kSpec}, {"objects", 1}}.dump()), "objects is 1; allowed is the path of a folder");
  EXPECT_THAT(refusal(Json{{"spec", kSpec}, {"thread", 1}}.dump()), HasSubstr("unknown field \"thread\""));
  EXPECT_THAT(refusal(Json{{"spec", {{"op", "no_such_op"}}}}.dump()), HasSubstr("no_such_op"));
  char error[512] = "";
  EXPECT_EQ(hstujit_host_create(nullptr, error, sizeof(error)), nullptr);
  EXPECT_THAT(error, HasSubstr("null"));
}

// The second process finds what the first has kept; what is damaged is made anew.
TEST(HostApi, MachineCodeIsKept) {
  const auto folder = std::move(TempDir::create()).value();
  const auto create_and_launch = [&] {
    char error[512] = "";
    const Json request = {{"spec", kSpec}, {"objects", folder.path().string()}};
    void* const handle = hstujit_host_create(request.dump().c_str(), error, sizeof(error));
    ASSERT_NE(handle, nullptr) << error;
    HostCall call(make_spec(kSpec), kLengths, 1);
    call.pack_inputs();
    EXPECT_EQ(hstujit_host_launch(handle, call.values().data(), call.values().size(), error, sizeof(error)), 0)
        << error;
    EXPECT_EQ(call.mistakes(), "");
    hstujit_host_destroy(handle);
  };
  const auto file = [&] {
    const auto entries = std::filesystem::directory_iterator(folder.path());
    EXPECT_EQ(std::distance(entries, {}), 1);
    return std::filesystem::directory_iterator(folder.path())->path();
  };
  create_and_launch();
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  const std::string bytes = read_file(file(), kMaxCubinBytes).value();
  std::filesystem::last_write_time(file(), old);
  create_and_launch();
  EXPECT_GT(std::filesystem::last_write_time(file()), old) << "it was not read";
  EXPECT_EQ(read_file(file(), kMaxCubinBytes).value(), bytes);

  std::string damaged = bytes;
  damaged[damaged.size() / 2] ^= 1;
  ASSERT_TRUE(write_file_atomically(file(), damaged).ok());
  create_and_launch();
  EXPECT_EQ(read_file(file(), kMaxCubinBytes).value(), bytes);
}

TEST(HostApi, CutsSentencesToTheBuffer) {
  char error[8] = "xxxxxxx";
  EXPECT_EQ(hstujit_host_create("{", error, sizeof(error)), nullptr);
  EXPECT_STREQ(error, "the req");
  EXPECT_EQ(hstujit_host_create("{", nullptr, 0), nullptr);
}

class HostApiLaunch : public ::testing::Test {
 protected:
  HostApiLaunch() : spec_(make_spec(kSpec)), handle_(*spec_, 1), call_(spec_, kLengths, 1) { call_.pack_inputs(); }

  void expect_refusal(const std::string& sentence) {
    EXPECT_EQ(call_.launch(handle_), static_cast<int>(Code::kInvalidArgument));
    EXPECT_THAT(call_.error(), HasSubstr(sentence));
  }

  OpSpecPtr spec_;
  HostHandle handle_;
  HostCall call_;
};

TEST_F(HostApiLaunch, RefusesANullHandle) {
  char error[128] = "";
  EXPECT_EQ(hstujit_host_launch(nullptr, nullptr, 0, error, sizeof(error)), static_cast<int>(Code::kInvalidArgument));
  EXPECT_THAT(error, HasSubstr("kernel is null"));
}

TEST_F(HostApiLaunch, RefusesAWrongCount) {
  char error[128] = "";
  EXPECT_EQ(hstujit_host_launch(handle_.get(), nullptr, 3, error, sizeof(error)),
            static_cast<int>(Code::kInvalidArgument));
  EXPECT_THAT(error, HasSubstr("3 arguments were given"));
}

TEST_F(HostApiLaunch, RefusesANullTensor) {
  call_.value("k").data = nullptr;
  expect_refusal("k is null");
}

TEST_F(HostApiLaunch, RefusesAWrongRank) {
  call_.value("v").rank = 2;
  expect_refusal("v has rank 2; it must be 3");
}

TEST_F(HostApiLaunch, RefusesAWrongConstantDimension) {
  const int64_t shape[] = {13, 2, 24};
  call_.value("q").shape = shape;
  expect_refusal("q has size 24 along axis 2; it must be 16");
}

TEST_F(HostApiLaunch, RefusesDimensionsThatDisagree) {
  const int64_t shape[] = {12, 2, 16};
  call_.value("k").shape = shape;
  expect_refusal("k has size 12 along axis 0; it must be L = 13");
}

TEST_F(HostApiLaunch, RefusesAnInnermostStride) {
  const int64_t strides[] = {64, 32, 2};
  call_.value("out").strides = strides;
  expect_refusal("out has the innermost stride 2; it must be 1");
}

TEST_F(HostApiLaunch, RefusesOffsetsWithoutElements) {
  const int64_t shape[] = {0};
  call_.value("seq_offsets").shape = shape;
  expect_refusal("seq_offsets has size 0 along axis 0; it must be B+1");
}

TEST_F(HostApiLaunch, RefusesAnIntegerPastItsBound) {
  call_.value("max_seq_len").integer = kMaxSeqLen + 1;
  expect_refusal("max_seq_len is 268435457; it must be at most 268435456");
}

// No row is looked at: the tensors only say that they have so many.
TEST_F(HostApiLaunch, RefusesASequencePastTheLongest) {
  const int64_t offsets[] = {0, kMaxSeqLen + 1, kMaxSeqLen + 1};
  const int64_t qk[] = {kMaxSeqLen + 1, 2, 16}, v[] = {kMaxSeqLen + 1, 2, 8};
  for (const char* name : {"q", "k"}) call_.value(name).shape = qk;
  for (const char* name : {"v", "out"}) call_.value(name).shape = v;
  call_.value("seq_offsets").data = const_cast<int64_t*>(offsets);
  EXPECT_EQ(call_.launch(handle_), static_cast<int>(Code::kUnsupported));
  EXPECT_THAT(call_.error(), HasSubstr("sequence 0 has 268435457 rows; the host backend takes at most 268435456"));
}

TEST_F(HostApiLaunch, RefusesNoScale) {
  call_.value("max_seq_len").integer = 0;
  expect_refusal("max_seq_len is 0");
}

// Kernels are made and used from several threads at once, and one kernel by all of them.
TEST(HostApi, WorksFromSeveralThreads) {
  const OpSpecPtr spec = make_spec(kSpec);
  const HostHandle shared(*spec, 2);
  HostCall expected(spec, kLengths, 1);
  ASSERT_EQ(expected.launch(shared), 0) << expected.error();
  std::vector<int> agreed(4, 0);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < agreed.size(); ++i) {
    threads.emplace_back([&, i] {
      const HostHandle own(*spec, 1);
      HostCall a(spec, kLengths, 1), b(spec, kLengths, 1);
      const bool launched = own.get() != nullptr && a.launch(own) == 0 && b.launch(shared) == 0;
      agreed[i] = launched && a.bytes("out") == expected.bytes("out") && b.bytes("out") == expected.bytes("out");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(agreed, std::vector<int>(agreed.size(), 1));
}

}  // namespace
}  // namespace hstujit
