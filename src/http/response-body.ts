/** Bodies that are not sent, and bodies that were not read. */

/**
 * The rest of a refused body is drained and discarded: a client that is disconnected while it still sends (Node's fetch,
 * Python's urllib) never reads the error. Twice the default limit of a body; a client that sends more is disconnected.
 */
const SKIPPED_BODY_BYTES = 64 * 1024 * 1024

/**
 * The response to HEAD: the headers of the whole response, its length among them, without its body. A body whose length
 * is known may be large, and is not read.
 */
export async function headOf(response: Response): Promise<Response> {
  if (response.body === null) return response
  if (response.headers.has('content-length')) {
    await response.body.cancel()
    return new Response(null, response)
  }
  const { byteLength } = await response.arrayBuffer()
  const headers = new Headers(response.headers)
  headers.set('content-length', String(byteLength))
  return new Response(null, { status: response.status, headers })
}

/** Whether so much of a refused body is unread that closing the connection is better than draining it. */
export function isLeftUnread(request: Request, { status }: Response): boolean {
  const length = request.headers.get('content-length')
  if (status === 408 || (status === 413 && length === null)) return true
  if (request.body === null || request.bodyUsed) return false
  return length === null || Number(length) > SKIPPED_BODY_BYTES
}
