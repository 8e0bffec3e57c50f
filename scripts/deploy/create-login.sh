#!/bin/sh
# Makes the login of the server; the image of PostgreSQL runs it once, when its database is new.
set -eu
psql --set=ON_ERROR_STOP=1 --set=password="$SATCHEL_PASSWORD" --username=postgres --dbname="$POSTGRES_DB" <<'SQL'
CREATE ROLE satchel LOGIN PASSWORD :'password';
SQL
