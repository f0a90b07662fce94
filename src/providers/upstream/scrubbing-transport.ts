/** The transport of one provider, which removes that provider's own secrets from its responses. */
import { isCredentialName, secretsInHeader, secretsInQuery } from './secret-forms.ts'
import { type BodyScrubber, createSecretScrubber, type DeltaWatch, type SecretScrubber } from './secret-scrubber.ts'
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
    for (const oldest of learned) {
      if (learned.size <= MOST_LEARNED) break
      learned.delete(oldest)
      seen.clear() // it may be sent again
    }
    scrubber = createSecretScrubber([...written, ...learned])
  }

  /** The headers last: what the others have replaced is learned again. */
  function learnFrom({ headers, url }: UpstreamRequest): void {
    if (url.includes('?')) learn(secretsInQuery(url))
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
  }

  const scrubbed = (response: UpstreamResponse): UpstreamResponse =>
    scrubber ? new ScrubbedResponse(response, scrubber) : response

  return {
    send(request) {
      if (request.grants_credentials) return transport.send(request)
      learnFrom(request)
      return transport.send(request).then(scrubbed)
    },
    watchDeltas: () => scrubber?.deltas(),
  }
}

type Passed = Uint8Array | undefined | Promise<Uint8Array | undefined>

/** Scrubs whatever the content type is: JSON that is labelled as an image is still read as JSON. */
class ScrubbedResponse implements UpstreamResponse {
  readonly #response: UpstreamResponse
  readonly #scrubber: SecretScrubber
  readonly status: number
  #headers: Headers | undefined
  #body: BodyScrubber | undefined
  #failure: { thrown: unknown } | undefined
  #isEnded = false
  /** The same for each read. */
  #pass: ((bytes: Uint8Array | undefined) => Passed) | undefined
  #fail: ((thrown: unknown) => Passed) | undefined

  constructor(response: UpstreamResponse, scrubber: SecretScrubber) {
    this.#response = response
    this.#scrubber = scrubber
    this.status = response.status
  }

  /** Only for who reads them: most calls do not. */
  get headers(): Headers {
    this.#headers ??= scrubHeaders(this.#response.headers, this.#scrubber)
    return this.#headers
  }

  /** Not an async function: a stream waits here for each of its events. */
  read(): Promise<Uint8Array | undefined> {
    if (this.#isEnded) return this.#failure ? Promise.reject(this.#failure.thrown) : Promise.resolve(undefined)
    this.#pass ??= (bytes) => this.#clean(bytes)
    this.#fail ??= (thrown) => this.#end(thrown)
    return this.#response.read().then(this.#pass, this.#fail)
  }

  #clean(bytes: Uint8Array | undefined): Passed {
    if (bytes === undefined) return this.#end()
    this.#body ??= this.#scrubber.body()
    const passed = this.#body.push(bytes)
    return passed.length > 0 ? passed : this.read()
  }

  /** Bytes from before a failure are returned first. */
  #end(thrown?: unknown): Passed {
    this.#isEnded = true
    if (thrown !== undefined) this.#failure = { thrown }
    const rest = this.#body?.end()
    return rest && rest.length > 0 ? rest : this.read()
  }

  /** Consumes nothing, so that the response can be read as a text after it. Without what may be the beginning of a secret. */
  async peek(): Promise<Uint8Array | undefined> {
    const bytes = await this.#response.peek()
    return bytes && this.#scrubber.body().push(bytes)
  }

  async text(limit?: number): Promise<string> {
    return this.#scrubber.text(await this.#response.text(limit))
  }

  async excerpt(): Promise<string> {
    return this.#scrubber.text(await this.#response.excerpt())
  }

  release(): void {
    this.#response.release()
  }

  drop(): void {
    this.#response.drop()
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
