/** Downloads a provider's file into a partial file: streamed, limited in time and size, and resumable. */
import { createHash } from 'node:crypto'
import type { Clock } from '../kit/clock.ts'
import { AddressRefused, type GuardedAnswer, type GuardedFetch } from '../kit/guarded-fetch.ts'
import { GatewayError } from '../spec/error.ts'
import type { CopySource } from './outputs.ts'
import type { PartialFile, PartialSource } from './partial-files.ts'

type Download = {
  source: CopySource
  max_bytes: number
  until_ms: number
  signal: AbortSignal
}

type DownloadParts = { guardedFetch: GuardedFetch; clock: Clock }

/** A range that does not match leads to a second request from the start, and to no third. */
const MAX_REQUESTS = 2

/**
 * True if the file is complete; false if the time was up. Throws GatewayError. The bytes received so far stay in the
 * partial file, unless they are useless.
 */
export async function download(partial: PartialFile, request: Download, parts: DownloadParts): Promise<boolean> {
  const { clock } = parts
  const ending = new AbortController()
  const follow = () => ending.abort(request.signal.reason)
  request.signal.throwIfAborted()
  request.signal.addEventListener('abort', follow, { once: true })
  const timeIsUp = new Error('The time is up.')
  const cancel = clock.after(Math.max(0, request.until_ms - clock.steady()), () => ending.abort(timeIsUp))
  try {
    if (clock.steady() >= request.until_ms) return false
    for (let count = 1; count <= MAX_REQUESTS; count++) {
      if (isWhole(partial, request.source)) return true
      const response = await sendRequest(partial, { ...request, signal: ending.signal }, parts)
      if (await receive(partial, response, request)) return true
    }
    throw unreadable('its ranges do not match')
  } catch (thrown) {
    request.signal.throwIfAborted()
    if (ending.signal.reason === timeIsUp) return false
    throw asGatewayError(thrown)
  } finally {
    cancel()
    request.signal.removeEventListener('abort', follow)
    // Cancels the rest of the response.
    ending.abort(timeIsUp)
  }
}

/** What servers return instead of a file on an error, despite a 200. */
const NOT_A_FILE = /^(text\/html|application\/(problem\+)?json|application\/xhtml)\b/i

const isOfSource = ({ source: known }: PartialFile, { url }: CopySource) => known?.address === addressOf(url)
const isWhole = (partial: PartialFile, source: CopySource) =>
  partial.bytes > 0 && partial.bytes === partial.source?.total && isOfSource(partial, source)

function sendRequest(
  partial: PartialFile,
  { source, signal }: Download,
  { guardedFetch }: DownloadParts,
): Promise<GuardedAnswer> {
  const headers: Record<string, string> = { accept: '*/*', ...source.headers }
  const known = partial.source
  if (partial.bytes > 0 && known && isOfSource(partial, source)) {
    headers.range = `bytes=${partial.bytes}-`
    // A weak tag does not guarantee the same bytes (RFC 9110, section 13.1.5).
    const validator = known.etag && !known.etag.startsWith('W/') ? known.etag : known.last_modified
    if (validator) headers['if-range'] = validator
  }
  return guardedFetch({
    url: source.url,
    headers,
    signal,
    private_origins: source.private_addresses ? 'any' : source.own_origin ? [source.own_origin] : [],
  })
}

/** True if the file is then complete; false if it must be requested again from the start. */
async function receive(partial: PartialFile, response: GuardedAnswer, request: Download): Promise<boolean> {
  const range = readContentRange(response.headers.get('content-range'))
  if (response.status === 416) {
    await response.body.cancel()
    if (partial.bytes > 0 && range?.total === partial.bytes) return true
    await reset(partial)
    return false
  }
  if (response.status !== 200 && response.status !== 206) {
    await response.body.cancel()
    throw statusError(response)
  }
  try {
    const found = describe(response, request.source)
    if (response.status === 200 || partial.source === undefined) {
      if (response.status === 206 && range?.first !== 0) throw unreadable('it sent a part that was not requested')
      await partial.begin({ ...found, total: response.status === 206 ? (range?.total ?? null) : found.total })
    } else if (!continues(partial, found, range)) {
      await response.body.cancel()
      await reset(partial)
      return false
    }
    await readBody(partial, response, request.max_bytes)
  } catch (thrown) {
    await response.body.cancel().catch(() => {})
    throw thrown
  }
  const { total } = partial.source as PartialSource
  if (partial.bytes === 0) throw unreadable('it was empty')
  if (total !== null && partial.bytes !== total) {
    throw new GatewayError('upstream_cut', `Only ${partial.bytes} of ${total} bytes of the file arrived.`)
  }
  return true
}

function describe(response: GuardedAnswer, source: CopySource): PartialSource {
  const encoding = response.headers.get('content-encoding')
  if (encoding && encoding !== 'identity') throw unreadable(`it was compressed (${encoding}), which was not requested`)
  const content_type = response.headers.get('content-type')
  if (content_type && NOT_A_FILE.test(content_type) && !NOT_A_FILE.test(source.content_type ?? '')) {
    throw unreadable(`its content type was ${content_type.split(';')[0]} instead of a file`)
  }
  const length = response.headers.get('content-length')
  return {
    address: addressOf(source.url),
    etag: response.headers.get('etag'),
    last_modified: response.headers.get('last-modified'),
    total: length === null ? null : Number(length),
    content_type,
  }
}

/** Whether the part belongs to the same file and starts where the last one ended. */
function continues(partial: PartialFile, found: PartialSource, range: ContentRange | undefined): boolean {
  const known = partial.source
  if (!known || range?.first !== partial.bytes) return false
  if (known.total !== null && range.total !== null && range.total !== known.total) return false
  if (known.etag !== null && found.etag !== null && found.etag !== known.etag) return false
  if (known.total === null) known.total = range.total
  return true
}

async function readBody(partial: PartialFile, response: GuardedAnswer, max_bytes: number): Promise<void> {
  const total = partial.source?.total ?? null
  if (total !== null && total > max_bytes) throw await refuseLarge(partial, max_bytes)
  const reader = response.body.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      if (partial.bytes + value.length > max_bytes) throw await refuseLarge(partial, max_bytes)
      if (total !== null && partial.bytes + value.length > total) throw unreadable('it is longer than announced')
      await partial.append(value)
    }
  } finally {
    reader.releaseLock()
  }
}

async function refuseLarge(partial: PartialFile, max_bytes: number): Promise<GatewayError> {
  await reset(partial)
  return tooLarge(max_bytes)
}

export const tooLarge = (max_bytes: number) =>
  new GatewayError('output_refused', `The provider's file is larger than the allowed ${max_bytes} bytes.`)

export const reset = (partial: PartialFile) =>
  partial.begin({ address: '', etag: null, last_modified: null, total: null, content_type: null })

type ContentRange = { first: number | null; total: number | null }

/** `bytes 5-9/10`, with `*` for an unknown value (RFC 9110, section 14.4). */
function readContentRange(header: string | null): ContentRange | undefined {
  const [, first, , total] = /^bytes (?:(\d+)-(\d+)|\*)\/(\d+|\*)$/i.exec(header?.trim() ?? '') ?? []
  if (total === undefined) return undefined
  return { first: first === undefined ? null : Number(first), total: total === '*' ? null : Number(total) }
}

/** Without the query, which is a secret and may be signed anew each time. */
function addressOf(url: string): string {
  const { origin, pathname } = new URL(url)
  return createHash('sha256').update(`${origin}${pathname}`).digest('hex')
}

const unreadable = (reason: string) =>
  new GatewayError('bad_upstream_response', `The provider's file could not be copied: ${reason}.`)

function statusError({ status, headers }: GuardedAnswer): GatewayError {
  const detail = { upstream_status: status }
  // Most object stores return 403 for an expired link.
  if (status === 404 || status === 410 || status === 403) {
    return new GatewayError('output_gone', `The provider's file is no longer available (HTTP ${status}).`, detail)
  }
  const seconds = Number(headers.get('retry-after') ?? Number.NaN)
  const wait = Number.isFinite(seconds) && seconds >= 0 ? { retry_after: seconds } : {}
  const code = status === 429 || status === 503 ? 'server_is_overloaded' : 'bad_upstream_response'
  return new GatewayError(code, `The provider's file could not be fetched (HTTP ${status}).`, { ...detail, ...wait })
}

function asGatewayError(thrown: unknown): unknown {
  if (thrown instanceof GatewayError) return thrown
  if (thrown instanceof AddressRefused) return new GatewayError('output_refused', thrown.message, { cause: thrown })
  const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : undefined
  // Errors of the disk are the gateway's own, not the provider's.
  if (code === undefined || DISK.test(code)) return thrown
  if (code === 'ETIMEDOUT') {
    return new GatewayError('upstream_timeout', "The provider's file server did not respond in time.", {
      cause: thrown,
    })
  }
  return new GatewayError('upstream_cut', `The provider's file server did not send a complete response (${code}).`, {
    cause: thrown,
  })
}

const DISK = /^(ENOSPC|EDQUOT|EACCES|EPERM|EROFS|EIO|EMFILE|ENFILE|ENOENT|EFBIG)$/
