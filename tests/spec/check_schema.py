"""Validates configs against the schema that a program prints; exits 77 where python3 has no jsonschema."""
import json
import re
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    sys.exit(77)

schema = json.loads(subprocess.run([sys.argv[1]], check=True, capture_output=True, text=True).stdout)
validator = jsonschema.validators.validator_for(schema)
validator.check_schema(schema)
check = validator(schema)
for path in sys.argv[2:]:
    with open(path) as file:
        config = json.loads(re.sub(r"^\s*//.*$", "", file.read(), flags=re.MULTILINE))
    check.validate(config)

good = {"version": 1, "ops": [{"name": "a", "op": "hstu_attention", "attn_dim": 64, "hidden_dim": 64, "max_seq_len": 64}]}
check.validate(good)
check.validate(good["ops"])
check.validate({"version": 1, "defaults": {"op": "layer_norm", "width": 8}, "ops": [{"name": "a", "rows": 3}]})
attention = {key: good["ops"][0][key] for key in ("attn_dim", "hidden_dim", "max_seq_len")}
check.validate({"version": 1, "defaults": attention, "ops": [{"name": "a", "op": "hstu_attention"}]})
check.validate({"version": 1, "defaults": attention | {"op": "hstu_attention"}, "ops": [{"name": "a"}]})
check.validate({"version": 1, "defaults": {"op": "hstu_attention"}, "ops": [{"name": "a", "op": "layer_norm", "width": 8, "rows": 3}]})
for name in ("a.b", "..a", "-"):
    check.validate([good["ops"][0] | {"name": name}])
check.validate(good | {"defaults": {"norm": "rms_norm"}})
check.validate(good | {"defaults": {"norm": "rms_norm"}})
for bad in ([good["ops"][0] | {"directions": ["forward"] * 3}], good | {"defaults": {"op": "zz"}}, good | {"defaults": {"norm": "zz"}},
            [good["ops"][0] | {"name": "..."}], [good["ops"][0] | {"name": "a\n"}], good | {"$schema": 3},
            [good["ops"][0] | {"alignment": 3}], good | {"defaults": {"silu": 3}},
            [{"name": "a", "op": "hstu_attention", "attn_dim": 64, "hidden_dim": 64}], [{"name": "a", "op": "layer_norm", "rows": 3}],
            {"version": 1, "ops": [{"name": "a", "op": "layer_norm", "rows": 3}]},
            {"version": 1, "defaults": {"op": "layer_norm"}, "ops": [{"name": "a", "rows": 3}]},
            [{"name": "a", "op": "complete_cumsum", "rows": 3, "directions": ["backward"]}],
            [], [{"name": "a"}], {"version": 1, "ops": [{"name": "a", "rows": 3, "width": 8}]},
            {"version": 1, "defaults": {"width": 8}, "ops": [{"name": "a", "rows": 3}]}):
    if check.is_valid(bad):
        sys.exit(f"the schema accepts {bad}")
for field, value in [("heads", 0), ("attn_dim", 260), ("dtype", "bf17"), ("unknown", 1), ("causal", 1), ("max_seq_len", 0)]:
    bad = json.loads(json.dumps(good))
    bad["ops"][0][field] = value
    if check.is_valid(bad):
        sys.exit(f"the schema accepts {field} = {value}")
