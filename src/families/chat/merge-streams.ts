/** Merges streams: each part is passed on when it arrives; a slow reader stops all sources. */

/** The first failure ends the stream and aborts the other sources through `control`, as does a reader that leaves. */
export async function* mergeStreams<T>(
  sources: readonly AsyncGenerator<T>[],
  control: AbortController,
): AsyncGenerator<T> {
  const ready: { source: AsyncGenerator<T>; result: IteratorResult<T> }[] = []
  let failure: { thrown: unknown } | undefined
  let arrival = Promise.withResolvers<void>()
  let open = sources.length

  /** Each source has at most one part waiting. */
  function pull(source: AsyncGenerator<T>): void {
    source
      .next()
      .then(
        (result) => ready.push({ source, result }),
        (thrown) => {
          failure ??= { thrown }
        },
      )
      .finally(() => arrival.resolve())
  }

  for (const source of sources) pull(source)
  try {
    while (open > 0) {
      const next = ready.shift()
      if (next?.result.done) open--
      else if (next) {
        yield next.result.value
        pull(next.source)
      } else if (failure) throw failure.thrown
      else {
        await arrival.promise
        arrival = Promise.withResolvers<void>()
      }
    }
  } finally {
    if (open > 0) control.abort(failure?.thrown)
    for (const source of sources) source.return(undefined).catch(() => {}) // its failure is the abort
  }
}
