// Ops of the host backend: what a launch needs is what a launch on a device needs.
#include "tests/runtime/support.h"

namespace hstujit::test {
namespace {

// Its kernels only count.
class CountingHost final : public HostBackend {
 public:
  Result<HostKernelPtr> create(const OpSpec&, Direction) const override {
    class Kernel final : public HostKernel {
     public:
      explicit Kernel(std::atomic<int>& launches) : launches_(launches) {}
      Status launch(const Signature&, const hstujit_value*) const override {
        ++launches_;
        return {};
      }

     private:
      std::atomic<int>& launches_;
    };
    ++creations;
    return HostKernelPtr(std::make_shared<Kernel>(launches));
  }
  std::string path() const override { return "fake"; }

  mutable std::atomic<int> creations{0}, launches{0};
};

class HostBackendTest : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    host_ = backend_ = std::make_shared<CountingHost>();
    op_ = make_op(make_engine(), Backend::kHost);
  }

  Status launch(int64_t max_seq_len) {
    Lengths lengths;
    lengths.rows = {5, 0, 100};
    lengths.max_seq_len = 128;
    FakeLaunch values(make_instance(), lengths, kDLCPU);
    values.value("max_seq_len").integer = max_seq_len;
    return op_->launch(values.values.data(), values.values.size(), nullptr);
  }

  Result<size_t> workspace_size(int64_t max_seq_len) {
    FakeLaunch values(make_instance(), {{5, 0, 100}, {}, 128, {}}, kDLCPU);
    values.value("max_seq_len").integer = max_seq_len;
    return op_->workspace_size(values.values.data(), values.values.size());
  }

  std::shared_ptr<CountingHost> backend_;
  std::unique_ptr<Op> op_;
};

TEST_F(HostBackendTest, ALengthThatWasNotPreparedIsRefused) {
  const auto sentence = [](const char* lengths) {
    return std::string("no kernel of hstu_attention forward is prepared for max_seq_len ") + lengths +
           " on the host backend; call prepare before launch";
  };
  EXPECT_EQ(launch(128).code(), Code::kNotPrepared);
  EXPECT_EQ(launch(128).message(), sentence("128 (bucket 128)"));
  EXPECT_EQ(workspace_size(128).status().message(), sentence("128 (bucket 128)"));
  ASSERT_TRUE(op_->prepare(128, -1).ok());
  EXPECT_TRUE(launch(128).ok());
  EXPECT_TRUE(launch(100).ok()) << "of the same bucket";
  EXPECT_EQ(launch(256).code(), Code::kNotPrepared);
  EXPECT_EQ(launch(256).message(), sentence("256 (bucket 256)"));
  EXPECT_EQ(workspace_size(100).value(), 0U);
  EXPECT_EQ(workspace_size(256).status().code(), Code::kNotPrepared);
  EXPECT_EQ(backend_->launches, 2);
}

// Offsets are a mistake of the caller's also where they end up in no row.
TEST_F(HostBackendTest, OffsetsAreCheckedWithNothingToWrite) {
  ASSERT_TRUE(op_->prepare(128, -1).ok());
  FakeLaunch values(make_instance(), {.rows = {0, 0}, .num_targets = {}, .max_seq_len = 128}, kDLCPU);
  const auto launch = [&] { return op_->launch(values.values.data(), values.values.size(), nullptr); };
  EXPECT_TRUE(launch().ok());
  auto* const offsets = static_cast<int64_t*>(values.tensor("seq_offsets").data);
  offsets[0] = -5;
  EXPECT_EQ(launch().message(), "seq_offsets[0] is -5; it must be 0");
  offsets[0] = 0;
  offsets[1] = int64_t{1} << 62;
  EXPECT_EQ(launch().code(), Code::kInvalidArgument);
  EXPECT_EQ(backend_->launches, 0);
}

TEST_F(HostBackendTest, OneKernelServesEveryLengthThatWasPrepared) {
  for (const int64_t length : {128, 256, 128, 4096}) ASSERT_TRUE(op_->prepare(length, -1).ok());
  for (const int64_t length : {128, 200, 4000}) EXPECT_TRUE(launch(length).ok()) << length;
  EXPECT_EQ(backend_->creations, 1);
}

}  // namespace
}  // namespace hstujit::test
