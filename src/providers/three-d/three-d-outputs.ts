/** What a vendor of 3D models has made, in the order in which clients get it; and what such vendors share. */

import { isRecord } from '../../kit/json.ts'
import { GatewayError } from '../../spec/error.ts'
import type { RemoteFile } from '../../spec/task.ts'
import { THREE_D_FORMATS, THREE_D_TYPES, type ThreeDFormat, type ThreeDOrder } from '../../spec/three-d-request.ts'
import { isHttpUrl } from '../orders/order-client.ts'

type Made = {
  format: ThreeDFormat
  /** Addresses by format. */
  models: { [format in ThreeDFormat]?: unknown }
  /** What an OBJ file needs beside it: its material, its pictures. */
  material?: unknown
  pictures?: unknown[]
  preview?: unknown
}

/** The asked format first, with what it needs, then other formats, then a picture; empty without the asked one. */
export function outputFiles({ format, models, material, pictures = [], preview }: Made): RemoteFile[] {
  const model = (one: ThreeDFormat): RemoteFile[] => fileOf(models[one], THREE_D_TYPES[one])
  const asked = model(format)
  if (asked.length === 0) return []
  const [{ content_type } = { content_type: '' }] = asked
  // In an archive all is together already.
  const beside =
    format === 'obj' && content_type !== ARCHIVE
      ? [...fileOf(material, 'model/mtl'), ...pictures.flatMap((picture) => fileOf(picture))]
      : []
  const others = THREE_D_FORMATS.filter((one) => one !== format).flatMap(model)
  return [...asked, ...beside, ...others, ...fileOf(preview)]
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

/** The ending of an address's path, in lower case. */
export const endingIn = (url: string): string | undefined =>
  /\.([a-z0-9]+)$/i.exec(URL.parse(url)?.pathname ?? '')?.[1]?.toLowerCase()

/** None, where it is no address. An archive is one, whatever it was meant to be. */
function fileOf(value: unknown, expected?: string): RemoteFile[] {
  const url = isRecord(value) ? value.url : value
  if (typeof url !== 'string' || !isHttpUrl(url)) return []
  const ending = endingIn(url) ?? ''
  const content_type = ending === 'zip' ? ARCHIVE : (expected ?? BY_ENDING[ending])
  return [content_type === undefined ? { url } : { url, content_type }]
}

/** Fields that change what is made: a vendor that cannot honour one must not be asked without it. */
const SEMANTIC_FIELDS = ['prompt', 'image', 'images', 'texture', 'pbr', 'target_polycount', 'negative_prompt'] as const
export type SemanticField = (typeof SEMANTIC_FIELDS)[number]

/** Throws for each field that changes the meaning and is not among those that the vendor's model takes. */
export function assertSupportedThreeDFields(
  order: ThreeDOrder,
  upstream: string,
  takes: readonly SemanticField[],
): void {
  for (const field of SEMANTIC_FIELDS) {
    if (takes.includes(field) || order[field] === undefined || order[field] === '') continue
    throw new GatewayError(
      'unsupported_parameter',
      `The upstream "${upstream}" cannot honour "${field}" with this model and these inputs. Leave it out, or choose another model.`,
      { param: field, accepted: 'no' },
    )
  }
}
