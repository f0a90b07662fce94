/** The transport of one provider, which removes that provider's own secrets from its responses. */
import { isCredentialName, secretsInHeader, secretsInQuery } from './secret-forms.ts'
import { createSecretScrubber, type DeltaWatch } from './secret-scrubber.ts'
import type { Transport } from './transport.ts'
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

  const current = () => scrubber

  return {
    send(request) {
      if (!request.grants_credentials) {
        learnFrom(request)
        request.scrubber = current
      }
      return transport.send(request)
    },
    watchDeltas: () => scrubber?.deltas(),
  }
}
