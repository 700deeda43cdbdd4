// delta_hstu_attention forward for Hopper: the kernel of hstu_attention, whose q and out have the last rows of each
// sequence only (Config::kDelta; templates/hstu_attention/queries.cuh).
#pragma once
#include "hstu_attention/sm90.cuh"
