// The host backend of every operator whose spec is an AttentionSpec.
#pragma once

#include "compiler/host/operator.h"

namespace hstujit {

Result<HostOperatorPtr> make_host_attention(const OpSpec& spec, Direction direction, const RegisterTile& tile);

}  // namespace hstujit
