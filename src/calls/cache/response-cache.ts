/** The response cache: answers by the key of their request, in memory, in the database or in Valkey. */
import type { CacheConfig } from '../../config/schema/cache-schema.ts'
import type { Clock } from '../../kit/clock.ts'
import type { Log } from '../../kit/log.ts'
import type { AuditDraft } from '../../spec/audit.ts'
import type { Valkey } from '../../store/engines/valkey.ts'
import type { CachedAnswer, CachedAnswerStore, CachedVectors } from '../../store/requests/cache-store.ts'
import { createFlights, type Flight } from './flights.ts'
import { createMemoryEntries } from './memory-entries.ts'
import { createPurges, partOf, purgeStore } from './purges.ts'
import { createValkeyEntries } from './valkey-entries.ts'
import { createVectors, normalized } from './vectors.ts'

/** A cached answer: JSON text, and its age. `similarity`: where it was given to a request that is only similar. */
export type Hit = { answer: string; age_seconds: number; similarity?: number }

/** The request calls the provider. One of the two must be called; only the first is heeded by requests that wait. */
export type Miss = {
  /** Caches the answer, JSON text, and gives it to the equal requests that wait for it. */
  put(answer: string): void
  /** There is no answer to cache. `left`: because the client did not wait for it. */
  drop(reason: 'failed' | 'left'): void
}

export type Lookup = {
  /** Its entries are purged together. */
  model: string
  /** So are those of a project; absent: others may share the answer, or the caller has none. */
  project?: string | undefined
  key: string
  ttl_seconds: number
  max_entry_bytes: number
  /** Whether a cached answer is replaced and not used. */
  is_refresh: boolean
  /** By the steady clock: the request waits no longer for an equal one. */
  deadline: number
  signal: AbortSignal
  /** Present where a similar request may get the answer. */
  semantic?: SemanticLookup | undefined
}

export type SemanticLookup = {
  /** Requests that differ only in their text share it. */
  partition: string
  /** Cosine. */
  threshold: number
  /** The numbers for the text; undefined where there are none, or not in time. Never rejects. */
  embed(): Promise<readonly number[] | undefined>
}

export type ResponseCache = {
  /** Rejects with the reason of the signal while it waits for an equal request. */
  find(lookup: Lookup): Promise<Hit | Miss>
  /** Deletes expired answers of the database. */
  deleteExpired(): Promise<void>
  /**
   * Removes the answers of one model, of one project or of all, also those that are just being made. Takes effect in this process before
   * it resolves, and in every other within a second. `audit`: the row that is appended with it.
   */
  purge(name: string | undefined, audit?: AuditDraft): Promise<Purged>
  /** Of the memory of this process or of the database; Valkey does not say. */
  size(): Promise<CacheSize>
  /** Resolves when it is known what was purged. */
  start(): Promise<void>
  /** Resolves once what was cached is in the database or in Valkey. */
  close(): Promise<void>
}

/** A vector of a semantic cache. */
type Placed = { partition: string; vector: Float32Array }

/** What requests get that wait for an equal one. */
type SharedAnswer = CachedAnswer & Pick<Hit, 'similarity'>

/** `entries`: how many were deleted of the database, or of the memory of this process; undefined: of Valkey, not known. */
type Purged = { entries: number | undefined }

type CacheSize = { storage: Required<CacheConfig>['storage']; entries?: number; bytes?: number }

type CacheParts = {
  store: CachedAnswerStore
  /** Absent: nothing is cached where the setting says Valkey. */
  valkey?: Valkey | undefined
  /** For responses in the database. Absent: the vectors of semantic caches are in memory. */
  sharedVectors?: CachedVectors | undefined
  settings(): Required<CacheConfig>
  clock: Clock
  log: Log
}

/** Writes that may wait at once: while the database or Valkey is slow or down, answers are not cached. */
const MOST_WRITES = 500
/** Vectors whose response is gone, before the request counts as a miss. */
const MOST_NEIGHBOURS = 3
const DELETE_AT_ONCE = 500
const DELETE_ROUNDS = 200

export function createResponseCache({ store, valkey, sharedVectors, settings, clock, log }: CacheParts): ResponseCache {
  const memory = createMemoryEntries()
  const flights = createFlights<SharedAnswer>({ clock })
  const vectors = createVectors()
  const inValkey = valkey && createValkeyEntries(valkey)
  const [reading, writing] = [failureLog(log, 'response cache not read'), failureLog(log, 'response cache not written')]
  const [comparing, adding] = [failureLog(log, 'similar responses not read'), failureLog(log, 'vector not written')]
  const purges = createPurges({
    store,
    onPurge(name) {
      purged += memory.removeWith(partOf(name))
      vectors.removeWith(partOf(name))
    },
    clock,
    log,
  })
  /** Entries of the memory that were purged. */
  let purged = 0
  /** Answers that are being written, which are found before they are in the database or in Valkey. */
  const writes = new Map<string, { entry: CachedAnswer; done: Promise<void> }>()

  const hitOf = ({ answer, created_ms, similarity }: SharedAnswer): Hit => ({
    answer,
    age_seconds: Math.max(0, Math.floor((clock.now() - created_ms) / 1000)),
    ...(similarity === undefined ? {} : { similarity }),
  })

  /** Undefined while it cannot be used: Valkey logs itself that it is down. */
  function sharedStore(): Pick<CachedAnswerStore, 'find' | 'put'> | undefined {
    if (settings().storage === 'database') return store
    return valkey?.isAvailable() ? inValkey : undefined
  }

  /** A database that does not answer is no reason to refuse a request. */
  async function read(key: string): Promise<CachedAnswer | undefined> {
    if (settings().storage === 'memory') return memory.find(key, clock.now())
    const written = writes.get(key)?.entry
    if (written) return written.expires_ms > clock.now() ? written : undefined
    try {
      const found = await sharedStore()?.find(key, clock.now())
      reading.succeeded()
      return found
    } catch (error) {
      reading.failed(error)
      return undefined
    }
  }

  const vectorsInDatabase = () => (settings().storage === 'database' ? sharedVectors : undefined)

  function write(key: string, entry: CachedAnswer, placed: Placed | undefined): void {
    const { storage, ...bounds } = settings()
    if (storage === 'memory') memory.put(key, entry, bounds)
    else if (writes.size < MOST_WRITES) {
      const put = sharedStore()?.put(key, entry, bounds)
      const done = put
        ?.then(() => {
          writing.succeeded()
          // The vector refers to the answer.
          return (
            placed &&
            vectorsInDatabase()
              ?.add({ ...placed, key })
              .then(adding.succeeded, adding.failed)
          )
        }, writing.failed)
        .finally(() => {
          if (writes.get(key)?.entry === entry) writes.delete(key)
        })
      if (done) writes.set(key, { entry, done })
    }
    if (placed && !vectorsInDatabase()) vectors.add({ ...placed, key, expires_ms: entry.expires_ms }, bounds)
  }

  /** With the model and the project, and their purges, in the names of its entries. */
  function named(lookup: Lookup): Lookup {
    const { key, semantic, model, project } = lookup
    const names = project === undefined ? [model] : [model, project]
    const prefix = `${names.map((name) => partOf(name) + purges.generationOf(name)).join('')}|`
    return {
      ...lookup,
      key: prefix + key,
      semantic: semantic && { ...semantic, partition: prefix + semantic.partition, embed: () => semantic.embed() },
    }
  }

  function missOf(lookup: Lookup): Miss {
    // A request that replaces an answer while an equal one is open has no flight, and nobody waits for it.
    return missIn(lookup, { flight: flights.begin(lookup.key) })
  }

  function missIn(
    { key, ttl_seconds, max_entry_bytes, semantic }: Lookup,
    { flight, vector }: { flight: Flight<SharedAnswer> | undefined; vector?: Float32Array | undefined },
  ): Miss {
    return {
      put(answer) {
        const bytes = Buffer.byteLength(answer)
        if (bytes > max_entry_bytes) {
          flight?.end('failed')
          return
        }
        const created_ms = clock.now()
        const entry = { created_ms, expires_ms: created_ms + Math.ceil(ttl_seconds * 1000), bytes, answer }
        write(key, entry, semantic && vector && { partition: semantic.partition, vector })
        flight?.end({ answer: entry })
      },
      drop: (reason) => flight?.end(reason),
    }
  }

  /** After an exact miss: the answer to a similar request, which requests that wait for this one get too. */
  async function findSimilar(lookup: Lookup, semantic: SemanticLookup): Promise<Hit | Miss> {
    const flight = flights.begin(lookup.key)
    const vector = normalized((await semantic.embed()) ?? [])
    const found = vector && (await nearestTo(vector, semantic))
    if (lookup.signal.aborted) {
      flight?.end('left')
      throw lookup.signal.reason
    }
    if (!found) return missIn(lookup, { flight, vector })
    flight?.end({ answer: found })
    return hitOf(found)
  }

  async function nearestTo(
    vector: Float32Array,
    { partition, threshold }: SemanticLookup,
  ): Promise<SharedAnswer | undefined> {
    const shared = vectorsInDatabase()
    for (let tries = 0; tries < MOST_NEIGHBOURS; tries++) {
      const search = { vector, threshold, now_ms: clock.now() }
      const near = shared
        ? await shared.nearest(partition, search).then(comparing.passed, comparing.failed)
        : vectors.nearest(partition, search)
      if (!near) return undefined
      const entry = await read(near.key)
      if (entry) return { ...entry, similarity: near.similarity }
      vectors.remove(partition, near.key)
    }
    return undefined
  }

  return {
    async find(requested) {
      const lookup = named(requested)
      const { key, is_refresh } = lookup
      if (is_refresh) return missOf(lookup)
      for (;;) {
        let joined = flights.join(lookup)
        if (!joined) {
          const found = await read(key)
          if (found) return hitOf(found)
          joined = flights.join(lookup) // an equal request may have begun meanwhile
          if (!joined) return lookup.semantic ? findSimilar(lookup, lookup.semantic) : missOf(lookup)
        }
        const ending = await joined
        if (ending === 'failed') return missOf(lookup)
        // Of the requests that waited for a client that has left, one calls the provider and the others wait again.
        if (ending !== 'left') return hitOf(ending.answer)
      }
    },
    async deleteExpired() {
      for (let round = 0; round < DELETE_ROUNDS; round++) {
        if ((await store.deleteExpired(clock.now(), DELETE_AT_ONCE)) < DELETE_AT_ONCE) return
      }
    },
    async purge(name, audit) {
      const [before, deleted] = [purged, await purgeStore(store, name, audit)]
      await purges.read()
      const { storage } = settings()
      if (storage === 'valkey') return { entries: undefined }
      return { entries: storage === 'memory' ? purged - before : deleted }
    },
    async size() {
      const { storage } = settings()
      if (storage === 'valkey') return { storage }
      return { storage, ...(storage === 'memory' ? memory.size() : await store.size()) }
    },
    start: purges.start,
    async close() {
      await purges.close()
      await Promise.all([...writes.values()].map(({ done }) => done))
    },
  }
}

/** Logs the first failure of an outage. */
function failureLog(log: Log, event: string) {
  let isReported = false
  return {
    succeeded() {
      isReported = false
    },
    passed<Result>(result: Result): Result {
      isReported = false
      return result
    },
    failed(error: unknown): undefined {
      if (!isReported) log.error(event, {}, error)
      isReported = true
    },
  }
}
