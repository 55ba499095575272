# The libraries that gpusched::sim needs.
find_package(nlohmann_json 3.11 REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(LibArchive 3.6 REQUIRED)
find_package(OpenSSL 3.0 REQUIRED COMPONENTS Crypto)
find_package(SQLite3 3.35 REQUIRED)
find_package(ZLIB 1.2 REQUIRED)
find_package(Threads REQUIRED)
