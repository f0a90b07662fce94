/** Arbitrary numbers that only Gatehouse uses, of the advisory locks of PostgreSQL. */

/** The holder changes the tables themselves: it migrates, partitions, copies or restores them. */
export const MIGRATION_LOCK = 7_306_089_155
/** The holder builds large indexes. */
export const INDEX_LOCK = 7_306_089_156
/** The holder makes or drops days of the request log. */
export const PARTITION_LOCK = 7_306_089_157
