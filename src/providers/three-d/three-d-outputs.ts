/** Shared by the 3D providers: the order of output files, and the fields that a provider may not ignore. */
import { isRecord } from '../../kit/json.ts'
import type { RemoteFile } from '../../spec/task.ts'
import { THREE_D_FORMATS, THREE_D_TYPES, type ThreeDFormat, type ThreeDOrder } from '../../spec/three-d-request.ts'
import { isHttpUrl, type OrderClient } from '../orders/order-client.ts'
import { unsupportedValue } from '../orders/order-fields.ts'
import { unsupportedField } from '../orders/order-messages.ts'
import type { TaskProgress } from '../provider.ts'

type RemoteModel = {
  format: ThreeDFormat
  /** URLs by format. */
  models: { [format in ThreeDFormat]?: unknown }
  /** The files that an OBJ file needs: its material, its textures. */
  material?: unknown
  pictures?: unknown[]
  preview?: unknown
}

/** The success of a task with the files of its model; without the requested format it has failed. */
export function modelOutputs(client: OrderClient, model: RemoteModel): TaskProgress {
  const outputs = outputFiles(model)
  return outputs.length > 0 ? { status: 'SUCCESS', outputs } : client.success([])
}

/** The requested format first, with the files it needs, then other formats, then a preview; empty without the requested one. */
function outputFiles({ format, models, material, pictures = [], preview }: RemoteModel): RemoteFile[] {
  const model = (one: ThreeDFormat): RemoteFile[] => fileOf(models[one], THREE_D_TYPES[one])
  const requested = model(format)
  if (requested.length === 0) return []
  const [{ content_type } = { content_type: '' }] = requested
  // An archive contains them already.
  const beside =
    format === 'obj' && content_type !== ARCHIVE
      ? [...fileOf(material, 'model/mtl'), ...pictures.flatMap((picture) => fileOf(picture))]
      : []
  const others = THREE_D_FORMATS.filter((one) => one !== format).flatMap(model)
  return [...requested, ...beside, ...others, ...fileOf(preview)]
}

const ARCHIVE = 'application/zip'
const BY_ENDING: Record<string, string> = {
  ...THREE_D_TYPES,
  zip: ARCHIVE,
  mtl: 'model/mtl',
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  webp: 'image/webp',
}

/** The extension of a URL's path, in lower case. */
export const endingIn = (url: string): string | undefined =>
  /\.([a-z0-9]+)$/i.exec(URL.parse(url)?.pathname ?? '')?.[1]?.toLowerCase()

/** Empty for a value that is not a URL. An archive is typed as an archive, whatever format it was listed under. */
function fileOf(value: unknown, expected?: string): RemoteFile[] {
  const url = isRecord(value) ? value.url : value
  if (typeof url !== 'string' || !isHttpUrl(url)) return []
  const ending = endingIn(url) ?? ''
  const content_type = ending === 'zip' ? ARCHIVE : (expected ?? BY_ENDING[ending])
  return [content_type === undefined ? { url } : { url, content_type }]
}

/** Fields that change the result: an order is rejected, not sent without them, when the provider does not support one. */
const SEMANTIC_FIELDS = ['prompt', 'image', 'images', 'texture', 'pbr', 'target_polycount', 'negative_prompt'] as const
export type SemanticField = (typeof SEMANTIC_FIELDS)[number]

/** Throws for a field that changes the result and is not among those that the provider's model supports. */
export function assertSupportedThreeDFields(
  order: ThreeDOrder,
  upstream: string,
  supported: readonly SemanticField[],
): void {
  for (const field of SEMANTIC_FIELDS) {
    if (supported.includes(field) || order[field] === undefined || order[field] === '') continue
    throw unsupportedField(upstream, field)
  }
}

export function assertMostImages({ length }: readonly string[], most: number, upstream: string): void {
  if (length <= most) return
  throw unsupportedValue('images', `The upstream "${upstream}" accepts at most ${most} images, not ${length}.`)
}
