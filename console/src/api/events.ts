/** Reads a stream of server-sent events, and connects again where it ended, after the last event that was read. */
import { ApiError, send } from './client.ts'

export type ServerEvent = { id: string | undefined; event: string; data: string }

type EventOptions = {
  signal: AbortSignal
  onEvent(event: ServerEvent): void
  /** `connected` is false while a connection is tried again. */
  onState?(state: { connected: boolean }): void
}

const RETRY_MILLISECONDS = 2_000

/** Ends when the signal is aborted. Throws ApiError where the gateway refuses the stream. */
export async function followEvents(path: string, { signal, onEvent, onState }: EventOptions): Promise<void> {
  let last_id: string | undefined
  while (!signal.aborted) {
    try {
      const headers = { accept: 'text/event-stream', ...(last_id !== undefined && { 'last-event-id': last_id }) }
      const response = await send(`GET ${path}`, { headers, signal })
      onState?.({ connected: true })
      for await (const event of eventsOf(response)) {
        if (event.id !== undefined) last_id = event.id
        onEvent(event)
      }
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof ApiError && error.status < 500 && error.status !== 429) throw error
    }
    if (signal.aborted) return
    onState?.({ connected: false })
    await new Promise((resolve) => setTimeout(resolve, RETRY_MILLISECONDS))
  }
}

/** The events of a response, such as of a streamed call. */
export async function* eventsOf(response: Response): AsyncGenerator<ServerEvent> {
  if (!response.body) return
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    rest += value
    const blocks = rest.split(/\r?\n\r?\n/)
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const event = eventOf(block)
      if (event) yield event
    }
  }
}

function eventOf(block: string): ServerEvent | undefined {
  let id: string | undefined
  let event = 'message'
  const data: string[] = []
  for (const line of block.split(/\r?\n/)) {
    const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? []
    if (name === 'id') id = value
    else if (name === 'event') event = value
    else if (name === 'data') data.push(value)
  }
  return data.length === 0 ? undefined : { id, event, data: data.join('\n') }
}
