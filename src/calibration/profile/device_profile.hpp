// SPDX-License-Identifier: Apache-2.0
/// DeviceProfile: everything that is known about one device, each number with its unit, its source and, where it was
/// measured, its uncertainty. `gpusched calibrate` writes one, the simulator reads durations from it and cites it.
/// The file format is device_profile.schema.json beside this header.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"

namespace gpusched {

inline constexpr std::string_view device_profile_schema = "gpusched.device_profile/1";

/// Where a number comes from, best first.
enum class Source : std::uint8_t {
  measured,     ///< timed on this device
  fitted,       ///< a parameter of a model fitted to measured times
  datasheet,    ///< the vendor's sheet, or arithmetic on it that `ref` states
  literature,   ///< a publication or published data set
  assumed,      ///< a guess; a run that uses one says so
  recorded,     ///< measured by somebody else's run and kept as a file
  unavailable,  ///< the device or its driver does not tell; the value is 0 and must not be used
};

/// The word of a source in files and reports.
std::string_view to_string(Source source);

/// One number. Unit follows from the key that holds it (unit_of_key), and the reader checks that they agree.
struct Quantity {
  double value = 0;
  std::string unit = {};
  Source source = Source::unavailable;
  std::string ref = {};  ///< sheet, paper or assumption behind it; required unless measured, fitted or unavailable
  std::optional<std::array<double, 2>> ci95 = {};  ///< 95 % interval
  std::string bound = {};  ///< "at_least" or "at_most": the samples bound the value on one side only, so that the other
                           ///< end of `ci95` says where the search ended; "": on both
  std::uint32_t n = 0;     ///< samples behind it; 0 = does not apply
};

/// The unit that a key's ending demands: "_us" -> "us", "_gbs" -> "GB/s", "_tflops" -> "TFLOP/s"...; "1" for ratios,
/// exponents and counts.
std::string_view unit_of_key(std::string_view key);

/// A Quantity whose unit is that of `key`.
Quantity quantity(std::string_view key, double value, Source source, std::string ref = {});
/// One measured from so many samples.
Quantity measured_quantity(std::string_view key, double value, std::size_t samples);

/// Time of a kernel with F operations and B bytes: t0 + ((F/P)^gamma + (B/W)^gamma + (D L)^gamma)^(1/gamma), D being
/// the kernel's depth (kernel.hpp).
struct RooflineFit {
  Quantity t0_us = {}, p_tflops = {}, w_gbs = {}, gamma = {};
  std::optional<Quantity> step_ns = {};  ///< L; without it the last term is left out
  std::uint32_t tile_side = 1;           ///< F is counted in whole tiles of so many rows and columns
  std::optional<Quantity> train_mape_ratio = {};
};

/// Time of a kernel that is bound by memory: t0 + B/W.
struct BandwidthFit {
  Quantity t0_us, w_gbs;
};

/// Time of a transfer by size: a table in between, alpha + bytes/beta outside it.
struct TransferFit {
  std::vector<std::array<double, 2>> table_bytes_us = {};  ///< rising sizes
  Quantity alpha_us = {}, beta_gbs = {};
};

/// A link between devices of one kind.
struct LinkFact {
  std::string link_class;  ///< "nvlink4", "pcie5x16"
  std::optional<Quantity> alpha_us = {};
  Quantity busbw_gbs;  ///< one direction
};

/// How much slower (>= about 1) kernel row runs beside kernel column on one device.
struct Interference {
  std::string mode;  ///< "streams", "threads", "processes" or "model"
  Source source = Source::measured;
  std::vector<std::string> kernels = {};
  std::vector<std::vector<double>> slowdown = {};  ///< kernels x kernels
};

/// P = idle + (P_k - idle) u^beta.
struct PowerProfile {
  Quantity idle_w;
  std::map<std::string, Quantity> active_w = {};
  Quantity beta;
  std::vector<std::array<double, 2>> cap_curve = {};  ///< power cap / natural limit -> throughput ratio
  std::string cap_curve_ref = {};
  std::string sensor;  ///< "energy_counter", "poll" or "none"
};

/// One acceptance rule: what was found, what is allowed.
struct Gate {
  std::string name;
  std::string status = "not_run";  ///< "pass", "fail" or "not_run"
  double value_ratio = 0;          ///< 0.03 = 3 %
  double limit_ratio = 0;
  std::uint32_t n = 0;
  std::string note = {};
};

/// A held-out size or a composite step: what was timed, and what the fits and the peaks' roofline say.
struct ValidationPoint {
  std::string id;
  double timed_us = 0, predicted_us = 0, roofline_us = 0;
};

struct Validation {
  std::vector<Gate> gates = {};
  std::vector<ValidationPoint> points = {};
  std::string verdict = "not_run";  ///< "fail" when a gate fails, "pass" when all that ran passed
};

/// The raw samples that the fits were made from.
struct RawSamples {
  std::string file;
  std::string fnv1a64;  ///< hash of the file, 16 hexadecimal digits
};

struct DeviceProfile {
  std::string profile_id = {};
  std::string kind;  ///< "gpu", "cpu", "fpga" or "npu"
  std::string vendor;
  std::string model;                                    ///< matched against Cluster::gpu_types
  std::string backend;                                  ///< "cuda", "cpu", "analytic" or "datasheet"
  std::string created_utc;                              ///< ISO 8601
  std::map<std::string, std::string> tool = {};         ///< version, git, compiler
  std::map<std::string, std::string> environment = {};  ///< driver, clocks as found, ECC, MIG, throttle reasons...
  std::map<std::string, Quantity> resources = {};       ///< memory_bytes, sm_count, clock_mhz...
  std::map<std::string, Quantity> peaks = {};           ///< fp32_tflops, bf16_tflops, memory_gbs...
  std::map<std::string, RooflineFit> fits = {};
  std::map<std::string, BandwidthFit> ops = {};
  std::map<std::string, TransferFit> transfers = {};
  std::vector<LinkFact> links = {};
  std::map<std::string, Quantity> cold_start = {};
  std::optional<Interference> interference = {};          ///< within one process
  std::optional<Interference> process_interference = {};  ///< between processes, as jobs are
  std::optional<PowerProfile> power = {};
  Validation validation = {};
  std::optional<RawSamples> raw = {};
};

/// Parses and checks a profile. The error names the JSON path; `file` is only for the message.
Result<DeviceProfile> parse_device_profile(std::string_view text, const std::string& file = {});
Result<DeviceProfile> read_device_profile(const std::string& path);

/// The file's text, indented, keys in a fixed order; same profile, same bytes. Precondition: the profile is valid
/// (write_device_profile checks).
std::string to_json(const DeviceProfile& profile);

/// Checks the profile as a reader would, then replaces `path` in one step. On any error the file that was there stays.
Result<void> write_device_profile(const DeviceProfile& profile, const std::string& path);

/// Names of the profiles that come with the program (datasheet values): "A100", "V100"...
std::vector<std::string> shipped_profile_names();
/// One of them, by name without regard to case; the error names the nearest.
Result<DeviceProfile> shipped_profile(std::string_view name);
/// The one whose name the model begins with, the longest such ("A100-SXM4-80GB": A100, "V100M32": V100); nothing when
/// there is none.
std::optional<DeviceProfile> shipped_profile_of_model(std::string_view model);
/// `name_or_path` is read as a file when such a file exists or it ends in ".json", else as a shipped name.
Result<DeviceProfile> find_device_profile(const std::string& name_or_path);

/// All quantities by path ("/fits/gemm_bf16/t0_us"), in file order.
std::vector<std::pair<std::string, Quantity>> all_quantities(const DeviceProfile& profile);

}  // namespace gpusched
