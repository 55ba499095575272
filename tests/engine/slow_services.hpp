// SPDX-License-Identifier: Apache-2.0
/// Requests, replicas and jobs second by second: a reference for the engine, written from what docs/services.md says.
/// All times are whole seconds, every node has one GPU, and first-fit decides.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "gpusched/data/node_failures.hpp"
#include "gpusched/serving/request_queue.hpp"
#include "gpusched/serving/service_model.hpp"

namespace gpusched::test {

struct SlowServiceJob {
  std::int64_t submit = 0, work = 0;
  std::uint32_t tasks = 1;
};

struct SlowServices {
  // What is simulated.
  const ServiceModel* model = nullptr;
  std::vector<SlowServiceJob> jobs;
  std::vector<NodeChange> changes;  // by time
  std::uint32_t nodes = 1;

  // What comes out.
  std::vector<std::vector<RequestRecord>> records;  // by service
  std::vector<std::int64_t> job_ends;
  std::vector<std::int64_t> closed;
  std::vector<ReplicaStarts> starts;

  enum class Phase { absent, queued, running, done };
  enum class Serving { no, loading, yes, draining };
  // A job, or a replica.
  struct Entity {
    Phase phase = Phase::absent;
    std::int64_t place = -1, ready = -1, until = -1;  // until: when it ends, or serves
    std::int64_t started = 0;                         // in order of the starts
    std::uint32_t tasks = 1;
    std::vector<std::uint32_t> on;
    Serving serving = Serving::no;
  };
  struct Piece {
    std::uint32_t row;  // of the service
    std::int64_t end;
    std::vector<std::uint32_t> requests;
  };
  struct Service {
    std::uint32_t came = 0;
    std::vector<std::uint32_t> waiting;
    std::vector<Piece> pieces;
    Autoscaler autoscaler;
    std::int64_t ask_at = 0, held_s = 0, served_s = 0, served = 0;
    std::int32_t wanted = 0;
    std::map<std::uint32_t, std::int64_t> warm;  // by node
    bool over = false, held = false;
    bool is_open = false;                           // more requests may be told: of a service over sites
    std::int64_t moved = -1;                        // the last second that held_s counts
    std::map<std::uint32_t, std::uint32_t> holder;  // of requests that wait at a replica: its row
    std::uint32_t last_row = no_index;
  };
  std::vector<Entity> replicas, all_jobs;
  std::vector<Service> services;
  std::vector<int> user;  // of each node: replica r is r, job j is 1000 + j, nobody -1, out of service -2
  std::int64_t now = 0, places = 0, all_starts = 0;

  static std::int64_t s(Time t) { return t.us / microseconds_per_second; }
  const ServiceSpec& spec(std::size_t i) const { return model->services[i]; }
  std::int64_t begin(std::size_t i) const { return s(spec(i).begin); }
  std::int64_t arrival(std::size_t i, std::uint32_t request) const {
    return begin(i) + s(spec(i).requests[request].arrival);
  }
  Entity& replica(std::size_t i, std::uint32_t row) { return replicas[spec(i).first_row + row]; }

  void run() {
    prepare();
    while (now < 50'000 && !is_over()) {
      second();
      ++now;
    }
    if (is_over()) --now;
  }
  [[nodiscard]] bool is_over() const {
    const auto ended = [](std::int64_t end) { return end >= 0; };
    return std::all_of(job_ends.begin(), job_ends.end(), ended) && std::all_of(closed.begin(), closed.end(), ended);
  }

  void prepare() {
    user.assign(nodes, -1);
    replicas.resize(model->rows());
    all_jobs.resize(jobs.size());
    for (std::size_t j = 0; j < jobs.size(); ++j) all_jobs[j].tasks = jobs[j].tasks;
    job_ends.assign(jobs.size(), -1);
    services.resize(model->services.size());
    closed.assign(services.size(), -1);
    starts.resize(services.size());
    for (std::size_t i = 0; i < services.size(); ++i) {
      services[i].autoscaler = spec(i).autoscaler;
      services[i].ask_at = begin(i);
      records.emplace_back(spec(i).requests.size());
    }
  }

  void second() {
    for (std::size_t i = 0; i < services.size(); ++i) requests_happen(i);
    ends_and_loads();
    nodes_change();
    for (std::size_t i = 0; i < services.size(); ++i) {
      if (now >= begin(i) && !services[i].over) control(i);
    }
    submit();
    first_fit();
  }

  // ---- requests ----
  std::uint32_t busy(std::size_t i, std::uint32_t row) const {
    const auto& pieces = services[i].pieces;
    return static_cast<std::uint32_t>(
        std::count_if(pieces.begin(), pieces.end(), [&](const Piece& piece) { return piece.row == row; }));
  }
  std::size_t in_service(std::size_t i) const {
    std::size_t sum = 0;
    for (const Piece& piece : services[i].pieces) sum += piece.requests.size();
    return sum;
  }

  void requests_happen(std::size_t i) {
    if (now < begin(i)) return;
    Service& own = services[i];
    if (now > begin(i) && now != own.moved) own.held_s += static_cast<std::int64_t>(own.waiting.size() + in_service(i));
    own.moved = now;
    std::vector<Piece> left;
    for (Piece& piece : own.pieces) {
      if (piece.end != now) {
        left.push_back(piece);
        continue;
      }
      for (const std::uint32_t request : piece.requests) {
        RequestRecord& record = records[i][request];
        record.phase = RequestPhase::completed;
        record.end = whole_seconds(now);
        own.served_s += now - s(record.start);
        ++own.served;
      }
    }
    own.pieces = std::move(left);
    serve(i);
    give_up(i);
    while (own.came < records[i].size() && arrival(i, own.came) == now) {
      records[i][own.came].phase = RequestPhase::waiting;
      own.waiting.push_back(own.came++);
      route(i, own.waiting.back());
    }
    serve(i);
  }

  // ---- queues of replicas ----
  bool is_routed(std::size_t i) const { return spec(i).routing != RoutingRule::shared_queue; }
  std::size_t load(std::size_t i, std::uint32_t row) const {
    std::size_t sum = 0;
    for (const Piece& piece : services[i].pieces) sum += piece.row == row ? piece.requests.size() : 0;
    for (const auto& [request, at] : services[i].holder) sum += at == row ? 1 : 0;
    return sum;
  }
  void route(std::size_t i, std::uint32_t request) {
    Service& own = services[i];
    own.holder.erase(request);
    if (!is_routed(i)) return;
    std::vector<std::uint32_t> taking;
    for (std::uint32_t row = 0; row < spec(i).most; ++row) {
      if (replica(i, row).serving == Serving::yes) taking.push_back(row);
    }
    if (taking.empty()) return;
    std::uint32_t chosen = taking.front();
    if (spec(i).routing == RoutingRule::round_robin) {
      const auto next = std::find_if(taking.begin(), taking.end(),
                                     [&](std::uint32_t row) { return own.last_row != no_index && row > own.last_row; });
      if (next != taking.end()) chosen = *next;
      own.last_row = chosen;
    } else {
      for (const std::uint32_t row : taking) {
        if (load(i, row) < load(i, chosen)) chosen = row;
      }
    }
    own.holder[request] = chosen;
  }
  void route_those_at_none(std::size_t i) {
    for (const std::uint32_t request : services[i].waiting) {
      if (!services[i].holder.contains(request)) route(i, request);
    }
  }
  // The replica takes no more.
  void route_again(std::size_t i, std::uint32_t row) {
    std::erase_if(services[i].holder, [&](const auto& entry) { return entry.second == row; });
    route_those_at_none(i);
  }
  void serve_routed(std::size_t i) {
    for (std::uint32_t row = 0; row < spec(i).most; ++row) {
      while (begin_routed(i, row)) continue;
    }
  }
  bool begin_routed(std::size_t i, std::uint32_t row) {
    Service& own = services[i];
    const auto& batches = spec(i).batches;
    Piece piece{row, now, {}};
    for (const std::uint32_t request : own.waiting) {
      if (!own.holder.contains(request) || own.holder[request] != row) continue;
      if (piece.requests.size() < std::max<std::size_t>(batches.size(), 1)) piece.requests.push_back(request);
    }
    if (piece.requests.empty() || busy(i, row) >= (batches.empty() ? spec(i).at_once : 1)) return false;
    const std::size_t size = piece.requests.size();
    const std::int64_t waited = now - arrival(i, piece.requests.front());
    if (!batches.empty() && size < batches.size() && waited < s(spec(i).batch_delay)) return false;
    piece.end += s(batches.empty() ? spec(i).requests[piece.requests.front()].work : batches[size - 1]);
    for (const std::uint32_t request : piece.requests) {
      std::erase(own.waiting, request);
      own.holder.erase(request);
      records[i][request].phase = RequestPhase::served;
      records[i][request].start = whole_seconds(now);
      records[i][request].replica = row;
    }
    own.pieces.push_back(piece);
    return true;
  }

  void give_up(std::size_t i) {
    if (spec(i).timeout == Time::max()) return;
    auto& waiting = services[i].waiting;
    for (std::size_t k = 0; k < waiting.size();) {
      if (now - arrival(i, waiting[k]) < s(spec(i).timeout)) {
        ++k;
        continue;
      }
      records[i][waiting[k]].phase = RequestPhase::timed_out;
      records[i][waiting[k]].end = whole_seconds(now);
      services[i].holder.erase(waiting[k]);
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(k));
    }
  }

  void serve(std::size_t i) {
    if (is_routed(i)) return serve_routed(i);
    Service& own = services[i];
    const auto& batches = spec(i).batches;
    while (!own.waiting.empty()) {
      const std::uint32_t at_once = batches.empty() ? spec(i).at_once : 1;
      std::uint32_t best = no_index;
      for (std::uint32_t row = 0; row < spec(i).most; ++row) {
        if (replica(i, row).serving != Serving::yes || busy(i, row) >= at_once) continue;
        if (best == no_index || busy(i, row) < busy(i, best)) best = row;
      }
      if (best == no_index) return;
      std::size_t size = 1;
      std::int64_t takes = s(spec(i).requests[own.waiting.front()].work);
      if (!batches.empty()) {
        size = std::min(own.waiting.size(), batches.size());
        if (size < batches.size() && now - arrival(i, own.waiting.front()) < s(spec(i).batch_delay)) return;
        takes = s(batches[size - 1]);
      }
      Piece piece{best, now + takes, {own.waiting.begin(), own.waiting.begin() + static_cast<std::ptrdiff_t>(size)}};
      own.waiting.erase(own.waiting.begin(), own.waiting.begin() + static_cast<std::ptrdiff_t>(size));
      for (const std::uint32_t request : piece.requests) {
        records[i][request].phase = RequestPhase::served;
        records[i][request].start = whole_seconds(now);
        records[i][request].replica = best;
      }
      own.pieces.push_back(piece);
    }
  }

  // ---- runs ----
  void leave_nodes(Entity& entity) {
    for (const std::uint32_t node : entity.on) user[node] = user[node] == -2 ? -2 : -1;
    entity.on.clear();
  }

  // Its run is over, whatever ended it.
  void end_of_replica(std::size_t i, std::uint32_t row, bool holds = false) {
    Entity& entity = replica(i, row);
    Service& own = services[i];
    if (entity.serving == Serving::yes || entity.serving == Serving::draining) {
      for (const std::uint32_t node : entity.on) own.warm[node] = now + s(spec(i).keep_warm);
      if (spec(i).keep_warm == Time{}) own.warm.clear();
    }
    leave_nodes(entity);
    entity.serving = Serving::no;
    std::vector<Piece> left;
    for (const Piece& piece : own.pieces) {
      if (piece.row != row) {
        left.push_back(piece);
        continue;
      }
      for (const std::uint32_t request : piece.requests) {
        RequestRecord& record = records[i][request];
        if (spec(i).lost == LostRequests::retry) {
          ++record.retries;
          record.phase = RequestPhase::waiting;
          own.waiting.push_back(request);
        } else {
          record.phase = RequestPhase::dropped;
          record.end = whole_seconds(now);
        }
      }
    }
    own.pieces = std::move(left);
    std::sort(own.waiting.begin(), own.waiting.end());
    if (holds) {  // others may go at this second
      std::erase_if(own.holder, [&](const auto& entry) { return entry.second == row; });
      own.held = true;
      return;
    }
    route_again(i, row);
    serve(i);
    give_up(i);
  }
  void resume(std::size_t i) {
    if (!std::exchange(services[i].held, false)) return;
    route_those_at_none(i);
    serve(i);
    give_up(i);
  }

  void ends_and_loads() {
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      Entity& job = all_jobs[j];
      if (job.phase != Phase::running || job.until != now) continue;
      leave_nodes(job);
      job.phase = Phase::done;
      job_ends[j] = now;
    }
    // Who started first serves first.
    for (std::size_t i = 0; i < services.size(); ++i) {
      std::map<std::int64_t, std::uint32_t> by_start;
      for (std::uint32_t row = 0; row < spec(i).most; ++row) by_start[replica(i, row).started * 1000 + row] = row;
      for (const auto& [start, row] : by_start) loaded(i, row);
    }
  }
  void loaded(std::size_t i, std::uint32_t row) {
    Entity& entity = replica(i, row);
    if (entity.serving != Serving::loading || entity.until != now) return;
    entity.serving = Serving::yes;
    route_those_at_none(i);
    serve(i);
  }

  void nodes_change() {
    for (const NodeChange& change : changes) {
      if (s(change.time) != now) continue;
      const std::uint32_t node = index(change.node);
      if (change.up) {
        user[node] = -1;
        continue;
      }
      const int who = std::exchange(user[node], -2);
      for (std::size_t i = 0; i < services.size(); ++i) {
        for (std::uint32_t row = 0; row < spec(i).most; ++row) {
          if (who != static_cast<int>(spec(i).first_row + row)) continue;
          replica(i, row).phase = Phase::queued;
          ++starts[i].killed;
          end_of_replica(i, row, true);
        }
      }
      if (who >= 1000) {
        Entity& job = all_jobs[static_cast<std::size_t>(who - 1000)];
        leave_nodes(job);
        job.phase = Phase::queued;
      }
      for (Service& own : services) own.warm.erase(node);
    }
    for (std::size_t i = 0; i < services.size(); ++i) resume(i);
  }

  // ---- how many replicas ----
  bool counts(const Entity& entity) const {
    return entity.phase == Phase::queued || (entity.phase == Phase::running && entity.serving != Serving::draining);
  }
  std::int32_t active(std::size_t i) {
    std::int32_t sum = 0;
    for (std::uint32_t row = 0; row < spec(i).most; ++row) sum += counts(replica(i, row)) ? 1 : 0;
    return sum;
  }

  void stop(std::size_t i, std::uint32_t row) {
    if (replica(i, row).phase == Phase::running) end_of_replica(i, row);
    replica(i, row).phase = Phase::absent;
    replica(i, row).place = -1;
  }

  void control(std::size_t i) {
    Service& own = services[i];
    for (std::uint32_t row = 0; row < spec(i).most; ++row) {
      if (replica(i, row).serving == Serving::draining && busy(i, row) == 0) stop(i, row);
    }
    const bool all_came = own.came == records[i].size() && !own.is_open;
    const std::size_t held = own.waiting.size() + in_service(i);
    if (all_came && held == 0) {
      own.over = true;
      closed[i] = now;
      for (std::uint32_t row = 0; row < spec(i).most; ++row) {
        if (replica(i, row).phase != Phase::absent) stop(i, row);
      }
      return;
    }
    const bool asked = own.autoscaler.follows_requests() || (own.wanted == 0 && !own.waiting.empty());
    if (own.ask_at == now || asked) ask(i, all_came, held);
    while (active(i) < own.wanted && more(i)) continue;
    while (active(i) > own.wanted) fewer(i);
  }

  void ask(std::size_t i, bool all_came, std::size_t held) {
    Service& own = services[i];
    const std::int32_t answer = own.autoscaler.wanted(load_of(i));
    own.wanted = std::clamp(answer, held > 0 ? 1 : 0, static_cast<std::int32_t>(spec(i).most));
    if (own.ask_at != now) return;
    const Time period = own.autoscaler.period();
    own.ask_at = all_came || period == Time::max() ? -1 : now + s(period);
  }

  ServiceLoad load_of(std::size_t i) {
    const Service& own = services[i];
    std::int32_t ready = 0;
    for (std::uint32_t row = 0; row < spec(i).most; ++row) ready += replica(i, row).serving == Serving::yes ? 1 : 0;
    return {.now = whole_seconds(now),
            .ready = ready,
            .starting = active(i) - ready,
            .in_flight = static_cast<std::int64_t>(in_service(i)),
            .queued = static_cast<std::int64_t>(own.waiting.size()),
            .arrived = own.came,
            .held_us = own.held_s * microseconds_per_second,
            .mean_service_s = own.served == 0 ? spec(i).mean_service_s
                                              : static_cast<double>(own.served_s) / static_cast<double>(own.served)};
  }

  bool more(std::size_t i) {
    for (std::uint32_t row = 0; row < spec(i).most; ++row) {
      if (replica(i, row).serving != Serving::draining) continue;
      replica(i, row).serving = Serving::yes;
      route_those_at_none(i);
      serve(i);
      return true;
    }
    for (std::uint32_t row = 0; row < spec(i).most; ++row) {
      if (replica(i, row).phase != Phase::absent) continue;
      replica(i, row).phase = Phase::queued;
      if (now > 0) replica(i, row).place = places++;  // else with the other submissions
      return true;
    }
    return false;
  }

  void fewer(std::size_t i) {
    std::uint32_t chosen = no_index;
    std::pair<int, std::uint32_t> least{9, 0};
    for (std::uint32_t row = 0; row < spec(i).most; ++row) {
      const Entity& entity = replica(i, row);
      if (!counts(entity)) continue;
      const int kind = entity.phase == Phase::queued ? 0 : entity.serving == Serving::loading ? 1 : 2;
      const std::pair<int, std::uint32_t> rank{kind, kind == 2 ? busy(i, row) : 0};
      if (rank <= least) {
        least = rank;
        chosen = row;
      }
    }
    if (least.second == 0) {
      stop(i, chosen);
    } else {
      replica(i, chosen).serving = Serving::draining;
      route_again(i, chosen);
      serve(i);
    }
  }

  // ---- queue and nodes ----
  void submit() {
    if (now == 0) {
      for (Entity& entity : replicas) {
        if (entity.phase == Phase::queued) entity.place = places++;
      }
    }
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      if (jobs[j].submit != now) continue;
      all_jobs[j].phase = Phase::queued;
      all_jobs[j].place = places++;
    }
  }

  void first_fit() {
    std::map<std::int64_t, int> queue;
    for (std::size_t r = 0; r < replicas.size(); ++r) {
      if (replicas[r].phase == Phase::queued) queue[replicas[r].place] = static_cast<int>(r);
    }
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      if (all_jobs[j].phase == Phase::queued) queue[all_jobs[j].place] = static_cast<int>(1000 + j);
    }
    for (const auto& [place, who] : queue) {
      Entity& entity =
          who >= 1000 ? all_jobs[static_cast<std::size_t>(who - 1000)] : replicas[static_cast<std::size_t>(who)];
      std::vector<std::uint32_t> free;
      for (std::uint32_t node = 0; node < nodes && free.size() < entity.tasks; ++node) {
        if (user[node] == -1) free.push_back(node);
      }
      if (free.size() < entity.tasks) continue;
      for (const std::uint32_t node : free) user[node] = who;
      entity.on = free;
      entity.phase = Phase::running;
      if (who >= 1000) {
        entity.until = now + jobs[static_cast<std::size_t>(who - 1000)].work;
      } else {
        start_replica(static_cast<std::uint32_t>(who));
      }
    }
  }

  void start_replica(std::uint32_t r) {
    std::size_t i = 0;
    while (r >= spec(i).first_row + spec(i).most) ++i;
    Entity& entity = replicas[r];
    const bool warm = std::all_of(entity.on.begin(), entity.on.end(), [&](std::uint32_t node) {
      return services[i].warm.contains(node) && services[i].warm[node] >= now;
    });
    ++(warm ? starts[i].warm : starts[i].cold);
    entity.serving = Serving::loading;
    entity.started = ++all_starts;
    entity.until = now + s(warm ? spec(i).warm_start : spec(i).cold_start);
    loaded(i, r - spec(i).first_row);
  }
};

}  // namespace gpusched::test
