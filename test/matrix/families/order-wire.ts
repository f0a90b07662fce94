/** A provider of tasks that take minutes. It responds in the formats of `test/fixtures`, one task at a time. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { TINY_GLB, TINY_MP4 } from '../../kit/tiny-files.ts'
import { PIXEL } from '../inputs.ts'
import type { FamilyKind, Started } from './family.ts'
import { BEARER, type IncomingRequest, startWire, type Wire } from './vendor.ts'

/** The directive that makes a provider fail, as the sandbox also supports it. */
export const FAILING = '@sandbox fail=content_policy_violation'

/** The head of an MP4 file without content: enough to be recognised as one. */

/** Names refer to fixtures. */
export type OrderShape = {
  directory: string
  /** The task id in the fixtures. */
  id: string
  /** The path of submissions. */
  orders: string
  /** The path of polls; `ID` is the task's id. */
  params: string
  accepted?: string
  done?: string
  failed: string
  /** The separate path of the result, and its fixtures. */
  result?: { params: string; done: string; failed: string }
  /** The path of the file, which requires the key. */
  content?: string
  auth?: Wire['auth']
  failure: Wire['failure']
}

const FIXTURES = join(import.meta.dir, '../../fixtures')
const ENDINGS: Record<string, [bytes: Uint8Array, type: string]> = {
  mp4: [TINY_MP4, 'video/mp4'],
  glb: [TINY_GLB, 'model/gltf-binary'],
  fbx: [Buffer.from('Kaydara FBX Binary  \0'), 'application/octet-stream'],
  usdz: [Buffer.from('PK\x03\x04PK\x05\x06', 'latin1'), 'model/vnd.usdz+zip'],
  obj: [Buffer.from('v 0 0 0\n'), 'text/plain'],
  mtl: [Buffer.from('newmtl red\n'), 'text/plain'],
}
const PICTURE: [bytes: Uint8Array, type: string] = [Buffer.from(PIXEL.data, 'base64'), 'image/png']

const file = (ending: string): Response => {
  const [bytes, type] = ENDINGS[ending] ?? PICTURE
  return new Response(new Uint8Array(bytes), { headers: { 'content-type': type } })
}

/** URLs of files in the fixtures are replaced by URLs of this provider. */
const FILES = /https:\/\/[^"?]+\.(mp4|glb|fbx|usdz|obj|mtl|jpg|png|webp)[^"]*/g

function startShape(shape: OrderShape): Started {
  const { directory, id, accepted = 'accepted', done = 'done', failed, result } = shape
  const failing = new Map<string, boolean>()
  const text = (name: string, own: string, origin: string) =>
    readFileSync(join(FIXTURES, directory, `${name}.json`), 'utf8')
      .replaceAll(id, own)
      .replace(FILES, (_, ending: string) => `${origin}/files/${own}.${ending}`)
  const said = (...parts: Parameters<typeof text>) => JSON.parse(text(...parts)) as object
  /** The id in a path of this form. */
  const idIn = (form: string | undefined, path: string): string | undefined => {
    const [before = '', after = ''] = form?.split('ID') ?? ['\0']
    const own = path.slice(before.length, path.length - after.length)
    return path.startsWith(before) && path.endsWith(after) && failing.has(own) ? own : undefined
  }

  function answer({ path, body, origin }: IncomingRequest): ReturnType<Wire['answer']> {
    if (path === shape.orders) {
      const own = `${id.slice(0, -4)}${1000 + failing.size}`
      failing.set(own, JSON.stringify(body).includes(FAILING))
      return said(accepted, own, origin)
    }
    const known = idIn(shape.params, path)
    // If the result has its own path, the status only says that it exists.
    if (known) return said(!result && failing.get(known) ? failed : done, known, origin)
    const resulting = idIn(result?.params, path)
    if (result && resulting) {
      if (!failing.get(resulting)) return said(result.done, resulting, origin)
      return Response.json(said(result.failed, resulting, origin), { status: 422 })
    }
    return idIn(shape.content, path) ? file('mp4') : undefined
  }
  return startWire({ auth: BEARER, ...shape, answer, file: (path) => file(path.split('.').at(-1) ?? '') })
}

export const orderKind = (shape: OrderShape, more: Omit<FamilyKind, 'start'>): FamilyKind => ({
  start: () => startShape(shape),
  ...more,
})
