/**
 * The least that a gateway on Bun can do: parse the request, send it, parse the answer, return it. No token, no check, no
 * limit, no record.
 */
const { PORT, VENDOR_PORT, CASES_PORT = VENDOR_PORT, VENDOR_KEY = '' } = process.env
const urlOf = (port: string | undefined) => `http://127.0.0.1:${port}/v1/chat/completions`
const vendor = urlOf(VENDOR_PORT)
/** The vendor of the cases of streams. */
const cases = urlOf(CASES_PORT)
const headers = { 'content-type': 'application/json', authorization: `Bearer ${VENDOR_KEY}` }

async function send(url: string, body: string, isStream: boolean): Promise<Response> {
  const response = await fetch(url, { method: 'POST', headers, body })
  const { status } = response
  if (isStream) return new Response(response.body, { status, headers: { 'content-type': 'text/event-stream' } })
  return Response.json(await response.json(), { status })
}

Bun.serve({
  hostname: '127.0.0.1',
  port: Number(PORT),
  async fetch(request) {
    const body = (await request.json()) as { stream?: boolean; model?: string }
    return send(body.model === 'conformance' ? cases : vendor, JSON.stringify(body), body.stream === true)
  },
})
