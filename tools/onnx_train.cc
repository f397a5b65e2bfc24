// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <string>
#include <vector>

#include "tools/command.h"

int main(int argc, char** argv) {
  // A limit on the size of files, or a reader of our output that went away, are errors of the write and not the end.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  return onnxtrain::RunOnnxTrain(std::vector<std::string>(argv + 1, argv + argc));
}
