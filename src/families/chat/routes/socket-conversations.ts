/** The conversations of one WebSocket: of each stream the last one, in memory only, within a bound of bytes. */
import type { CachedConversation, ConversationCache } from '../../../protocols/responses/client/items.ts'

type Entry = { stream_id: string | undefined; conversation: CachedConversation; bytes: number }

export function createSocketConversations({ max_bytes }: { max_bytes(): number }) {
  /** By the id of the last response; the oldest entry first. */
  const entries = new Map<string, Entry>()

  function evict(): void {
    let bytes = 0
    for (const entry of entries.values()) bytes += entry.bytes
    for (const [id, entry] of entries) {
      if (bytes <= max_bytes()) return
      entries.delete(id)
      bytes -= entry.bytes
    }
  }

  return {
    /** What the requests of one stream see: the conversations of all streams, of which they replace their own. */
    of: (stream_id: string | undefined): ConversationCache => ({
      find: (response_id) => entries.get(response_id)?.conversation,
      add(response_id, conversation) {
        for (const [id, entry] of entries) if (entry.stream_id === stream_id) entries.delete(id)
        entries.set(response_id, { stream_id, conversation, bytes: JSON.stringify(conversation.items).length })
        evict()
      },
    }),
    /** Forgets the conversation up to this response. */
    remove(response_id: unknown): void {
      if (typeof response_id === 'string') entries.delete(response_id)
    },
  }
}
