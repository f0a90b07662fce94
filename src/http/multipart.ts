/** Reads a request body that may also be a form with files (RFC 7578), limited like any other body. */
import { memberOf } from '../kit/json.ts'
import { GatewayError } from '../spec/error.ts'
import { type BodyLimits, isJson, readBytes, readJson, wrongType } from './body.ts'

export type FormFile = { bytes: Uint8Array<ArrayBuffer>; content_type: string; filename: string }
/** In the order of the body; a name may occur more than once. */
export type FormPart = { name: string; value: string | FormFile }

export type Posted = { kind: 'json'; value: unknown } | { kind: 'form'; parts: FormPart[] }

/** A member of the JSON, or the last field of the form by that name; undefined where there is none. */
export const fieldOf = (posted: Posted, name: string): unknown =>
  posted.kind === 'json' ? memberOf(posted.value, name) : posted.parts.findLast((part) => part.name === name)?.value

/** More fields than any real form has; each costs many times its bytes. */
const MOST_PARTS = 1_000

/** Throws unsupported_media_type, request_too_large, request_timeout, invalid_json, or invalid_value for a broken form. */
export async function readJsonOrForm(request: Request, limits: BodyLimits): Promise<Posted> {
  const type = request.headers.get('content-type') ?? ''
  if (isJson(type)) return { kind: 'json', value: await readJson(request, limits) }
  // The media type's name has any case, and may be followed by parameters, of which one is the boundary.
  if (!/^multipart\/form-data\s*(;|$)/i.test(type)) throw wrongType(type, 'application/json or multipart/form-data')
  return { kind: 'form', parts: await partsOf(await formOf(await readBytes(request, limits), type)) }
}

async function formOf(bytes: Uint8Array<ArrayBuffer>, type: string): Promise<FormData> {
  try {
    return await new Response(bytes, { headers: { 'content-type': type } }).formData()
  } catch {
    const missing = /boundary=/i.test(type)
      ? 'it ends early, or its parts are not separated by its boundary'
      : 'it names no boundary'
    throw new GatewayError('invalid_value', `The body is not a valid multipart form: ${missing}.`)
  }
}

async function partsOf(form: FormData): Promise<FormPart[]> {
  const entries = [...form]
  if (entries.length > MOST_PARTS) {
    throw new GatewayError('invalid_value', `The form may have at most ${MOST_PARTS} parts, not ${entries.length}.`)
  }
  const parts: FormPart[] = []
  for (const [name, value] of entries)
    parts.push({ name, value: typeof value === 'string' ? value : await fileOf(value) })
  return parts
}

const fileOf = async (file: File): Promise<FormFile> => ({
  bytes: new Uint8Array(await file.arrayBuffer()),
  content_type: file.type,
  // Absent in a part that a browser sends for a file that was not chosen.
  filename: file.name ?? '',
})
