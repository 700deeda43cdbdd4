// The elements of a row's inputs that a thread has: held in registers from the first use to the last, or loaded for
// each use where they are too many.
#pragma once
#include "row/layout.cuh"

// Which row of each tensor goes with the row that is gone through: that one, unless rows are those of sequences
// (sequences.cuh). A tensor may have none.
template <class Layout, class Operands, class = void>
class Places {
 public:
  template <class Params>
  __device__ __forceinline__ Places(const Params& params, i64 row) : row_(row), rows_(params.rows) {}

  __device__ __forceinline__ bool exists() const { return row_ < rows_; }
  // `rows` as the inputs have it, in a register: read from the parameters each time, wide rows spill.
  __device__ __forceinline__ bool has_input(int, i64 rows) const { return row_ < rows; }
  __device__ __forceinline__ bool has_output(int) const { return true; }  // of a row that exists
  __device__ __forceinline__ i64 input(int) const { return row_; }
  __device__ __forceinline__ i64 output(int) const { return row_; }

  template <class Params, class Elements>
  static __device__ __forceinline__ void set_missing(const Params&, int, Elements& elements) {
    elements.clear();
  }

 private:
  i64 row_;
  i64 rows_;
};

template <class Layout, class Operands>
struct HeldRow {
  static constexpr bool kInShared = false;
  Pack<typename Operands::Data, Layout::kVector> packs[Operands::kRowInputs][Layout::kChunks];
};

template <class Layout, class Operands>
struct HeldVectors {
  Pack<typename Operands::Vector, Layout::kVector> packs[at_least_one(Operands::kVectorInputs)][Layout::kChunks];
};

// Inputs that few operators have: numbers of groups (groups.cuh), rows of tables (sequences.cuh), and random numbers
// (random.cuh).
template <class Layout, class Operands, class = void>
struct GroupInputs {
  static constexpr int kCount = 0;
  template <u32 kReads, class Params>
  __device__ __forceinline__ void get(const Params&, int) {}
  __device__ __forceinline__ float operator()(int, int) const { return 0; }
};

template <class Layout, class Operands, class = void>
struct TableInputs {
  static constexpr int kCount = 0;
  template <u32 kReads, class Params>
  __device__ __forceinline__ void get(const Params&, const Places<Layout, Operands>&, int) {}
  __device__ __forceinline__ float operator()(int, int) const { return 0; }
};

template <class Layout, class Row, class = void>
struct RandomInputs {
  static constexpr int kCount = 0;
  template <u32 kReads, class Params>
  __device__ __forceinline__ void get(const Params&, i64, int) {}
  __device__ __forceinline__ float operator()(int, int) const { return 0; }
};

// One chunk of all inputs: rows first, then vectors, groups' numbers, rows of tables and random numbers.
template <class Layout, class Operands, class Row>
struct ChunkOfInputs {
  using Groups = GroupInputs<Layout, Operands>;
  using Tables = TableInputs<Layout, Operands>;
  using Random = RandomInputs<Layout, Row>;
  static constexpr int kGroups = Operands::kRowInputs + Operands::kVectorInputs;  // the first of those
  static constexpr int kTables = kGroups + Groups::kCount;
  static constexpr int kRandom = kTables + Tables::kCount;
  static constexpr int kCount = kRandom + Random::kCount;

  Pack<typename Operands::Data, Layout::kVector> rows[Operands::kRowInputs];
  Pack<typename Operands::Vector, Layout::kVector> vectors[at_least_one(Operands::kVectorInputs)];
  Groups groups;
  Tables tables;
  Random random;

  // Element i of each.
  __device__ __forceinline__ void get(int i, float (&in)[kCount]) const {
#pragma unroll
    for (int input = 0; input < Operands::kRowInputs; ++input) in[input] = rows[input][i];
#pragma unroll
    for (int input = 0; input < Operands::kVectorInputs; ++input) in[Operands::kRowInputs + input] = vectors[input][i];
#pragma unroll
    for (int input = 0; input < Groups::kCount; ++input) in[kGroups + input] = groups(input, i);
#pragma unroll
    for (int input = 0; input < Tables::kCount; ++input) in[kTables + input] = tables(input, i);
#pragma unroll
    for (int input = 0; input < Random::kCount; ++input) in[kRandom + input] = random(input, i);
  }
};

template <class Layout, class Operands, class Config, class Operator>
class Inputs {
 public:
  using Row = HeldRow<Layout, Operands>;
  using Chunk = ChunkOfInputs<Layout, Operands, Operator>;
  using Place = Places<Layout, Operands>;

  template <class Params>
  __device__ __forceinline__ explicit Inputs(const Params& params) : rows_(params.rows) {
    Operands::row_inputs(params, data_, strides_);
    if constexpr (Operands::kVectorInputs > 0) {
      Operands::vector_inputs(params, vector_data_);
      if constexpr (Config::kHoldVectors != 0) {
#pragma unroll
        for (int input = 0; input < Operands::kVectorInputs; ++input) {
#pragma unroll
          for (int chunk = 0; chunk < Layout::kChunks; ++chunk) load_vector(input, chunk, vectors_.packs[input][chunk]);
        }
      }
    }
  }

  // All elements of a row that the thread has; what is missing behind the last one. Those of chunks that it does not
  // have stay as they are.
  template <class Params>
  __device__ __forceinline__ void load(const Params& params, const Place& place, Row& held) const {
#pragma unroll
    for (int input = 0; input < Operands::kRowInputs; ++input) {
      if (place.has_input(input, rows_)) {
        const unsigned char* const first = first_vector(input, place.input(input));
#pragma unroll
        for (int chunk = 0; chunk < Layout::kChunks; ++chunk) {
          if (Layout::has(chunk)) held.packs[input][chunk].template load<true>(first + bytes_to(chunk));
        }
      } else {
#pragma unroll
        for (int chunk = 0; chunk < Layout::kChunks; ++chunk)
          Place::set_missing(params, input, held.packs[input][chunk]);
      }
    }
  }

  // Loads the inputs of a chunk whose bits are set in kReads. `held` is the row where it is in registers, or in shared
  // memory (ring.cuh).
  template <u32 kReads, class Params, class Held>
  __device__ __forceinline__ void get(const Params& params, const Held& held, i64 row, const Place& place, int chunk,
                                      Chunk& inputs) const {
#pragma unroll
    for (int input = 0; input < Operands::kRowInputs; ++input) {
      if ((kReads >> input & 1) == 0) continue;
      if constexpr (Config::kHoldRow != 0) {
        inputs.rows[input] = held.packs[input][chunk];
      } else if constexpr (Held::kInShared) {
        held.load(input, chunk, inputs.rows[input]);
      } else {
        load_chunk(params, input, place, chunk, inputs.rows[input]);
      }
    }
#pragma unroll
    for (int input = 0; input < Operands::kVectorInputs; ++input) {
      if ((kReads >> (Operands::kRowInputs + input) & 1) == 0) continue;
      if constexpr (Config::kHoldVectors != 0) {
        inputs.vectors[input] = vectors_.packs[input][chunk];
      } else {
        load_vector(input, chunk, inputs.vectors[input]);
      }
    }
    inputs.groups.template get<(kReads >> Chunk::kGroups)>(params, Layout::column(chunk));
    inputs.tables.template get<(kReads >> Chunk::kTables)>(params, place, Layout::column(chunk));
    inputs.random.template get<(kReads >> Chunk::kRandom)>(params, row, Layout::column(chunk));
  }

 private:
  // First vector of the thread, in a row.
  __device__ __forceinline__ const unsigned char* first_vector(int input, i64 row) const {
    const i64 element = row * strides_[input] + Layout::column(0);
    return static_cast<const unsigned char*>(data_[input]) + element * Operands::Data::kBytes;
  }
  static constexpr __device__ int bytes_to(int chunk) { return Layout::columns_to(chunk) * Operands::Data::kBytes; }

  template <class Params, class Elements>
  __device__ __forceinline__ void load_chunk(const Params& params, int input, const Place& place, int chunk,
                                             Elements& elements) const {
    if (place.has_input(input, rows_) && Layout::has(chunk)) {
      elements.template load<false>(first_vector(input, place.input(input)) + bytes_to(chunk));
    } else {
      Place::set_missing(params, input, elements);
    }
  }

  template <class Elements>
  __device__ __forceinline__ void load_vector(int input, int chunk, Elements& elements) const {
    if (Layout::has(chunk)) {
      const auto* const data = static_cast<const unsigned char*>(vector_data_[input]);
      elements.template load<false>(data + Layout::column(chunk) * Operands::Vector::kBytes);
    } else {
      elements.clear();
    }
  }

  const i64 rows_;
  const void* data_[Operands::kRowInputs];
  i64 strides_[Operands::kRowInputs];  // in elements
  const void* vector_data_[at_least_one(Operands::kVectorInputs)];
  HeldVectors<Layout, Operands> vectors_;
};
