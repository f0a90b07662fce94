/** Waits for the first item of a stream, so that an error can still set the status: nothing was sent to the client yet. */

export async function awaitFirst<T>(items: AsyncIterable<T>): Promise<AsyncIterable<T>> {
  const iterator = items[Symbol.asyncIterator]()
  const first = await iterator.next()
  return (async function* () {
    try {
      for (let item = first; !item.done; item = await iterator.next()) yield item.value
    } finally {
      await iterator.return?.()
    }
  })()
}
