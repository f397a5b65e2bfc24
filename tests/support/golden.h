// SPDX-License-Identifier: Apache-2.0
// Goldens: tests/golden/<pass>/<case>.before.onnxtxt with <case>.after.onnxtxt, or with <case>.error.txt where the pass
// must refuse: those cases are named refuses_*. The first line of the before file names the pass: "# pass:
// bucket_gradients<bucket_bytes=64>"; several passes separated by commas run one after the other. Of each case is
// demanded, without a line of code for it:
//   1. the verifier accepts the program before and after;
//   2. the text after is the text of the file (UPDATE_GOLDEN=1 in the environment writes it);
//   3. the passes say that they changed something exactly when the text changed;
//   4. a second run changes nothing;
//   5. write, read, write gives the same text;
//   6. both programs mean the same on real ranks: from seeded state and feeds, two steps give the same canonical state,
//   outputs and
//      roles on world_size ranks. Where the pass itself spreads the step over ranks or micro-batches, every slice is
//      fed the same data, so that the mean over the global batch stays what it was. The program after is run twice, by
//      an interpreter in lock-step and as a session does it, planned, proved and on rank threads, to the same bits. A
//      line "# not run: <reason>" leaves this demand out; "# tolerance: 0.02" says how near the numbers must be where the
//      pass changes their precision.
#ifndef ONNXTRAIN_TESTS_SUPPORT_GOLDEN_H_
#define ONNXTRAIN_TESTS_SUPPORT_GOLDEN_H_

#include <iosfwd>
#include <string>
#include <vector>

namespace onnxtrain {

struct GoldenCase {
  std::string pass;    // folder
  std::string name;    // file name up to ".before.onnxtxt"
  std::string folder;  // path of the folder
};
void PrintTo(const GoldenCase& golden, std::ostream* out);  // for GoogleTest's messages

// All cases below `root`, sorted. CHECKs that a folder holds nothing but cases.
std::vector<GoldenCase> FindGoldens(const std::string& root);

// Reports through GoogleTest.
void CheckGolden(const GoldenCase& golden);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_SUPPORT_GOLDEN_H_
