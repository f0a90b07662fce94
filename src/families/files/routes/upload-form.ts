/** Receives a form with one file: its bytes go to the store while they arrive, wherever its other fields stand. */
import type { StorageQuota } from '../../../accounts/storage-quota.ts'
import { createUploadCheck } from '../../../calls/batch-lines.ts'
import type { ServerSettings } from '../../../config/config.ts'
import type { Context } from '../../../http/context.ts'
import { fieldsOfForm } from '../../../http/form-fields.ts'
import type { FormPart } from '../../../http/multipart.ts'
import { type StreamedPart, streamForm } from '../../../http/multipart-stream.ts'
import type { Clock } from '../../../kit/clock.ts'
import { bareType, isDetectable, UNKNOWN_TYPE } from '../../../kit/file-type.ts'
import { SNIFF_BYTES, sniff } from '../../../kit/sniff.ts'
import type { Catalogue } from '../../../models/catalogue.ts'
import { GatewayError, invalidValue } from '../../../spec/error.ts'
import type { FileRow } from '../../../store/files/file-row.ts'
import { type FileSettings, type Files, type NewFile, WRITE_SECONDS } from '../files.ts'

export type UploadParts = {
  files: Files
  quota: StorageQuota
  projectQuota: StorageQuota
  fileSettings(): FileSettings
  settings: ServerSettings
  clock: Clock
  catalogue: Pick<Catalogue, 'require'>
}

export type UploadFields = Pick<NewFile, 'purpose'> & {
  /** Of the file, by its purpose. */
  max_bytes: number
  /** Undefined: as the purpose is configured. */
  keep_seconds?: number
}

/** How a file of objects, one on each line, begins; it may have a byte order mark. */
const OBJECT = /^(\xef\xbb\xbf)?\s*\{/
/** Beside its file a form has a few short fields. */
const MOST_FIELD_BYTES = 4 * 1024
const MOST_FIELDS = 20
const FORM_BYTES = 1024 * 1024
const MOST_NAME_CHARACTERS = 255
/** What is reserved in advance of a file whose length is not announced. */
const RESERVED_BYTES = 8 * 1024 * 1024

/** `read`: checks the fields and throws where they are wrong; called before the file where they stand before it. */
export async function receiveUpload(
  context: Context,
  read: (fields: Record<string, unknown>) => UploadFields,
  parts: UploadParts,
): Promise<FileRow> {
  const { files, settings, clock } = parts
  const { max_bytes } = parts.fileSettings()
  const space = new Space(context, parts)
  const texts: FormPart[] = []
  const fields = () =>
    read(fieldsOfForm(texts, { numbers: ['expires_after', 'expires_in_seconds'], objects: ['expires_after'] }))
  let started: FileRow | undefined
  let check: ReturnType<typeof createUploadCheck> | undefined
  let bytes = 0
  const form = streamForm(context.request, {
    max_bytes: max_bytes + FORM_BYTES,
    pause_seconds: settings.body_seconds,
    total_seconds: WRITE_SECONDS,
    clock,
  })
  try {
    for await (const part of form) {
      if (part.name !== 'file') {
        if (texts.length === MOST_FIELDS) throw refusal(`The form may have at most ${MOST_FIELDS} fields.`)
        texts.push({ name: part.name, value: await textOf(part) })
        continue
      }
      if (started || part.filename === undefined)
        throw refusal('"file" must be one file of the form, with a file name.')
      // Clients that send it first are refused as early; others after their file.
      const known = texts.some(({ name }) => name === 'purpose') ? fields() : undefined
      const most = known?.max_bytes ?? max_bytes
      const source = part.bytes()
      const first = await firstOf(source)
      if (first.length === 0) throw refusal('"file" is empty.')
      const type = uploadedType(first, part.content_type, part.filename)
      // Where the purpose is not known yet, it may be.
      if (known ? known.purpose === 'batch' : OBJECT.test(first.toString('latin1', 0, 40)))
        check = createUploadCheck({ caller: context.caller, catalogue: parts.catalogue })
      await space.begin()
      started = await files.upload.begin(context.caller, type, nameOf(part.filename))
      bytes = await files.upload.receive(started, bounded(first, source, { most, space, check }), context.signal)
    }
    if (!started)
      throw new GatewayError('missing_required_parameter', '"file" is required: one file of the form.', {
        param: 'file',
      })
    const { max_bytes: most, purpose, keep_seconds } = fields()
    if (bytes > most) throw tooLarge(most)
    const expiry = keep_seconds === undefined ? {} : { expires_at: started.created_at + keep_seconds }
    const problems = purpose === 'batch' && check ? check.end() : null
    return await files.upload.finish({ started, bytes }, { purpose, problems, ...expiry })
  } catch (thrown) {
    if (started) await files.upload.discard(started)
    throw thrown
  } finally {
    space.release()
  }
}

const refusal = (message: string) => invalidValue('file', message)

const tooLarge = (most: number) =>
  new GatewayError('request_too_large', `A file of this purpose may have at most ${most} bytes.`, { param: 'file' })

async function textOf(part: StreamedPart): Promise<string> {
  const pieces: Uint8Array[] = []
  let length = 0
  for await (const piece of part.bytes()) {
    length += piece.length
    if (length > MOST_FIELD_BYTES) {
      const name = part.name.slice(0, 60)
      throw invalidValue(name, `"${name}" may have at most ${MOST_FIELD_BYTES} bytes.`)
    }
    pieces.push(Uint8Array.from(piece)) // a piece is gone with the next one
  }
  return new TextDecoder().decode(Buffer.concat(pieces))
}

/** As many bytes as show the type, or fewer at the end. */
async function firstOf(source: AsyncGenerator<Uint8Array>): Promise<Buffer> {
  let first: Buffer = Buffer.alloc(0)
  while (first.length < SNIFF_BYTES) {
    const { done, value } = await source.next()
    if (done) return first
    first = Buffer.concat([first, value])
  }
  return first
}

type Bounds = { most: number; space: Space; check: { push(piece: Uint8Array): void } | undefined }

function bounded(first: Buffer, source: AsyncGenerator<Uint8Array>, { most, space, check }: Bounds) {
  let pending: Uint8Array | undefined = first
  let received = 0
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const piece = pending ?? (await source.next()).value
        pending = undefined
        if (piece === undefined) return controller.close()
        received += piece.length
        if (received > most) throw tooLarge(most)
        await space.grow(received)
        check?.push(piece)
        controller.enqueue(piece)
      },
    },
    { highWaterMark: 0 },
  )
}

/** The last part of a path, without control characters, which no name of a file has. */
function nameOf(given: string): string {
  const name = (given.split(/[/\\]/).at(-1) ?? '').replace(/\p{Cc}/gu, '').trim()
  return [...name].slice(0, MOST_NAME_CHARACTERS).join('') || 'unnamed'
}

/** What an upload holds of the quotas of its token and project until it is stored. */
class Space {
  readonly #quotas: { id: string; quota: StorageQuota }[]
  readonly #releases: (() => void)[] = []
  #reserved: number

  constructor({ request, caller }: Context, { quota, projectQuota }: UploadParts) {
    const { token_id, project_id } = caller
    this.#quotas = [{ id: token_id, quota }]
    if (project_id !== undefined) this.#quotas.push({ id: project_id, quota: projectQuota })
    const announced = Number(request.headers.get('content-length'))
    this.#reserved = Number.isSafeInteger(announced) ? Math.max(0, announced - FORM_OVERHEAD) : 0
  }

  begin(): Promise<void> {
    return this.#reserve({ rows: 1, bytes: this.#reserved })
  }

  async grow(bytes: number): Promise<void> {
    if (bytes <= this.#reserved) return
    const needed = bytes - this.#reserved
    const ample = needed + RESERVED_BYTES
    const fitting = await Promise.all(this.#quotas.map(({ id, quota }) => quota.fits(id, { rows: 0, bytes: ample })))
    const more = fitting.every(Boolean) ? ample : needed
    await this.#reserve({ rows: 0, bytes: more })
    this.#reserved += more
  }

  release(): void {
    for (const release of this.#releases) release()
  }

  async #reserve(amount: { rows: number; bytes: number }): Promise<void> {
    for (const { id, quota } of this.#quotas) this.#releases.push(await quota.reserve(id, amount))
  }
}

/** What boundaries, headers and other fields may take of an announced body; what the file has beyond is reserved as it arrives. */
const FORM_OVERHEAD = 8 * 1024

const PDF = 'application/pdf'
/** A media type of reasonable length, without parameters (RFC 6838, section 4.2). */
const NAME = /^[a-z0-9][\w.+-]{0,60}\/[a-z0-9][\w.+-]{0,80}$/
/** For clients that name no type: by the end of the name. */
const ENDINGS: Record<string, string> = {
  csv: 'text/csv',
  html: 'text/html',
  json: 'application/json',
  jsonl: 'application/jsonl',
  md: 'text/markdown',
  txt: 'text/plain',
  xml: 'application/xml',
}

/** What its bytes show, and what the client states only where they show nothing. */
function uploadedType(first: Uint8Array, declared: string, filename: string): string {
  const shown = sniff(first) ?? (startsAsPdf(first) ? PDF : undefined)
  if (shown !== undefined) return shown
  const type = bareType(declared)
  const isText = !first.includes(0)
  // Bytes that do not show what they would show if they were it.
  if (
    NAME.test(type) &&
    type !== UNKNOWN_TYPE &&
    type !== PDF &&
    !isDetectable(type) &&
    (isText || !/^text\//.test(type))
  )
    return type
  const ending = /\.([A-Za-z0-9]+)$/.exec(filename)?.[1]?.toLowerCase() ?? ''
  return (isText ? ENDINGS[ending] : undefined) ?? UNKNOWN_TYPE
}

const startsAsPdf = (first: Uint8Array): boolean => Buffer.from(first.subarray(0, 5)).toString('latin1') === '%PDF-'
