// SPDX-License-Identifier: Apache-2.0
// Standard operators that no family defines: known by name and type, so that they can stand in a graph where they fold
// away, and be listed as unsupported where they do not.
#include <onnx/defs/schema.h>

#include "graph/op_registry.h"
#include "graph/ops/all_ops.h"

namespace onnxtrain {

void AddRemainingSchemaOps(OpRegistry& registry) {
  for (const onnx::OpSchema& schema : onnx::OpSchemaRegistry::get_all_schemas()) {
    const std::string prefix = schema.domain().empty() ? "" : schema.domain() + ".";
    const onnx::OpSchema* canonical =
        schema.domain().empty() ? onnx::OpSchemaRegistry::Schema(schema.Name(), kCanonicalOpset) : &schema;
    if (canonical == nullptr || canonical->deprecated()) continue;
    OpDef def;
    def.name = prefix + schema.Name();
    def.schema_only = true;
    def.random = def.name == "Bernoulli" || def.name == "Multinomial" || def.name.starts_with("Random");
    if (registry.Find(def.name) == nullptr) registry.Add(std::move(def));
  }
}

}  // namespace onnxtrain
