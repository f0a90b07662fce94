/** Input media of a request, as URL, data URI or base64: checked when a task is prepared, read for providers. */
import { AddressRefused, type GuardedAnswer, type GuardedFetch } from '../kit/guarded-fetch.ts'
import { SNIFF_BYTES, sniff } from '../kit/sniff.ts'
import { GatewayError } from '../spec/error.ts'

/** The fields of a request that hold media (MEDIA_FIELDS of spec/video-request.ts). */
type MediaInputs = { image?: string; last_image?: string; images?: string[]; video?: string }

export type Medium = { bytes: Uint8Array; content_type: string }

export type Media = {
  /**
   * The bytes of a URL, a data URI or base64. Throws GatewayError `input_media_invalid`, naming `param`; with
   * `retry_after` when the error may be temporary.
   */
  read(value: string, signal: AbortSignal, param?: string): Promise<Medium>
  /** Checks that all can be fetched and have a type that fits their field; throws the same error for the first that does not. */
  check(inputs: MediaInputs, signal: AbortSignal): Promise<void>
}

type MediaParts = {
  guardedFetch: GuardedFetch
  /** The limit of one medium. Default 64 MiB, like the providers' own limits. */
  max_bytes?: number
}

const MAX_BYTES = 64 * 1024 * 1024
const IMAGES = ['image/png', 'image/jpeg', 'image/webp', 'image/gif', 'image/avif', 'image/heic']
const VIDEOS = ['video/mp4', 'video/webm', 'video/quicktime']
/** data:image/png;base64,AAAA: type, then parameters, then `;base64`. */
const DATA_URI = /^data:[^,;]*((?:;[^,;]*)*),/i
/** Other gateways send base64 without a prefix; line breaks are common in it, and so is its URL-safe alphabet. */
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/
const URL_START = /^[a-z][a-z0-9+.-]*:/i

export function createMedia({ guardedFetch, max_bytes = MAX_BYTES }: MediaParts): Media {
  async function fetchMedium(url: string, signal: AbortSignal, atMost: number): Promise<Uint8Array> {
    const ending = new AbortController()
    const follow = () => ending.abort(signal.reason)
    signal.throwIfAborted()
    signal.addEventListener('abort', follow, { once: true })
    try {
      const headers = atMost < max_bytes ? { range: `bytes=0-${atMost - 1}` } : {}
      const answer = await guardedFetch({
        url,
        headers: { accept: 'image/*, video/*', ...headers },
        signal: ending.signal,
      })
      return await readBody(answer, { atMost, max_bytes })
    } catch (thrown) {
      signal.throwIfAborted()
      throw thrown instanceof Fault ? thrown : faultOf(thrown)
    } finally {
      signal.removeEventListener('abort', follow)
      // Perhaps only the beginning was needed.
      ending.abort(new Error('Enough was read.'))
    }
  }

  /** Reads at most so many bytes of a URL; all bytes of inline data. */
  async function readMedium(value: string, signal: AbortSignal, atMost: number): Promise<Medium> {
    const isUrl = URL_START.test(value) && !/^data:/i.test(value)
    const bytes = isUrl ? await fetchMedium(value, signal, atMost) : decode(value, max_bytes)
    const content_type = sniff(bytes)
    if (content_type === undefined || ![...IMAGES, ...VIDEOS].includes(content_type)) {
      throw new Fault(`could not be read: it is no ${kindsOf([...IMAGES, ...VIDEOS])} file`)
    }
    return { bytes, content_type }
  }

  return {
    async read(value, signal, param) {
      return inField(param, () => readMedium(value, signal, max_bytes))
    },
    async check(inputs, signal) {
      for (const { param, value, kinds } of fieldsOf(inputs)) {
        await inField(param, async () => {
          const { content_type } = await readMedium(value, signal, SNIFF_BYTES)
          if (!kinds.includes(content_type)) {
            throw new Fault(`is of the type ${content_type}, where one of ${kindsOf(kinds)} is expected`)
          }
        })
      }
    },
  }
}

/** Per chat request: no provider accepts more, and each may be a large file on a foreign host. */
const MAX_READS = 1_000
const CONCURRENT_READS = 4

/** The media of one chat request: a few at a time, and together no larger than one alone may be. */
export function createRequestMedia(media: Pick<Media, 'read'>, max_bytes = MAX_BYTES): Pick<Media, 'read'> {
  const slots: Promise<unknown>[] = Array.from({ length: CONCURRENT_READS }, () => Promise.resolve())
  let started = 0
  let length = 0
  let failure: { thrown: unknown } | undefined

  async function read(value: string, signal: AbortSignal, param?: string): Promise<Medium> {
    // The first error ends the request: the other media are not needed.
    if (failure) throw failure.thrown
    try {
      const medium = await media.read(value, signal, param)
      length += medium.bytes.length
      if (length <= max_bytes) return medium
      return await inField(param, () => {
        throw new Fault(`makes all media of the request larger than the ${max_bytes} bytes allowed together`)
      })
    } catch (thrown) {
      failure ??= { thrown }
      throw thrown
    }
  }

  return {
    async read(value, signal, param) {
      const slot = started++ % CONCURRENT_READS
      if (started > MAX_READS) {
        return inField(param, () => {
          throw new Fault(`is one too many: a request may have at most ${MAX_READS} media by their addresses`)
        })
      }
      const work = (slots[slot] ?? Promise.resolve()).then(() => read(value, signal, param))
      slots[slot] = work.catch(() => {})
      return work
    },
  }
}

type Field = { param: string; value: string; kinds: string[] }

function fieldsOf({ image, last_image, images = [], video }: MediaInputs): Field[] {
  const fields: [string, string | undefined, string[]][] = [
    ['image', image, IMAGES],
    ['last_image', last_image, IMAGES],
    ...images.map((value, index): [string, string, string[]] => [`images[${index}]`, value, IMAGES]),
    ['video', video, VIDEOS],
  ]
  return fields.flatMap(([param, value, kinds]) => (value === undefined ? [] : [{ param, value, kinds }]))
}

/** What is wrong with a medium, as the end of a sentence that starts with the name of its field. */
class Fault extends Error {
  readonly isTemporary: boolean
  constructor(message: string, isTemporary = false) {
    super(message)
    this.isTemporary = isTemporary
  }
}

/** A file server that is down for a moment is back within seconds, or for long. */
const RETRY_SECONDS = 5

async function inField<T>(param: string | undefined, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (thrown) {
    if (!(thrown instanceof Fault)) throw thrown
    const what = param === undefined ? 'The medium' : `"${param}"`
    throw new GatewayError('input_media_invalid', `${what} ${thrown.message}.`, {
      ...(param === undefined ? {} : { param }),
      ...(thrown.isTemporary ? { retry_after: RETRY_SECONDS } : {}),
      cause: thrown,
    })
  }
}

function decode(value: string, max_bytes: number): Uint8Array {
  const found = DATA_URI.exec(value.slice(0, 1000))
  if (!found) {
    if (/^data:/i.test(value)) throw new Fault('could not be read: it is no whole data URI')
    return decodeBase64(value, max_bytes)
  }
  const data = value.slice(found[0].length)
  if (!/;base64$/i.test(found[1] ?? '')) throw new Fault('could not be read: a data URI has to be in base64')
  return decodeBase64(/%/.test(data) ? decodePercent(data) : data, max_bytes)
}

function decodeBase64(value: string, max_bytes: number): Uint8Array {
  if (value.length > Math.ceil(max_bytes / 3) * 4 * 1.05 + 1024) throw tooLarge(max_bytes)
  const text = value.trim().replaceAll(/[\r\n]+/g, '')
  if (text === '') throw new Fault('could not be read: it is empty')
  if (!BASE64.test(text) || text.replace(/=+$/, '').length % 4 === 1) {
    throw new Fault('could not be read: it is neither an http(s) URL, nor a data URI, nor base64')
  }
  const bytes = Buffer.from(text, 'base64')
  if (bytes.length > max_bytes) throw tooLarge(max_bytes)
  return bytes
}

function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

async function readBody(answer: GuardedAnswer, limits: { atMost: number; max_bytes: number }): Promise<Uint8Array> {
  const { status, headers, body } = answer
  if (status !== 200 && status !== 206) {
    const isTemporary = status >= 500 || status === 429 || status === 408
    throw new Fault(`could not be fetched: its host answered with HTTP ${status}`, isTemporary)
  }
  const coding = headers.get('content-encoding')
  if (coding && coding !== 'identity') {
    throw new Fault(`could not be read: its host sent it compressed (${coding.slice(0, 40)}), which was not asked for`)
  }
  const total = Number(/\/(\d+)$/.exec(headers.get('content-range') ?? '')?.[1] ?? headers.get('content-length') ?? 0)
  if (total > limits.max_bytes) throw tooLarge(limits.max_bytes)
  const pieces: Uint8Array[] = []
  let length = 0
  for await (const piece of body) {
    pieces.push(piece)
    length += piece.length
    if (length >= limits.atMost && limits.atMost < limits.max_bytes) break
    if (length > limits.max_bytes) throw tooLarge(limits.max_bytes)
  }
  if (length === 0) throw new Fault('could not be fetched: its host sent nothing')
  return Buffer.concat(pieces)
}

const tooLarge = (max_bytes: number) => new Fault(`is larger than the ${max_bytes} bytes allowed`)

/** The host comes from the client; of a network error only the code is returned. */
function faultOf(thrown: unknown): Fault {
  if (thrown instanceof AddressRefused) return new Fault(`could not be fetched: ${inSentence(thrown.message)}`)
  const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : 'unknown'
  if (code === 'ETIMEDOUT') return new Fault('could not be fetched: its host did not answer in time', true)
  if (/^(ENOTFOUND|DNS_ENOTFOUND)$/.test(code)) return new Fault('could not be fetched: its host name is not known')
  return new Fault(`could not be fetched: no whole answer came from its host (${code})`, true)
}

const inSentence = (message: string) => `${message.charAt(0).toLowerCase()}${message.slice(1).replace(/\.$/, '')}`

const kindsOf = (types: string[]) => types.map((type) => type.replace(/^\w+\//, '')).join(', ')
