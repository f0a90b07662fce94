/** The vectors of the semantic cache in PostgreSQL, with the extension pgvector: shared by all gateways on the database. */
import { sql } from 'kysely'
import { ADVISORY_LOCKS } from '../advisory-locks.ts'
import { StoreError } from '../store.ts'
import type { Database } from '../tables.ts'
import type { CachedVectors, Neighbour } from './cache-store.ts'

/** The newest of a partition are compared. */
const MOST_COMPARED = 2_000
const ADVICE =
  'Install pgvector on the server and run "create extension vector" in the database. Until then the vectors are in the memory of each gateway.'

/** Creates the table, where it is missing. Throws StoreError with a message for the operator. */
export async function openCachedVectors(db: Database): Promise<CachedVectors> {
  try {
    await db.transaction().execute(async (write) => {
      // Gateways that start together create the table one after the other.
      await sql`select pg_advisory_xact_lock(${ADVISORY_LOCKS.vectors})`.execute(write)
      await sql`create extension if not exists vector`.execute(write)
      await sql`create table if not exists cached_vectors (
        partition text not null,
        cache_key text not null references cached_answers on delete cascade,
        dimensions integer not null,
        embedding vector not null,
        primary key (partition, cache_key))`.execute(write)
      await sql`create index if not exists cached_vectors_by_key on cached_vectors (cache_key)`.execute(write)
    })
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new StoreError(`The database cannot store vectors: ${reason}. ${ADVICE}`, cause)
  }
  return {
    async add({ partition, key, vector }) {
      await sql`insert into cached_vectors (partition, cache_key, dimensions, embedding)
        select ${partition}, cache_key, ${vector.length}::integer, ${textOf(vector)}::vector
        from cached_answers where cache_key = ${key}
        on conflict (partition, cache_key)
        do update set dimensions = excluded.dimensions, embedding = excluded.embedding`.execute(db)
    },
    async nearest(partition, { vector, threshold, now_ms }) {
      const text = textOf(vector)
      // The candidates first: vectors of different lengths cannot be compared.
      const { rows } = await sql<Neighbour>`
        with candidates as materialized (
          select cached_vectors.cache_key, cached_vectors.embedding
          from cached_vectors join cached_answers on cached_answers.cache_key = cached_vectors.cache_key
          where cached_vectors.partition = ${partition} and cached_vectors.dimensions = ${vector.length}::integer
            and cached_answers.expires_ms > ${now_ms}
          order by cached_answers.created_ms desc
          limit ${MOST_COMPARED})
        select cache_key as key, 1 - (embedding <=> ${text}::vector) as similarity
        from candidates order by embedding <=> ${text}::vector limit 1`.execute(db)
      const [found] = rows
      return found && found.similarity >= threshold ? found : undefined
    },
  }
}

const textOf = (vector: Float32Array): string => `[${vector.join(',')}]`
