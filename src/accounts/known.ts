/** The token cache, invalidated by polling the store's revision. */
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/log.ts'
import type { Revision } from '../kit/revision.ts'
import { isSameText, sha256 } from '../kit/secret.ts'
import { GatewayError } from '../spec/error.ts'
import type { Caller } from '../spec/token.ts'
import type { ProjectStore, StoredProject, TokenStore } from '../store/tokens/account-store.ts'
import { type Grant, grantOf, RecentSecrets } from './grant.ts'

export type KnownTokens = {
  /** The secrets that were presented lately. Whatever invalidates the cache forgets them. */
  recent: Pick<RecentSecrets, 'get'>
  /** The token with this secret, if it is cached and valid. Remembers the secret. */
  recallSecret(secret: string): Grant | undefined
  /** The token with this hash, if it is cached and valid. */
  recall(hash: string): Grant | undefined
  /** The token with this hash, from the store if it is not cached; a disabled one is not found. */
  find(hash: string): Promise<Grant | undefined>
  /** Invalidates the cache: each entry must be looked up again. */
  doubt(): void
  /** Increases with every change: of what is read now, `as_of` of the caller. */
  revision(): number
  /** The hash by which this caller was found; undefined for a caller that no token names. */
  hashOf(caller: Caller): string | undefined
  /** Starts polling for changes by other processes. Resolves when the present revision is known. */
  start(): Promise<void>
  close(): Promise<void>
}

/** A change takes effect everywhere within a second: half to notice it, half to look it up. */
const WATCH_MILLISECONDS = 500
/** How long an unknown hash is cached; a token created meanwhile is accepted after at most this time. */
const UNKNOWN_MILLISECONDS = 500
/** The `retry-after` of a request whose key cannot be looked up. */
const RETRY_SECONDS = 5
/** Each costs about 1 KB. */
const MAX_TOKENS = 50_000
const MAX_UNKNOWN = 10_000
const MAX_PROJECTS = 10_000
/** Concurrent look-ups: a flood of bad tokens must not queue without bound. */
export const MAX_LOOK_UPS = 1_000

export type KnownTokensParts = {
  store: Pick<TokenStore, 'findByHash' | 'revision'>
  projects: Pick<ProjectStore, 'find'>
  clock: Clock
  log: Log
  /** Increased with each change. */
  revision?: Revision | undefined
  /** Called twice a second, after each look for changes in the store, and after each change by this process: tokens may have become invalid. */
  onLook?(): void
}

export function createKnownTokens({
  store,
  projects,
  clock,
  log,
  revision,
  onLook = () => {},
}: KnownTokensParts): KnownTokens {
  /** Entries of an older generation are only used when the store cannot be reached. */
  let generation = 0
  const known = new Map<string, { grant: Grant; generation: number }>()
  const hashes = new WeakMap<Caller, string>()
  /** Hash -> when no token was found for it. */
  const unknown = new Map<string, number>()
  let lookups = new Map<string, Promise<Grant | undefined>>()
  /** Of this generation: its tokens share what was read. */
  let owners = new Map<string, Promise<StoredProject | undefined>>()
  let reachable = true
  const recent = new RecentSecrets(clock)

  function doubt(): void {
    generation++
    if (revision) revision.current++
    recent.forget()
    unknown.clear()
    lookups = new Map() // a look-up that began before the change must not answer a request that came after it
    owners = new Map()
  }

  function reached(): void {
    if (!reachable) log.info('the store is reachable again')
    reachable = true
  }

  function missed(cause: unknown): void {
    if (reachable) log.error('the store is unreachable; cached tokens stay valid', {}, cause)
    reachable = false
  }

  function ownerOf(project_id: string): Promise<StoredProject | undefined> {
    const same = owners.get(project_id)
    if (same) return same
    const mine = owners
    const owner = projects.find(project_id)
    remember(mine, { hash: project_id, value: owner, most: MAX_PROJECTS })
    owner.catch(() => mine.delete(project_id))
    return owner
  }

  /** Undefined where no token that is in force has this hash. */
  async function read(hash: string): Promise<Grant | undefined> {
    const as_of = generation
    const token = await store.findByHash(hash)
    // Compared once, before the token is cached under this hash.
    const isFound = token && (isSameText(token.hash, hash) || isSameText(token.previous_hash ?? '', hash))
    if (!isFound || token.disabled) return undefined
    const { project_id } = token
    const project = project_id === null ? undefined : await ownerOf(project_id)
    return grantOf({ token, project, hash, as_of })
  }

  async function lookUp(hash: string): Promise<Grant | undefined> {
    const since = generation
    let grant: Grant | undefined
    try {
      grant = await read(hash)
    } catch (cause) {
      missed(cause)
      const last = known.get(hash)
      if (last) return last.grant
      throw new GatewayError('storage_unavailable', 'API keys cannot be looked up at the moment; try again.', {
        retry_after: RETRY_SECONDS,
        cause,
      })
    }
    reached()
    if (!grant) {
      known.delete(hash)
      if (since === generation) remember(unknown, { hash, value: clock.steady(), most: MAX_UNKNOWN })
      return undefined
    }
    hashes.set(grant.caller, hash)
    remember(known, { hash, value: { grant, generation: since }, most: MAX_TOKENS })
    return grant
  }

  function ask(hash: string): Promise<Grant | undefined> {
    const same = lookups.get(hash)
    if (same) return same
    const mine = lookups
    if (mine.size >= MAX_LOOK_UPS) {
      throw new GatewayError('rate_limit_exceeded', 'Too many API keys to look up at once; try again.', {
        retry_after: 1,
      })
    }
    const answer = lookUp(hash).finally(() => mine.delete(hash))
    mine.set(hash, answer)
    return answer
  }

  function looked(): void {
    recent.expire()
    onLook()
  }

  const watch = createWatch({ store, clock, changed: doubt, reached, missed, looked })

  function recall(hash: string): Grant | undefined {
    const found = known.get(hash)
    return found?.generation === generation ? found.grant : undefined
  }

  return {
    recent,
    recallSecret(secret) {
      const grant = recall(sha256(secret))
      if (grant) recent.add(secret, grant)
      return grant
    },
    recall,
    async find(hash) {
      const at = unknown.get(hash)
      if (at !== undefined && clock.steady() - at < UNKNOWN_MILLISECONDS) return undefined
      return ask(hash)
    },
    doubt() {
      doubt()
      onLook()
    },
    revision: () => generation,
    hashOf: (caller) => hashes.get(caller),
    ...watch,
  }
}

/** Evicts the oldest entry when full: maps keep insertion order. */
function remember<Value>(map: Map<string, Value>, entry: { hash: string; value: Value; most: number }): void {
  map.delete(entry.hash)
  map.set(entry.hash, entry.value)
  const [oldest] = map.keys()
  if (oldest !== undefined && map.size > entry.most) map.delete(oldest)
}

type WatchParts = Pick<KnownTokensParts, 'clock'> & {
  store: Pick<TokenStore, 'revision'>
  changed(): void
  reached(): void
  missed(cause: unknown): void
  looked(): void
}

/** Polls the store's revision: one cheap read each time. */
function createWatch({
  store,
  clock,
  changed,
  reached,
  missed,
  looked,
}: WatchParts): Pick<KnownTokens, 'start' | 'close'> {
  let revision: number | undefined
  let running = false
  let cancel = () => {}
  let looking: Promise<void> | undefined

  async function look(): Promise<void> {
    try {
      const now = await store.revision()
      reached()
      if (now !== revision) changed()
      revision = now
    } catch (cause) {
      missed(cause)
    }
    looked()
    if (running) {
      cancel = clock.after(WATCH_MILLISECONDS, () => {
        looking = look()
      })
    }
  }

  return {
    async start() {
      if (!running) {
        running = true
        looking = look()
      }
      await looking
    },
    async close() {
      running = false
      cancel()
      await looking
    },
  }
}
