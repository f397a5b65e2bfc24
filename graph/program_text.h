// SPDX-License-Identifier: Apache-2.0
// The canonical text form of a Program: what goldens hold, `opt` prints and --dump-passes writes. It is ONNX's textual
// syntax, one model a graph, separated by lines that hold only "---"; graph/README.md shows an example.
//
// Equal programs give equal text, and write-read-write gives the same text (of programs whose tensors are printed in
// full). Facts beside the nodes are metadata of the model:
//   "update.<state>" : "<value>"    what the state becomes after the run
//   "role.<role>" : "<value>"       a role of the graph
// and in the first graph alone
//   "state.<name>" : "<class> [bucket=<k>] [sharded] [type=<type>] [<role>/<parameter>]"   one a state, in table order;
//                    the type where no graph has the state, the canonical tensor where it is not "<class>/<name>"
//   "layout", "layout.<bucket>", "world_size", "accumulation"
// States, constants and initial values stand in the list behind the signature: a name without a value is a state. The
// initial value of a canonical tensor that is no state of the first graph is named "initial:<role>/<parameter>".
#ifndef ONNXTRAIN_GRAPH_PROGRAM_TEXT_H_
#define ONNXTRAIN_GRAPH_PROGRAM_TEXT_H_

#include <string>
#include <string_view>

#include "graph/program.h"

namespace onnxtrain {

struct TextOptions {
  // Prints every tensor. Otherwise one of more than 16 elements is printed as its type and a hash in a comment: enough
  // to compare by, but a constant printed so cannot be read back.
  bool full = false;
};

std::string WriteProgramText(const Program& program, const TextOptions& options = {});

// Reads what WriteProgramText wrote, or a text written by hand: comments, a missing header and states without a
// "state." entry (parameters of their own name) are allowed. Operators are canonical (graph/op_registry.h); nothing is
// lifted or folded. Does not run the verifier. Fails with InvalidModel and the line.
StatusOr<Program> ReadProgramText(std::string_view text);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_PROGRAM_TEXT_H_
