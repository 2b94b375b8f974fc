-- The tables that the gateway uses in a cluster, over those of each shard: one account is on one shard.
CREATE TABLE IF NOT EXISTS {prefix}entries{on_cluster} AS {prefix}entries_local
ENGINE = Distributed({cluster}, currentDatabase(), {prefix}entries_local, cityHash64(account_id))

ALTER TABLE {prefix}entries{on_cluster} ADD COLUMN IF NOT EXISTS units String,
ADD COLUMN IF NOT EXISTS batch_id String

CREATE TABLE IF NOT EXISTS {prefix}hours{on_cluster} AS {prefix}hours_local
ENGINE = Distributed({cluster}, currentDatabase(), {prefix}hours_local, cityHash64(account_id))

ALTER TABLE {prefix}hours{on_cluster} {later_figures}
