/** Files as inputs of calls: their ids in a request are replaced by their data, so that every vendor can read them. */
import { GatewayError } from '../../spec/error.ts'
import type { FileRow } from '../../store/files/file-row.ts'
import type { FileData, MapFiles } from './file-references.ts'
import type { FileOwner, Files } from './files.ts'

/** Whose request it is. `hold` counts the bytes that it keeps in memory. */
type Client = { caller: FileOwner; hold?(bytes: number): void }

export type FileInputs = {
  /**
   * The request with the data of its files; the same object, at once, where it names no file of the gateway. Throws
   * `file_not_found`, `request_too_large`, or `invalid_value` for a file of the wrong type.
   */
  resolved<T>(request: T, map: MapFiles, client: Client): T | Promise<T>
}

type FileInputsParts = {
  files: Pick<Files, 'find' | 'read'>
  /** Of all files of a request, as base64: as much as its body may have. */
  max_bytes(): number
}

const MOST_FILES = 100

export function createFileInputs({ files, max_bytes }: FileInputsParts): FileInputs {
  async function load<T>(request: T, map: MapFiles, { client, named }: { client: Client; named: Map<string, string> }) {
    if (named.size > MOST_FILES)
      throw new GatewayError('invalid_value', `A request may name at most ${MOST_FILES} files.`)
    const found: FileRow[] = []
    let size = 0
    for (const [file_id, param] of named) {
      const file = await files.find(file_id, client.caller, param)
      size += sizeOf(file)
      if (size > max_bytes()) throw tooLarge(max_bytes(), param)
      found.push(file)
    }
    client.hold?.(size)
    const data = new Map<string, FileData>()
    for (const file of found) data.set(file.file_id, { ...file, base64: await base64Of(await files.read(file), file) })
    return map(request, (file_id) => data.get(file_id))
  }

  return {
    resolved(request, map, client) {
      let named: Map<string, string> | undefined
      map(request, (file_id, param) => {
        named ??= new Map()
        if (!named.has(file_id)) named.set(file_id, param)
        return undefined
      })
      return named ? load(request, map, { client, named }) : request
    },
  }
}

const sizeOf = ({ bytes }: FileRow): number => 4 * Math.ceil(bytes / 3)

async function base64Of(body: ReadableStream<Uint8Array>, { file_id, bytes }: FileRow): Promise<string> {
  const whole = Buffer.alloc(bytes)
  let at = 0
  for await (const piece of body) {
    if (at + piece.length <= bytes) whole.set(piece, at)
    at += piece.length
  }
  if (at !== bytes) throw new Error(`The file ${file_id} has ${at} bytes in place of ${bytes}.`)
  return whole.toString('base64')
}

const tooLarge = (most: number, param: string) =>
  new GatewayError(
    'request_too_large',
    `The files that a request names may have at most ${Math.floor((most / 4) * 3)} bytes together.`,
    { param },
  )
