# SPDX-License-Identifier: Apache-2.0
# An image of the program, made from a clone by way of its Debian package:
#   docker build -t gpusched .
#   docker run --rm -v "$PWD:/work" --user "$(id -u):$(id -g)" gpusched replay jobs.csv --cluster 8x8 --policy fifo,las
FROM debian:bookworm-slim AS build
WORKDIR /source
COPY scripts/packages_build.txt scripts/
RUN apt-get update \
 && apt-get install -y --no-install-recommends git dpkg-dev file $(grep -v '^#' scripts/packages_build.txt) \
 && rm -rf /var/lib/apt/lists/*
COPY . .
RUN cmake --workflow --preset deb

FROM debian:bookworm-slim
COPY --from=build /source/build/deb/gpusched_*.deb /tmp/
RUN apt-get update \
 && apt-get install -y --no-install-recommends /tmp/gpusched_*.deb coinor-libclp1 \
 && rm -rf /var/lib/apt/lists/* /tmp/gpusched_*.deb \
 && useradd --create-home gpusched \
 && mkdir /work \
 && chown gpusched: /work
USER gpusched
WORKDIR /work
ENTRYPOINT ["gpusched"]
CMD ["--help"]
