/** Cached answers in memory: at most so many, and so many bytes; the least recently used one goes first. */
import type { CachedAnswer } from '../../store/requests/cache-store.ts'

type Bounds = { max_entries: number; max_bytes: number }

export function createMemoryEntries() {
  /** The least recently used first. */
  const entries = new Map<string, CachedAnswer>()
  let bytes = 0

  function remove(key: string): void {
    bytes -= entries.get(key)?.bytes ?? 0
    entries.delete(key)
  }

  return {
    find(key: string, now_ms: number): CachedAnswer | undefined {
      const entry = entries.get(key)
      if (!entry) return undefined
      entries.delete(key)
      if (entry.expires_ms > now_ms) {
        entries.set(key, entry)
        return entry
      }
      bytes -= entry.bytes
      return undefined
    },
    put(key: string, entry: CachedAnswer, { max_entries, max_bytes }: Bounds): void {
      remove(key)
      entries.set(key, entry)
      bytes += entry.bytes
      for (const oldest of entries.keys()) {
        if (entries.size <= max_entries && bytes <= max_bytes) break
        remove(oldest)
      }
    },
    /** Removes the entries whose key has this text; returns how many there were. */
    removeWith(part: string): number {
      const found = [...entries.keys()].filter((key) => key.includes(part))
      for (const key of found) remove(key)
      return found.length
    },
    size: () => ({ entries: entries.size, bytes }),
  }
}
