#include "operations/configs/repeats.h"

#include <fmt/format.h>

#include <algorithm>

namespace hstujit {

namespace {

// Other work for the multiprocessors, enqueued around a launch. Its fills are not poison, and write nothing that
// belongs to the launch.
class OtherWork {
 public:
  static Result<OtherWork> create(const CudaDriverPtr& driver, double milliseconds) {
    HSTUJIT_ASSIGN_OR_RETURN(DeviceStream stream, DeviceStream::create(driver));
    HSTUJIT_ASSIGN_OR_RETURN(DeviceBuffer memory, DeviceBuffer::allocate(driver, kBytes));
    const double fills = std::clamp(2 * milliseconds / kFillMs, double{kMinFills}, double{kMaxFills});
    return OtherWork(std::move(stream), std::move(memory), static_cast<int>(fills));
  }

  // From launch to launch another number of fills is ahead of it.
  Status begin(int launch) {
    ahead_ = 1 + launch % kMinFills;
    return fill(ahead_);
  }
  Status go_on() { return fill(fills_ - ahead_); }
  // Waits for all that was enqueued: the queue does not grow from launch to launch.
  Status end() const { return stream_.synchronize(); }

 private:
  static constexpr size_t kBytes = size_t{64} << 20;
  static constexpr double kFillMs = 0.02;  // at some 3 TB/s; longer beside a launch
  static constexpr int kMinFills = 4;
  static constexpr int kMaxFills = 1000;

  OtherWork(DeviceStream stream, DeviceBuffer memory, int fills)
      : stream_(std::move(stream)), memory_(std::move(memory)), fills_(fills) {}

  Status fill(int times) {
    for (int i = 0; i < times; ++i) HSTUJIT_RETURN_IF_ERROR(memory_.fill(0, stream_.get()));
    return {};
  }

  DeviceStream stream_;
  DeviceBuffer memory_;
  int fills_;
  int ahead_ = 0;
};

}  // namespace

Status Repeats::add(const Outputs& first,
                    const std::function<Result<std::vector<std::byte>>(size_t argument)>& output) {
  bool same = true;
  for (size_t i = 0; i < signature.size(); ++i) {
    if (signature[i].role != ArgumentRole::kOutput) continue;
    HSTUJIT_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, output(i));
    if (bytes == first[i]) continue;
    ++different[i];
    same = false;
  }
  ++launches;
  equal += same ? 1 : 0;
  return {};
}

std::string Repeats::differences() const {
  std::string text;
  for (size_t i = 0; i < signature.size(); ++i) {
    if (different[i] == 0) continue;
    text += fmt::format("{}{} in {}", text.empty() ? "" : ", ", signature[i].name, different[i]);
  }
  return text;
}

void Repeats::write(Json& row) const {
  row["repeats"] = launches;
  row["repeats_equal"] = equal;
  for (size_t i = 0; i < signature.size(); ++i) {
    if (different[i] > 0) row["repeats_differ"][signature[i].name] = different[i];
  }
}

Status Repeats::must_be_equal() const {
  if (equal == launches) return {};
  return Status(Code::kCheckFailed,
                fmt::format("{} of {} launches on the same inputs gave other bytes than the first ({}); deterministic "
                            "results are asked for, and every launch must give the same",
                            launches - equal, launches, differences()));
}

Result<Repeats> repeat_on_host(const Op& op, const ProblemData& problem, const Outputs& first, int launches) {
  Repeats repeats{problem.signature};
  while (repeats.launches < launches) {
    Outputs memory = problem.images;
    std::vector<void*> addresses;
    for (auto& image : memory) addresses.push_back(image.data());
    const LaunchValues values(problem, addresses, {kDLCPU, 0});
    HSTUJIT_RETURN_IF_ERROR(op.launch(values.values(), values.count(), nullptr));
    HSTUJIT_RETURN_IF_ERROR(repeats.add(
        first, [&](size_t argument) -> Result<std::vector<std::byte>> { return std::move(memory[argument]); }));
  }
  return repeats;
}

Result<Repeats> repeat_on_device(const CudaDriverPtr& driver, int ordinal, const Op& op, const ProblemData& problem,
                                 const Outputs& first, int launches, double milliseconds) {
  HSTUJIT_ASSIGN_OR_RETURN(DeviceProblem device, DeviceProblem::upload(driver, problem, ordinal));
  HSTUJIT_ASSIGN_OR_RETURN(const DeviceStream stream, DeviceStream::create(driver));
  HSTUJIT_ASSIGN_OR_RETURN(DeviceBuffer workspace, make_workspace(driver, op, device, stream.get()));
  HSTUJIT_ASSIGN_OR_RETURN(OtherWork other, OtherWork::create(driver, milliseconds));
  Repeats repeats{problem.signature};
  while (repeats.launches < launches) {
    HSTUJIT_RETURN_IF_ERROR(device.poison_outputs(stream.get()));
    HSTUJIT_RETURN_IF_ERROR(workspace.fill(kPoison, stream.get()));
    HSTUJIT_RETURN_IF_ERROR(other.begin(repeats.launches));
    HSTUJIT_RETURN_IF_ERROR(
        op.launch(device.values(), device.count(), stream.get(), {workspace.data(), workspace.size()}));
    HSTUJIT_RETURN_IF_ERROR(other.go_on());
    HSTUJIT_RETURN_IF_ERROR(stream.synchronize());
    HSTUJIT_RETURN_IF_ERROR(repeats.add(first, [&](size_t argument) { return device.download(argument); }));
    HSTUJIT_RETURN_IF_ERROR(other.end());
  }
  return repeats;
}

}  // namespace hstujit
