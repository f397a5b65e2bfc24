// SPDX-License-Identifier: Apache-2.0
// Processes as threads on the loopback interface.
#include "cuda_ops/rendezvous.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <random>
#include <thread>

#include "cuda_ops/rendezvous_message.h"
#include "cuda_ops/rendezvous_socket.h"

namespace onnxtrain {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::HasSubstr;

int FreePort() {
  const Socket probe(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  CHECK(bind(probe.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  socklen_t size = sizeof(address);
  CHECK(getsockname(probe.descriptor(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  return ntohs(address.sin_port);
}

RendezvousOptions OptionsFor(int rank, int world_size, int port) {
  RendezvousOptions options;
  options.rank = rank;
  options.world_size = world_size;
  options.local_rank = rank;
  options.master_address = "127.0.0.1";
  options.port = port;
  options.identity = {"0.1.0", "2.28.9", "digest"};
  options.timeout = milliseconds(30000);
  return options;
}

StatusOr<std::string> MakePayload() { return std::string("id\0of 128 bytes", 15); }

// What each rank gets; the options of rank r are changed by change(r, options).
template <typename Change>
std::vector<StatusOr<Rendezvous>> MeetAll(int world_size, Change change) {
  const int port = FreePort();
  std::vector<StatusOr<Rendezvous>> results(static_cast<size_t>(world_size), Rendezvous{});
  std::vector<std::thread> threads;
  for (int r = world_size - 1; r >= 0; --r) {
    threads.emplace_back([&, r] {
      RendezvousOptions options = OptionsFor(r, world_size, port);
      change(r, options);
      results[static_cast<size_t>(r)] = Meet(options, MakePayload);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

void Nothing(int, RendezvousOptions&) {}

TEST(Rendezvous, GivesAllRanksThePayloadOfRankZero) {
  for (int world_size : {1, 2, 5, 32}) {
    for (const StatusOr<Rendezvous>& result : MeetAll(world_size, Nothing)) {
      ASSERT_TRUE(result.ok()) << result.status().message();
      EXPECT_EQ(result->payload, *MakePayload());
      EXPECT_TRUE(result->notices.empty());
    }
  }
}

TEST(Rendezvous, ListensBesideTorchrunsStore) {
  const int port = FreePort();
  for (const StatusOr<Rendezvous>& result : MeetAll(2, [&](int, RendezvousOptions& options) {
         options.port = 0;
         options.master_port = port - 1;
       })) {
    EXPECT_TRUE(result.ok()) << result.status().message();
  }
}

TEST(Rendezvous, DifferencesAreNamedOnEveryRank) {
  struct Case {
    void (*change)(int rank, RendezvousOptions& options);
    const char* text;
  };
  const Case cases[] = {
      {[](int rank, RendezvousOptions& o) {
         if (rank == 1) o.identity.library_version = "2.27.3";
       },
       "versions of NCCL differ: rank 0"},
      {[](int rank, RendezvousOptions& o) {
         if (rank == 1) o.identity.project_version = "0.2.0";
       },
       "has 0.1.0, rank 1"},
      {[](int rank, RendezvousOptions& o) {
         if (rank == 1) o.identity.configuration = "other";
       },
       "has other"},
      {[](int rank, RendezvousOptions& o) {
         if (rank == 1) o.world_size = 3;
       },
       "world sizes differ: rank 0"},
      {[](int rank, RendezvousOptions& o) {
         if (rank == 1) o.local_rank = 0;
       },
       "both have local rank 0"},
  };
  for (const Case& one : cases) {
    for (const StatusOr<Rendezvous>& result : MeetAll(2, one.change)) {
      ASSERT_FALSE(result.ok());
      EXPECT_EQ(result.status().code(), StatusCode::kCommunication);
      EXPECT_THAT(result.status().message(), HasSubstr(one.text));
    }
  }
}

TEST(Rendezvous, TwoProcessesOfOneRankAreNamed) {
  const auto results = MeetAll(3, [](int rank, RendezvousOptions& options) {
    if (rank == 2) options.rank = 1;
  });
  EXPECT_THAT(results[0].status().message(), HasSubstr("rank 1"));
  EXPECT_THAT(results[0].status().message(), HasSubstr("have the same rank"));
}

TEST(Rendezvous, NamesRanksThatDoNotCome) {
  RendezvousOptions options = OptionsFor(0, 4, FreePort());
  options.timeout = milliseconds(1000);
  std::thread other([options]() mutable {
    options.rank = options.local_rank = 2;
    EXPECT_THAT(Meet(options, MakePayload).status().message(), HasSubstr("rank 1, rank 3"));
  });
  const Status status = Meet(options, MakePayload).status();
  other.join();
  EXPECT_EQ(status.code(), StatusCode::kCommunication);
  EXPECT_THAT(status.message(), HasSubstr("rank 1, rank 3"));
  EXPECT_THAT(status.message(), HasSubstr("did not come in time"));
}

TEST(Rendezvous, ARankWithoutRankZeroSaysWhere) {
  RendezvousOptions options = OptionsFor(1, 2, FreePort());
  options.timeout = milliseconds(100);
  const Status status = Meet(options, MakePayload).status();
  EXPECT_EQ(status.code(), StatusCode::kCommunication);
  EXPECT_THAT(status.message(), HasSubstr("127.0.0.1:" + std::to_string(options.port)));
}

TEST(Rendezvous, TheFailureOfRankZeroReachesAll) {
  const int port = FreePort();
  std::thread other([&] {
    EXPECT_THAT(Meet(OptionsFor(1, 2, port), MakePayload).status().message(), HasSubstr("rank 0: no network"));
  });
  EXPECT_FALSE(Meet(OptionsFor(0, 2, port), [] { return CommunicationError("no network"); }).ok());
  other.join();
}

TEST(Rendezvous, ATakenPortIsRefused) {
  const int port = FreePort();
  const StatusOr<Socket> taken = ListenOn(port);
  ASSERT_TRUE(taken.ok());
  const Status status = Meet(OptionsFor(0, 2, port), MakePayload).status();
  EXPECT_EQ(status.code(), StatusCode::kUsage);
  EXPECT_THAT(status.message(), HasSubstr(std::to_string(port)));
}

TEST(Rendezvous, OptionsOutOfRangeAreRefused) {
  EXPECT_EQ(Meet(OptionsFor(2, 2, 1), MakePayload).status().code(), StatusCode::kUsage);
  EXPECT_EQ(Meet(OptionsFor(0, 2, 65536), MakePayload).status().code(), StatusCode::kUsage);
  EXPECT_EQ(Meet(OptionsFor(0, 0, 1), MakePayload).status().code(), StatusCode::kUsage);
}

// Strangers that speak, fall silent, leave, or stop in the middle.
TEST(Rendezvous, BytesOfStrangersAreIgnoredAndNoted) {
  const int port = FreePort();
  StatusOr<Rendezvous> result = Rendezvous{};
  std::thread server([&] { result = Meet(OptionsFor(0, 2, port), MakePayload); });
  const auto deadline = steady_clock::now() + std::chrono::seconds(20);
  const std::string hello = FrameOf(RendezvousHello{1, 2, 1, "host", {"0.1.0", "2.28.9", "digest"}});
  const std::string no_hello = FrameOf(std::vector<std::string>{"what", "is", "this"});
  const std::string too_long = hello.substr(0, 8) + std::string(4, '\xff');
  std::string broken = hello;
  broken[12] = '\x7f';  // the first field leaves the message
  std::string unprintable = FrameOf(RendezvousHello{1, 2, 1, "ho\nst", {"0.1.0", "2.28.9", "digest"}});
  const std::vector<std::string> messages = {
      "GET / HTTP/1.1\r\n\r\n", std::string(5000, '\0'), no_hello, too_long, broken, unprintable, hello + "x"};
  std::vector<Socket> open;
  for (const std::string& bytes : messages) {
    StatusOr<Socket> stranger = CommunicationError("not yet");
    while (!stranger.ok() && steady_clock::now() < deadline) stranger = ConnectTo("127.0.0.1", port, deadline);
    ASSERT_TRUE(stranger.ok());
    (void)stranger->Send(bytes, deadline);
    std::string answer;
    EXPECT_TRUE(stranger->WaitForInput(deadline));  // closed
    EXPECT_FALSE(stranger->Receive(answer));
  }
  for (const std::string& beginning : {std::string(), hello.substr(0, 5), hello.substr(0, 40)}) {
    StatusOr<Socket> silent = ConnectTo("127.0.0.1", port, deadline);
    ASSERT_TRUE(silent.ok());
    (void)silent->Send(beginning, deadline);
    open.push_back(std::move(*silent));
  }
  EXPECT_TRUE(Meet(OptionsFor(1, 2, port), MakePayload).ok());
  server.join();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->notices.size(), messages.size());
  EXPECT_THAT(result->notices[0], HasSubstr("127.0.0.1: it does not speak this protocol"));
}

TEST(Rendezvous, APortOfAnotherProgramIsNoticed) {
  const int port = FreePort();
  StatusOr<Socket> listener = ListenOn(port);
  ASSERT_TRUE(listener.ok());
  std::thread other([&] {
    const auto deadline = steady_clock::now() + std::chrono::seconds(20);
    ASSERT_TRUE(listener->WaitForInput(deadline));
    std::string peer;
    StatusOr<Socket> accepted = Accept(*listener, &peer);
    ASSERT_TRUE(accepted.ok());
    (void)accepted->Send("SSH-2.0-OpenSSH\r\n", deadline);
    std::string ignored;
    while (accepted->WaitForInput(deadline) && accepted->Receive(ignored)) {
    }
  });
  const Status status = Meet(OptionsFor(1, 2, port), MakePayload).status();
  EXPECT_EQ(status.code(), StatusCode::kUsage);
  EXPECT_THAT(status.message(), HasSubstr("another program has that port"));
  other.join();
}

TEST(RendezvousMessage, ABeginningOfAFrameIsNotYetOne) {
  const std::string frame = FrameOf({"a", "", std::string(300, 'x')});
  for (size_t size = 0; size < frame.size(); ++size) {
    const auto parsed = ParseFrame(frame.substr(0, size));
    ASSERT_TRUE(parsed.ok()) << size;
    EXPECT_FALSE(parsed->has_value()) << size;
  }
  const auto whole = ParseFrame(frame);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(**whole, (std::vector<std::string>{"a", "", std::string(300, 'x')}));
}

TEST(RendezvousMessage, DamagedBytesAreRefusedOrRead) {
  constexpr uint32_t kSeed = 7;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  const std::string hello = FrameOf(RendezvousHello{1, 2, 1, "host", {"0.1.0", "2.28.9", "digest"}});
  int read = 0;
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = hello.substr(0, random() % (hello.size() + 1));
    for (uint32_t n = random() % 4; n > 0 && !bytes.empty(); --n) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) bytes += std::string(random() % 9, static_cast<char>(random()));
    const auto parsed = ParseFrame(bytes);
    const bool hello_read = parsed.ok() && parsed->has_value() && HelloOf(**parsed).ok();
    ++(hello_read ? read : refused);
  }
  EXPECT_GT(read, 0);
  EXPECT_GT(refused, 10000);
}

}  // namespace
}  // namespace onnxtrain
