// Prefix sums on the host. No operator of the family has a function that would be compiled: one loop does it when a
// launch ends.
#include "compiler/host/operator.h"

namespace hstujit {

namespace {

template <typename T>
void scan(const Arguments& arguments) {
  const auto* lengths = static_cast<const T*>(arguments.data("lengths"));
  auto* offsets = static_cast<T*>(arguments.data("offsets"));
  T sum = 0;
  for (int64_t i = 0; i < arguments.size("lengths", 0); ++i) {
    const T length = lengths[i];
    offsets[i] = sum;
    sum += length;
  }
  offsets[arguments.size("lengths", 0)] = sum;
}

class HostScan final : public HostOperator {
 public:
  Status emit(ItemFunction&) override { return Status(); }
  Result<std::vector<WorkItem>> items(const Arguments&) const override { return std::vector<WorkItem>(); }
  void finish(const Arguments& arguments, const float*) const override {
    // Unsigned sums wrap.
    if (arguments.signature().front().dtype == DataType::kInt32) {
      scan<uint32_t>(arguments);
    } else {
      scan<uint64_t>(arguments);
    }
  }
};

}  // namespace

Result<HostOperatorPtr> make_host_scan(OpSpecPtr, Direction, const RegisterTile&) {
  return HostOperatorPtr(std::make_unique<HostScan>());
}

}  // namespace hstujit
