"""The ground: records that add and subtract, log-space arithmetic, and rows counted shard by shard on all cores."""
