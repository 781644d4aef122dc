#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# What libplfs.def and Containerfile run in the image, a Debian or Ubuntu: builds /opt/libplfs-*.tar.gz, installs it to
# /usr/local, and leaves nothing else. As root.

set -e
export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install -y --no-install-recommends gcc libc6-dev binutils make libjemalloc-dev
mkdir /opt/plfs-build
tar -C /opt/plfs-build --strip-components=1 -xzf "$(ls /opt/libplfs-*.tar.gz)"
make -C /opt/plfs-build -j"$(nproc)" install PREFIX=/usr/local
rm -rf /opt/plfs-build /opt/libplfs-*.tar.gz
apt-get purge -y --auto-remove gcc libc6-dev binutils make libjemalloc-dev
rm -rf /var/lib/apt/lists/*
plfs --version
