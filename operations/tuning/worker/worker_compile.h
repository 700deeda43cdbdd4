// Messages between the tuner and a worker that compiles: a request there, and blobs back.
#pragma once

#include "operations/tuning/worker/worker_channel.h"
#include "runtime/engine/compiler_library.h"

namespace hstujit {

// kInvalidArgument or kInvalidConfig with what is wrong.
Result<CompileRequest> parse_compile_request(const nlohmann::ordered_json& json);

// Names and sizes in the member "blobs" of the head, the bytes one after another in the body.
void put_blobs(const Blobs& blobs, WorkerMessage* message);
// kInternal when the body is not what the head says.
Result<Blobs> take_blobs(const WorkerMessage& message);

// Opens the compiler library of a recipe in a process that is there for it: of all processes, this is the one that is
// to go when memory runs out.
Result<KernelCompilerPtr> open_compiler_of(const CompilerRecipe& recipe);

}  // namespace hstujit
