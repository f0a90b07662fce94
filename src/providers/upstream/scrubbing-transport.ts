/** The transport of one provider, which removes that provider's own secrets from its responses. */
import { isCredentialName, secretsInHeader, secretsInQuery } from './secret-forms.ts'
import { createSecretScrubber, type DeltaWatch, type SecretScrubber } from './secret-scrubber.ts'
import type { Transport } from './transport.ts'
import type { UpstreamResponse } from './transport-response.ts'
import type { UpstreamRequest } from './upstream-request.ts'

/** Tokens are renewed every 30 to 60 minutes; responses to requests with the last few may still arrive. */
const MOST_LEARNED = 16

type ScrubbingTransport = Transport & {
  /** Watches one stream of deltas; undefined while the provider has no secret. */
  watchDeltas(): DeltaWatch | undefined
}

/** Scrubs the configured secrets, and every credential that is sent: keys of the environment, derived tokens. */
export function createScrubbingTransport(transport: Transport, written: string[]): ScrubbingTransport {
  const learned = new Set<string>()
  const isCredential = new Map<string, boolean>()
  /** Header name -> the last value that was checked. */
  const seen = new Map<string, string>()
  let scrubber = createSecretScrubber(written)

  function learn(found: string[]): void {
    const fresh = found.filter((secret) => !written.includes(secret) && !learned.has(secret))
    if (fresh.length === 0) return
    for (const secret of fresh) learned.add(secret)
    for (const oldest of learned) if (learned.size > MOST_LEARNED) learned.delete(oldest)
    scrubber = createSecretScrubber([...written, ...learned])
  }

  function learnFrom({ headers, url }: UpstreamRequest): void {
    for (const name in headers) {
      let isOne = isCredential.get(name)
      if (isOne === undefined) {
        isOne = isCredentialName(name)
        isCredential.set(name, isOne)
      }
      const value = headers[name]
      if (!isOne || value === undefined || seen.get(name) === value) continue
      seen.set(name, value)
      learn(secretsInHeader(value))
    }
    if (url.includes('?')) learn(secretsInQuery(url))
  }

  return {
    async send(request) {
      if (request.grants_credentials) return transport.send(request)
      learnFrom(request)
      const response = await transport.send(request)
      return scrubber ? scrubbed(response, scrubber) : response
    },
    watchDeltas: () => scrubber?.deltas(),
  }
}

/** Scrubs whatever the content type is: JSON that is labelled as an image is still read as JSON. */
function scrubbed(response: UpstreamResponse, scrubber: SecretScrubber): UpstreamResponse {
  const headers = scrubHeaders(response.headers, scrubber)
  const body = scrubber.body()
  let peeked: Uint8Array | undefined
  let failure: { thrown: unknown } | undefined
  let isEnded = false

  /** Not an async function: a stream waits here for each of its events. */
  function read(): Promise<Uint8Array | undefined> {
    if (peeked) {
      const bytes = peeked
      peeked = undefined
      return Promise.resolve(bytes)
    }
    if (isEnded) return failure ? Promise.reject(failure.thrown) : Promise.resolve(undefined)
    return response.read().then(clean, end)
  }

  function clean(bytes: Uint8Array | undefined): Uint8Array | Promise<Uint8Array | undefined> {
    if (bytes === undefined) return end()
    const passed = body.push(bytes)
    return passed.length > 0 ? passed : read()
  }

  /** Bytes from before a failure are returned first. */
  function end(thrown?: unknown): Uint8Array | Promise<Uint8Array | undefined> {
    isEnded = true
    if (thrown !== undefined) failure = { thrown }
    const rest = body.end()
    return rest.length > 0 ? rest : read()
  }

  return {
    status: response.status,
    headers,
    read,
    async peek() {
      peeked ??= await read()
      return peeked
    },
    text: async (limit) => scrubber.text(await response.text(limit)),
    excerpt: async () => scrubber.text(await response.excerpt()),
    release: () => response.release(),
    drop: () => response.drop(),
  }
}

/** Returns the same object when nothing has to be replaced. */
function scrubHeaders(headers: Headers, scrubber: SecretScrubber): Headers {
  let all = ''
  for (const [, value] of headers) all += `${value}\n`
  if (scrubber.text(all) === all) return headers
  const clean = new Headers()
  for (const [name, value] of headers) clean.append(name, scrubber.text(value))
  return clean
}
