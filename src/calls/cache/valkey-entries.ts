/** Cached answers in Valkey, shared by all gateways on it. Their total is bounded there, by its `maxmemory`. */
import type { Valkey } from '../../store/engines/valkey.ts'
import type { CachedAnswer, CachedAnswerStore } from '../../store/requests/cache-store.ts'

/** Large answers are written in the background, where nobody waits for them. */
const WRITE_MILLISECONDS = 2_000

/** An entry: its two times, and the answer. */
const ENTRY = /^(\d{1,15}) (\d{1,15})\n/

/** Rejects with ValkeyError. An unreadable entry is none. */
export function createValkeyEntries({ command }: Pick<Valkey, 'command'>): Pick<CachedAnswerStore, 'find' | 'put'> {
  return {
    async find(key, now_ms) {
      const entry = decode(await command('GET', { keys: [`cache:${key}`] }))
      return entry && entry.expires_ms > now_ms ? entry : undefined
    },
    async put(key, { created_ms, expires_ms, answer }) {
      const args = [`${created_ms} ${expires_ms}\n${answer}`, 'PX', Math.max(1, expires_ms - created_ms)]
      await command('SET', { keys: [`cache:${key}`], args, timeout_ms: WRITE_MILLISECONDS })
    },
  }
}

function decode(value: unknown): CachedAnswer | undefined {
  if (typeof value !== 'string') return undefined
  const [head, created, expires] = ENTRY.exec(value) ?? []
  if (head === undefined) return undefined
  const answer = value.slice(head.length)
  return { created_ms: Number(created), expires_ms: Number(expires), bytes: Buffer.byteLength(answer), answer }
}
