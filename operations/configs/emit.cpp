// Writes the generated source of each kernel that a config needs, its IR, and a program that runs it.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include "compiler/plan/skeleton.h"
#include "compiler/support/files.h"
#include "compiler/support/memory.h"
#include "compiler/support/text.h"
#include "operations/configs/operation.h"

namespace hstujit {

namespace {

// A file that is there is replaced where it begins as one of the same kind does, and any other stays.
Status replace_emitted(const std::filesystem::path& path, std::string_view text) {
  constexpr size_t kBeginning = 10;  // "// Generat" "// Launche" "module {"
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error)) {
    return Status(Code::kInvalidArgument,
                  fmt::format("cannot write {}: the existing file is not a regular file", quote(path.native())));
  }
  const Result<FileHead> there = read_file_head(path, kBeginning);
  if (!there.ok() && there.status().code() != Code::kNotFound) return there.status();
  if (there.ok() && there->size > 0 && there->bytes != text.substr(0, kBeginning)) {
    return Status(Code::kInvalidArgument,
                  fmt::format("cannot write {}: the existing file was not written by emit; remove it first",
                              quote(path.native())));
  }
  return write_file_atomically(path, text);
}

Status emit_task(Engine& engine, const DeviceSpec& device, const std::filesystem::path& folder, const Task& task,
                 Json& row) {
  const OpSpecPtr& spec = task.instance->spec;
  HSTUJIT_ASSIGN_OR_RETURN(const KernelChoice choice,
                           choose_kernel(engine, *spec, task.direction, device, task.bucket, task.restriction));
  HSTUJIT_ASSIGN_OR_RETURN(const Skeleton* skeleton, find_skeleton(choice.config.skeleton));
  const LaunchPlan plan = skeleton->launch_plan(*spec, choice.config, device);
  row["kernel"] = plan.kernel_name;
  row["config"] = to_json(choice.config);
  row["describe"] = describe(choice.config);
  choice.write(row);
  HSTUJIT_ASSIGN_OR_RETURN(const KernelCompilerPtr compiler, engine.compiler());
  HSTUJIT_ASSIGN_OR_RETURN(const Blobs blobs,
                           compiler->emit({spec, task.direction, choice.config, device, engine.lineinfo()}));
  HSTUJIT_RETURN_IF_ERROR(make_directories(folder));  // not for an instance that has no kernel
  row["files"] = Json::object();
  const std::pair<const char*, std::string> files[] = {
      {"source", source_file(plan)}, {"ir", plan.kernel_name + ".mlir"}, {"launcher", launcher_file(plan)}};
  for (const auto& [blob, name] : files) {
    const auto found = blobs.find(blob);
    if (found == blobs.end()) continue;
    const std::filesystem::path path = folder / name;
    HSTUJIT_RETURN_IF_ERROR(replace_emitted(path, found->second));
    row["files"][blob] = path.string();
  }
  return {};
}

// Before the work, of the folders that are there: each takes files. `directory` is made.
Status check_folders(const std::filesystem::path& directory, const std::set<std::filesystem::path>& folders) {
  HSTUJIT_RETURN_IF_ERROR(make_directories(directory));
  for (const std::filesystem::path& folder : folders) {
    std::error_code error;
    const bool is_made_later = !std::filesystem::exists(std::filesystem::symlink_status(folder, error));
    HSTUJIT_RETURN_IF_ERROR(check_output((is_made_later ? directory : folder) / "kernel.cu"));
  }
  return {};
}

}  // namespace

OperationResult emit(Engine& engine, const Config& config, const OperationOptions& options) {
  OperationResult result;
  const auto tasks = list_keys(engine, config, options.op_name);
  if (!tasks.ok()) return {Json::object(), tasks.status()};
  const auto device = engine.target(options.arch.c_str(), config.device, options.device);
  if (!device.ok()) return {Json::object(), device.status()};
  const std::vector<Task> all = with_batch_classes(*tasks, *device);
  const std::filesystem::path folder = options.directory.empty() ? "." : options.directory;
  // Instances that differ in nothing that a kernel's name says would write the same files: each has a folder of its own
  // unless there is only one.
  const bool several = std::any_of(tasks->begin(), tasks->end(), [&](const Task& task) {
    return task.instance->name != tasks->front().instance->name;
  });
  const auto folder_of = [&](const Task& task) { return several ? folder / task.instance->name : folder; };
  std::set<std::filesystem::path> folders;
  for (const Task& task : all) folders.insert(folder_of(task));
  // One that takes no files is one failure, and not that of every key.
  if (const Status refused = check_folders(folder, folders); !refused.ok())
    return {Json::object(), Status(Code::kInvalidArgument, "directory: " + refused.message())};
  Json rows = Json::array();
  for (const Task& task : all) {
    Json row = task.to_json();
    const std::filesystem::path own = folder_of(task);
    const Status status = within_memory("its source", [&] { return emit_task(engine, *device, own, task, row); });
    if (!status.ok()) {
      row["error"] = error_json(status);
      result.fail(status.with_context(task.label()));
    }
    rows.push_back(std::move(row));
    report_progress(options, rows.size(), all.size(), task.label());
  }
  result.report = {{"device", to_json(*device)}, {"directory", folder.string()}, {"instances", std::move(rows)}};
  return result;
}

}  // namespace hstujit
