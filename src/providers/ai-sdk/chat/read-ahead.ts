/** Reads a stream in batches: what arrives while the consumer is busy becomes one batch. */

/** How many items are read ahead at most; then the stream waits for its consumer. */
const MAX_AHEAD = 256

/** Leaving the loop cancels the stream. */
export async function* readAhead<Item>(stream: ReadableStream<Item>): AsyncGenerator<Item[]> {
  const reader = stream.getReader()
  let ahead: Item[] = []
  let end: { failure?: unknown } | undefined
  let notifyConsumer = () => {}
  let resumePump = () => {}

  async function pump(): Promise<void> {
    try {
      for (let next = await reader.read(); !next.done; next = await reader.read()) {
        ahead.push(next.value)
        notifyConsumer()
        if (ahead.length >= MAX_AHEAD)
          await new Promise<void>((resolve) => {
            resumePump = resolve
          })
      }
      end = {}
    } catch (failure) {
      end = { failure }
    }
    notifyConsumer()
  }

  const pumping = pump()
  try {
    for (;;) {
      if (ahead.length === 0 && !end)
        await new Promise<void>((resolve) => {
          notifyConsumer = resolve
        })
      const batch = ahead
      ahead = []
      resumePump()
      if (batch.length > 0) yield batch
      else if (end) break
    }
    if (end && 'failure' in end) throw end.failure
  } finally {
    resumePump()
    await reader.cancel().catch(() => {}) // it has failed already: thrown above
    await pumping
  }
}
