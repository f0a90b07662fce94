/** A stream's items in batches: whatever has come while its reader was busy is one. */

/** So much is read ahead at most; beyond it the stream waits for its reader. */
const MAX_AHEAD = 256

/** Leaving the loop cancels the stream. */
export async function* eagerly<Item>(stream: ReadableStream<Item>): AsyncGenerator<Item[]> {
  const reader = stream.getReader()
  let ahead: Item[] = []
  let end: { failure?: unknown } | undefined
  let wake = () => {}
  let resume = () => {}

  async function pump(): Promise<void> {
    try {
      for (let next = await reader.read(); !next.done; next = await reader.read()) {
        ahead.push(next.value)
        wake()
        if (ahead.length >= MAX_AHEAD)
          await new Promise<void>((resolve) => {
            resume = resolve
          })
      }
      end = {}
    } catch (failure) {
      end = { failure }
    }
    wake()
  }

  const pumping = pump()
  try {
    for (;;) {
      if (ahead.length === 0 && !end)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      const batch = ahead
      ahead = []
      resume()
      if (batch.length > 0) yield batch
      else if (end) break
    }
    if (end && 'failure' in end) throw end.failure
  } finally {
    resume()
    await reader.cancel().catch(() => {}) // it has failed already: told above
    await pumping
  }
}
