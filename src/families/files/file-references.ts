/** Where requests of each chat API name files of the gateway, and the data that takes their place there. */
import { isRecord } from '../../kit/json.ts'
import { invalidValue } from '../../spec/error.ts'
import { isFileId } from './files.ts'

export type FileData = { content_type: string; filename: string; base64: string }
/** What takes the place of a named file; undefined: it stays, since it is only looked for. */
type DataOf = (file_id: string, param: string) => FileData | undefined
/** The same value where nothing in it has changed. */
export type MapFiles = <T>(value: T, dataOf: DataOf) => T

type MapPart = (part: unknown, at: string, dataOf: DataOf) => unknown

/** The member as a list whose items are mapped; anything else stays. Nothing is copied but what leads to a change. */
function mapList<T>(value: T, name: string, map: (item: unknown, index: number) => unknown): T {
  const list = isRecord(value) ? value[name] : undefined
  if (!Array.isArray(list)) return value
  let changed: unknown[] | undefined
  for (let index = 0; index < list.length; index++) {
    const item = map(list[index], index)
    if (item === list[index]) continue
    changed ??= [...list]
    changed[index] = item
  }
  return changed ? { ...value, [name]: changed } : value
}

/** Most parts are texts, which take no more than a look. */
const mapContents =
  (list: string, contents: readonly string[], mapPart: MapPart): MapFiles =>
  (body, dataOf) =>
    mapList(body, list, (item, at) => {
      let mapped = item
      for (const name of contents)
        mapped = mapList(mapped, name, (part, index) =>
          isRecord(part) && typeof part.text === 'string'
            ? part
            : mapPart(part, `${list}[${at}].${name}[${index}]`, dataOf),
        )
      return mapped
    })

const uriOf = ({ content_type, base64 }: FileData) => `data:${content_type};base64,${base64}`
const isImage = ({ content_type }: FileData) => content_type.startsWith('image/')
const isText = ({ content_type }: FileData) => /^(text\/|application\/(json|jsonl|xml)$)/.test(content_type)

const mustBe = (what: string, param: string, { content_type }: FileData) =>
  invalidValue(param, `"${param}" must be the id of ${what}; the type of this file is ${content_type}.`)

export const chatcompatFiles = mapContents('messages', ['content'], (part, at, dataOf) => {
  if (!isRecord(part) || part.type !== 'file' || !isRecord(part.file)) return part
  const { file_id, filename } = part.file
  if (typeof file_id !== 'string' || !isFileId(file_id)) return part
  const data = dataOf(file_id, `${at}.file.file_id`)
  if (!data) return part
  if (isImage(data)) return { type: 'image_url', image_url: { url: uriOf(data) } }
  return { type: 'file', file: { filename: filename ?? data.filename, file_data: uriOf(data) } }
})

/** Also within the results of tools. */
const mapBlock: MapPart = (block, at, dataOf) => {
  if (!isRecord(block)) return block
  if (block.type === 'tool_result')
    return mapList(block, 'content', (inner, index) => mapBlock(inner, `${at}.content[${index}]`, dataOf))
  const { type, source } = block
  if ((type !== 'image' && type !== 'document') || !isRecord(source) || source.type !== 'file') return block
  if (typeof source.file_id !== 'string' || !isFileId(source.file_id)) return block
  const param = `${at}.source.file_id`
  const data = dataOf(source.file_id, param)
  if (!data) return block
  const { content_type: media_type, base64 } = data
  if (type === 'image' && !isImage(data)) throw mustBe('an image', param, data)
  if (type === 'image' || media_type === 'application/pdf')
    return { ...block, source: { type: 'base64', media_type, data: base64 } }
  if (!isText(data)) throw mustBe('a PDF or a text', param, data)
  const text = Buffer.from(base64, 'base64').toString()
  return { ...block, source: { type: 'text', media_type: 'text/plain', data: text } }
}

export const messagesFiles = mapContents('messages', ['content'], mapBlock)

/** Of messages, and of the outputs of tools. */
export const responsesFiles = mapContents('input', ['content', 'output'], (part, at, dataOf) => {
  if (!isRecord(part) || (part.type !== 'input_file' && part.type !== 'input_image')) return part
  const { type, file_id, filename, ...rest } = part
  if (typeof file_id !== 'string' || !isFileId(file_id)) return part
  const data = dataOf(file_id, `${at}.file_id`)
  if (!data) return part
  if (type === 'input_image' && !isImage(data)) throw mustBe('an image', `${at}.file_id`, data)
  if (isImage(data)) return { ...rest, type: 'input_image', image_url: uriOf(data) }
  return { ...rest, type, filename: filename ?? data.filename, file_data: uriOf(data) }
})

/** The address of a file as this API has it, `files/<id>`, also as a whole URL; or its id alone. */
const FILE_URI = /^(?:(?:https?:\/\/[^?#]*\/)?files\/)?([\w-]+)$/

/** Of the Gemini API, in both spellings of its fields. */
export const contentgenFiles = mapContents('contents', ['parts'], (part, at, dataOf) => {
  const file = isRecord(part) ? (part.fileData ?? part.file_data) : undefined
  const uri = isRecord(file) ? (file.fileUri ?? file.file_uri) : undefined
  const file_id = typeof uri === 'string' ? FILE_URI.exec(uri)?.[1] : undefined
  if (!isRecord(part) || file_id === undefined || !isFileId(file_id)) return part
  const data = dataOf(file_id, `${at}.fileData.fileUri`)
  if (!data) return part
  const { fileData: _, file_data: __, ...rest } = part
  const { content_type: mimeType, base64, filename: displayName } = data
  return { ...rest, inlineData: { mimeType, data: base64, displayName } }
})

/** Of a request for a count, which may hold the request that is counted. */
export const contentgenCountFiles: MapFiles = (body, dataOf) => {
  const mapped = contentgenFiles(body, dataOf)
  if (!isRecord(mapped)) return mapped
  const name = mapped.generateContentRequest === undefined ? 'generate_content_request' : 'generateContentRequest'
  const inner = contentgenFiles(mapped[name], (id, param) => dataOf(id, `generateContentRequest.${param}`))
  return inner === mapped[name] ? mapped : { ...mapped, [name]: inner }
}

type Medium = { what: string; fits(data: FileData): boolean }
const IMAGE: Medium = { what: 'an image', fits: isImage }
const VIDEO: Medium = { what: 'a video', fits: ({ content_type }) => content_type.startsWith('video/') }
const EITHER: Medium = { what: 'an image or a video', fits: (data) => IMAGE.fits(data) || VIDEO.fits(data) }

/** Members of a body that are media: an id, `{ file_id }` or `{ image_url }` in place of a URL, alone or as items of a list. */
const mapMedia =
  (media: Record<string, Medium>): MapFiles =>
  (body, dataOf) => {
    const mapOne = (value: unknown, at: string, { what, fits }: Medium): unknown => {
      const { file_id, image_url } = isRecord(value) ? value : { file_id: value }
      if (typeof image_url === 'string') return typeof file_id === 'string' ? value : image_url
      if (typeof file_id !== 'string' || !isFileId(file_id)) return value
      const param = isRecord(value) ? `${at}.file_id` : at
      const data = dataOf(file_id, param)
      if (data && !fits(data)) throw mustBe(what, param, data)
      return data ? uriOf(data) : value
    }
    const mapMember = <T>(value: T, name: string, medium: Medium): T => {
      const given = isRecord(value) ? value[name] : undefined
      if (Array.isArray(given)) return mapList(value, name, (item, at) => mapOne(item, `${name}[${at}]`, medium))
      const mapped = mapOne(given, name, medium)
      return mapped === given ? value : { ...value, [name]: mapped }
    }
    return Object.entries(media).reduce((mapped, [name, medium]) => mapMember(mapped, name, medium), body)
  }

const mapEdited = mapMedia({ image: IMAGE, images: IMAGE, mask: IMAGE })

/** Images that are edited or varied. */
export const imageFiles: MapFiles = (body, dataOf) => {
  const mapped = mapEdited(body, dataOf)
  // As JSON has the list; forms have "image".
  return isRecord(mapped) && mapped.image === undefined && Array.isArray(mapped.images)
    ? { ...mapped, image: mapped.images }
    : mapped
}

/** What a video or a 3D model is made of. */
export const orderFiles = mapMedia({
  image: IMAGE,
  last_image: IMAGE,
  images: IMAGE,
  video: VIDEO,
  input_reference: EITHER,
})
