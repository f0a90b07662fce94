/** A WebSocket client of a test: its messages in order, and how the connection was closed. */

export type ServerEvent = { type: string; stream_id?: string } & Record<string, unknown>

export type SocketClient = {
  send(message: unknown): void
  /** Sends bytes as they are. */
  sendRaw(data: string | Uint8Array): void
  /** Every message received so far. */
  events: ServerEvent[]
  /** Resolves with the first message, from this index on, that holds. */
  until(holds: (event: ServerEvent) => boolean, from?: number): Promise<ServerEvent>
  /** Sends a `response.create`; resolves with its last event. */
  create(body: Record<string, unknown>): Promise<ServerEvent>
  closed: Promise<{ code: number; reason: string }>
  close(): void
}

const LAST = ['response.completed', 'response.incomplete', 'response.failed']
/** An error before a stream has a status; one within a stream is followed by `response.failed`. */
export const isLast = ({ type, status }: ServerEvent): boolean =>
  LAST.includes(type) || (type === 'error' && status !== undefined)

/** Connects to `http://.../v1` of a gateway. Rejects when the connection is refused. */
export async function connectSocket(
  base_url: string,
  { token, headers = {} }: { token: string; headers?: Record<string, string> },
): Promise<SocketClient> {
  const socket = new WebSocket(`${base_url.replace('http', 'ws')}/responses`, {
    headers: { authorization: `Bearer ${token}`, ...headers },
  } as unknown as string[])
  const events: ServerEvent[] = []
  let watchers: (() => void)[] = []
  const closed = Promise.withResolvers<{ code: number; reason: string }>()
  const opened = Promise.withResolvers<void>()
  socket.onopen = () => opened.resolve()
  socket.onmessage = ({ data }) => {
    events.push(JSON.parse(String(data)))
    const notified = watchers
    watchers = []
    for (const notify of notified) notify()
  }
  socket.onclose = ({ code, reason }) => {
    opened.reject(new Error(`closed: ${code}`))
    closed.resolve({ code, reason })
  }
  await opened.promise
  const until: SocketClient['until'] = async (holds, from = 0) => {
    for (;;) {
      const found = events.slice(from).find(holds)
      if (found) return found
      await new Promise<void>((resolve) => watchers.push(resolve))
    }
  }
  return {
    events,
    until,
    send: (message) => socket.send(JSON.stringify(message)),
    sendRaw: (data) => socket.send(data as string),
    create(body) {
      const from = events.length
      socket.send(JSON.stringify({ type: 'response.create', ...body }))
      return until((event) => isLast(event) && event.stream_id === body.stream_id, from)
    },
    closed: closed.promise,
    close: () => socket.close(),
  }
}
