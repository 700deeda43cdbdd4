// LaunchPlan: how a kernel's parameters are packed, how many blocks it gets and what runs before and after it, as data.
//
// The emitter prints the kernel's `struct Params` from the same slots that the runtime fills: members and their order
// come from one list, and a static_assert of the source holds the size that slot_offsets() gives. The runtime launches
// an operator it has never heard of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/spec/signature.h"

namespace hstujit {

// How bulk copies see a tensor: as boxes, whose elements beyond the tensor are 0.
struct TensorMapPlan {
  static constexpr size_t kMaxRank = 5;
  struct Axis {
    int dimension = 0;  // of the tensor
    int box = 1;        // elements of a box, 1 to 256
  };
  std::vector<Axis> axes;   // every dimension of the tensor once, in the order of coordinates: the innermost one first
  int swizzle_bytes = 128;  // 0, 32, 64 or 128; a box's innermost axis takes no more
};

struct ParamSlot {
  enum class Kind {
    kPointer,    // data pointer of tensor `argument`                                8 bytes
    kStride,     // stride of dimension `dimension`, in elements                      8 bytes, int64_t
    kSize,       // size of dimension `dimension` plus `bias`                         8 bytes, int64_t
    kFloat,      // scalar argument as float                                          4 bytes
    kInt,        // scalar argument as int32_t                                        4 bytes
    kLong,       // integer argument, all of its bits                                 8 bytes, int64_t
    kInverse,    // 1 / (argument > 0 ? argument : argument `fallback`), as float     4 bytes
    kTensorMap,  // CUtensorMap of tensor `argument`, as `map` says                128 bytes, 64-byte aligned
    kWorkspace,  // address of region `region` of the workspace                       8 bytes
  };
  std::string name;  // member of the device struct
  Kind kind = Kind::kPointer;
  int argument = 0;  // index in the signature
  int dimension = 0;
  int64_t bias = 0;
  int fallback = 0;
  int region = 0;
  std::string type;  // device type of a kPointer or kWorkspace member, e.g. "const u16*" for data of 16 bits
  TensorMapPlan map;
};

// Numbers of blocks and of bytes are products of factors; a factor is ceil(source / divisor).
struct GridFactor {
  enum class Source { kConstant, kScalar, kSize };
  Source source = Source::kConstant;
  int64_t constant = 1;
  int argument = 0;
  int dimension = 0;
  int64_t bias = 0;
  int64_t divisor = 1;
};

// Split-KV: where tiles are few, several CTAs share the work of one. The launch makes them clusters, as large as still
// lets all of them be resident at once. A kernel learns of it from the size of its cluster alone.
struct ClusterPlan {
  int64_t max = 1;   // CTAs of a cluster; 1: the kernel knows no clusters
  int argument = 0;  // the integer argument that bounds what is split, rows of the longest sequence, and
  int64_t min = 1;   // how many of them a CTA gets at least
};

struct WorkspaceRegion {
  std::vector<GridFactor> bytes;
  bool cleared = false;  // all of it is 0 when the main kernel begins, else it holds anything
};

// Device memory that a launch borrows from its caller for as long as its kernels run: its regions one after the other,
// each at a multiple of kAlignment. Those that are cleared come first, so that one call clears them.
struct WorkspacePlan {
  static constexpr int64_t kAlignment = 256;  // HSTUJIT_WORKSPACE_ALIGNMENT
  static constexpr size_t kMaxRegions = 8;
  std::vector<WorkspaceRegion> regions;
};

// A kernel of the same module that runs when the one before it is done, with the same Params. Where a factor of its
// grid is 0 it does not run.
struct FollowingKernel {
  std::string kernel_name;       // extern "C" symbol
  std::string function;          // of the template; the kernel calls it as function<Spec, Config>(params)
  int threads = 0;               // per block
  int64_t shared_memory = 0;     // dynamic bytes per block
  std::vector<GridFactor> grid;  // blocks in x
  int64_t max_blocks = 0;        // > 0: at most this many blocks are launched
  int resident_blocks = 0;  // > 0: of a multiprocessor at least, whatever registers that leaves; else nvrtc chooses
};

struct LaunchPlan {
  std::string kernel_name;        // extern "C" symbol; for people: the key of a kernel says more than its name
  int threads = 0;                // per block
  int resident_blocks = 1;        // of a multiprocessor, which the kernel is compiled for
  int64_t shared_memory = 0;      // dynamic bytes per block
  std::vector<ParamSlot> slots;   // in order of the device struct
  std::vector<GridFactor> grid;   // blocks in x
  int64_t persistent_blocks = 0;  // > 0: at most this many blocks are launched
  int64_t fixed_cluster = 1;      // CTAs of a cluster that the kernel is compiled for; blocks are a multiple of it
  ClusterPlan cluster;
  WorkspacePlan workspace;
  std::vector<FollowingKernel> following;  // in the order in which they run
};

// Names of the files that `hstujit emit` writes: the kernel's source, and a program that launches it, which includes
// it.
std::string source_file(const LaunchPlan& plan);    // "KERNEL_NAME.cu"
std::string launcher_file(const LaunchPlan& plan);  // "KERNEL_NAME_main.cu"

GridFactor constant_factor(int64_t value);

// ceil(integer argument / divisor)
GridFactor scalar_factor(int argument, int64_t divisor);

// ceil((size of the tensor's first dimension + bias) / divisor)
GridFactor size_factor(int argument, int64_t divisor = 1, int64_t bias = 0);

// Slot by which a kernel gets an argument of the signature: its first dimension where `kind` is about one.
ParamSlot argument_slot(const Signature& signature, std::string name, ParamSlot::Kind kind, std::string_view argument,
                        std::string type = {});

// The address of a region of the workspace, of device type `type`.
ParamSlot workspace_slot(std::string name, std::string type, size_t region);

// A further region of the workspace, and the slot of its address.
void add_workspace_region(std::string name, std::string type, WorkspaceRegion region, LaunchPlan& plan);

// Byte offset of each slot, natural alignment, and the struct's size in the last element.
std::vector<uint32_t> slot_offsets(const std::vector<ParamSlot>& slots);

}  // namespace hstujit
