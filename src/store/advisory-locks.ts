/** The advisory locks of PostgreSQL: arbitrary numbers that only Gatehouse uses, each for one purpose. */
export const ADVISORY_LOCKS = {
  /** The holder changes the tables themselves: it migrates, partitions, copies or restores them. */
  migration: 7_306_089_155,
  /** The holder builds large indexes. */
  indexes: 7_306_089_156,
  /** The holder makes or drops days of the request log. */
  partitions: 7_306_089_157,
  /** The holder creates the table of the semantic cache's vectors. */
  vectors: 7_306_089_158,
} as const
