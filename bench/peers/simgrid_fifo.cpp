// SPDX-License-Identifier: Apache-2.0
// Strict FIFO on a pool of GPUs as a SimGrid S4U program, for comparison. One actor submits jobs in order; a master
// starts the head of the queue when its GPUs are free; a running job is an actor that sleeps for its run time. Prints
// the average JCT, so that the comparison is of equal results, and jobs per second of wall time. simgrid_fifo
// PHILLY_JOBS.csv GPUS
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

namespace {

struct Job {
  double submit_s;
  double run_s;
  int gpus;
};

// The columns job_id,submit_s,num_gpus,duration_s of philly_jobs.csv.
std::vector<Job> read_jobs(const char* path) {
  std::vector<Job> jobs;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    char* at = line.data();
    std::strtol(at, &at, 10);
    const double submit = std::strtod(at + 1, &at);
    const auto gpus = static_cast<int>(std::strtol(at + 1, &at, 10));
    jobs.push_back({submit, std::strtod(at + 1, &at), gpus});
  }
  return jobs;
}

class Pool {
 public:
  Pool(int gpus, sg4::Host* host) : free_(gpus), host_(host) {}

  void submit(const Job& job) {
    queue_.push_back(job);
    start_fitting();
  }

  [[nodiscard]] double total_jct_s() const { return total_jct_s_; }

 private:
  void start_fitting() {
    while (!queue_.empty() && queue_.front().gpus <= free_) {
      const Job job = queue_.front();
      queue_.pop_front();
      free_ -= job.gpus;
      sg4::Actor::create("job", host_, [this, job] {
        sg4::this_actor::sleep_for(job.run_s);
        total_jct_s_ += sg4::Engine::get_clock() - job.submit_s;
        free_ += job.gpus;
        start_fitting();
      });
    }
  }

  int free_;
  sg4::Host* host_;
  std::deque<Job> queue_;
  double total_jct_s_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: simgrid_fifo PHILLY_JOBS.csv GPUS\n");
    return 2;
  }
  const auto begin = std::chrono::steady_clock::now();
  int engine_argc = 1;
  sg4::Engine engine(&engine_argc, argv);
  auto* zone = sg4::create_full_zone("cluster");
  sg4::Host* host = zone->create_host("host", 1e9)->seal();
  zone->seal();

  const std::vector<Job> jobs = read_jobs(argv[1]);
  Pool pool(std::atoi(argv[2]), host);
  sg4::Actor::create("arrivals", host, [&] {
    for (const Job& job : jobs) {
      sg4::this_actor::sleep_until(job.submit_s);
      pool.submit(job);
    }
  });
  engine.run();

  const double wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const auto count = static_cast<double>(jobs.size());
  std::printf("{\"program\": \"simgrid_fifo\", \"jobs\": %zu, \"avg_jct_s\": %.6f, \"jobs_per_s\": %.0f}\n",
              jobs.size(), pool.total_jct_s() / count, count / wall_s);
}
