// Skeleton: the host side of a template. templates/<family>/<name>/kernel.cuh is the device code, kernel.cpp beside it
// this interface over it: which configs exist, why others are rejected, how one is launched, how fast it should be.
//
// A skeleton is of a family: it serves every operator of it. Those that implement one write a class with the types of
// their family, over which TypedSkeleton (typed_skeleton.h) is this interface.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/plan/kernel_config.h"
#include "compiler/plan/launch_plan.h"
#include "compiler/spec/device_spec.h"
#include "compiler/spec/op_spec.h"

namespace hstujit {

// The size of a problem as the cost model sees it: enough to estimate, never part of a cubin's key.
struct ProblemSize {
  int64_t max_seq_len = 0;
  int64_t batch = 256;
  double mean_fill = 0.6;    // mean length / max_seq_len
  bool small_batch = false;  // compiler/spec/small_batch.h
  // Rows per sequence of the axes but the sequences' own, by symbol.
  std::map<std::string, int64_t, std::less<>> other_rows = {};
  // Lengths that stand for those of the batch, whose mean is that of the batch; none: spread evenly around the mean.
  std::vector<int64_t> lengths = {};

  int64_t rows_of(std::string_view axis) const {
    constexpr int64_t kAssumed = 64;
    const auto found = other_rows.find(axis);
    return found == other_rows.end() ? kAssumed : found->second;
  }
};

struct Rejection {
  std::string reason;  // a short stable name: "shared_memory", "registers", "head_dim", "dtype", ...
  std::string detail;  // the sentence with the figures
};

// Integers of the generated source's Config, in the order of the source: "query_stages" is Config::kQueryStages.
using Constants = std::vector<std::pair<std::string, int64_t>>;

class Skeleton {
 public:
  virtual ~Skeleton() = default;
  virtual std::string_view name() const = 0;  // "attention/sm90_forward", its folder below templates/
  virtual Family family() const = 0;
  virtual Direction direction() const = 0;

  // Every config of an instance that serves() says true of; reject() alone says which ones cannot work here.
  virtual std::vector<KernelConfig> space(const OpSpec& spec) const = 0;
  virtual std::vector<Rejection> reject(const OpSpec& spec, const KernelConfig& config,
                                        const DeviceSpec& device) const = 0;
  // Whether results are bitwise equal run after run: false where the order in which parts are added up is left to
  // chance.
  virtual bool deterministic(const KernelConfig& config) const = 0;
  virtual LaunchPlan launch_plan(const OpSpec& spec, const KernelConfig& config, const DeviceSpec& device) const = 0;
  // Estimated milliseconds; only the order of estimates matters.
  virtual double estimate(const OpSpec& spec, const KernelConfig& config, const DeviceSpec& device,
                          const ProblemSize& size) const = 0;
  // How much slower than the first estimate the config that is fastest may be estimated: how far the model is trusted.
  virtual double estimate_error() const { return 1.5; }

  // Parts of the generated source. These two are looked up in a table of the build (skeleton_source.h), so a library
  // that prints no source links none of it. Both are empty for a skeleton that the table lacks.

  // Constants of the generated source's Config, beyond the fields of the config (derived sizes, instruction shapes).
  Constants constants(const OpSpec& spec, const KernelConfig& config) const;
  // Generated device helpers that the template needs (wgmma wrappers of the exact shapes); may be empty.
  std::string instruction_wrappers(const OpSpec& spec, const KernelConfig& config) const;

  std::string entry_file() const { return std::string(name()) + "/kernel.cuh"; }  // relative to templates/
  // Whether it computes the operator in that direction; a family may have several skeletons for one direction, each for
  // some of its operators.
  virtual bool serves(const OpSpec& spec, Direction wanted) const {
    return family() == spec.family() && direction() == wanted;
  }
};

// All skeletons of the build, in order of name.
const std::vector<const Skeleton*>& skeletons();
Result<const Skeleton*> find_skeleton(std::string_view name);

}  // namespace hstujit
