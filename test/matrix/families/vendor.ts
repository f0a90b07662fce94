/** A provider of a family on loopback. It checks its paths and its key, and fails on request. */
import { KEY, type Started } from './family.ts'

/** A received request: the path, and its parsed JSON or its form. */
export type IncomingRequest = {
  path: string
  body: Record<string, unknown>
  form: FormData | undefined
  origin: string
}

export type Wire = {
  /** The header of the key, and the prefix of its value. */
  auth: { header: string; prefix: string }
  /** Undefined: the path does not exist. A string is the reason of a refusal. */
  answer(incoming: IncomingRequest): Response | object | string | undefined
  failure(status: number, message: string): object
  /** Files below `/files/`, without a key. */
  file?(path: string): Response
}

export const BEARER = { header: 'authorization', prefix: 'Bearer ' }

export function startWire(wire: Wire): Started {
  const refuse = (status: number, message: string) => Response.json(wire.failure(status, message), { status })
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    development: false,
    async fetch(request) {
      const { pathname: path, origin } = new URL(request.url)
      if (wire.file && path.startsWith('/files/')) return wire.file(path)
      const { header, prefix } = wire.auth
      if (request.headers.get(header) !== `${prefix}${KEY}`) return refuse(401, 'the key is not known')
      const type = request.headers.get('content-type') ?? ''
      const isForm = type.startsWith('multipart/form-data')
      const form = isForm ? await request.formData() : undefined
      const body = request.method === 'POST' && !isForm ? ((await request.json()) as IncomingRequest['body']) : {}
      const status = statusIn(form ? String(form.get('prompt')) : JSON.stringify(body))
      if (status !== undefined) return refuse(status, `rejected with ${status}, as requested`)
      const answer = wire.answer({ path, body, form, origin })
      if (answer === undefined) return refuse(404, `there is no ${path}`)
      if (typeof answer === 'string') return refuse(400, answer)
      return answer instanceof Response ? answer : Response.json(answer)
    },
  })
  return { origin: `http://127.0.0.1:${server.port}`, stop: () => server.stop(true) }
}

/** `@sandbox status=429` anywhere in the request, as the built-in sandbox also supports it. */
const statusIn = (text: string): number | undefined => {
  const [, status] = /@sandbox status=(\d+)/.exec(text) ?? []
  return status === undefined ? undefined : Number(status)
}

export const openaiFailure = (status: number, message: string) => ({
  error: { message, type: status < 500 ? 'invalid_request_error' : 'server_error', param: null, code: null },
})
