// Writes the config's JSON Schema to standard output, for check_schema.py.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "compiler/spec/schema.h"

int main() { std::puts(hstujit::config_schema().dump(2).c_str()); }
