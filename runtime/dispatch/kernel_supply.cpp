#include "runtime/dispatch/kernel_supply.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/plan/skeleton.h"
#include "runtime/dispatch/choice_sentences.h"
#include "runtime/dispatch/resource_rejection.h"

namespace hstujit {

namespace {

// Estimates of different registers that are tried, with the first: fewer where each of them compiles several kernels
// behind the main one, which takes tens of seconds where a score reads operands of all kinds.
constexpr size_t kMostTried = 8;
size_t most_tried(size_t kernels_behind) {
  constexpr size_t kLeast = 2;
  return std::clamp(2 * kMostTried / (2 + kernels_behind), kLeast, kMostTried);
}

// One look-up of supply_kernel.
class Supplier {
 public:
  Supplier(Engine& engine, const OpSpecPtr& spec, Direction direction, const DeviceSpec& device,
           const ProblemBucket& bucket, const Restriction& restriction, Supply supply)
      : engine_(engine),
        spec_(spec),
        direction_(direction),
        device_(device),
        bucket_(bucket),
        restriction_(restriction),
        supply_(supply) {}

  Result<SuppliedKernel> supply(KernelChoice choice) {
    const bool untried = kind_of(choice.source) == ChoiceKind::kEstimated && !choice.remembered;
    Result<SuppliedKernel> supplied = untried ? first_without_fault(std::move(choice)) : fetch(std::move(choice));
    if (!supplied.ok() && supplied.status().code() == Code::kCompileFailed && bucket_.batch_class != BatchClass::kAny)
      return supply_of_all();
    HSTUJIT_ASSIGN_OR_RETURN(SuppliedKernel kernel, std::move(supplied));
    const bool settled = kind_of(kernel.choice.source) != ChoiceKind::kEstimated || kernel.choice.remembered;
    // Under "fail" a process only reads.
    if (supply_ != Supply::kLook && settled && may_compile()) {
      note_choice(engine_, *spec_, direction_, tuning_key(*spec_, direction_, device_, bucket_, restriction_),
                  kernel.choice);
    }
    return kernel;
  }

 private:
  bool may_compile() const { return supply_ == Supply::kCompile || engine_.on_miss() != MissPolicy::kFail; }

  // Supplies the kernel of all batches, which a class of them may have, too.
  Result<SuppliedKernel> supply_of_all() const {
    const ProblemBucket all{bucket_.rows};
    HSTUJIT_ASSIGN_OR_RETURN(KernelChoice choice,
                             choose_kernel(engine_, *spec_, direction_, device_, all, restriction_));
    return Supplier(engine_, spec_, direction_, device_, all, restriction_, supply_).supply(std::move(choice));
  }

  Result<SuppliedKernel> fetch(KernelChoice choice) {
    SuppliedKernel kernel;
    kernel.request = {spec_, direction_, choice.config, device_, engine_.lineinfo()};
    kernel.choice = std::move(choice);
    KernelCache& kernels = engine_.kernels();
    kernel.binary = supply_ == Supply::kLook ? kernels.peek(kernel.request) : kernels.find(kernel.request);
    kernel.hit = kernel.binary != nullptr;
    if (!kernel.hit && supply_ != Supply::kLook) {
      HSTUJIT_ASSIGN_OR_RETURN(kernel.binary, kernels.get(kernel.request, may_compile()));
    }
    return kernel;
  }

  // From the choice, which is the first estimate, on.
  Result<SuppliedKernel> first_without_fault(KernelChoice choice) {
    std::vector<Candidate> estimates;  // listed when the first is passed over
    std::vector<PassedOver> passed;
    std::vector<KernelConfig> tried;
    std::optional<SuppliedKernel> best;  // of those that compile: the first of those that spill least
    int64_t least = 0;                   // bytes that it spills
    Status refused;                      // the first estimate's compile
    bool hit = true;                     // nothing was compiled for any
    size_t most = kMostTried;
    for (size_t i = 0; tried.size() < most; ++i) {
      if (i == 1) {
        estimates = list_estimates();
        HSTUJIT_ASSIGN_OR_RETURN(const Skeleton* const skeleton, find_skeleton(choice.config.skeleton));
        most = most_tried(skeleton->launch_plan(*spec_, choice.config, device_).following.size());
      }
      if (i > 0 && i >= estimates.size()) break;
      if (i > 0) choice.config = estimates[i].config;
      const auto is_alike = [&](const KernelConfig& other) { return same_registers(choice.config, other); };
      if (std::ranges::any_of(tried, is_alike)) continue;
      tried.push_back(choice.config);
      choice.passed_over = passed;
      choice.why = heuristic_why(device_, choice);
      Result<SuppliedKernel> kernel = fetch(choice);
      if (!kernel.ok() && kernel.status().code() == Code::kCompileFailed) {
        if (refused.ok()) refused = kernel.status();
        const std::string message = kernel.status().message();
        pass_over(choice.config, {"compile", message.substr(0, message.find('\n'))}, passed);
        hit = false;
        continue;
      }
      // For want of the next kernel, or of a compiler, the one that is there has to do; it is not noted.
      const bool there = kernel.ok() && kernel->binary != nullptr;
      if (!there && best && (!kernel.ok() || !may_compile())) return *std::move(best);
      if (!there) return kernel;
      hit = hit && kernel->hit;
      kernel->hit = hit;
      std::optional<Rejection> rejection = resource_rejection(kernel->binary->info.resources);
      if (!rejection) {
        kernel->choice.remembered = true;
        return kernel;
      }
      pass_over(choice.config, *rejection, passed);
      // A kernel that does not spill is refused for something worse: any that merely spills is taken in its place.
      const int64_t spilled = rejection->reason == "spill" ? spilled_bytes(kernel->binary->info.resources)
                                                           : std::numeric_limits<int64_t>::max();
      if (best && least <= spilled) continue;
      least = spilled;
      best = std::move(*kernel);
    }
    if (!best) return refused;
    best->hit = hit;
    best->choice.passed_over = std::move(passed);
    best->choice.why = heuristic_why(device_, best->choice);
    best->choice.remembered = true;
    return *std::move(best);
  }

  std::vector<Candidate> list_estimates() const {
    return search_space(*spec_, direction_, device_, heuristic_size(bucket_), restriction_).candidates;
  }

  void pass_over(const KernelConfig& config, const Rejection& rejection, std::vector<PassedOver>& passed) const {
    engine_.log().event(LogCategory::kDispatch, "passed_over",
                        {{"op", spec_->op()},
                         {"bucket", to_string(bucket_)},
                         {"config", describe(config)},
                         {"reason", rejection.reason},
                         {"detail", rejection.detail}});
    passed.push_back({key_text(config), rejection.reason, rejection.detail});
  }

  Engine& engine_;
  const OpSpecPtr& spec_;
  const Direction direction_;
  const DeviceSpec& device_;
  const ProblemBucket& bucket_;
  const Restriction& restriction_;
  const Supply supply_;
};

}  // namespace

Result<SuppliedKernel> supply_kernel(Engine& engine, const OpSpecPtr& spec, Direction direction,
                                     const DeviceSpec& device, const ProblemBucket& bucket,
                                     const Restriction& restriction, KernelChoice choice, Supply supply) {
  return Supplier(engine, spec, direction, device, bucket, restriction, supply).supply(std::move(choice));
}

}  // namespace hstujit
