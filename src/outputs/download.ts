/** Copies one file of a vendor into a partial file: streamed, within its time and its size, and gone on with later. */
import { createHash } from 'node:crypto'
import type { Clock } from '../kit/clock.ts'
import { typeOfFile, UNKNOWN_TYPE } from '../kit/file-type.ts'
import { AddressRefused, type GuardedAnswer, type GuardedFetch } from '../kit/guarded-fetch.ts'
import { SNIFF_BYTES } from '../kit/sniff.ts'
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

/** A range that does not fit leads to a second request from the start, and no third. */
const REQUESTS_AT_MOST = 2

/**
 * Whether the file is here whole; false: the time was up. Throws GatewayError; what has come stays in the partial,
 * unless it is of no use.
 */
export async function download(partial: PartialFile, asked: Download, parts: DownloadParts): Promise<boolean> {
  const { clock } = parts
  const ending = new AbortController()
  const follow = () => ending.abort(asked.signal.reason)
  asked.signal.throwIfAborted()
  asked.signal.addEventListener('abort', follow, { once: true })
  const timeIsUp = new Error('The time is up.')
  const cancel = clock.after(Math.max(0, asked.until_ms - clock.now()), () => ending.abort(timeIsUp))
  try {
    if (clock.now() >= asked.until_ms) return false
    for (let request = 1; request <= REQUESTS_AT_MOST; request++) {
      if (isWhole(partial, asked.source)) return true
      const answer = await ask(partial, { ...asked, signal: ending.signal }, parts)
      if (await receive(partial, answer, asked)) return true
    }
    throw unreadable('its ranges do not fit together')
  } catch (thrown) {
    asked.signal.throwIfAborted()
    if (ending.signal.reason === timeIsUp) return false
    throw inOurWords(thrown)
  } finally {
    cancel()
    asked.signal.removeEventListener('abort', follow)
    // Whatever is still coming is not wanted.
    ending.abort(timeIsUp)
  }
}

/** The type that the bytes show; what the vendor says counts for a few that they do not. */
export async function contentTypeOf(partial: PartialFile, source: CopySource): Promise<string> {
  const first = await partial.first(SNIFF_BYTES)
  // Of a model its vendor says the format; servers of files seldom know it, and call it text or an archive.
  const type = typeOfFile(first, source.content_type)
  return type === UNKNOWN_TYPE ? typeOfFile(first, partial.source?.content_type ?? undefined) : type
}

/** What servers answer instead of a file when something is wrong, with a 200 all the same. */
const NOT_A_FILE = /^(text\/html|application\/(problem\+)?json|application\/xhtml)\b/i

const isOfSource = ({ source: known }: PartialFile, { url }: CopySource) => known?.address === addressOf(url)
const isWhole = (partial: PartialFile, source: CopySource) =>
  partial.bytes > 0 && partial.bytes === partial.source?.total && isOfSource(partial, source)

function ask(
  partial: PartialFile,
  { source, signal }: Download,
  { guardedFetch }: DownloadParts,
): Promise<GuardedAnswer> {
  const headers: Record<string, string> = { accept: '*/*', ...source.headers }
  const known = partial.source
  if (partial.bytes > 0 && known && isOfSource(partial, source)) {
    headers.range = `bytes=${partial.bytes}-`
    // A weak tag does not promise the same bytes (RFC 9110, section 13.1.5).
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

/** Whether the file is whole after it; false: it has to be asked for again, from the start. */
async function receive(partial: PartialFile, answer: GuardedAnswer, asked: Download): Promise<boolean> {
  const range = readContentRange(answer.headers.get('content-range'))
  if (answer.status === 416) {
    await answer.body.cancel()
    if (partial.bytes > 0 && range?.total === partial.bytes) return true
    await startAgain(partial)
    return false
  }
  if (answer.status !== 200 && answer.status !== 206) {
    await answer.body.cancel()
    throw refusalOf(answer)
  }
  try {
    const found = describe(answer, asked.source)
    if (answer.status === 200 || partial.source === undefined) {
      if (answer.status === 206 && range?.first !== 0) throw unreadable('it sent a part that was not asked for')
      await partial.begin({ ...found, total: answer.status === 206 ? (range?.total ?? null) : found.total })
    } else if (!continues(partial, found, range)) {
      await answer.body.cancel()
      await startAgain(partial)
      return false
    }
    await take(partial, answer, asked.max_bytes)
  } catch (thrown) {
    await answer.body.cancel().catch(() => {})
    throw thrown
  }
  const { total } = partial.source as PartialSource
  if (partial.bytes === 0) throw unreadable('it was empty')
  if (total !== null && partial.bytes !== total) {
    throw new GatewayError('upstream_cut', `Only ${partial.bytes} of ${total} bytes of the file came.`)
  }
  return true
}

function describe(answer: GuardedAnswer, source: CopySource): PartialSource {
  const encoding = answer.headers.get('content-encoding')
  if (encoding && encoding !== 'identity') throw unreadable(`it came compressed (${encoding}), which was not asked for`)
  const content_type = answer.headers.get('content-type')
  if (content_type && NOT_A_FILE.test(content_type) && !NOT_A_FILE.test(source.content_type ?? '')) {
    throw unreadable(`it answered with ${content_type.split(';')[0]} where a file was expected`)
  }
  const length = answer.headers.get('content-length')
  return {
    address: addressOf(source.url),
    etag: answer.headers.get('etag'),
    last_modified: answer.headers.get('last-modified'),
    total: length === null ? null : Number(length),
    content_type,
  }
}

/** Whether the part is of the same file, and begins where the last one ended. */
function continues(partial: PartialFile, found: PartialSource, range: ContentRange | undefined): boolean {
  const known = partial.source
  if (!known || range?.first !== partial.bytes) return false
  if (known.total !== null && range.total !== null && range.total !== known.total) return false
  if (known.etag !== null && found.etag !== null && found.etag !== known.etag) return false
  if (known.total === null) known.total = range.total
  return true
}

async function take(partial: PartialFile, answer: GuardedAnswer, max_bytes: number): Promise<void> {
  const total = partial.source?.total ?? null
  if (total !== null && total > max_bytes) throw await tooLarge(partial, max_bytes)
  const reader = answer.body.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      if (partial.bytes + value.length > max_bytes) throw await tooLarge(partial, max_bytes)
      if (total !== null && partial.bytes + value.length > total) throw unreadable('it is longer than it said')
      await partial.append(value)
    }
  } finally {
    reader.releaseLock()
  }
}

async function tooLarge(partial: PartialFile, max_bytes: number): Promise<GatewayError> {
  await startAgain(partial)
  return new GatewayError('output_refused', `The upstream's file is larger than the ${max_bytes} bytes allowed.`)
}

const startAgain = (partial: PartialFile) =>
  partial.begin({ address: '', etag: null, last_modified: null, total: null, content_type: null })

type ContentRange = { first: number | null; total: number | null }

/** `bytes 5-9/10`, with `*` for what is not known (RFC 9110, section 14.4). */
function readContentRange(header: string | null): ContentRange | undefined {
  const [, first, , total] = /^bytes (?:(\d+)-(\d+)|\*)\/(\d+|\*)$/i.exec(header?.trim() ?? '') ?? []
  if (total === undefined) return undefined
  return { first: first === undefined ? null : Number(first), total: total === '*' ? null : Number(total) }
}

/** The query may be signed anew each time, and is a secret. */
function addressOf(url: string): string {
  const { origin, pathname } = new URL(url)
  return createHash('sha256').update(`${origin}${pathname}`).digest('hex')
}

const unreadable = (what: string) =>
  new GatewayError('bad_upstream_response', `The upstream's file could not be copied: ${what}.`)

function refusalOf({ status, headers }: GuardedAnswer): GatewayError {
  const detail = { upstream_status: status }
  // An expired link is 403 at most object stores.
  if (status === 404 || status === 410 || status === 403) {
    return new GatewayError('output_gone', `The upstream's file is no longer there (HTTP ${status}).`, detail)
  }
  const seconds = Number(headers.get('retry-after') ?? Number.NaN)
  const wait = Number.isFinite(seconds) && seconds >= 0 ? { retry_after: seconds } : {}
  const code = status === 429 || status === 503 ? 'server_is_overloaded' : 'bad_upstream_response'
  return new GatewayError(code, `The upstream's file could not be fetched (HTTP ${status}).`, { ...detail, ...wait })
}

function inOurWords(thrown: unknown): unknown {
  if (thrown instanceof GatewayError) return thrown
  if (thrown instanceof AddressRefused) return new GatewayError('output_refused', thrown.message, { cause: thrown })
  const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : undefined
  // What the disk says is ours, not the upstream's.
  if (code === undefined || DISK.test(code)) return thrown
  if (code === 'ETIMEDOUT') {
    return new GatewayError('upstream_timeout', "The upstream's file server did not respond in time.", {
      cause: thrown,
    })
  }
  return new GatewayError('upstream_cut', `The upstream's file server gave no whole answer (${code}).`, {
    cause: thrown,
  })
}

const DISK = /^(ENOSPC|EDQUOT|EACCES|EPERM|EROFS|EIO|EMFILE|ENFILE|ENOENT|EFBIG)$/
