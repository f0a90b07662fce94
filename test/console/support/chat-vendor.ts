/** A vendor of chat on a port, whose streams say what a test wants. */
export type ChatVendor = {
  base_url: string
  /** The bodies that it was sent, the newest last. */
  bodies: Record<string, unknown>[]
  close(): void
}

/** `delta` makes the one delta of the answer from the last message; `{ error }`: the call is refused with that text. */
export function openChatVendor(delta: (question: string) => object): ChatVendor {
  const bodies: Record<string, unknown>[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const body = (await request.json()) as { messages: { content: unknown }[] }
      bodies.push(body)
      const given = delta(String(body.messages.at(-1)?.content))
      if ('error' in given)
        return Response.json({ error: { message: given.error, type: 'invalid_request_error' } }, { status: 400 })
      const chunk = (part: object, finish_reason: string | null) =>
        `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: part, finish_reason }] })}\n\n`
      const text = `${chunk(given, null)}${chunk({}, 'stop')}data: [DONE]\n\n`
      return new Response(text, { headers: { 'content-type': 'text/event-stream' } })
    },
  })
  return { base_url: `http://127.0.0.1:${server.port}/v1`, bodies, close: () => void server.stop(true) }
}
