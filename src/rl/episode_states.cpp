// SPDX-License-Identifier: Apache-2.0
#include "src/rl/episode_states.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "src/base/parallel.hpp"
#include "src/rl/run_clock.hpp"

namespace gpusched {

void EpisodeStates::at(std::span<const StepPlace> places, Observation& states) {
  if (!places.empty() && !kept(places.front().episode)) {
    const auto begin = RunClock::now();
    simulate(places, states);
    simulated_s_ += seconds_since(begin);
    return;
  }
  std::vector<SeenState> found;
  for (const auto [episode, step] : places) found.push_back({&episodes_[episode].observation, step});
  copy_states(found, states);
}

const Observation& EpisodeStates::of(std::uint32_t episode, Observation& room) const {
  if (kept(episode)) return episodes_[episode].observation;
  room = {};
  Observation seen;
  Walk walk = begin(episode);
  for (std::uint32_t step = 0; step < episodes_[episode].size(); ++step) {
    go_to(step, walk);
    see(walk.env, seen);
    append_state(room, seen, 0);
  }
  return room;
}

// The environment that the episode took place in knows its cluster.
EpisodeStates::Walk EpisodeStates::begin(std::uint32_t episode) const {
  Walk walk{.episode = episode, .step = 0, .env = env_.env(episode)};
  const std::uint32_t window = episodes_[episode].window;
  static_cast<void>(walk.env.reset(windows_[window], scales_[window]));
  return walk;
}

void EpisodeStates::go_to(std::uint32_t step, Walk& walk) const {
  for (; walk.step < step; ++walk.step) static_cast<void>(walk.env.step(episodes_[walk.episode].actions[walk.step]));
}

// Episode by episode, several at a time.
void EpisodeStates::simulate(std::span<const StepPlace> places, Observation& states) {
  std::vector<std::uint32_t> order(places.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tie(places[a].episode, places[a].step) < std::tie(places[b].episode, places[b].step);
  });
  std::vector<std::size_t> begins;  // of each episode in the order
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || places[order[i]].episode != places[order[i - 1]].episode) begins.push_back(i);
  }
  const std::size_t runs = begins.size();
  begins.push_back(order.size());
  std::optional<Walk> last;
  std::vector<Observation> seen_in(runs);
  for_each_index(runs, threads_, [&](std::size_t run) {
    const StepPlace& first = places[order[begins[run]]];
    const bool goes_on = last_ && last_->episode == first.episode && last_->step <= first.step;
    Walk walk = goes_on ? *std::move(last_) : begin(first.episode);  // one run at most goes on
    Observation seen;
    for (std::size_t i = begins[run]; i < begins[run + 1]; ++i) {
      go_to(places[order[i]].step, walk);
      see(walk.env, seen);
      append_state(seen_in[run], seen, 0);
    }
    if (run + 1 == runs) last = std::move(walk);
  });
  last_ = std::move(last);
  std::vector<SeenState> found(places.size());
  for (std::uint32_t run = 0; run < runs; ++run) {
    for (std::size_t i = begins[run]; i < begins[run + 1]; ++i) {
      found[order[i]] = {&seen_in[run], static_cast<std::uint32_t>(i - begins[run])};
    }
  }
  copy_states(found, states);
}

}  // namespace gpusched
