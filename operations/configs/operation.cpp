#include "operations/configs/operation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <tuple>

#include "compiler/support/suggest.h"
#include "compiler/support/text.h"
#include "runtime/dispatch/batch_classes.h"
#include "runtime/dispatch/problem_bucket.h"
#include "runtime/dispatch/program_op.h"

namespace hstujit {

bool Task::has_length() const { return has_max_seq_len(instance->spec->signature(direction)); }

std::string Task::label() const {
  if (!has_length()) return fmt::format("{} {}", instance->name, to_string(direction));
  return fmt::format("{} {} {}", instance->name, to_string(direction),
                     to_string(ProblemBucket(max_seq_len, bucket.batch_class)));
}

Json Task::to_json() const {
  Json json = {{"name", instance->name},
               {"op", instance->spec->op()},
               {"direction", to_string(direction)},
               {"max_seq_len", has_length() ? Json(max_seq_len) : Json()},
               {"bucket", has_length() ? Json(bucket.rows) : Json()}};
  write_batch_class(json, bucket.batch_class);
  return json;
}

namespace {

// Returns NAME of "NAME/STEP", and any other text as it is.
std::string name_of_instance(const std::string& op_name) {
  const size_t end = op_name.find(kOfStep);
  return end == 0 ? op_name : op_name.substr(0, end);
}

// Names of the steps in every direction.
std::set<std::string> names_of_steps(const Instance& instance) {
  std::set<std::string> steps;
  for (const Direction direction : instance.directions) {
    const Program* const program = instance.spec->program(direction);
    if (program == nullptr) continue;
    for (const ProgramStep& step : program->steps) steps.insert(step_instance(instance, step).name);
  }
  return steps;
}

// Whether "NAME/STEP" is a step of the instance.
Status check_step(const Instance& instance, const std::string& op_name) {
  const std::set<std::string> steps = names_of_steps(instance);
  if (steps.contains(op_name)) return {};
  if (steps.empty()) {
    return Status(Code::kNotFound, fmt::format("op {} is no step: {} is no program and has none; allowed: {}",
                                               quote(op_name), instance.spec->op(), quote(instance.name)));
  }
  return Status(Code::kNotFound,
                fmt::format("op {} is no step of {}{}; allowed: {}", quote(op_name), quote(instance.name),
                            did_you_mean(closest(op_name, {steps.begin(), steps.end()})), fmt::join(steps, ", ")));
}

}  // namespace

Result<std::vector<Task>> list_launches(const Engine& engine, const Config& config, const std::string& op_name) {
  if (!op_name.empty()) {
    const std::string whole = name_of_instance(op_name);
    HSTUJIT_ASSIGN_OR_RETURN(const Instance* const named, config.find(whole));
    if (op_name != whole) {
      const std::set<std::string> steps = names_of_steps(*named);
      if (steps.empty()) return check_step(*named, op_name);
      // None of the steps is allowed here, so none is named.
      const bool is_step = steps.contains(op_name);
      return Status(is_step ? Code::kInvalidArgument : Code::kNotFound,
                    fmt::format("op {} {}; allowed: {}", quote(op_name),
                                is_step ? "is a step, which is launched with all of its op"
                                        : "is no step, and steps are launched with all of their op",
                                quote(whole)));
    }
  }
  const LengthMode mode = length_mode_of(engine, config);
  const Restriction restriction = restriction_of(engine, config);
  std::vector<Task> tasks;
  for (const Instance& instance : config.instances) {
    if (!op_name.empty() && instance.name != op_name) continue;
    const InstancePtr borrowed(InstancePtr(), &instance);
    for (const Direction direction : instance.directions) {
      const Signature signature = instance.spec->signature(direction);
      for (const int64_t length : instance.max_seq_lens) {
        tasks.push_back(
            {borrowed, direction, length, problem_bucket(signature, mode, length, instance.max_seq_lens), restriction});
      }
    }
  }
  return tasks;
}

std::vector<Task> kernels_of(const Engine& engine, const Config& config, const Task& launch) {
  const Program* const program = launch.instance->spec->program(launch.direction);
  if (program == nullptr) return {launch};
  std::vector<Task> kernels;
  for (const ProgramStep& step : program->steps) {
    Task kernel = launch;
    kernel.instance = std::make_shared<const Instance>(step_instance(*launch.instance, step));
    kernel.direction = step.direction;
    kernel.bucket = problem_bucket(step.signature, length_mode_of(engine, config), launch.max_seq_len,
                                   launch.instance->max_seq_lens);
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

Result<std::vector<Task>> list_kernels(const Engine& engine, const Config& config, const std::string& op_name) {
  const std::string launched = name_of_instance(op_name);
  HSTUJIT_ASSIGN_OR_RETURN(const std::vector<Task> launches, list_launches(engine, config, launched));
  std::set<std::tuple<std::string, Direction, int64_t>> seen;  // by name, which no two instances share
  if (op_name != launched) HSTUJIT_RETURN_IF_ERROR(check_step(**config.find(launched), op_name));
  std::vector<Task> kernels;
  for (const Task& launch : launches) {
    for (Task& kernel : kernels_of(engine, config, launch)) {
      if (op_name != launched && kernel.instance->name != op_name) continue;
      // A program's backward may begin with steps of its forward.
      if (seen.emplace(kernel.instance->name, kernel.direction, kernel.max_seq_len).second)
        kernels.push_back(std::move(kernel));
    }
  }
  return kernels;
}

Result<std::vector<Task>> list_keys(const Engine& engine, const Config& config, const std::string& op_name) {
  HSTUJIT_ASSIGN_OR_RETURN(const std::vector<Task> kernels, list_kernels(engine, config, op_name));
  std::set<std::tuple<std::string_view, Direction, ProblemBucket>> seen;
  std::vector<Task> keys;
  for (const Task& kernel : kernels) {
    if (seen.emplace(kernel.instance->name, kernel.direction, kernel.bucket).second) keys.push_back(kernel);
  }
  return keys;
}

LengthsOfKeys::LengthsOfKeys(const std::vector<Task>& kernels) {
  for (const Task& kernel : kernels)
    lengths_[{kernel.instance->name, kernel.direction, kernel.bucket.rows}].push_back(kernel.max_seq_len);
}

const std::vector<int64_t>& LengthsOfKeys::of(const Task& key) const {
  return lengths_.at({key.instance->name, key.direction, key.bucket.rows});
}

std::vector<Task> with_batch_classes(const std::vector<Task>& tasks, const DeviceSpec& device) {
  std::vector<Task> all;
  for (const Task& task : tasks) {
    for (const BatchClass batch_class :
         batch_classes(*task.instance, task.direction, task.bucket.rows, device).list()) {
      all.push_back(task);
      all.back().bucket.batch_class = batch_class;
    }
  }
  return all;
}

Task task_of_batch(Task task, const Lengths& lengths, const DeviceSpec& device) {
  const BatchClasses classes = batch_classes(*task.instance, task.direction, task.bucket.rows, device);
  task.bucket.batch_class = classes.of(static_cast<int64_t>(lengths.rows.size()), lengths.total_rows());
  return task;
}

void fail_for_what_is_not_kept(Engine& engine, OperationResult& result) {
  const NotKept::Summary kernels = engine.kernels().store().not_kept(), records = engine.tuning().not_kept();
  if (kernels.entries + records.entries == 0) return;
  const std::string& reason = kernels.entries > 0 ? kernels.reason : records.reason;
  result.report["not_kept"] = {{"kernels", kernels.entries}, {"records", records.entries}, {"reason", reason}};
  result.fail(
      Status(Code::kIo,
             fmt::format("the cache does not keep {} and {}: {}", counted(kernels.entries, "kernel"),
                         counted(records.entries, "tuning record or choice", "tuning records or choices"), reason)));
}

void report_progress(const OperationOptions& options, size_t done, size_t total, const std::string& what) {
  if (options.progress) options.progress(done, total, what);
}

TaskProgress::TaskProgress(const OperationOptions& options, std::string verb, size_t total)
    : options_(options), verb_(std::move(verb)), total_(total) {}

void TaskProgress::done(const Task& task) {
  ++done_;
  const auto now = std::chrono::steady_clock::now();
  if (now - reported_ < std::chrono::seconds(1)) return;
  reported_ = now;
  report_progress(options_, done_, total_, verb_ + " " + task.label());
}

Json error_json(const Status& status) { return {{"code", code_name(status.code())}, {"message", status.message()}}; }

Result<std::unique_ptr<Op>> make_op(const EnginePtr& engine, const Config& config, const Task& task, Backend backend) {
  return Op::create(engine, {*task.instance, task.direction, backend, length_mode_of(*engine, config),
                             task.instance->max_seq_lens, task.restriction});
}

Result<DeviceBuffer> make_workspace(const CudaDriverPtr& driver, const Op& op, const DeviceProblem& problem,
                                    cuda::Stream stream) {
  HSTUJIT_ASSIGN_OR_RETURN(const size_t bytes, op.workspace_size(problem.values(), problem.count()));
  if (bytes == 0) return DeviceBuffer();
  HSTUJIT_ASSIGN_OR_RETURN(DeviceBuffer workspace, DeviceBuffer::allocate(driver, bytes));
  HSTUJIT_RETURN_IF_ERROR(workspace.fill(kPoison, stream));
  return workspace;
}

}  // namespace hstujit
