/** An MCP server of the transport before Streamable HTTP: a stream of events, and a second address for messages. */

type Message = {
  id?: number
  method: string
  params?: { protocolVersion?: string; _meta?: { progressToken?: number } }
}

export type SseServer = {
  url: string
  /** Answers calls of its tool `act`; undefined: not at all. */
  answer: (() => object) | undefined
  /** What it reports together with its answers. */
  progress: number[]
  /** Streams that were opened. */
  opened: number
  /** Ends all open streams. */
  cut(): void
  stop(): Promise<void>
}

export function startSseServer(): SseServer {
  const encoder = new TextEncoder()
  const streams = new Set<ReadableStreamDefaultController<Uint8Array>>()
  const write = (messages: object[]) => {
    const events = messages.map((one) => `event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...one })}\n\n`)
    for (const stream of streams) stream.enqueue(encoder.encode(events.join('')))
  }
  const resultOf = ({ method, params }: Message): object | undefined => {
    if (method === 'initialize') {
      const { protocolVersion } = params ?? {}
      return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'old', version: '1' } }
    }
    if (method === 'tools/list') return { tools: [{ name: 'act', inputSchema: { type: 'object' } }] }
    return server.answer?.()
  }
  const http = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      if (request.method === 'GET') {
        server.opened++
        let own: ReadableStreamDefaultController<Uint8Array>
        const body = new ReadableStream<Uint8Array>({
          start(controller) {
            own = controller
            streams.add(controller)
            controller.enqueue(encoder.encode('event: endpoint\ndata: /messages\n\n'))
          },
          cancel: () => void streams.delete(own),
        })
        return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
      }
      const message = (await request.json()) as Message
      const result = message.id === undefined ? undefined : resultOf(message)
      const { progressToken } = message.params?._meta ?? {}
      const reports = server.progress.map((progress) => ({
        method: 'notifications/progress',
        params: { progressToken, progress },
      }))
      if (result) write([...(progressToken === undefined ? [] : reports), { id: message.id, result }])
      return new Response(null, { status: 202 })
    },
  })
  const server: SseServer = {
    url: `http://127.0.0.1:${http.port}/sse`,
    answer: () => ({ content: [{ type: 'text', text: 'done' }] }),
    progress: [],
    opened: 0,
    cut() {
      for (const stream of streams) stream.close()
      streams.clear()
    },
    stop: () => http.stop(true),
  }
  return server
}
