#include "runtime/dispatch/program_op.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runtime/driver/device.h"

namespace hstujit {

Instance step_instance(const Instance& program, const ProgramStep& step) {
  Instance instance = program;
  instance.name = fmt::format("{}{}{}", program.name, kOfStep, step.name);
  instance.spec = step.spec;
  std::erase_if(instance.directions, [&](Direction direction) { return !step.spec->supports(direction); });
  instance.small_batches = program.small_batches && step.spec->small_batch_heads(step.direction) > 0;
  return instance;
}

Result<std::unique_ptr<ProgramOp>> ProgramOp::create(EnginePtr engine, OpOptions options) {
  HSTUJIT_ASSIGN_OR_RETURN(ArgumentChecker checker,
                           ArgumentChecker::create(options.instance.spec->signature(options.direction)));
  std::unique_ptr<ProgramOp> op(new ProgramOp(std::move(engine), std::move(options), std::move(checker)));
  const Program& program = op->program_;
  const size_t all = program.arguments.size() + program.temporaries.size();
  size_t most = 0;
  for (const ProgramStep& step : program.steps) most = std::max(most, step.operands.size());
  if (all > kMaxValues || most > kMaxValuesOfStep || op->layout_.count() > ProgramLayout::kMaxSlots) {
    return Status(
        Code::kUnsupported,
        fmt::format("{} {} has {} values, steps of up to {} and {} tensors between them at a time; a launch has room "
                    "for {}, {} and {}",
                    op->spec().op(), to_string(op->direction()), all, most, op->layout_.count(), kMaxValues,
                    kMaxValuesOfStep, ProgramLayout::kMaxSlots));
  }
  HSTUJIT_RETURN_IF_ERROR(op->find_rows());
  std::map<std::pair<std::string, Direction>, const KernelOp*> known;  // steps of one name have one spec
  for (const ProgramStep& step : program.steps) {
    const KernelOp*& shared = known[{step.name, step.direction}];
    op->steps_.push_back(shared);
    if (shared != nullptr) continue;
    OpOptions own = op->options_;
    own.instance = step_instance(op->options_.instance, step);
    own.direction = step.direction;
    HSTUJIT_ASSIGN_OR_RETURN(auto created, KernelOp::create(op->engine_, std::move(own)));
    op->steps_.back() = shared = created.get();
    op->ops_.push_back(std::move(created));
  }
  return op;
}

Status ProgramOp::find_rows() {
  for (const Argument& temporary : program_.temporaries) {
    // A uniform axis has as many rows wherever its integer stands, another one wherever its symbol does.
    const Dimension& rows = temporary.shape[0];
    const auto is_rows = [&](const Dimension& dimension) {
      return dimension.symbol == rows.symbol && dimension.factor == 1 && dimension.bias == 0 &&
             dimension.integer == rows.integer;
    };
    const size_t before = rows_.size();
    for (size_t i = 0; i < signature_.size() && rows_.size() == before; ++i) {
      const auto found = std::find_if(signature_[i].shape.begin(), signature_[i].shape.end(), is_rows);
      if (found != signature_[i].shape.end())
        rows_.push_back({i, static_cast<int>(found - signature_[i].shape.begin())});
    }
    if (rows_.size() == before) {
      return Status(Code::kInternal,
                    fmt::format("no argument of {} says how many rows {} has", spec().op(), temporary.name));
    }
  }
  return {};
}

Status ProgramOp::prepare_host(int64_t max_seq_len) {
  for (const auto& op : ops_) HSTUJIT_RETURN_IF_ERROR(op->prepare(max_seq_len, -1));
  return {};
}

Status ProgramOp::prepare_cuda(int64_t max_seq_len, int device) {
  HSTUJIT_ASSIGN_OR_RETURN(const CudaDriverPtr driver, engine_->driver());
  HSTUJIT_ASSIGN_OR_RETURN(const ContextGuard guard, ContextGuard::enter(driver, device));
  const DeviceContext& context = guard.device();
  HSTUJIT_ASSIGN_OR_RETURN(const DeviceSpec spec, engine_->device(context.ordinal));
  std::vector<KernelOp::Pending> pending = begin(context, spec, max_seq_len);
  // The last one first: it is compiled by this thread, while others compile the rest.
  for (size_t i = ops_.size(); i-- > 0;) HSTUJIT_RETURN_IF_ERROR(ops_[i]->finish(context, std::move(pending[i])));
  driver_.store(driver.get(), std::memory_order_release);
  return {};
}

void ProgramOp::compile(const DeviceContext& context, const DeviceSpec& device, int64_t max_seq_len) {
  const std::vector<KernelOp::Pending> pending = begin(context, device, max_seq_len);
  for (size_t i = pending.size(); i-- > 0;) pending[i].wait();
}

std::vector<KernelOp::Pending> ProgramOp::begin(const DeviceContext& context, const DeviceSpec& device,
                                                int64_t max_seq_len) {
  std::vector<KernelOp::Pending> pending;
  for (const auto& op : ops_) {
    const auto where = op == ops_.back() ? KernelOp::Where::kHere : KernelOp::Where::kOwnThread;
    pending.push_back(op->begin(context, device, max_seq_len, where));
  }
  return pending;
}

}  // namespace hstujit
