#include "runtime/dispatch/bench_problem.h"

#include <fmt/format.h>

#include "compiler/support/json.h"

namespace hstujit {

Json to_json(const BenchProblem& problem) {
  return {{"cuda_driver", problem.cuda_driver},
          {"spec", problem.spec->to_json()},
          {"direction", to_string(problem.direction)},
          {"device", to_json(problem.device)},
          {"ordinal", problem.ordinal},
          {"rows", problem.lengths.rows},
          {"num_targets", problem.lengths.num_targets},
          {"num_contexts", problem.lengths.num_contexts},
          {"other_rows", problem.lengths.other_rows},
          {"max_seq_len", problem.lengths.max_seq_len},
          {"alpha", problem.alpha}};
}

Result<BenchProblem> parse_bench_problem(const Json& json) {
  BenchProblem problem;
  try {
    problem.cuda_driver = json.at("cuda_driver").get<std::string>();
    HSTUJIT_ASSIGN_OR_RETURN(problem.spec, parse_op_spec(json.at("spec"), "spec"));
    const auto direction = parse_direction(json.at("direction").get<std::string>());
    if (!direction)
      return Status(Code::kInvalidArgument, fmt::format("direction is {}", brief_json(json.at("direction"))));
    problem.direction = *direction;
    HSTUJIT_ASSIGN_OR_RETURN(problem.device, parse_device_spec(json.at("device")));
    problem.ordinal = json.at("ordinal").get<int>();
    problem.lengths.rows = json.at("rows").get<std::vector<int64_t>>();
    problem.lengths.num_targets = json.at("num_targets").get<std::vector<int64_t>>();
    problem.lengths.num_contexts = json.value("num_contexts", std::vector<int64_t>());
    problem.lengths.other_rows = json.at("other_rows").get<decltype(problem.lengths.other_rows)>();
    problem.lengths.max_seq_len = json.at("max_seq_len").get<int64_t>();
    problem.alpha = json.at("alpha").get<double>();
  } catch (const Json::exception& error) {
    return Status(Code::kInvalidArgument, fmt::format("a problem to be timed: {}", error.what()));
  }
  return problem;
}

}  // namespace hstujit
