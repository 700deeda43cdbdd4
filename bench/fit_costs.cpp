// Fits the constants of attention's cost models to timings of candidates, and says how good the choices are.
//
//   fit_costs forward|backward --cells CONFIG TIMES... [--held-out CONFIG TIMES]... [--steps N] [--split odd|even]
//             [--keep NAME]... [--skeleton NAME]
//
// CONFIG is what bench/random_cells.py wrote, TIMES the result of bench/record.py's step "candidate_times" of a tuning
// run over it, or what bench/candidate_times.py unpacked of one. The constants are fitted on the cells, but for the odd
// or the even ones with --split, in so many steps; without --steps they are judged as they are. --keep: a constant that
// stays, such as one that no timing depends on.
// --skeleton: only constants of this one move. Configs that are no candidates any more are left out.
//
// A choice is judged by its time over that of the fastest candidate, as it is made without knowing the batch (the size
// of a bucket) and, for the fit, also as it would be made knowing its lengths.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "compiler/plan/search_space.h"
#include "compiler/plan/skeleton.h"
#include "compiler/spec/config.h"
#include "compiler/support/files.h"
#include "compiler/support/json.h"
#include "compiler/support/read_limits.h"
#include "runtime/dispatch/kernel_choice.h"
#include "templates/attention/sm80_backward/cost.h"
#include "templates/attention/sm80_forward/cost.h"
#include "templates/attention/sm90_backward_fused/cost.h"
#include "templates/attention/sm90_backward_twopass/cost.h"
#include "templates/attention/sm90_forward/cost.h"

namespace hstujit {

namespace {

struct Model {
  sm90::ForwardCosts forward;
  sm90::backward::FusedCosts fused;
  sm90::backward::TwopassCosts twopass;
  sm80::PerSequenceCosts per_sequence;
  sm80::PerSequenceCosts backward_per_sequence = sm80::backward_per_sequence_costs();
};

// A constant of a skeleton's model, by its name.
struct Constant {
  std::string skeleton;
  std::string name;
  double& value;
};

std::vector<Constant> constants_of(Model& model, Direction direction) {
  std::vector<Constant> all;
  const auto add = [&](const std::string& skeleton, auto& costs) {
    for_each_field(costs, [&](const auto& field, double& value) {
      all.push_back({"attention/" + skeleton, std::string(field.name), value});
    });
  };
  if (direction == Direction::kForward) {
    add("sm90_forward", model.forward);
    add("sm80_forward", model.per_sequence);
  } else {
    add("sm90_backward_fused", model.fused);
    add("sm90_backward_twopass", model.twopass);
    add("sm80_backward", model.backward_per_sequence);
  }
  return all;
}

struct Timing {
  KernelConfig config;
  double us = 0;
  // Whether the constants of the model are known here: those of Ampere's grids are not.
  bool fitted() const {
    return !config.skeleton.starts_with("attention/sm80") || config.attention().schedule != "grid";
  }
};

// A tuned key: an instance in one direction.
struct Cell {
  std::string name;
  bool held_out = false;
  OpSpecPtr spec;
  DeviceSpec device;
  std::vector<ProblemSize> sizes;  // of the bucket; of the batch
  std::vector<Timing> timings;
  double best_us = 0;
};

double estimate(const Cell& cell, const Timing& timing, const ProblemSize& size, const Model& model) {
  const auto& spec = static_cast<const AttentionSpec&>(*cell.spec);
  const AttentionConfig& config = timing.config.attention();
  const std::string& skeleton = timing.config.skeleton;
  if (skeleton == "attention/sm90_forward") return sm90::estimate_ms(spec, config, cell.device, size, model.forward);
  if (skeleton == "attention/sm90_backward_fused") {
    return sm90::backward::estimate_fused_ms(spec, config, cell.device, size, model.fused);
  }
  if (skeleton == "attention/sm90_backward_twopass") {
    return sm90::backward::estimate_ms(spec, config, cell.device, size, model.twopass);
  }
  if (skeleton == "attention/sm80_forward") {
    return sm80::estimate_ms(spec, config, cell.device, size, model.per_sequence);
  }
  if (skeleton == "attention/sm80_backward") {
    return sm80::backward_estimate_ms(spec, config, cell.device, size, model.backward_per_sequence);
  }
  return find_skeleton(skeleton).value()->estimate(*cell.spec, timing.config, cell.device, size);
}

// The time of the choice for a size, over the fastest one's.
double slower(const Cell& cell, const ProblemSize& size, const Model& model) {
  const Timing* chosen = nullptr;
  double least = 0;
  for (const Timing& timing : cell.timings) {
    const double estimated = estimate(cell, timing, size, model);
    if (chosen == nullptr || estimated < least) {
      chosen = &timing;
      least = estimated;
    }
  }
  return chosen->us / cell.best_us;
}

// Logarithms of the estimates of a cell's candidates, for each of its sizes.
using Logs = std::vector<std::vector<double>>;

// Computes the estimates of one skeleton anew, or of all where it has no name.
void update(Logs& logs, const Cell& cell, const Model& model, const std::string& skeleton) {
  logs.resize(cell.sizes.size(), std::vector<double>(cell.timings.size()));
  for (size_t s = 0; s < cell.sizes.size(); ++s) {
    for (size_t i = 0; i < cell.timings.size(); ++i) {
      const Timing& timing = cell.timings[i];
      if (!skeleton.empty() && timing.config.skeleton != skeleton) continue;
      logs[s][i] = std::log(estimate(cell, timing, cell.sizes[s], model));
    }
  }
}

// Loss that the fit makes small, a smooth stand-in for the logarithm of `slower`: the mean over candidates, each
// weighted by how near its estimate is to the least one, and how far fitted estimates are from being in proportion to
// times.
double loss(const Cell& cell, const Logs& estimates) {
  constexpr double kNear = 0.03, kProportion = 1, kLate = 0.5;
  double total = 0;
  for (const std::vector<double>& logs : estimates) {
    const double least = *std::min_element(logs.begin(), logs.end());
    double weights = 0, late = 0, count = 0, mean = 0, square = 0;
    for (size_t i = 0; i < logs.size(); ++i) {
      const double behind = std::log(cell.timings[i].us / cell.best_us);
      const double weight = std::exp((least - logs[i]) / kNear);
      weights += weight;
      late += weight * std::min(behind, kLate);
      if (!cell.timings[i].fitted()) continue;
      const double ratio = logs[i] - behind;
      ++count;
      mean += ratio;
      square += ratio * ratio;
    }
    total += late / weights;
    if (count > 0) total += kProportion * (square / count - mean * mean / (count * count));
  }
  return total / static_cast<double>(estimates.size());
}

struct Judged {
  double geometric_mean = 1, within = 0, worst = 1;
  size_t cells = 0;
};

Judged judge(const std::vector<Cell>& cells, bool held_out, const Model& model) {
  constexpr double kGood = 1.1;
  Judged judged;
  double logs = 0;
  for (const Cell& cell : cells) {
    if (cell.held_out != held_out) continue;
    const double by = slower(cell, cell.sizes.front(), model);
    logs += std::log(by);
    judged.within += by <= kGood ? 1 : 0;
    judged.worst = std::max(judged.worst, by);
    ++judged.cells;
  }
  judged.geometric_mean = std::exp(logs / static_cast<double>(std::max<size_t>(1, judged.cells)));
  return judged;
}

void print(const char* label, const std::vector<Cell>& cells, const Model& model) {
  for (const bool held_out : {false, true}) {
    const Judged judged = judge(cells, held_out, model);
    std::printf("%-8s %-9s %3zu cells: %.3f in geometric mean, %3.0f %% within 10 %%, %.2f at most\n", label,
                held_out ? "held out" : "fitted on", judged.cells, judged.geometric_mean,
                100 * judged.within / static_cast<double>(std::max<size_t>(1, judged.cells)), judged.worst);
  }
}

// Random steps of one or two constants of a skeleton at a time, ever smaller; those that no timing depends on stay near
// where they are.
void fit(const std::vector<Cell>& all, Direction direction, int steps, const std::vector<std::string>& kept,
         const std::string& alone, Model& model) {
  constexpr double kLargest = 0.35, kSmallest = 0.03, kHold = 0.004;
  std::vector<const Cell*> cells;
  for (const Cell& cell : all) {
    if (!cell.held_out) cells.push_back(&cell);
  }
  std::vector<Constant> constants;
  for (Constant& constant : constants_of(model, direction)) {
    const bool moves = alone.empty() || constant.skeleton == alone;
    if (moves && std::find(kept.begin(), kept.end(), constant.name) == kept.end()) {
      constants.push_back(std::move(constant));
    }
  }
  std::vector<double> start;
  for (const Constant& constant : constants) start.push_back(constant.value);
  const auto objective = [&](const std::vector<Logs>& logs) {
    double total = 0;
    for (size_t c = 0; c < cells.size(); ++c) total += loss(*cells[c], logs[c]) / static_cast<double>(cells.size());
    for (size_t i = 0; i < constants.size(); ++i) total += kHold * std::pow(std::log(constants[i].value / start[i]), 2);
    return total;
  };
  std::vector<Logs> logs(cells.size());
  for (size_t c = 0; c < cells.size(); ++c) update(logs[c], *cells[c], model, "");
  double best = objective(logs);
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  for (int i = 0; i < steps; ++i) {
    const double step = kLargest * std::pow(kSmallest / kLargest, static_cast<double>(i) / steps);
    std::vector<double> before;
    for (const Constant& constant : constants) before.push_back(constant.value);
    const std::string& skeleton = constants[random() % constants.size()].skeleton;
    for (uint64_t moves = 1 + random() % 2; moves > 0;) {
      const Constant& moved = constants[random() % constants.size()];
      if (moved.skeleton != skeleton) continue;
      moved.value *= std::exp(step * normal(random));
      --moves;
    }
    std::vector<Logs> moved_logs = logs;
    for (size_t c = 0; c < cells.size(); ++c) update(moved_logs[c], *cells[c], model, skeleton);
    const double now = objective(moved_logs);
    if (now < best) {
      best = now;
      logs = std::move(moved_logs);
    } else {
      for (size_t c = 0; c < constants.size(); ++c) constants[c].value = before[c];
    }
  }
}

template <typename T>
T value_or_exit(Result<T> result) {
  if (result.ok()) return std::move(result).value();
  std::fprintf(stderr, "fit_costs: %s\n", result.status().message().c_str());
  std::exit(1);
}

// Six lengths that stand for a batch: quantiles.
ProblemSize size_of_batch(const Instance& instance, int64_t max_seq_len) {
  constexpr size_t kLengths = 6;
  std::vector<int64_t> lengths = make_lengths(instance, max_seq_len).rows;
  std::sort(lengths.begin(), lengths.end());
  ProblemSize size;
  size.max_seq_len = max_seq_len;
  size.batch = static_cast<int64_t>(lengths.size());
  for (size_t i = 0; i < kLengths; ++i) size.lengths.push_back(lengths[(2 * i + 1) * lengths.size() / (2 * kLengths)]);
  const double rows = std::accumulate(size.lengths.begin(), size.lengths.end(), 0.0);
  size.mean_fill = rows / static_cast<double>(kLengths) / static_cast<double>(max_seq_len);
  return size;
}

enum class HeldOut { kEven, kOdd, kNone, kAll };

std::vector<Cell> read_cells(const std::string& config_path, const std::string& times_path, Direction direction,
                             HeldOut held_out) {
  const Config config = value_or_exit(load_config(config_path));
  const Json read = value_or_exit(parse_json(value_or_exit(read_file(times_path, kMaxConfigBytes))));
  const Json& times = read.at("result");
  std::vector<KernelConfig> configs;
  for (const Json& json : times.at("configs")) configs.push_back(value_or_exit(parse_kernel_config(json)));
  const DeviceSpec device =
      value_or_exit(known_device(read.at("environment").at("devices").at(0).at("name").get<std::string>()));
  std::vector<Cell> cells;
  for (const Json& key : times.at("keys")) {
    if (key.at("direction") != to_string(direction)) continue;
    const Instance& instance = *value_or_exit(config.find(key.at("name").get<std::string>()));
    const auto max_seq_len = key.at("max_seq_len").get<int64_t>();
    const bool is_short = key.value("short_sequences", false);
    Cell cell;
    cell.name = instance.name;
    cell.held_out = held_out == HeldOut::kAll || held_out == (cells.size() % 2 == 1 ? HeldOut::kOdd : HeldOut::kEven);
    cell.spec = instance.spec;
    cell.device = device;
    cell.sizes = {
        heuristic_size({key.at("bucket").get<int64_t>(), is_short ? BatchClass::kShortSequences : BatchClass::kAny}),
        size_of_batch(instance, max_seq_len)};
    // The search space may have changed since its candidates were timed.
    const std::vector<Candidate> candidates =
        search_space(*instance.spec, direction, device, cell.sizes.front()).candidates;
    for (const auto& [place, us] : key.at("us").items()) {
      const KernelConfig& timed = configs.at(std::stoul(place));
      const bool is_candidate = std::any_of(candidates.begin(), candidates.end(),
                                            [&](const Candidate& candidate) { return candidate.config == timed; });
      if (is_candidate) cell.timings.push_back({timed, us.get<double>()});
    }
    if (cell.timings.empty()) {
      std::fprintf(stderr, "fit_costs: %s has no times of configs that are candidates\n", cell.name.c_str());
      std::exit(1);
    }
    // Candidates of a tiling side by side, since the model keeps what it counted last.
    std::stable_sort(cell.timings.begin(), cell.timings.end(), [](const Timing& a, const Timing& b) {
      const AttentionConfig &x = a.config.attention(), &y = b.config.attention();
      return std::tie(x.block_m, x.block_n) < std::tie(y.block_m, y.block_n);
    });
    cell.best_us = std::min_element(cell.timings.begin(), cell.timings.end(), [](const Timing& a, const Timing& b) {
                     return a.us < b.us;
                   })->us;
    cells.push_back(std::move(cell));
  }
  return cells;
}

int run(int argc, char** argv) {
  using Files = std::vector<std::pair<std::string, std::string>>;
  CLI::App app("Fits the constants of attention's cost models to timings of candidates.");
  std::string direction_name, split_name;
  Files cells_of, held_out_of;
  std::vector<std::string> kept;
  std::string alone;
  int steps = 0;
  app.add_option("direction", direction_name)->required()->check(CLI::IsMember({"forward", "backward"}));
  app.add_option("--cells", cells_of, "CONFIG TIMES")->required();
  app.add_option("--held-out", held_out_of, "CONFIG TIMES");
  app.add_option("--steps", steps, "of the fit; 0: none")->check(CLI::NonNegativeNumber);
  app.add_option("--split", split_name, "cells that are held out")->check(CLI::IsMember({"odd", "even"}));
  app.add_option("--keep", kept, "a constant that stays");
  app.add_option("--skeleton", alone, "whose constants alone are fitted");
  CLI11_PARSE(app, argc, argv);
  const Direction direction = direction_name == "forward" ? Direction::kForward : Direction::kBackward;
  const HeldOut split = split_name.empty() ? HeldOut::kNone : split_name == "odd" ? HeldOut::kOdd : HeldOut::kEven;

  Model before, model;
  const std::vector<Constant> known = constants_of(model, direction);
  for (const std::string& name : kept) {
    if (std::none_of(known.begin(), known.end(), [&](const Constant& constant) { return constant.name == name; })) {
      std::fprintf(stderr, "fit_costs: --keep %s is no constant of this direction\n", name.c_str());
      return 2;
    }
  }
  if (!alone.empty() &&
      std::none_of(known.begin(), known.end(), [&](const Constant& c) { return c.skeleton == alone; })) {
    std::fprintf(stderr, "fit_costs: --skeleton %s has no constants of this direction\n", alone.c_str());
    return 2;
  }
  std::vector<Cell> cells;
  const auto read = [&](const Files& files, HeldOut held_out) {
    for (const auto& [config, times] : files) {
      for (Cell& cell : read_cells(config, times, direction, held_out)) cells.push_back(std::move(cell));
    }
  };
  read(cells_of, split);
  read(held_out_of, HeldOut::kAll);
  print("now", cells, model);
  if (steps > 0) {
    fit(cells, direction, steps, kept, alone, model);
    print("fitted", cells, model);
    const std::vector<Constant> was = constants_of(before, direction), is = constants_of(model, direction);
    for (size_t i = 0; i < is.size(); ++i) {
      std::printf("%-50s %12.4g -> %.4g\n", (is[i].skeleton + " " + is[i].name).c_str(), was[i].value, is[i].value);
    }
  }
  for (const Cell& cell : cells) {
    const double by = slower(cell, cell.sizes.front(), model);
    if (by > 1.1) std::printf("%-12s %s%.2f\n", cell.name.c_str(), cell.held_out ? "held out " : "", by);
  }
  return 0;
}

}  // namespace

}  // namespace hstujit

int main(int argc, char** argv) { return hstujit::run(argc, argv); }
