// Common parts of the operations on whole configs: options, the report with its status, and the list of what is asked
// for.
//
// docs/reports.md describes the fields of every report.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "compiler/spec/config.h"
#include "operations/tuning/data/device_problem.h"
#include "runtime/dispatch/config_settings.h"
#include "runtime/dispatch/kernel_choice.h"
#include "runtime/dispatch/miss_record.h"
#include "runtime/dispatch/op.h"
#include "runtime/engine/cancellation.h"
#include "runtime/engine/engine.h"

namespace hstujit {

// Part `index` of `count`.
struct Shard {
  int index = 0;
  int count = 1;
};

struct OperationOptions {
  std::string arch;     // empty: the config's device, else the GPU present
  std::string op_name;  // empty: every instance; "NAME/STEP": a step of a program, where kernels are asked for
  int jobs = 0;
  double budget_s = 0;
  Backend backend = Backend::kCuda;
  bool check = false;
  int device = 0;
  int repeats = 0;  // 0: as many as the operation does by itself
  std::string directory;
  uint64_t seed = 0;
  int64_t max_rows = 0;
  Shard shard;
  Cancellation cancellation;  // of prewarm and tune
  std::function<void(size_t done, size_t total, const std::string& what)> progress;
};

// A report is there also when some of the work failed; then `status` is the first failure, of `failures`.
struct OperationResult {
  Json report = Json::object();
  Status status;
  int64_t failures = 0;

  void fail(const Status& failure) {
    ++failures;
    if (status.ok()) status = failure;
  }
};

// One launch that the config asks for, or one kernel of it.
struct Task {
  InstancePtr instance;
  Direction direction = Direction::kForward;
  int64_t max_seq_len = 0;
  ProblemBucket bucket = 0;
  Restriction restriction = {};

  bool has_length() const;    // whether launches say a max_seq_len
  std::string label() const;  // "ranker_attention forward 1024", "ranker_attention forward 1024 small batches"
  // {"name", "op", "direction", "max_seq_len", "bucket"}, both null without a length, and the field of the bucket's
  // class of batches (key_field).
  Json to_json() const;
};

// Every (instance, direction, max_seq_len), in the config's order: what is launched. The config outlives the tasks.
// kNotFound for an unknown name, kInvalidArgument for that of a step.
Result<std::vector<Task>> list_launches(const Engine& engine, const Config& config, const std::string& op_name);
// The kernels of a launch: its own, or those of a program's steps, each of the instance step_instance() gives.
std::vector<Task> kernels_of(const Engine& engine, const Config& config, const Task& launch);
// The kernels of every launch; of an instance that is named, or of one step of a program, "NAME/STEP".
Result<std::vector<Task>> list_kernels(const Engine& engine, const Config& config, const std::string& op_name);
// The same with one task per bucket of an instance and direction.
Result<std::vector<Task>> list_keys(const Engine& engine, const Config& config, const std::string& op_name);
// The lengths of kernels as list_kernels gives them, by the key that they are launched with, in the config's order.
class LengthsOfKeys {
 public:
  explicit LengthsOfKeys(const std::vector<Task>& kernels);
  const std::vector<int64_t>& of(const Task& key) const;

 private:
  std::map<std::tuple<std::string, Direction, int64_t>, std::vector<int64_t>> lengths_;
};
// Each task once for each class of batches that its bucket has a kernel for on the device.
std::vector<Task> with_batch_classes(const std::vector<Task>& tasks, const DeviceSpec& device);
// The task whose kernel a launch of these sequences gets.
Task task_of_batch(Task task, const Lengths& lengths, const DeviceSpec& device);

// For operations that are there to fill the cache: fails where entries could not be kept, and says so once, as
// "not_kept" of the report: {"kernels", "records", "reason"}.
void fail_for_what_is_not_kept(Engine& engine, OperationResult& result);

void report_progress(const OperationOptions& options, size_t done, size_t total, const std::string& what);

// Reports progress of many tasks that take milliseconds each: one a second, so that what is short says nothing and what
// is long is never silent.
class TaskProgress {
 public:
  // `verb` stands before each task's label: "choose".
  TaskProgress(const OperationOptions& options, std::string verb, size_t total);
  void done(const Task& task);

 private:
  const OperationOptions& options_;
  std::string verb_;
  size_t total_, done_ = 0;
  std::chrono::steady_clock::time_point reported_ = std::chrono::steady_clock::now();
};

Json error_json(const Status& status);  // {"code": "no_device", "message": "..."}

// The op of a task, on the options' backend.
Result<std::unique_ptr<Op>> make_op(const EnginePtr& engine, const Config& config, const Task& task, Backend backend);

// Allocates the workspace of a launch of `problem` by a prepared op; no memory at all where it needs none. Poison, so
// that a kernel shows which counts on zeroes that its plan does not ask for; done on `stream`.
Result<DeviceBuffer> make_workspace(const CudaDriverPtr& driver, const Op& op, const DeviceProblem& problem,
                                    cuda::Stream stream);

OperationResult prewarm(Engine& engine, const Config& config, const OperationOptions& options);
OperationResult tune(Engine& engine, const Config& config, const OperationOptions& options);
// The keys of a recording that are the device's: untuned ones are tuned, uncompiled ones compiled.
OperationResult tune_recording(Engine& engine, const Recording& recording, const OperationOptions& options);
OperationResult run(const EnginePtr& engine, const Config& config, const OperationOptions& options);
OperationResult bench(const EnginePtr& engine, const Config& config, const OperationOptions& options);
OperationResult emit(Engine& engine, const Config& config, const OperationOptions& options);
// The report is the file of frozen_choices.h.
OperationResult freeze(Engine& engine, const Config& config, const OperationOptions& options);
OperationResult explain(Engine& engine, const Config& config, const OperationOptions& options);
OperationResult check(Engine& engine, const Config& config, const OperationOptions& options);
Json doctor(Engine& engine);

}  // namespace hstujit
