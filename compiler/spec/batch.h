// The batches of generated inputs: how large one is, and its lengths.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "compiler/spec/config.h"

namespace hstujit {

struct BatchSize {
  int64_t sequences = 0;
  int64_t rows = 0;                                             // of all sequences together
  std::map<std::string, int64_t, std::less<>> other_rows = {};  // the same of every other axis, by its symbol

  int64_t rows_of(std::string_view axis) const;  // 0 for an axis that the operator does not have
};

inline constexpr int64_t kAllRows = std::numeric_limits<int64_t>::max();

// The sequences of the instance's whole batch. Draws none of their lengths.
int64_t batch_sequences(const Instance& instance);

// Whether the config says which lengths its sequences have; drawn as by default they say nothing of a model.
bool has_given_lengths(const Instance& instance);

// Counts the rows that make_lengths gives without keeping them: a config may ask for more sequences than there is
// memory for.
BatchSize batch_size(const Instance& instance, int64_t max_seq_len, int64_t max_rows = kAllRows);

// The leading sequences of the instance's batch that have at most `max_rows` rows together; the one that crosses it is
// cut.
Lengths make_lengths(const Instance& instance, int64_t max_seq_len, int64_t max_rows);

}  // namespace hstujit
